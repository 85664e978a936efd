# SPDX-License-Identifier: MIT
"""In a sandbox: what a service manager takes away, and filters that kill for a call the program does not
make by itself, set before it starts or by the program in its middle."""
import errno
import os
import re
import signal
import socket
import unittest

import harness
import daemons
import filters

CONNECT = '''import errno, socket
for _ in range(3):
	with socket.socket() as s:
		print(errno.errorcode.get(s.connect_ex(("127.0.0.1", %d)), "0"))'''


def needs_filters(test):
	return unittest.skipUnless(filters.is_available(), 'libseccomp is missing (Debian: apt install libseccomp2)')(test)


class Sandboxed(harness.Case):
	def setUp(self):
		super().setUp()
		self.live, self.dead = self.server(), self.server()
		self.live.healthy()
		self.rules = {
			'LIVE': f'127.0.0.1:{self.live.port}',
			'DEAD': f'127.0.0.1:{self.dead.port} volume=1 sleep=1h',
		}

	def boxed(self, options, argv, library=True, filter_programs=(), extra=None, is_seen=True):
		"""Runs a program in bubblewrap: the library is for the program alone."""
		if not harness.find_program('bwrap'):
			self.skipTest('bwrap is missing (Debian: apt install bubblewrap)')
		files = []
		for number, program in enumerate(filter_programs):
			path = f'{self.scratch}/filter-{number}'
			with open(path, 'wb') as file:
				file.write(program)
			files.append(os.open(path, os.O_RDONLY))
			options = options + ['--add-seccomp-fd', str(files[-1])]
		env = self.environment(library, extra)
		preload = env.pop('LD_PRELOAD', None)
		if preload:
			# It may lie in what the box empties.
			directory = os.path.dirname(preload)
			options = [*options, *(['--ro-bind', directory, directory] if is_seen else []), '--setenv', 'LD_PRELOAD', preload]
		try:
			return self.run_program(['bwrap', *options, '--', *argv], library=False, extra=dict(env, **(extra or {})),
				pass_fds=files)
		finally:
			for file in files:
				os.close(file)

	def setUpBox(self):
		result = self.boxed(['--ro-bind', '/', '/'], ['true'], library=False)
		if result.returncode:
			self.skipTest(f'bwrap does not work here: {result.stderr.strip()}')

	def clients(self, port):
		return {
			'curl': ['curl', '-sS', '-m', '20', f'http://127.0.0.1:{port}/'],
			'python': [harness.PYTHON, '-c', CONNECT % port],
		}

	def check(self, options, is_shared, **keywords):
		"""Closed and open, as bare in the same box; the breaker is at work in either case."""
		self.setUpBox()
		witness = self.wire(self.dead.port)
		for port in (self.live.port, self.dead.port):
			for client, argv in self.clients(port).items():
				with self.subTest(client=client, is_dead=port == self.dead.port):
					self._remove_state()
					free = self.run_program(argv, library=False)
					bare = self.boxed(options, argv, library=False, **keywords)
					self.assertEqual((bare.returncode, bare.stdout), (free.returncode, free.stdout), bare)
					before = len(witness.attempts())
					ours = self.boxed(options, argv, **keywords)
					self.assertEqual((ours.returncode, ours.stdout), (bare.returncode, bare.stdout), ours)
					self.assertEqual(re.sub(r'\d+ ms', '', ours.stderr), re.sub(r'\d+ ms', '', bare.stderr))
					if port == self.dead.port and not harness.BARE:
						# Python tries three times; the first one opened the circuit.
						self.assertEqual(len(witness.attempts()) - before, 1)
					if is_shared and not harness.BARE:
						self.assertTrue(os.path.exists(self.state))
		if not is_shared:
			self.assertFalse(os.path.exists(self.state))


