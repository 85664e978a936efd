# SPDX-License-Identifier: MIT
"""The command's part in faults: run that stays beside the program and looks as if it had not, fault add, list
and clear, explain, check and the manual. What is injected, other tests show."""
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import time
import unittest

import harness
from harness import SHUNT, wait_until

RULE = 'dead.internal:9 refuse'
MANUAL = os.path.join(harness.ROOT, 'docs', 'shunt.7')
REASONS = ['chance', 'number', 'times', 'time', 'impossible', 'unreached', 'mode']

# Tells each signal that it gets, and each line that it reads; ends with 7 when told to.
LISTENER = r'''
import os, signal, sys
def tell(number, frame):
	os.write(1, (signal.Signals(number).name + '\n').encode())
for name in sys.argv[1].split(','):
	signal.signal(getattr(signal, name), tell)
os.write(1, b'ready\n')
while True:
	line = os.read(0, 100).decode()
	if not line or line == 'quit\n':
		sys.exit(7)
	os.write(1, b'heard ' + line.encode())
'''


class _Run(harness.Case):
	def setUp(self):
		super().setUp()
		self.report = os.path.join(self.scratch, 'report')

	def arguments(self, *command, options=()):
		return [SHUNT, 'run', '--fault', RULE, '--report', self.report, *options, '--', *command]

	def environment(self, library=True, extra=None):
		return {**super().environment(False, extra), **self.shunt_variables()}

	def stay(self, *command, options=(), **keywords):
		"""A command under a run that stays; what run itself said is its last line."""
		return self.run_program(self.arguments(*command, options=options), **keywords)

	def start_listener(self, signals, **keywords):
		process = self.start(self.arguments(harness.PYTHON, '-c', LISTENER, signals),
			stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, **keywords)
		self.assertEqual(self.read_line(process), 'ready\n')
		return process

	def read_line(self, process):
		"""Of one that was started without a buffer."""
		self.assertTrue(select.select([process.stdout], [], [], 60)[0], 'it is silent')
		return process.stdout.readline().decode()

	def quit(self, process):
		out, err = process.communicate(b'quit\n', 60)
		self.assertEqual(process.returncode, 7, err)
		return out.decode().split()


