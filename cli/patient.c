/* SPDX-License-Identifier: MIT */
#include "cli/patient.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/library.h"
#include "cli/terminal.h"
#include "core/text.h"

static bool number_read(const char *number, pid_t *ret)
{
	char *end;
	long value = strtol(number, &end, 10);

	if (*end != '\0' || value <= 0 || value > INT32_MAX)
		return false;
	*ret = (pid_t)value;
	return true;
}

bool patient_exists(const char *number)
{
	char path[64];
	pid_t pid;

	if (!number_read(number, &pid))
		return false;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return access(path, F_OK) == 0;
}

/* Where it was to be shared, as the library decides. */
static void find_segment(struct patient *patient)
{
	if (patient->config.state_private)
		return;
	if (patient->config.state_path[0] != '\0')
		text_copy(patient->segment_path, sizeof(patient->segment_path),
				patient->config.state_path);
	else
		segment_default_path_of((uint32_t)patient->process.pid,
				(uint32_t)patient->process.user, patient->segment_path,
				sizeof(patient->segment_path));
	if (patient->segment_path[0] != '\0')
		process_path(&patient->process, patient->segment_path, patient->segment_file);
}

/* The file of rules as it sees it, which is read as it is now. */
static void read_rules(struct patient *patient)
{
	struct environment *environment = &patient->process.environment;
	const char *file = environment_get(environment, "SHUNT_CONF");
	char path[PATH_MAX];

	if (file && file[0] == '/' && !patient->process.has_our_files) {
		process_path(&patient->process, file, path);
		environment_set(environment, "SHUNT_CONF", path);
	}
	config_load(&patient->config, environment->entries, NULL);
}

static bool complain(const char *number, const char *why)
{
	terminal_complain("doctor: expected a process or a command, got '%s': %s", number, why);
	return false;
}

bool patient_open(const char *number, struct patient *patient)
{
	char problem[LIBRARY_PROBLEM_SIZE];
	pid_t pid = 0;

	if (!number_read(number, &pid))
		return complain(number, "no number of a process");
	switch (process_read(pid, &patient->process)) {
	case PROCESS_GONE:
		return complain(number, "it has ended");
	case PROCESS_CLOSED:
		return complain(number, "this user may not look into it; ask as root");
	case PROCESS_KERNEL:
		return complain(number, "it is a thread of the kernel's");
	case PROCESS_READ:
		break;
	}
	library_find(patient->library, problem);
	read_rules(patient);
	find_segment(patient);
	return true;
}

void patient_close(struct patient *patient)
{
	process_finish(&patient->process);
}