class Services(Sandboxed):
	"""What systemd's settings come to, by bubblewrap."""

	STRICT = ['--ro-bind', '/', '/', '--proc', '/proc', '--tmpfs', '/tmp', '--unshare-ipc', '--unshare-uts']

	def test_everything_read_only(self):
		"""ProtectSystem=strict, PrivateTmp: no segment can be made, breakers are the process's own."""
		self.check(self.STRICT, is_shared=False)

	def test_an_own_dev(self):
		"""PrivateDevices: an empty /dev/shm of its own."""
		self.check(self.STRICT + ['--dev', '/dev'], is_shared=False)

	def test_a_writable_shm(self):
		self.check(self.STRICT + ['--bind', '/dev/shm', '/dev/shm'], is_shared=True)

	def test_without_proc(self):
		options = ['--ro-bind', '/', '/', '--tmpfs', '/proc', '--bind', '/dev/shm', '/dev/shm']
		self.check(options, is_shared=True)
		# And with nothing to name the default segment by.
		self.check(options, is_shared=False, extra={'SHUNT_STATE': ''})

	def test_the_log_lies_where_nothing_can_be_written(self):
		self.settings = {'SHUNT_LOG': '/usr/lib/shunt-log'}
		self.check(self.STRICT, is_shared=False)

	def test_the_library_is_hidden(self):
		"""ProtectHome: the loader says so on stderr, and the program runs without."""
		self.setUpBox()
		if harness.BARE:
			return
		options = ['--ro-bind', '/', '/', '--tmpfs', os.path.dirname(os.path.abspath(harness.LIBRARY))]
		argv = ['sh', '-c', 'echo out; exit 5']
		result = self.boxed(options, argv, is_seen=False)
		self.assertEqual((result.returncode, result.stdout), (5, 'out\n'), result)
		self.assertRegex(result.stderr, r'^ERROR: ld\.so: object .* cannot be preloaded .*: ignored\.\n')

	@needs_filters
	def test_only_what_services_call(self):
		"""SystemCallFilter=@system-service, where anything else is death."""
		names = filters.system_service()
		if names is None:
			self.skipTest('systemd-analyze is missing (Debian: apt install systemd)')
		self.settings = {'SHUNT_LOG': 'syslog', 'SHUNT_TIMER': 'on'}
		self.check(self.STRICT + ['--bind', '/dev/shm', '/dev/shm'], is_shared=True,
			filter_programs=[filters.allowing(names)])

	@needs_filters
	def test_no_writable_code_and_two_families(self):
		"""MemoryDenyWriteExecute, RestrictAddressFamilies; and a log whose socket would be the end."""
		self.settings = {'SHUNT_LOG': 'syslog', 'SHUNT_TIMER': 'on'}
		self.check(self.STRICT + ['--bind', '/dev/shm', '/dev/shm'], is_shared=True, filter_programs=[
			filters.no_writable_code(filters.KILL),
			filters.only_families([socket.AF_UNIX, socket.AF_INET, socket.AF_INET6],
				filters.refuse(errno.EAFNOSUPPORT), filters.KILL)])


# Says what it did, step by step as it is told; from `filter` on only with calls that the filter allows.
STEPS = '''import ctypes, errno, os, socket, struct, sys, threading
port, dead, path, by = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
class Program(ctypes.Structure):
	_fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program = None
if path:
	code = open(path, "rb").read()
	buffer = ctypes.create_string_buffer(code)
	program = Program(len(code) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None if by != "handle" else "libc.so.6", use_errno=True)
libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
if by == "threads":
	sleeper = threading.Event()
	threading.Thread(target=sleeper.wait, daemon=True).start()
REQUEST = b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n"
def fresh(port=port):
	with socket.socket() as s:
		s.connect(("127.0.0.1", port))
		return ask(s)
def ask(s):
	s.sendall(REQUEST)
	return s.recv(4096)[:12]
kept = socket.create_connection(("127.0.0.1", port))
def step(word):
	if word == "filter" and program is not None:
		libc.prctl(38, 1, None, 0, 0)
		if by in ("syscall", "threads"):
			# Of all threads, where there are more.
			return libc.syscall(317 if os.uname().machine == "x86_64" else 277, 1, int(by == "threads"),
				ctypes.byref(program))
		return libc.prctl(22, 2, ctypes.byref(program), 0, 0)
	if word == "fresh":
		return fresh()
	if word == "dead":
		return fresh(dead)
	if word == "kept":
		return ask(kept)
	if word == "other":
		return os.getsid(0)
def main():
	line = b""
	while True:
		line = os.read(0, 64)
		if not line:
			os._exit(0)
		word = line.decode().strip()
		try:
			text = repr(step(word))
		except OSError as error:
			text = errno.errorcode[error.errno]
		os.write(1, (word + " " + text + "\\n").encode())
main()'''

# What a runtime does of its own accord, now and then, whatever the program is at.
NOISE = ('rt_sigreturn', 'exit_group', 'exit', 'futex', 'mmap', 'munmap', 'mremap', 'mprotect', 'brk', 'madvise', 'restart_syscall')


