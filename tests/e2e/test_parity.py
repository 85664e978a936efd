# SPDX-License-Identifier: MIT
"""Where nothing fails a program behaves with the library as without: output, exit code, system calls."""
import os

import harness
import daemons
import parity

# Descriptors, without what differs from run to run.
EDITED = ' | sed "s/.*:.. //; s/[0-9]*\\]/]/; s/[0-9]*.fd$/fd/"'

COMMANDS = [
	'true', 'false', 'exit 42', 'echo hello; echo problem >&2; exit 3',
	'ls -l /proc/self/fd | wc -l', 'cat /etc/hostname', 'cat /does/not/exist', 'kill -TERM $$', 'kill -SEGV $$',
	'sort /etc/passwd | head -n 3', 'date -u +%Y', 'env | grep -v -e SHUNT_ -e LD_PRELOAD -e ^_= | sort',
	'exec 0<&- 1>&-; echo lost; exit 5', 'sleep 0.1 & wait; echo done', '(exec bash -c "echo inner; exit 9"); echo $?',
	'curl -s URL', 'curl -si URL | grep -v -i date', 'curl -sf URL/missing; echo $?', 'curl -s URL URL URL', 'curl -sI URL | head -n 1',
	'curl -s --tcp-fastopen URL', 'curl -s --tcp-fastopen http://HOST:1/; echo $?',
	'wget -qO- URL', 'wget -qO- URL/missing; echo $?', 'exec 3<>/dev/tcp/HOST/PORT; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; tail -n 1 <&3',
	'printf "GET / HTTP/1.0\\r\\n\\r\\n" | nc -N HOST PORT | tail -n 1',
	'/usr/bin/python3 -c "import urllib.request as u; print(u.urlopen(\'URL\').read())"',
	'/usr/bin/python3 -c "import random; random.seed(1); print(random.random())"',
	'/usr/bin/python3 -c "import subprocess; print(subprocess.run([\'echo\', \'child\'], capture_output=True))"',
	'/usr/bin/python3 -c "import os; r = os.fork(); r and print(os.waitpid(r, 0)[1]); r or os._exit(4)"',
	'/usr/bin/python3 -c "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"',
	'/usr/bin/python3 -c "import threading; print(threading.active_count(), len(__import__(\'os\').listdir(\'/proc/self/task\')))"',
	'/usr/bin/python3 -c "import socket; s = socket.socket(); print(s.fileno(), s.connect_ex((\'HOST\', 1)))"',
	'perl -e \'print "perl\\n"; exit 6\'', 'git --version', 'node -e "fetch(\'URL\').then((r) => r.text()).then(console.log)"',
	'openssl version', 'getent hosts localhost', 'bash -c "ulimit -n; exec 200>/dev/null; ls /proc/self/fd | tail -n 1"',
	'ls -l /proc/self/fd' + EDITED,
	'/usr/bin/python3 -c "import os, socket; s = socket.socket(); s.connect_ex((\'HOST\', 1)); os.execlp(\'ls\', \'ls\', \'-l\', \'/proc/self/fd\')"' + EDITED,
	'/usr/bin/python3 -c "import os, socket; os.closerange(3, 65536); print([socket.socket().connect_ex((\'HOST\', PORT)) for i in range(3)])"',
	'ssh -o ConnectTimeout=5 -o BatchMode=yes -p 1 HOST true; echo $?',
	# On a terminal.
	'script -qec "tty -s && stty size; ls --color=auto -d /; TERM=xterm less -FX /etc/hostname; top -b -n 1 | sed -n 7p" /dev/null',
]

TRACED = {
	'curl': 'curl -s -o /dev/null URL/',
	'wget': 'wget -q -O /dev/null URL/',
	'python': '/usr/bin/python3 -c "import urllib.request as u; u.urlopen(\'URL\').read()"',
	'bash': 'bash -c "exec 3<>/dev/tcp/HOST/PORT; printf \'GET / HTTP/1.0\\r\\n\\r\\n\' >&3; read -r line <&3"',
	'git': 'git --version',
	'ls': 'ls -l /proc/self/fd',
}
LOOSE = {'poll', 'ppoll', 'select', 'pselect6', 'futex', 'recvfrom', 'read', 'sched_yield', 'brk', 'mmap', 'munmap', 'mprotect', 'madvise',
	'getrandom', 'restart_syscall', 'rt_sigaction', 'rt_sigreturn', 'wait4'}

