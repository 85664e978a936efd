/* SPDX-License-Identifier: MIT */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNAL_STATUS 128 /* of a shell, for who cannot die of the signal: process 1 */

struct child {
	pid_t pid;
	int failure_fd;       /* says with what status the child failed to exec; or ends */
	sigset_t mask;        /* that we were started with */
	struct sigaction children; /* SIGCHLD, likewise */
};

static void write_failure(int fd, int status)
{
	unsigned char byte = (unsigned char)status;

	while (write(fd, &byte, 1) < 0 && errno == EINTR)
		;
}

static _Noreturn void become_command(const struct child *child, pid_t parent, int failure_fd,
		int (*execute)(void *argument), void *argument)
{
	/* Whoever kills us for good would have killed the command. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(SIGNAL_STATUS + SIGKILL);
	sigaction(SIGCHLD, &child->children, NULL);
	sigprocmask(SIG_SETMASK, &child->mask, NULL);
	int status = execute(argument);
	write_failure(failure_fd, status);
	_exit(status);
}

/* A pipe above the standard descriptors, which may be closed. */
static bool make_pipe(int ret[2])
{
	int made[2];

	if (pipe2(made, O_CLOEXEC) != 0)
		return false;
	ret[0] = fcntl(made[0], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	ret[1] = fcntl(made[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	close(made[0]);
	close(made[1]);
	return ret[0] >= 0 && ret[1] >= 0;
}

static void let_go_of_descriptors(struct child *child)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (nowhere >= 0) {
		dup2(nowhere, STDIN_FILENO);
		dup2(nowhere, STDOUT_FILENO);
	}
	if (child->failure_fd != STDERR_FILENO + 1) {
		dup2(child->failure_fd, STDERR_FILENO + 1);
		child->failure_fd = STDERR_FILENO + 1;
	}
	close_range(STDERR_FILENO + 2, UINT_MAX, 0);
}

static bool begin(struct child *child, int (*execute)(void *argument), void *argument)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	pid_t parent = getpid();
	sigset_t all;
	int failure[2];

	if (!make_pipe(failure))
		return false;
	fflush(NULL);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &child->mask);
	/* Where children are ignored, none can be waited for. */
	sigaction(SIGCHLD, &usual, &child->children);
	child->pid = fork();
	if (child->pid == 0)
		become_command(child, parent, failure[1], execute, argument);
	close(failure[1]);
	child->failure_fd = failure[0];
	return child->pid > 0;
}

/* The terminal and the kernel tell the whole group, and so the command itself; what the command
 * sends to its group it has had, too. */
static bool is_for_child(const struct child *child, const siginfo_t *info)
{
	if (info->si_signo == SIGCHLD)
		return false;
	return info->si_code != SI_KERNEL && info->si_pid != child->pid;
}

static void forward(const struct child *child, const siginfo_t *info)
{
	if (info->si_code == SI_QUEUE)
		sigqueue(child->pid, info->si_signo, info->si_value);
	else
		kill(child->pid, info->si_signo);
}

/* As the command has stopped, so that a shell gets its terminal back; until we are continued. */
static void stop_alike(int signal_number)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t pending, one;

	/* Continued already: that SIGCONT has taken back all stops, and comes next. */
	if (sigpending(&pending) == 0 && sigismember(&pending, SIGCONT))
		return;
	sigemptyset(&one);
	sigaddset(&one, signal_number);
	if (signal_number != SIGSTOP)
		sigaction(signal_number, &usual, NULL);
	raise(signal_number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	sigprocmask(SIG_BLOCK, &one, NULL);
}

/* True when it has ended. */
static bool look_after(const struct child *child, int *ret_status)
{
	int status;

	while (waitpid(child->pid, &status, WNOHANG | WUNTRACED) == child->pid) {
		if (!WIFSTOPPED(status)) {
			*ret_status = status;
			return true;
		}
		stop_alike(WSTOPSIG(status));
	}
	return false;
}

static int read_failure(int fd)
{
	unsigned char byte = 0;

	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	close(fd);
	return byte;
}

bool child_run(int (*execute)(void *argument), void *argument, struct child_end *ret)
{
	struct child child;
	sigset_t all;
	siginfo_t info;
	int status = 0;

	if (!begin(&child, execute, argument))
		return false;
	let_go_of_descriptors(&child);
	sigfillset(&all);
	while (!look_after(&child, &status)) {
		if (sigwaitinfo(&all, &info) > 0 && is_for_child(&child, &info))
			forward(&child, &info);
	}
	ret->wait_status = status;
	ret->failure = read_failure(child.failure_fd);
	return true;
}

static void die_alike(int signal_number)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t one;

	/* The core that is of interest is the command's. */
	prctl(PR_SET_DUMPABLE, 0);
	sigaction(signal_number, &usual, NULL);
	raise(signal_number);
	sigemptyset(&one);
	sigaddset(&one, signal_number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
}

int child_exit_status(int wait_status)
{
	if (!WIFSIGNALED(wait_status))
		return WEXITSTATUS(wait_status);
	die_alike(WTERMSIG(wait_status));
	return SIGNAL_STATUS + WTERMSIG(wait_status);
}
