# SPDX-License-Identifier: MIT
"""Under limits of the process: where the library finds no room it steps back, and the program lives."""
import os
import resource
import signal

import harness

RLIM = resource.RLIM_INFINITY
CONNECT = '''import errno, socket, sys
for _ in range(3):
	with socket.socket() as s:
		print(errno.errorcode.get(s.connect_ex(("127.0.0.1", %d)), "0"))'''
KB = 1024


def may_set(which, limit):
	"""May this user, on this system?"""
	pid = os.fork()
	if not pid:
		try:
			resource.setrlimit(which, limit)
		except (OSError, ValueError):
			os._exit(1)
		os._exit(0)
	return os.waitpid(pid, 0)[1] == 0


class Limits(harness.Case):
	# What docs/BEHAVIOUR.md promises to be enough beside the program's own, of any limit on memory.
	MARGIN = 3 * 1024 * KB

	def setUp(self):
		super().setUp()
		self.live, self.dead = self.server(), self.server()
		self.live.healthy()
		self.rules = {
			'LIVE': f'127.0.0.1:{self.live.port}',
			'DEAD': f'127.0.0.1:{self.dead.port} volume=1 sleep=1h',
		}

	def run_limited(self, argv, limits, library=True, **keywords):
		def set_limits():
			for name, value in limits.items():
				resource.setrlimit(getattr(resource, name), value if isinstance(value, tuple) else (value, value))
		return self.run_program(argv, library=library, preexec_fn=set_limits, **keywords)

	def clients(self, port):
		return {
			'curl': ['curl', '-sS', '-m', '20', f'http://127.0.0.1:{port}/'],
			'python': [harness.PYTHON, '-c', CONNECT % port],
		}

	def check(self, limits, clients=('curl', 'python'), is_guarded=True):
		"""Closed and open: as bare under the same limits. Bare must work for that to mean anything."""
		for name, port in (('LIVE', self.live.port), ('DEAD', self.dead.port)):
			for client in clients:
				with self.subTest(limits=limits, client=client, target=name):
					self._remove_state()
					argv = self.clients(port)[client]
					free = self.run_program(argv, library=False)
					bare = self.run_limited(argv, limits, library=False)
					self.assertEqual((bare.returncode, bare.stdout), (free.returncode, free.stdout), bare)
					for _ in range(2):
						ours = self.run_limited(argv, limits)
						self.assertEqual((ours.returncode, ours.stdout), (bare.returncode, bare.stdout), ours)
						self.assertEqual(ours.stderr == '', bare.stderr == '', ours)
					if name == 'DEAD' and is_guarded:
						self.assertState('open', name='DEAD')

	def least(self, name, argv, low, high):
		"""The smallest limit, within some KB, with which a program does its work by itself."""
		free = self.run_program(argv, library=False)
		while high - low > 64 * KB:
			middle = (low + high) // 2
			result = self.run_limited(argv, {name: middle, 'RLIMIT_CORE': 0}, library=False)
			if (result.returncode, result.stdout) == (free.returncode, free.stdout):
				high = middle
			else:
				low = middle
		return high

	def memory(self, name, low):
		for client, argv in self.clients(self.live.port).items():
			least = self.least(name, argv, low, 512 * 1024 * KB)
			# Not only at the margin: what a library takes by the size of the limit shows further up.
			for more in (0, 1, 2, 4, 8, 12, 16, 32, 64):
				self.check({name: least + self.MARGIN + more * 1024 * KB}, clients=(client,))

	def test_address_space(self):
		self.memory('RLIMIT_AS', 1024 * KB)

	def test_data(self):
		self.memory('RLIMIT_DATA', 64 * KB)

	def test_no_room_at_all_for_the_library(self):
		"""Where the program itself fits exactly, it fails to start, or lives: it is never killed by us."""
		for client, argv in self.clients(self.live.port).items():
			least = self.least('RLIMIT_AS', argv, 1024 * KB, 512 * 1024 * KB)
			bare = self.run_program(argv, library=False)
			for more in range(0, 3 * 1024 * KB, 256 * KB):
				with self.subTest(client=client, more=more):
					ours = self.run_limited(argv, {'RLIMIT_AS': least + more, 'RLIMIT_CORE': 0, 'RLIMIT_CPU': 5})
					# By its time: Python goes round for ever where it cannot even raise its MemoryError.
					if ours.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
						continue
					# Nor can it always say so.
					if ours.returncode == -signal.SIGABRT and 'Fatal Python error: _PyErr_NoMemory' in ours.stderr:
						continue
					self.assertGreaterEqual(ours.returncode, 0, ours)
					if ours.returncode == bare.returncode:
						self.assertEqual(ours.stdout, bare.stdout)

	def test_descriptors(self):
		for count in (5, 6, 8, 16, 1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]):
			self.check({'RLIMIT_NOFILE': count}, clients=('python',) if count < 8 else ('curl', 'python'))

	def test_too_few_descriptors_to_start(self):
		"""The loader itself cannot open libc then: it says so with us as without."""
		for count in (0, 1, 2, 3):
			with self.subTest(count):
				bare = self.run_limited(['true'], {'RLIMIT_NOFILE': count}, library=False)
				ours = self.run_limited(['true'], {'RLIMIT_NOFILE': count})
				self.assertEqual(ours.returncode, bare.returncode, ours)

	def test_descriptors_run_out_later(self):
		"""The program uses up what there is, connects by what it had, and is judged."""
		script = f'''import errno, os, resource, socket
sockets = [socket.socket() for _ in range(4)]
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
try:
	while True:
		os.open("/dev/null", os.O_RDONLY)
except OSError as error:
	print(errno.errorcode[error.errno])
for s in sockets:
	print(errno.errorcode[s.connect_ex(("127.0.0.1", {self.dead.port}))])'''
		self.settings = {'SHUNT_LOG': self.scratch + '/log'}
		result = self.run_program([harness.PYTHON, '-c', script])
		self.assertEqual((result.returncode, result.text), (0, 'EMFILE\n' + 'ECONNREFUSED\n' * 4), result)
		self.assertTotals({'failure': 1, 'short_circuited': 3}, name='DEAD')

	def test_a_huge_number_of_descriptors(self):
		"""More than the table has; a program may still raise its own limit to the hard one."""
		for limit in ((64, 1 << 20), (1024, 1 << 30)):
			if may_set(resource.RLIMIT_NOFILE, limit):
				self.check({'RLIMIT_NOFILE': limit}, clients=('python',))

	def test_file_size(self):
		"""No file can be made, and a write to one is SIGXFSZ: breakers stay private, nothing is logged."""
		self.settings = {'SHUNT_LOG': self.scratch + '/log'}
		self.check({'RLIMIT_FSIZE': 0}, is_guarded=False)
		self.assertFalse(os.path.lexists(self.state))
		script = CONNECT % self.dead.port
		ours = self.run_limited([harness.PYTHON, '-c', script], {'RLIMIT_FSIZE': 0})
		self.assertEqual((ours.returncode, ours.stdout), (0, 'ECONNREFUSED\n' * 3), ours)

	def test_locked_memory(self):
		self.check({'RLIMIT_MEMLOCK': 0})

	def test_stack(self):
		for size in (96 * KB, 160 * KB, 512 * KB):
			self.check({'RLIMIT_STACK': size}, clients=('curl',))
		self.check({'RLIMIT_STACK': RLIM})

	def test_core_and_cpu(self):
		self.check({'RLIMIT_CORE': 0, 'RLIMIT_CPU': 20, 'RLIMIT_RTPRIO': 0, 'RLIMIT_SIGPENDING': 0,
			'RLIMIT_MSGQUEUE': 0, 'RLIMIT_NICE': 0})