class RunStays(_Run):
	def test_exit_statuses(self):
		for code in (0, 1, 42, 125, 255):
			result = self.stay('sh', '-c', f'exit {code}')
			self.assertEqual(result.returncode, code, result)
			self.assertEqual(result.stderr, 'shunt: RUN1: 0 calls seen, 0 matched, 0 injected\n')

	def test_death_by_a_signal_is_its_own(self):
		for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGSEGV, signal.SIGRTMIN + 3):
			result = self.stay('sh', '-c', f'kill -{int(number)} $$')
			self.assertEqual(result.returncode, -number, result)
			self.assertIn('0 injected', result.stderr)

	def test_a_command_that_cannot_start(self):
		missing = self.stay('no-such-command')
		self.assertEqual(missing.returncode, 127, missing)
		self.assertRegex(missing.stderr, r"\Ashunt: run: .*'no-such-command'.*\n\Z")
		refused = self.stay(self.scratch, options=['--require-hits'])
		self.assertEqual(refused.returncode, 126, refused)
		self.assertEqual(len(refused.stderr.splitlines()), 1, refused)

	def test_it_stays_only_where_there_is_something_to_tell(self):
		for options in ([], ['--seed', '3']):
			process = self.start([SHUNT, 'run', '--fault', RULE, *options, 'sh', '-c', 'echo $$'],
				stdout=subprocess.PIPE)
			self.assertEqual(int(process.communicate(timeout=60)[0]), process.pid)
		for options in (['--report', self.report], ['--verbose'], ['--require-hits']):
			process = self.start([SHUNT, 'run', '--fault', RULE, *options, 'sh', '-c', 'echo $PPID'],
				stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
			self.assertEqual(int(process.communicate(timeout=60)[0]), process.pid)

	def test_the_command_is_in_our_process_group_with_our_signals(self):
		# Not by a shell, which has its own mind about them.
		command = ['grep', '-E', '^(Sig(Blk|Ign|Cgt)|NSpgid)', '/proc/self/status']
		def prepare():
			signal.signal(signal.SIGCHLD, signal.SIG_IGN)
			signal.signal(signal.SIGHUP, signal.SIG_IGN)
			signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
		for preexec in (None, prepare):
			seen = []
			for argv in (command, self.arguments(*command)):
				process = self.start(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
					preexec_fn=preexec)
				out = process.communicate(timeout=60)[0].decode()
				self.assertEqual(process.returncode, 0)
				seen.append(out.replace(str(process.pid), 'GROUP'))
			self.assertEqual(seen[1], seen[0])
			self.assertIn('GROUP', seen[0])

	def test_signals_reach_the_command_once(self):
		names = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGINT', 'SIGQUIT', 'SIGCONT', 'SIGWINCH', 'SIGALRM']
		process = self.start_listener(','.join(names))
		for name in names:
			process.send_signal(getattr(signal, name))
			self.assertEqual(self.read_line(process), name + '\n')
		self.assertEqual(self.quit(process), [])

	def test_what_kills_us_kills_the_command(self):
		process = self.start_listener('SIGTERM')
		process.kill()
		# The end of its output: the command held that alone.
		self.assertTrue(select.select([process.stdout], [], [], 60)[0])
		self.assertEqual(process.stdout.read(), b'')

	def test_a_pipe_ends_when_the_command_closes_it(self):
		process = self.start(self.arguments('sh', '-c', 'exec 1>&-; read line; exit 3'),
			stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
		self.assertTrue(select.select([process.stdout], [], [], 60)[0], 'the pipe is still open')
		self.assertEqual(process.stdout.read(), b'')
		self.assertIsNone(process.poll())
		process.communicate(b'on\n', 60)
		self.assertEqual(process.returncode, 3)

	def test_it_reads_no_input_itself(self):
		result = self.run_program(['sh', '-c', '"$@"; cat', 'sh', *self.arguments('head', '-c', '2')],
			stdin=b'abcdef')
		self.assertEqual(result.stdout, 'abcdef', result)

	def test_it_stops_as_the_command_stops(self):
		process = self.start(self.arguments('sh', '-c', 'kill -STOP $$; exit 9'), stderr=subprocess.DEVNULL)
		seen = []

		def has_stopped():
			pid, status = os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG)
			if pid:
				seen.append(status)
			return pid
		wait_until(has_stopped, 60, 'it has stopped')
		self.assertTrue(os.WIFSTOPPED(seen[0]), seen)
		self.assertEqual(os.WSTOPSIG(seen[0]), signal.SIGSTOP)
		process.send_signal(signal.SIGCONT)
		self.assertEqual(process.wait(60), 9)

	def test_descriptors_are_the_commands(self):
		script = 'ls /proc/self/fd | tr "\\n" " "'
		self.assertEqual(self.stay('sh', '-c', script).stdout, self.run_program(['sh', '-c', script]).stdout)

	def test_standard_descriptors_may_be_closed(self):
		result = self.run_program(['sh', '-c', 'exec 0<&- 1>&- 2>&-; "$@"', 'sh',
			*self.arguments('sh', '-c', 'exit 5')])
		self.assertEqual(result.returncode, 5, result)


class Terminal:
	"""An interactive bash on a terminal of its own."""

	def __init__(self, case, env):
		self.case, self.text, self.earlier = case, '', ''
		self.pid, self.fd = pty.fork()
		if self.pid == 0:
			os.chdir(case.scratch)
			os.execve('/bin/bash', ['bash', '--norc', '--noprofile', '-i'], {**env, 'PS1': 'prompt>'})
		case.addCleanup(self.end)
		self.expect('prompt>')

	def end(self):
		os.kill(self.pid, signal.SIGHUP)
		os.close(self.fd)
		os.kill(self.pid, signal.SIGKILL)
		os.waitpid(self.pid, 0)

	def type(self, text):
		self.earlier, self.text = self.earlier + self.text, ''
		os.write(self.fd, text.encode())

	def expect(self, pattern):
		deadline = time.monotonic() + 60
		while not re.search(pattern, self.text):
			left = deadline - time.monotonic()
			self.case.assertGreater(left, 0, f'no {pattern!r} in {self.text!r}')
			if select.select([self.fd], [], [], left)[0]:
				self.text += os.read(self.fd, 4096).decode(errors='replace')


class JobControl(_Run):
	def setUp(self):
		super().setUp()
		if not os.path.exists('/bin/bash'):
			self.skipTest('needs bash')
		with open(os.path.join(self.scratch, 'listener'), 'w', encoding='ascii') as file:
			file.write(LISTENER)
		self.terminal = Terminal(self, self.environment())

	def listen(self, signals, behind=''):
		command = ' '.join(f"'{word}'" for word in self.arguments(harness.PYTHON, 'listener', signals))
		self.terminal.type(f'{command} {behind}; echo "status=$?"\n')
		self.terminal.expect(r'\nready')

	def test_keys_reach_the_command_once(self):
		self.listen('SIGINT,SIGQUIT')
		self.terminal.type('\x03')
		self.terminal.expect(r'SIGINT\r')
		self.terminal.type('\x1c')
		self.terminal.expect(r'SIGQUIT\r')
		self.terminal.type('quit\n')
		self.terminal.expect('status=7')
		text = self.terminal.earlier + self.terminal.text
		self.assertEqual((text.count('SIGINT\r'), text.count('SIGQUIT\r')), (1, 1), text)

	def test_it_is_stopped_and_goes_on_in_the_foreground(self):
		self.listen('SIGCONT')
		for _ in range(2):
			self.terminal.type('one\n')
			self.terminal.expect('heard one')
			self.terminal.type('\x1a')
			self.terminal.expect('Stopped')
			self.terminal.expect('prompt>')
			self.terminal.type('echo "$((40 + 2)) of the shell"\n')
			self.terminal.expect('\n42 of the shell')
			self.terminal.type('fg\n')
			self.terminal.expect(r'SIGCONT\r')
		self.terminal.type('two\n')
		self.terminal.expect('heard two')
		self.terminal.type('quit\n')
		self.terminal.expect('prompt>')
		self.terminal.type('echo "status=$?"\n')
		self.terminal.expect('\nstatus=7')

	def test_the_terminal_is_not_taken_in_the_background(self):
		command = ' '.join(f"'{word}'" for word in self.arguments('cat'))
		self.terminal.type(f'{command} &\n')
		self.terminal.expect('prompt>')
		self.terminal.type('while ! jobs %1 | grep Stopped; do sleep 0.1; done; echo "seen"\n')
		self.terminal.expect('\nseen')
		self.terminal.type('fg\n')
		self.terminal.expect('cat')
		self.terminal.type('hello\n')
		self.terminal.expect('hello\r\nhello')
		self.terminal.type('\x04')
		self.terminal.expect('prompt>')

	def test_the_next_in_a_pipeline_has_the_terminal(self):
		self.listen('SIGINT', behind='| cat')
		self.terminal.type('three\n')
		self.terminal.expect('heard three')
		self.terminal.type('quit\n')
		self.terminal.expect('status=0')

	def test_a_shell_inside_has_jobs_of_its_own(self):
		self.terminal.type(' '.join(f"'{word}'" for word in
			self.arguments('env', 'PS1=inner>', 'bash', '--norc', '--noprofile', '-i')) + '\n')
		self.terminal.expect(r'\ninner>')
		self.terminal.type('sh -c \'echo "at $((40 + 2))"; exec sleep 1000\'\n')
		self.terminal.expect('at 42')
		self.terminal.type('\x1a')
		self.terminal.expect('Stopped')
		self.terminal.expect(r'\ninner>')
		self.terminal.type('kill %1; suspend -f\n')
		self.terminal.expect('prompt>')
		self.terminal.type('fg\n')
		self.terminal.expect(r'\ninner>')
		self.terminal.type('exit 6\n')
		self.terminal.expect('prompt>')
		self.terminal.type('echo "status=$?"\n')
		self.terminal.expect('\nstatus=6')


class RunOptions(_Run):
	def variables(self, *options):
		result = self.run_program([SHUNT, 'run', *options, '--', 'env'])
		self.assertEqual(result.returncode, 0, result)
		return dict(line.split('=', 1) for line in result.stdout.splitlines() if '=' in line)

	def test_rules_report_and_number_reach_the_command(self):
		env = self.variables('--fault', RULE, '--fault=b.internal,close=3B', '--report', 'report')
		self.assertEqual((env['SHUNT_FAULT_RUN1'], env['SHUNT_FAULT_RUN2']), (RULE, 'b.internal,close=3B'))
		self.assertEqual(env['SHUNT_REPORT'], os.path.realpath(self.report))
		first = int(env['SHUNT_RUN'])
		self.assertNotIn('SHUNT_REPLAY', env)
		self.assertNotEqual(int(self.variables('--fault', RULE)['SHUNT_RUN']), first)
		self.settings['SHUNT_RUN'] = '17'
		self.assertEqual(self.variables('--fault', RULE)['SHUNT_RUN'], '17')

	def test_rules_of_the_environment_stay_beside_those_of_options(self):
		self.settings['SHUNT_FAULT_RUN1'] = RULE
		env = self.variables('--fault', RULE)
		self.assertEqual((env['SHUNT_FAULT_RUN1'], env['SHUNT_FAULT_RUN2']), (RULE, RULE))

	def test_a_seed_is_chosen_and_told(self):
		self.assertEqual(self.variables('--fault', RULE, '--seed', '7')['SHUNT_SEED'], '7')
		self.assertNotIn('SHUNT_SEED', self.variables('--break', 'a.internal'))
		result = self.run_program([SHUNT, 'run', '--verbose', '--fault', RULE, 'sh', '-c', 'echo $SHUNT_SEED'])
		self.assertRegex(result.stdout, r'\A\d+\n\Z')
		self.assertIn(f'the same faults again: --seed {result.stdout}', result.stderr)

	def test_a_report_begins_empty(self):
		with open(self.report, 'w', encoding='ascii') as file:
			file.write('of another run\n')
		self.assertEqual(self.stay('true').returncode, 0)
		self.assertEqual(os.path.getsize(self.report), 0)

	def refused(self, *options):
		result = self.run_program([SHUNT, 'run', *options, '--', 'echo', 'ran'])
		self.assertEqual((result.returncode, result.stdout), (125, ''), result)
		return result.stderr

	def test_a_report_that_cannot_be_written(self):
		self.assertIn("--report: expected a regular file that can be written, got '/no/such/file': No such file",
			self.refused('--fault', RULE, '--report', '/no/such/file'))

	def special_files(self):
		"""(path, what it is)"""
		path = {name: os.path.join(self.scratch, name) for name in ('file', 'link', 'loose', 'pipe', 'socket')}
		with open(path['file'], 'w', encoding='ascii') as file:
			file.write('kept\n')
		os.symlink(path['file'], path['link'])
		os.symlink(os.path.join(self.scratch, 'nowhere'), path['loose'])
		os.mkfifo(path['pipe'])
		with socket.socket(socket.AF_UNIX) as listener:
			listener.bind(path['socket'])
		return ((path['link'], 'a symbolic link'), (path['loose'], 'a symbolic link'), (path['pipe'], 'a pipe'),
			(path['socket'], 'a socket'), (self.scratch, 'a directory'), ('/dev/full', 'a device'),
			('/dev/stdout', 'a symbolic link'))

	def test_a_report_that_the_library_would_not_write(self):
		for path, kind in self.special_files():
			self.assertEqual(self.refused('--fault', RULE, '--report', path),
				f"shunt: run: --report: expected a regular file that can be written, got '{path}': {kind}\n")
		self.assertFalse(os.path.exists(os.path.join(self.scratch, 'nowhere')))
		with open(os.path.join(self.scratch, 'file'), encoding='ascii') as file:
			self.assertEqual(file.read(), 'kept\n')

	def test_a_pipe_that_is_read_is_no_report_either(self):
		path = os.path.join(self.scratch, 'pipe')
		os.mkfifo(path)
		reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
		self.addCleanup(os.close, reader)
		self.assertIn(f"got '{path}': a pipe", self.refused('--fault', RULE, '--report', path))

	def test_a_replay_is_a_regular_file(self):
		"""Nobody waits for the writer of a pipe."""
		for path, kind in self.special_files():
			if kind in ('a pipe', 'a directory', 'a device'):
				self.assertEqual(self.refused('--fault', RULE, '--replay', path),
					f"shunt: run: --replay: expected a report of an earlier run, got '{path}': {kind}\n")

	def test_a_report_is_one_file(self):
		self.assertIn("--report: expected a file, got '-'", self.refused('--fault', RULE, '--report', '-'))
		self.assertIn("--replay: expected a file, got '-'", self.refused('--fault', RULE, '--replay', '-'))
		self.assertIn('expected --report once, got it again',
			self.refused('--fault', RULE, '--report', self.report, '--report', self.report + '2'))
		self.assertFalse(os.path.exists(self.report))

	def test_the_kill_switch_is_no_pass(self):
		self.settings['SHUNT_OFF'] = '1'
		self.assertIn('--require-hits: expected a fault to be injected, got SHUNT_OFF',
			self.refused('--fault', RULE, '--require-hits'))
		result = self.stay('sh', '-c', 'exit 3')
		self.assertEqual((result.returncode, result.stderr),
			(3, 'shunt: run: SHUNT_OFF is set: nothing is guarded, nothing injected\n'))

	def test_every_hit_is_required_of_a_segment(self):
		self.settings['SHUNT_STATE'] = 'private'
		self.assertIn('--require-hits: expected a segment in which hits can be counted',
			self.refused('--fault', RULE, '--require-hits'))

	def test_many_runs_after_each_other_are_counted(self):
		for _ in range(40):
			result = self.run_program([SHUNT, 'run', '--fault', RULE, '--verbose', 'true'])
			self.assertIn('shunt: RUN1: 0 calls seen, 0 matched, 0 injected\n', result.stderr)

	def test_hits_that_cannot_be_counted_are_not_required(self):
		for number in range(32):
			self.shunt('fault', 'add', f'F{number}', 'x.internal refuse', '--for', '1h')
		self.assertIn('--require-hits: expected room to count RUN1, got none',
			self.refused('--fault', RULE, '--require-hits'))

	def test_no_hit_is_125(self):
		result = self.stay('sh', '-c', 'echo ran; exit 3', options=['--require-hits'])
		self.assertEqual((result.returncode, result.stdout), (125, 'ran\n'), result)
		self.assertEqual(result.stderr, 'shunt: run: --require-hits: expected a fault to be injected, '
			'got none: RUN1: 0 calls seen, 0 matched, 0 injected\n')

	def test_exclusions_alone_are_no_rule(self):
		for option in ('--fault', '--break'):
			result = self.shunt('run', option, '^a.internal', '--', 'true')
			self.assertEqual(result.returncode, 125, result)
			self.assertIn('expected a rule, got exclusions (^) alone', result.stderr)

	def test_a_bad_rule_is_named_by_its_option(self):
		self.assertRegex(self.refused('--fault', 'a.internal rate=64'),
			r"\Ashunt: run: --fault 'a\.internal rate=64': rate: expected a rate such as .*, got '64', did .*\n\Z")

	def write(self, *lines):
		path = os.path.join(self.scratch, 'replay')
		with open(path, 'w', encoding='ascii') as file:
			file.write(''.join(line + '\n' for line in lines))
		return path

	def test_a_replay_is_read_before_the_start(self):
		line = '{"rule": "RUN1", "connection": 1, "call": 1, "fault": "refuse", "value": 0}'
		path = self.write(line)
		self.assertEqual(self.variables('--fault', RULE, '--replay', 'replay')['SHUNT_REPLAY'],
			os.path.realpath(path))
		self.assertIn("--replay: expected a report of an earlier run, got '/no/such'",
			self.refused('--fault', RULE, '--replay', '/no/such'))
		self.assertRegex(self.refused('--fault', RULE, '--replay', self.write(line, 'nonsense')),
			r"--replay .*/replay:2: expected .*, got 'nonsense'")
		self.assertRegex(self.refused('--fault', RULE, '--replay', self.write(line.replace('RUN1', 'PAY'))),
			r"--replay .*/replay:1: expected the name of a fault rule, got 'PAY'; give the rules")

	def test_a_replay_is_of_the_same_faults(self):
		line = '{"rule": "RUN1", "connection": 1, "call": 1, "fault": "latency", "value": 5}'
		self.assertRegex(self.refused('--fault', RULE, '--replay', self.write(line)),
			r"--replay .*/replay:1: expected the fault refuse of RUN1, got 'latency'; give the rules of the run")
		path = self.write(line.replace('latency', 'refuse'))
		result = self.run_program([SHUNT, 'run', '--verbose', '--fault', RULE, '--replay', path, 'true'])
		self.assertEqual(result.returncode, 0, result)
		self.assertNotIn('--seed', result.stderr)

	def test_a_replay_is_not_overwritten(self):
		line = '{"rule": "RUN1", "connection": 1, "call": 1, "fault": "refuse", "value": 0}'
		path = self.write(line)
		self.assertIn('--report: expected another file than that of --replay',
			self.refused('--fault', RULE, '--replay', path, '--report', 'replay'))
		with open(path, encoding='ascii') as file:
			self.assertEqual(file.read(), line + '\n')

	def test_verbose_tells_the_faults(self):
		result = self.run_program([SHUNT, 'run', '--verbose', '--fault', RULE, 'true'])
		self.assertEqual((result.returncode, result.stdout), (0, ''), result)
		self.assertIn(f'shunt: run: fault RUN1: {RULE}\n', result.stderr)
		self.assertTrue(result.stderr.endswith('shunt: RUN1: 0 calls seen, 0 matched, 0 injected\n'), result)


# Connects so often to a port of this host, or once for each line that it reads.
CONNECTOR = r'''
import socket, sys
port, times = int(sys.argv[1]), sys.argv[2]
for _ in sys.stdin if times == 'lines' else range(int(times)):
	try:
		socket.create_connection(('127.0.0.1', port), 60).close()
		print('made', flush=True)
	except OSError as error:
		print(error.strerror, flush=True)
sys.exit(4)
'''


# Connects thrice where something is in a report's way.
SPOILED = r'''
import os, resource, shutil, signal, socket, sys
had = []
signal.signal(signal.SIGXFSZ, lambda *_: had.append('SIGXFSZ'))
exec(sys.argv[2])
for _ in range(3):
	with socket.socket() as connection:
		print(os.strerror(connection.connect_ex(('127.0.0.1', int(sys.argv[1])))), *had)
'''

# What is in the way, and whether a root directory of one's own is needed for it.
SPOILS = {
	'no descriptor is left': 'free = os.dup(0); os.close(free); resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, free + 1))',
	'files may not grow': 'resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))',
	'its directory is gone': 'shutil.rmtree("reports")',
	'it was made a link': 'os.rename("reports/report", "other"); os.symlink("../other", "reports/report")',
	'it was made a pipe': 'os.unlink("reports/report"); os.mkfifo("reports/report")',
	'the root is another': 'os.mkdir("root"); os.chroot("root")',
}


class RunHits(harness.Case):
	def setUp(self):
		super().setUp()
		server = self.server()
		server.healthy()
		self.port = server.port
		self.report = os.path.join(self.scratch, 'report')

	def run_connector(self, rule, *options, times=8):
		return self.run_program([SHUNT, 'run', '--fault', rule, *options, '--', harness.PYTHON, '-c', CONNECTOR,
			str(self.port), str(times)], library=False, extra=self.shunt_variables())

	def lines(self):
		with open(self.report, encoding='ascii') as file:
			return file.read().splitlines()

	def test_a_hit_leaves_the_status_to_the_command(self):
		result = self.run_connector(f'127.0.0.1:{self.port} refuse calls=2..3', '--require-hits', '--report', self.report)
		self.assertEqual(result.returncode, 4, result)
		self.assertEqual(result.stdout.split('\n')[:4], ['made', 'Connection refused', 'Connection refused', 'made'])
		self.assertRegex(result.stderr,
			r'\Ashunt: RUN1: \d+ calls? seen, 8 matched, 2 injected, 6 suppressed \(number\)\n\Z')
		self.assertEqual([json.loads(line)['connection'] for line in self.lines()], [2, 3])

	def test_a_report_that_was_lost_is_said(self):
		for spoil, words in ((f': > {self.report}', f"expected 2 lines, one for each injection, got 0 in '{self.report}'"),
				(f'rm {self.report}', f"expected the report, got none in '{self.report}': No such file")):
			result = self.run_program([SHUNT, 'run', '--fault', f'127.0.0.1:{self.port} refuse times=2', '--report',
				self.report, '--', 'sh', '-c', f'"$@"; {spoil}; exit 5', 'sh', harness.PYTHON, '-c', CONNECTOR,
				str(self.port), '3'], library=False, extra=self.shunt_variables())
			self.assertEqual(result.returncode, 5, result)
			self.assertIn(f'shunt: run: --report: {words}', result.stderr)

	def run_spoiled(self, spoil, prefix=()):
		"""Each of three injections was carried out, and is told to be missing in the report."""
		directory = os.path.join(self.scratch, 'reports')
		os.makedirs(directory, exist_ok=True)
		self.report = os.path.join(directory, 'report')
		result = self.run_program([*prefix, SHUNT, 'run', '--fault', f'127.0.0.1:{self.port} refuse', '--report',
			self.report, '--', harness.PYTHON, '-c', SPOILED, str(self.port), spoil], library=False,
			extra=self.shunt_variables())
		self.assertEqual((result.returncode, result.stdout), (0, 'Connection refused\n' * 3), result)
		self.assertRegex(result.stderr, r'\Ashunt: RUN1: \d+ calls seen, 3 matched, 3 injected, 3 of them not reported\n')

	def test_a_line_that_could_not_be_written_is_counted(self):
		as_root = [] if os.geteuid() == 0 else ['unshare', '-r']
		for what, spoil in SPOILS.items():
			with self.subTest(what):
				self.run_spoiled(spoil, as_root if 'chroot' in spoil else [])
				shutil.rmtree(os.path.join(self.scratch, 'reports'), ignore_errors=True)
		self.assertEqual({fault['unreported'] for fault in self.status()['faults']}, {3})

	def test_a_line_for_which_the_disk_has_no_room_is_counted(self):
		unshare = ['unshare', '-m'] if os.geteuid() == 0 else ['unshare', '-rm']
		self.run_spoiled('', [*unshare, 'sh', '-c', 'mount -t tmpfs -o size=4k none reports && '
			'{ head -c 8192 /dev/zero >reports/all 2>/dev/null; exec "$@"; }', 'sh'])

	def test_each_rule_is_told(self):
		result = self.run_connector(f'127.0.0.1:{self.port} refuse times=1', '--fault', 'any refuse calls=100',
			'--report', self.report)
		self.assertRegex(result.stderr, r'\Ashunt: RUN1: .*, 8 matched, 1 injected, 7 suppressed \(times\); '
			r'RUN2: .*, 8 matched, 0 injected, 8 suppressed \(number\)\n\Z')

	def test_a_replay_injects_the_same_and_nothing_else(self):
		rule = f'127.0.0.1:{self.port} refuse 40%'
		first = self.run_connector(rule, '--report', self.report, times=40)
		lines = self.lines()
		self.assertTrue(0 < len(lines) < 40, lines)
		self.assertEqual(first.stdout.count('refused'), len(lines))
		os.rename(self.report, self.report + '.first')
		for seed in ('1', '2'):
			again = self.run_connector(rule, '--replay', self.report + '.first', '--report', self.report, '--seed', seed,
				times=40)
			self.assertEqual((again.stdout, self.lines()), (first.stdout, lines))

	def test_what_did_not_come_about_is_not_impossible(self):
		result = self.run_connector(f'127.0.0.1:{self.port} reset=64KiB', '--report', self.report, times=3)
		self.assertRegex(result.stderr, r', 3 matched, 0 injected, 3 suppressed \(unreached\)\n\Z')

	def test_a_loop_of_programs_leaves_room_for_other_events(self):
		began = time.monotonic()
		result = self.run_program([SHUNT, 'run', '--fault', f'127.0.0.1:{self.port} refuse', '--', 'sh', '-c',
			'for i in 1 2 3 4 5 6 7 8 9 10; do "$@"; done; exit 6', 'sh', harness.PYTHON, '-c', CONNECTOR, str(self.port), '1'],
			library=False, extra=self.shunt_variables())
		self.assertEqual((result.returncode, result.stdout), (6, 'Connection refused\n' * 10), result)
		injected = [event for event in self.events() if event['event'] == 'injected']
		self.assertTrue(1 <= len(injected) <= 1 + time.monotonic() - began, injected)

	def test_a_replay_tells_how_much_of_it_came_again(self):
		rule = f'127.0.0.1:{self.port} refuse calls=2+2'
		self.run_connector(rule, '--report', self.report)
		os.rename(self.report, self.report + '.first')
		again = self.run_connector(rule, '--replay', self.report + '.first', '--report', self.report, times=5)
		self.assertTrue(again.stderr.endswith(', 3 suppressed (number); replayed 2 of 4\n'), again)

	def run_guarded(self, *options, extra=None, port=None):
		return self.run_program([SHUNT, 'run', '--break', 'other.internal', *options, '--', harness.PYTHON, '-c', CONNECTOR,
			str(port or self.port), '3'], library=False, extra={**self.shunt_variables(), **(extra or {})})

	def test_a_fault_added_by_hand_is_a_hit_and_told(self):
		self.assertEqual(self.shunt('fault', 'add', 'Z', f'127.0.0.1:{self.port}', 'refuse', 'calls=2..9').returncode, 0)
		result = self.run_guarded('--require-hits', '--report', self.report)
		self.assertEqual((result.returncode, result.stderr),
			(4, 'shunt: Z, added by hand: 2 injected meanwhile, in all processes\n'), result)
		other = self.server()
		other.healthy()
		result = self.run_guarded('--require-hits', port=other.port)
		self.assertEqual(result.returncode, 125, 'what it did before is no hit')
		self.assertIn('got none: there was no fault rule', result.stderr)

	def test_what_was_added_by_hand_is_replayed_as_a_rule(self):
		rule = f'127.0.0.1:{self.port} refuse calls=2..9'
		self.assertEqual(self.shunt('fault', 'add', 'Z', rule).returncode, 0)
		first = self.run_guarded('--report', self.report)
		self.assertEqual(self.shunt('fault', 'clear').returncode, 0)
		lines = self.lines()
		os.rename(self.report, self.report + '.first')
		replay = ['--replay', self.report + '.first', '--report', self.report]
		result = self.run_guarded(*replay)
		self.assertEqual((result.returncode, result.stdout), (125, ''), result)
		self.assertIn("got 'Z'; give the rules of the run that wrote the report, one that was added by hand as "
			"SHUNT_FAULT_Z", result.stderr)
		again = self.run_guarded(*replay, extra={'SHUNT_FAULT_Z': rule})
		self.assertEqual((again.stdout, self.lines()), (first.stdout, lines))
		self.assertTrue(again.stderr.endswith('; replayed 2 of 2\n'), again)

	def test_what_other_users_do_is_not_said_to_be_nothing(self):
		user = os.geteuid() + 1
		result = self.run_connector(f'127.0.0.1:{self.port} refuse uid={user}', '--report', self.report)
		self.assertEqual((result.returncode, result.stderr),
			(4, f'shunt: RUN1: not known, as processes of user {user} count by themselves\n'), result)

	def test_a_run_inside_has_its_own_report(self):
		result = self.run_program([SHUNT, 'run', '--fault', f'127.0.0.1:{self.port} refuse', '--report', self.report, '--',
			SHUNT, 'run', '--report', self.report + '.inner', '--', harness.PYTHON, '-c', CONNECTOR, str(self.port), '2'],
			library=False, extra=self.shunt_variables())
		self.assertEqual(result.returncode, 4, result)
		self.assertRegex(result.stderr, r"expected 2 lines, one for each injection, got 0 in '.*'; was it changed, or has a "
			r'run inside this one its own report\?\n\Z')

	def test_an_added_fault_reaches_a_process_that_runs_and_ends(self):
		client = self.start([SHUNT, 'run', '--break', 'other.internal', '--', harness.PYTHON, '-c', CONNECTOR, str(self.port),
			'lines'], library=False, extra=self.shunt_variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
			stderr=subprocess.DEVNULL)

		def connect():
			client.stdin.write(b'\n')
			client.stdin.flush()
			return client.stdout.readline().decode().strip()
		self.assertEqual(connect(), 'made')
		self.assertEqual(self.shunt('fault', 'add', 'DEAD', f'127.0.0.1:{self.port}', 'refuse').returncode, 0)
		wait_until(lambda: connect() == 'Connection refused', 60, 'the fault has reached it')
		fault, = self.status()['faults']
		self.assertEqual(fault['injected'], 1)
		self.assertEqual(self.shunt('fault', 'clear', 'DEAD').returncode, 0)
		wait_until(lambda: connect() == 'made', 60, 'the fault has ended')
		events = [(e['event'], e['name']) for e in self.events()]
		self.assertEqual(events, [('injected', 'DEAD')])


class _Command(harness.Case):
	def good(self, *arguments):
		result = self.shunt(*arguments)
		self.assertEqual((result.returncode, result.stderr), (0, ''), result)
		return result.stdout

	def refused(self, *arguments):
		result = self.shunt(*arguments)
		self.assertEqual((result.returncode, result.stdout), (125, ''), result)
		self.assertRegex(result.stderr, r'\Ashunt: .*\n\Z')
		return result.stderr


class FaultAdd(_Command):
	def faults(self):
		answer = json.loads(self.good('fault', 'list', '--json'))
		self.assertEqual(answer['version'], 1)
		return answer['faults']

	def test_add_list_clear(self):
		self.assertEqual(self.good('fault', 'add', 'REDIS', 'redis:6379,hang', '--for', '30s'),
			'REDIS: added for 30.0s: redis:6379 hang\n')
		fault, = self.faults()
		self.assertEqual(list(fault), ['name', 'rule', 'added', 'began_ms_ago', 'ends_in_ms', 'connections',
			'seen', 'matched', 'injected', 'unreported', 'suppressed'])
		self.assertEqual(list(fault['suppressed']), REASONS)
		self.assertEqual((fault['name'], fault['rule'], fault['added']), ('REDIS', 'redis:6379 hang', True))
		self.assertGreater(fault['ends_in_ms'], 0)
		self.assertLessEqual(fault['ends_in_ms'], 30000)
		self.assertIn(fault['began_ms_ago'] + fault['ends_in_ms'], (29999, 30000))
		self.assertRegex(self.good('fault', 'list'), r'(?m)^REDIS +redis:6379 hang +\d+\.\ds ago +\d+\.\ds ')
		self.assertEqual(self.status()['faults'][0]['rule'], 'redis:6379 hang')
		self.assertIn('redis:6379 hang', self.good('status'))
		self.assertEqual(self.good('fault', 'clear', 'REDIS'), '1 added fault rule cleared\n')
		self.assertEqual([f for f in self.faults() if f['ends_in_ms']], [])

	def test_words_options_and_order_are_free(self):
		self.good('fault', 'add', '--for=2m', 'A', 'a.internal:80', 'latency=300ms~50ms', '20%')
		fault, = self.faults()
		self.assertEqual(fault['rule'], 'a.internal:80 latency=300ms~50ms 20%')
		self.assertGreater(fault['ends_in_ms'], 60000)

	def test_it_lasts_a_minute_unless_said(self):
		self.good('fault', 'add', 'A', 'a.internal refuse')
		fault, = self.faults()
		self.assertGreater(fault['ends_in_ms'], 0)
		self.assertLessEqual(fault['ends_in_ms'], 60000)

	def test_it_ends_by_itself(self):
		self.good('fault', 'add', 'A', 'a.internal refuse', '--for', '1ms')
		wait_until(lambda: not any(f['ends_in_ms'] for f in self.faults()), 60, 'the rule is over')
		self.assertIn('got \'A\': there is none', self.refused('fault', 'clear', 'A'))

	def test_one_name_is_one_rule(self):
		self.good('fault', 'add', 'A', 'a.internal refuse')
		self.good('fault', 'add', 'A', 'b.internal hang')
		self.assertEqual([f['rule'] for f in self.faults() if f['ends_in_ms']], ['b.internal hang'])

	def test_clear_without_a_name_ends_all(self):
		self.assertEqual(self.good('fault', 'clear') if os.path.exists(self.state) else '', '')
		for name in 'ABC':
			self.good('fault', 'add', name, f'{name}.internal refuse')
		self.assertIn("(A, B, C), got 'D'", self.refused('fault', 'clear', 'D'))
		self.assertEqual(self.good('fault', 'clear'), '3 added fault rules cleared\n')
		self.assertEqual(self.good('fault', 'clear'), '0 added fault rules cleared\n')

	def test_the_table_has_room_for_so_many(self):
		for number in range(32):
			self.good('fault', 'add', f'F{number}', f'h{number}.internal refuse')
		self.assertIn('expected at most 32 fault rules', self.refused('fault', 'add', 'F32', 'x.internal refuse'))
		self.good('fault', 'clear', 'F7')
		self.good('fault', 'add', 'F32', 'x.internal refuse')

	def test_what_is_wrong_is_said(self):
		self.assertIn('expected add, list or clear, got nothing', self.refused('fault'))
		self.assertIn("expected list, got 'lst'", self.refused('fault', 'lst'))
		self.assertIn('expected a name and a rule', self.refused('fault', 'add', 'A'))
		self.assertIn("--for: expected a duration such as", self.refused('fault', 'add', 'A', 'a refuse', '--for', '30'))
		for given in ('0s', '25h', '48h'):
			self.assertIn(f"--for: expected a duration from 1ns to 24h, got '{given}'",
				self.refused('fault', 'add', 'A', 'a refuse', '--for', given))
		self.assertIn('sleep is of breaker rules', self.refused('fault', 'add', 'A', 'a refuse', 'sleep=2s'))
		self.assertIn("got 'A B'", self.refused('fault', 'add', 'A B', 'a refuse'))
		self.assertRegex(self.refused('fault', 'add', 'A', 'a.internal refus'), r"fault add: A: .*refuse")
		self.assertIn('fault list: expected no --for', self.refused('fault', 'list', '--for', '3s'))
		self.assertIn("fault add: expected an option such as --for, got '--fro'",
			self.refused('fault', 'add', 'A', 'a refuse', '--fro', '3s'))
		self.assertIn("expected only options, got 'x'", self.refused('fault', 'list', 'x'))
		self.assertFalse(os.path.exists(self.state), 'a bad rule makes no segment')

	def test_without_a_shared_segment_nothing_can_be_added(self):
		self.settings['SHUNT_STATE'] = 'private'
		self.assertIn('SHUNT_STATE=private', self.refused('fault', 'add', 'A', 'a.internal refuse'))
		self.assertIn('SHUNT_STATE=private', self.refused('fault', 'list'))

	def test_a_segment_that_is_misspelt_is_not_that_of_all_programs(self):
		self.settings = {'SHUNT_STATE': 'relative'}
		for command in (['fault', 'add', 'A', 'a.internal refuse'], ['fault', 'clear'], ['fault', 'list'], ['trip', 'A'],
				['reset', 'A'], ['force', 'A', 'open'], ['set', 'A', 'concurrency=1'], ['events']):
			self.assertIn("SHUNT_STATE: expected private, or an absolute path of at most 255 characters, got 'relative'",
				self.refused(*command))
		self.assertIn("got 'relative'", self.good('status'))

	def test_a_name_of_an_environment_is_told(self):
		self.run_program([harness.PYTHON, '-c', ''], extra={'SHUNT_FAULT_A': 'a.internal refuse'})
		result = self.shunt('fault', 'add', 'A', 'b.internal refuse')
		self.assertEqual(result.returncode, 0, result)
		self.assertRegex(result.stderr, r'\Ashunt: fault add: a rule of an environment is called A, too: .*\n\Z')
		self.good('fault', 'add', 'B', 'b.internal refuse')

	def test_help_is_where_it_is_looked_for(self):
		for command in (['fault'], ['fault', 'add'], ['fault', 'list']):
			self.assertIn('usage: shunt fault', self.good(*command, '--help'))

	def test_nothing_there_is_no_problem(self):
		self.assertEqual(self.good('fault', 'clear'), '0 added fault rules cleared\n')
		self.assertIn('no fault rule', self.good('fault', 'list'))
		self.assertEqual(self.faults(), [])
		self.assertFalse(os.path.exists(self.state))


def shape_of(value):
	"""The names of a JSON text, in their order; of lists that of the first."""
	if isinstance(value, dict):
		return [(name, shape_of(inner)) for name, inner in value.items()]
	return shape_of(value[0]) if isinstance(value, list) and value and not isinstance(value[0], str) else None


class Explain(_Command):
	def verdicts(self, operand, kind='connection', what='rules'):
		answer = json.loads(self.good('explain', '--json', operand))
		self.assertEqual(list(answer), ['version', 'asked', 'endpoints', 'notes'])
		endpoint = [e for e in answer['endpoints'] if e['kind'] == kind][0]
		return {r['name']: (r['verdict'], r['why']) for r in endpoint[what]}

	def test_breaker_rules_in_their_order_with_reasons(self):
		self.settings = {f'SHUNT_BREAK_{name}': rule for name, rule in {
			'EXACT': '127.0.0.9:80 sleep=2s', 'LONG': '127.0.0.0/24', 'PORTS': '127.0.0.0/24:1-100',
			'SHORT': '127.0.0.0/8', 'ALL': 'any', 'ZALL': 'any', 'OTHER': '10.0.0.0/8', 'NAME': 'a.internal',
			'PORT': '127.0.0.9:81'}.items()}
		rules = self.verdicts('127.0.0.9:80')
		self.assertEqual(rules, {
			'EXACT': ('applies', 'exact: this address, port 80'),
			'PORT': ('no match', 'port 80 is not 81'),
			'NAME': ('no match', 'goes by names, and this is an address: matches where the program resolved such '
				'a name'),
			'PORTS': ('shadowed', 'EXACT comes first: exact before range'),
			'LONG': ('shadowed', 'EXACT comes first: exact before range'),
			'SHORT': ('shadowed', 'EXACT comes first: exact before range'),
			'OTHER': ('no match', 'the address is not in it'),
			'ALL': ('shadowed', 'EXACT comes first: exact before any'),
			'ZALL': ('shadowed', 'EXACT comes first: exact before any')})
		rules = self.verdicts('127.0.0.8:80')
		self.assertEqual(rules['PORTS'], ('applies', 'range: the address is in it, port 1-100'))
		self.assertEqual(rules['LONG'], ('shadowed', 'PORTS comes first: fewer ports'))
		self.assertEqual(rules['SHORT'], ('shadowed', 'PORTS comes first: the longer range'))
		self.assertEqual(self.verdicts('192.0.2.1:80')['ZALL'],
			('shadowed', 'ALL comes first: by the order of names'))
		text = self.good('explain', '127.0.0.9:80')
		self.assertRegex(text, r'(?m)^EXACT +127\.0\.0\.9:80 +applies .*sleep=2s$')
		names = [line.split()[0] for line in text.splitlines()[2:11]]
		self.assertEqual(names, [r['name'] for r in
			json.loads(self.good('explain', '--json', '127.0.0.9:80'))['endpoints'][0]['rules']])

	def test_a_name_is_resolved(self):
		self.settings = {'SHUNT_BREAK_LO': '127.0.0.0/8', 'SHUNT_BREAK_NAME': 'localhost:1'}
		answer = json.loads(self.good('explain', '--json', 'localhost:80'))
		addresses = {e['address']: e['breaker'] for e in answer['endpoints'] if e['kind'] == 'connection'}
		self.assertEqual(addresses['127.0.0.1'], 'LO')
		lookup, = [e for e in answer['endpoints'] if e['kind'] == 'lookup']
		self.assertEqual((lookup['host'], lookup['breaker']), ('localhost', 'NAME'))
		self.assertRegex(self.good('explain', 'localhost:80'), r'connections to localhost:80 at .*127\.0\.0\.1')

	def test_a_name_that_does_not_resolve(self):
		self.settings = {'SHUNT_BREAK_SUFFIX': '.invalid:80', 'SHUNT_BREAK_ADDRESS': '10.0.0.0/8'}
		self.assertEqual(self.verdicts('gone.invalid:80'), {
			'SUFFIX': ('applies', 'suffix: the name ends in it, port 80'),
			'ADDRESS': ('no match', 'goes by addresses, and none is known')})
		self.assertEqual(self.verdicts('gone.invalid:81')['SUFFIX'], ('no match', 'port 81 is not 80'))
		self.assertIn('does not resolve', self.good('explain', 'gone.invalid:80'))

	def test_exclusions_and_nothing(self):
		self.settings = {'SHUNT_BREAK_NOT': '^127.0.0.1', 'SHUNT_BREAK_ALL': 'any'}
		self.assertEqual(self.verdicts('127.0.0.1:80'), {
			'NOT': ('excludes', 'exact: this address'),
			'ALL': ('shadowed', 'NOT (^127.0.0.1) keeps it out of all other rules')})
		self.assertIn('not guarded', self.good('explain', '127.0.0.1:80'))

	def test_fault_rules_all_apply(self):
		self.settings = {f'SHUNT_FAULT_{name}': rule for name, rule in {
			'SLOW': '127.0.0.0/8 latency=300ms proc=cat|dog', 'DEAD': '127.0.0.1:80 refuse 50%',
			'UDP': 'any drop proto=udp', 'DNS': 'dns:localhost nxdomain', 'NOT': '^127.0.0.2',
			'FAR': '10.0.0.1 hang'}.items()}
		self.good('fault', 'add', 'HAND', '127.0.0.1 close=64KiB')
		self.assertEqual(self.verdicts('127.0.0.1:80', what='faults'), {
			'NOT': ('no match', 'another address'),
			'DEAD': ('applies', 'exact: this address, port 80'),
			'HAND': ('applies', 'exact: this address'),
			'FAR': ('no match', 'another address'),
			'SLOW': ('applies', 'range: the address is in it, in programs called cat|dog'),
			'UDP': ('applies', 'any: everything, datagrams only'),
			'DNS': ('no match', 'is about lookups')})
		excluded = self.verdicts('127.0.0.2:80', what='faults')
		self.assertEqual(excluded['NOT'][0], 'excludes')
		self.assertEqual(excluded['SLOW'], ('shadowed', 'NOT (^127.0.0.2) keeps it out of all other rules'))
		lookups = self.verdicts('dns:localhost', kind='lookup', what='faults')
		self.assertEqual(lookups['DNS'], ('applies', 'exact: this name'))
		self.assertEqual(lookups['SLOW'], ('no match', 'is about connections'))
		self.assertRegex(self.good('explain', '127.0.0.1:80'), r'(?m)^HAND .*applies .*added by hand$')

	def test_no_more_than_eight_fault_rules_apply_together(self):
		self.settings = {f'SHUNT_FAULT_F{number}': '127.0.0.1:80 latency=1ms' for number in range(8)}
		self.settings.update({'SHUNT_FAULT_U': 'any drop proto=udp', 'SHUNT_FAULT_LAST': '127.0.0.0/8 latency=1ms'})
		self.good('fault', 'add', 'HAND', '127.0.0.1 refuse')
		faults = self.verdicts('127.0.0.1:80', what='faults')
		over = ('shadowed', '8 others come first, and no more apply together')
		self.assertEqual({name for name, (verdict, _) in faults.items() if verdict == 'applies'},
			{f'F{number}' for number in range(8)} | {'U'})
		self.assertEqual((faults['LAST'], faults['HAND']), (over, over))

	def test_what_bears_on_all_of_it(self):
		self.settings = {'SHUNT_BREAK_A': 'any', 'SHUNT_BREAK_B': 'b sleep=5', 'SHUNT_MODE': 'observe', 'SHUNT_OFF': '1',
			'SHUNT_PROC': 'cat'}
		notes = ' '.join(json.loads(self.good('explain', '--json', '127.0.0.1:80'))['notes'])
		for word in ('SHUNT_OFF=1', 'SHUNT_PROC=cat', 'SHUNT_MODE=observe', "left out: SHUNT_BREAK_B: sleep: expected"):
			self.assertIn(word, notes)

	def test_its_json_is_in_the_manual(self):
		with open(MANUAL.replace('shunt.7', 'shunt.1'), encoding='ascii') as file:
			manual = file.read().split('.Ql shunt explain --json\nprints:\n.Bd -literal\n')[1].split('.Ed')[0]
		self.settings = {'SHUNT_BREAK_A': '127.0.0.1:80', 'SHUNT_FAULT_B': '127.0.0.1 refuse'}
		self.assertEqual(shape_of(json.loads(self.good('explain', '--json', '192.0.2.1:80'))),
			shape_of(json.loads(manual)))

	def test_operands(self):
		for operand in ('pay.internal', 'pay.internal:1-5', '^pay.internal:1', 'any', '*.internal:80', 'dns:10.1.2.3',
				'dns:a.internal:53', 'http://a:80/', ''):
			self.assertIn(f"expected HOST:PORT, such as pay.internal:443 or [2001:db8::1]:443, or dns:NAME, got '{operand}'",
				self.refused('explain', operand))
		self.good('explain', '[2001:db8::1]:443')
		self.assertIn("expected HOST:PORT or dns:NAME, got 'b.internal:2' as well",
			self.refused('explain', 'a.internal:1', 'b.internal:2'))


class Check(_Command):
	def test_fault_rules(self):
		self.settings = {'SHUNT_FAULT_REDIS': 'redis:6379,refuse,20%,for=2m', 'SHUNT_BREAK_PAY': 'pay.internal'}
		self.assertEqual(self.good('check').splitlines(),
			['PAY: ok pay.internal', 'REDIS: ok fault redis:6379 refuse 20% for=2m'])
		self.settings['SHUNT_FAULT_BAD'] = 'redis:6379 rate=64'
		result = self.shunt('check')
		self.assertEqual(result.returncode, 1)
		self.assertRegex(result.stderr, r"\ASHUNT_FAULT_BAD: rate: expected a rate such as .*, got '64', "
			r"did you mean 64B/s or 64KB/s\?\n\Z")

	def test_no_rule_says_how_to_set_one_of_either_kind(self):
		self.assertRegex(self.good('check'), r"SHUNT_BREAK_NAME=.*SHUNT_FAULT_NAME=")

	def test_a_share_is_shown_as_it_was_given_or_refused(self):
		self.settings = {'SHUNT_FAULT_A': 'h:1 refuse 0.0001%'}
		self.assertEqual(self.good('check').splitlines(), ['A: ok fault h:1 refuse 0.0001%'])
		self.settings = {'SHUNT_FAULT_A': 'h:1 refuse 1/1000000000'}
		result = self.shunt('check')
		self.assertEqual((result.returncode, result.stdout), (1, ''))
		self.assertIn("expected 0%, or a ratio from 0.0001% to 100%, got '1/1000000000'", result.stderr)

	def test_faults_without_their_bound_are_not_good(self):
		self.settings = {'SHUNT_FAULT_A': 'h:1 refuse', 'SHUNT_EXPIRE': '10', 'SHUNT_BREAK_B': 'h:1'}
		result = self.shunt('check')
		self.assertEqual((result.returncode, result.stdout), (1, 'B: ok h:1\n'))
		self.assertRegex(result.stderr, r'\ASHUNT_EXPIRE: .*\nfault rules: all left out, .*\n\Z')

	def test_a_file(self):
		path = os.path.join(self.scratch, 'rules')
		with open(path, 'w', encoding='ascii') as file:
			file.write('break PAY = pay.internal\nfault SLOW = pay.internal latency=300ms # so\n')
		self.assertEqual(self.good('check', path).splitlines(),
			['PAY: ok pay.internal', 'SLOW: ok fault pay.internal latency=300ms'])
		with open(path, 'a', encoding='ascii') as file:
			file.write('fault BAD = pay.internal\n')
		result = self.shunt('check', path)
		self.assertEqual(result.returncode, 1)
		self.assertIn(f'{path}:3: ', result.stderr)

	def test_every_term_of_the_table_is_in_the_manual(self):
		with open(MANUAL, encoding='ascii') as file:
			table = file.read().split('.\\" FAULTS BEGIN\n')[1].split('.\\" FAULTS END')[0]
		manual = re.findall(r'^\.It Cm (.*)\n(.*)$', table, re.M)
		program = [tuple(part.strip() for part in re.split(r'\s{2,}', line.strip(), maxsplit=1))
			for line in self.good('help', 'faults').splitlines() if line.startswith('  ')]
		self.assertEqual([(form.replace('\\(ti', '~'), meaning) for form, meaning in manual], program)
		with open(os.path.join(harness.ROOT, 'README.md'), encoding='utf-8') as file:
			readme = file.read()
		self.assertIn(f'| `hang` | {dict(program)["hang"]} |', readme.replace('`per=call`', 'per=call'))

	def test_what_the_readme_types_is_on_the_path(self):
		with open(os.path.join(harness.ROOT, 'README.md'), encoding='utf-8') as file:
			readme = file.read()
		set_up = readme.split('\n## Set-up\n')[1]
		self.assertLess(set_up.index('export PATH=$PWD/build/cli:$PATH'), set_up.index('\nshunt '))
		self.assertNotIn('\nbuild/cli/shunt ', readme)


if __name__ == '__main__':
	harness.main()