LOGGED = 'an open circuit for another port, and a log'
WAYS = {
	'no rule': {},
	'a rule that matches nothing': {'OTHER': '192.0.2.1:9'},
	'a rule whose circuit is closed': {'TARGET': '127.0.0.1:PORT'},
	LOGGED: {'OTHER': '127.0.0.1:1 force=open', 'TARGET': '127.0.0.1:PORT'},
}


# The child that libc's fork made, and one that libc knows nothing of.
FORKS = r'''
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
for port, fork in (1, os.fork), (2, lambda: libc.syscall(57)):
	pid = fork()
	if pid == 0:
		socket.socket().connect_ex(('127.0.0.1', port))
		os._exit(0)
	os.waitpid(pid, 0)
	print(pid, flush=True)
'''


class Parity(harness.Case):
	@classmethod
	def setUpClass(cls):
		cls.results = {}
		cls.nginx = daemons.Nginx()
		cls.addClassCleanup(cls.nginx.close)

	def fill_in(self, text):
		port = str(self.nginx.port)
		return text.replace('URL', f'http://127.0.0.1:{port}').replace('HOST', '127.0.0.1').replace('PORT', port)

	def runs(self, command):
		"""Bare, and in each way, side by side; once for all tests."""
		if command not in self.results:
			argv = ['bash', '-c', self.fill_in(command)]
			functions = [lambda: parity.run(argv, library=False, traced=False)]
			for way, rules in WAYS.items():
				rules = {name: self.fill_in(rule) for name, rule in rules.items()}
				settings = {'SHUNT_LOG': '/dev/null'} if way == LOGGED else {}
				functions.append(lambda rules=rules, settings=settings: parity.run(argv, rules, settings, traced=False))
			self.results[command] = dict(zip(['bare', *WAYS], harness.side_by_side(functions)))
		return self.results[command]

	def assertSame(self, way):
		for command in COMMANDS:
			with self.subTest(command=command):
				bare, ours = self.runs(command)['bare'], self.runs(command)[way]
				self.assertEqual((ours.returncode, ours.stdout, ours.stderr), (bare.returncode, bare.stdout, bare.stderr))

	def test_without_a_rule(self):
		self.assertSame('no rule')

	def test_with_a_rule_that_matches_nothing(self):
		self.assertSame('a rule that matches nothing')

	def test_with_a_rule_whose_circuit_is_closed(self):
		self.assertSame('a rule whose circuit is closed')

	def test_with_an_open_circuit_for_another_port_and_a_log(self):
		self.assertSame(LOGGED)

	def test_the_events_of_a_forked_child_bear_its_number(self):
		"""Which it learns without asking the kernel."""
		if os.uname().machine != 'x86_64':
			self.skipTest('no fork among the system calls of this machine')
		self.rules['TARGET'] = '127.0.0.1:1-2 consecutive=1'
		result = self.run_program([harness.PYTHON, '-c', FORKS])
		self.assertEqual(result.returncode, 0, result)
		tripped = [str(event['pid']) for event in self.events() if event['event'] == 'tripped']
		self.assertEqual(tripped, result.stdout.split())

	def test_real_programs_make_the_same_system_calls(self):
		"""From main() on. How often they wait hangs on the moment that bytes arrive, and how often they ask for
		memory on what the loader left them."""
		if not parity.can_trace():
			self.skipTest('needs strace, and the right to use it')
		for name, command in TRACED.items():
			argv = ['bash', '-c', 'exec ' + self.fill_in(command)]
			bare = parity.run(argv, library=False, marked=True)
			self.assertEqual(bare.returncode, 0, bare)
			for what, rules in WAYS.items():
				with self.subTest(name, rules=what):
					rules = {rule: self.fill_in(text) for rule, text in rules.items()}
					ours = parity.run(argv, rules, marked=True)
					self.assertGreater(sum(bare.calls[parity.MAIN].values()), 20, bare.calls)
					self.assertEqual(parity.difference(*(parity.without(run.calls[parity.MAIN], LOOSE)
						for run in (bare, ours))), [])


if __name__ == '__main__':
	harness.main()