# No thread can be made once the program has its own: the timer's is not, and the next call makes the step.
THREADED = '''import errno, os, resource, socket, sys, threading, time
sleeper = threading.Event()
threading.Thread(target=sleeper.wait, daemon=True).start()
os.setgroups([]) or os.setresgid(%(gid)d, %(gid)d, %(gid)d) or os.setresuid(%(uid)d, %(uid)d, %(uid)d)
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
	threading.Thread(target=sleeper.wait, daemon=True).start()
	print("a thread")
except RuntimeError:
	print("no thread")
def connect():
	with socket.socket() as s:
		return errno.errorcode.get(s.connect_ex(("127.0.0.1", %(port)d)), "0")
print(connect(), connect(), len(os.listdir("/proc/self/task")), flush=True)
sys.stdin.readline()
print(connect(), len(os.listdir("/proc/self/task")), flush=True)'''


class NoThreads(harness.Case):
	def test_a_timer_that_cannot_be_made(self):
		if os.geteuid() != 0:
			self.skipTest('needs root, to become a user of one process')
		target = self.server()
		self.rules = {'T': f'127.0.0.1:{target.port} volume=1 sleep=300ms'}
		for timer in ('auto', 'on'):
			with self.subTest(timer):
				target.refuse()
				self._remove_state()
				self.settings = {'SHUNT_TIMER': timer}
				script = THREADED % {'uid': 65533, 'gid': 65533, 'port': target.port}
				process = self.start([harness.PYTHON, '-c', script], stdin=-1, stdout=-1, stderr=-1, text=True)
				self.assertEqual(process.stdout.readline(), 'no thread\n')
				self.assertEqual(process.stdout.readline(), 'ECONNREFUSED ECONNREFUSED 2\n')
				self.assertState('open', name='T')
				self.wait_for_probe(name='T')
				target.healthy()
				out, err = process.communicate('\n', timeout=60)
				self.assertEqual((process.returncode, out, err), (0, '0 2\n', ''))


if __name__ == '__main__':
	harness.main()