@needs_filters
class Filtered(harness.Case):
	"""The filter allows what the bare program was seen to call after it, and kills for all else."""

	@classmethod
	def setUpClass(cls):
		cls.program = None

	def setUp(self):
		super().setUp()
		self.target, self.dead = self.server(), self.server()
		self.target.healthy()
		self.rules = {
			'T': f'127.0.0.1:{self.target.port} consecutive=1 sleep=300ms',
			'D': f'127.0.0.1:{self.dead.port} volume=1 sleep=1h',
		}
		self.settings = {'SHUNT_LOG': self.scratch + '/log'}

	def argv(self, path, by):
		return [harness.PYTHON, '-c', STEPS, str(self.target.port), str(self.dead.port), path, by]

	def tell(self, process, word, expected):
		process.stdin.write(word + '\n')
		process.stdin.flush()
		line = process.stdout.readline()
		self.assertEqual(line, f'{word} {expected}\n', f'ended with {process.wait(10)}' if not line else line)

	GOOD = "b'HTTP/1.1 200'"

	def start_steps(self, path, by, argv=(), **keywords):
		return self.start([*argv, *self.argv(path, by)], stdin=-1, stdout=-1, stderr=-1, text=True, bufsize=1,
			**keywords)

	def learn(self):
		"""All that the bare program calls after it would have set the filter."""
		trace = self.scratch + '/trace'
		process = self.start_steps('', 'prctl', argv=['strace', '-f', '-o', trace], library=False)
		self.tell(process, 'filter', 'None')
		for word, expected in (('fresh', self.GOOD), ('kept', self.GOOD), ('dead', 'ECONNREFUSED'), ('fresh', self.GOOD)):
			self.tell(process, word, expected)
		self.target.reset_after_request()
		self.tell(process, 'kept', 'ECONNRESET')
		process.communicate('', timeout=30)
		with open(trace, encoding='utf-8', errors='replace') as file:
			text = file.read()
		after = text[text.index('write(1, "filter'):]
		self.target.healthy()
		return set(re.findall(r'^\d+ +(\w+)\(', after, re.M))

	def filter_path(self):
		names = self.learn()
		self.assertIn('connect', names)
		for name in ('shutdown', 'clone', 'clone3', 'openat', 'getpid', 'gettid', 'fcntl', 'prctl'):
			self.assertNotIn(name, names)
		path = self.scratch + '/filter'
		with open(path, 'wb') as file:
			file.write(filters.allowing(names | set(NOISE)))
		return path

	def story(self, by, library=True, is_cut=True):
		"""Closed, open, half-open and closed again; a refused request on a kept connection."""
		process = self.start_steps(self.filter_path(), by, library=library)
		judged = library and not harness.BARE
		self.tell(process, 'kept', self.GOOD)
		# A refusal of ours is what starts a timer thread.
		for _ in range(2):
			self.tell(process, 'dead', 'ECONNREFUSED')
		self.tell(process, 'filter', '0')
		threads = len(os.listdir(f'/proc/{process.pid}/task'))
		self.tell(process, 'fresh', self.GOOD)
		self.tell(process, 'kept', self.GOOD)
		self.tell(process, 'dead', 'ECONNREFUSED')
		self.target.refuse()
		self.tell(process, 'fresh', 'ECONNREFUSED')
		self.tell(process, 'fresh', 'ECONNREFUSED')
		self.target.healthy()
		if judged:
			self.assertState('open', name='T')
			self.wait_for_probe(name='T')
		self.tell(process, 'fresh', self.GOOD)
		if judged:
			self.assertState('closed', name='T')
			self.assertEqual(self.shunt('force', 'T', 'open').returncode, 0)
		self.tell(process, 'fresh', 'ECONNREFUSED' if judged else self.GOOD)
		if is_cut:
			self.tell(process, 'kept', 'ECONNRESET' if judged else self.GOOD)
			self.tell(process, 'kept', 'ECONNRESET' if judged else self.GOOD)
		self.assertEqual(len(os.listdir(f'/proc/{process.pid}/task')), threads)
		out, err = process.communicate('', timeout=30)
		self.assertEqual((process.returncode, out, err), (0, '', ''))
		return threads

	def test_the_filter_is_one(self):
		"""A call that the program does not make is its end."""
		process = self.start_steps(self.filter_path(), 'prctl', library=False)
		self.tell(process, 'filter', '0')
		with open(f'/proc/{process.pid}/status', encoding='ascii') as status:
			self.assertIn('Seccomp:\t2', status.read())
		process.communicate('other\n', timeout=30)
		self.assertEqual(process.returncode, -signal.SIGSYS)

	def test_set_by_prctl(self):
		self.assertEqual(self.story('prctl'), self.story('prctl', library=False))

	def test_set_by_syscall(self):
		self.story('syscall')

	def test_set_beside_a_thread(self):
		"""Where an open circuit's timer thread runs when the filter is set: it ends before."""
		for timer in ('auto', 'on'):
			with self.subTest(timer):
				self._remove_state()
				self.settings['SHUNT_TIMER'] = timer
				self.assertEqual(self.story('threads'), self.story('threads', library=False))

	def test_set_where_we_cannot_see_it(self):
		"""By libc's own prctl(): outside start we make no calls but those that a setting or a cut asks for."""
		self.settings = {}
		self.story('handle', is_cut=False)


class Programs(harness.Case):
	"""Programs that sandbox themselves."""

	def start_tor(self, port):
		if not harness.find_program('tor'):
			self.skipTest('tor is missing (Debian: apt install tor)')
		directory = f'{self.scratch}/tor-{port}'
		os.mkdir(directory, 0o700)
		config = directory + '/torrc'
		with open(config, 'w', encoding='ascii') as file:
			file.write(f'DataDirectory {directory}/data\nSandbox 1\nSocksPort 0\nUseBridges 1\n'
				f'Bridge 127.0.0.1:{port}\nLog notice file {directory}/notices\n')
		return self.start(['tor', '-f', config, '--defaults-torrc', directory + '/none', '--ignore-missing-torrc'],
			stdin=-3, stdout=-3, stderr=-3)

	def assertFiltered(self, process):
		self.assertIsNone(process.poll(), 'it was killed')
		with open(f'/proc/{process.pid}/status', encoding='ascii') as status:
			self.assertIn('Seccomp:\t2', status.read())

	def totals_reach(self, **least):
		if harness.BARE:
			return

		def is_there():
			cells = self.cells(name='T')
			return cells and all(cells[0]['totals'][key] >= count for key, count in least.items())
		harness.wait_until(is_there, 60, f'totals of at least {least}')

	def run_tor(self, rule, mode, **least):
		"""Until the totals are reached; it tries its bridge every second, while that fails in its own time."""
		target = self.server()
		mode(target)
		log = self.scratch + '/log'
		self.settings = {'SHUNT_LOG': log}
		self.rules = {'T': f'127.0.0.1:{target.port} {rule}'}
		process = self.start_tor(target.port)
		self.totals_reach(**least)
		self.assertFiltered(process)
		# A line would be a call that tor's filter does not allow.
		self.assertFalse(os.path.exists(log))
		return process, target

	def test_tor_finds_a_circuit_open(self):
		self.run_tor('volume=1 sleep=1h', harness.Server.refuse, failure=1, trips=1, short_circuited=1)

	def test_tor_finds_a_circuit_forced_open(self):
		_, target = self.run_tor('force=open', harness.Server.healthy, short_circuited=1)
		if not harness.BARE:
			self.assertEqual(target.accepted, 0)

	def test_tor_sends_a_probe(self):
		process, target = self.run_tor('volume=1 sleep=100ms', harness.Server.refuse, failure=2, trips=1)
		target.healthy()
		harness.wait_until(lambda: target.accepted, 60, 'a probe comes through')
		self.assertFiltered(process)

	def test_sshd_whose_children_are_filtered(self):
		"""The library in the server: its sandboxed child answers as ever."""
		case = self

		class Guarded(daemons.Sshd):
			def command(self):
				env = [f'{k}={v}' for k, v in case.environment().items() if k.startswith(('SHUNT_', 'LD_'))]
				return ['env', *env, *super().command()]

		self.rules = {'ANY': 'any volume=1'}
		self.settings = {'SHUNT_LOG': self.scratch + '/log', 'SHUNT_TIMER': 'on'}
		server = Guarded()
		self.addCleanup(server.close)
		argv = ['ssh', '-F', 'none', '-i', server.path('client_key'), '-o', 'StrictHostKeyChecking=no', '-o',
			'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR', '-p', str(server.port), '127.0.0.1', 'echo', 'inside']
		for _ in range(3):
			result = self.run_program(argv, library=False)
			self.assertEqual((result.returncode, result.stdout), (0, 'inside\n'), result)

	def test_file_in_its_sandbox(self):
		if not harness.find_program('file'):
			self.skipTest('file is missing')
		self.rules = {'ANY': 'any volume=1'}
		argv = ['file', harness.PYTHON, '/etc/hostname', '/dev/null', '/does/not/exist']
		bare, ours = self.run_program(argv, library=False), self.run_program(argv)
		self.assertEqual((ours.returncode, ours.stdout, ours.stderr), (bare.returncode, bare.stdout, bare.stderr))


if __name__ == '__main__':
	harness.main()
