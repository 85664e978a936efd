# SPDX-License-Identifier: MIT
"""Faults keep to what their rules say: to their hosts, programs and users, to their time, to observing; they leave
the program's own state alone, end with it, and reach running programs when they are added by hand."""
import os
import signal
import socket
import threading
import time

import chaos
import harness

# One connection after the other, every 20 ms for so long: when, and what it came to.
SAMPLES = r'''
import socket, sys, time
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
	before = time.monotonic()
	with socket.socket() as s:
		error = s.connect_ex(('127.0.0.1', int(sys.argv[1])))
	print(before, time.monotonic(), error, flush=True)
	time.sleep(0.02)
'''

# Whatever kinds there are, each as it would be noticed.
KINDS = ('refuse', 'unreachable', 'timeout=30s', 'hang', 'reset', 'close', 'latency=30s', 'rate=1B/s', 'errno=ECONNRESET',
	'maxconn=0', 'short', 'corrupt', 'slowclose=30s')

CALLS = r'''
import socket, sys
for address, port in zip(sys.argv[1::2], sys.argv[2::2]):
	try:
		with socket.create_connection((address, int(port)), 25) as s:
			s.sendall(b'hello\n')
			data = s.recv(100)
			s.shutdown(socket.SHUT_WR)
			print(data, s.recv(100))
	except OSError as error:
		print(type(error).__name__)
'''
GOOD = r"b'hello\n' b''"


class _Safety(chaos.Case):
	def setUp(self):
		super().setUp()
		self.target = self.healthy()
		self.port = self.target.port

	def strike(self, rule, **more):
		self.faults = {'F': f'127.0.0.1:{self.port} {rule}', **more}

	def outcomes(self, count=1, **keywords):
		"""errno of so many connects of one program."""
		script = 'import socket, sys\nfor _ in range(int(sys.argv[2])):\n\twith socket.socket() as s:\n' \
			'\t\tprint(s.connect_ex(("127.0.0.1", int(sys.argv[1]))))\n'
		return list(map(int, self.script(script, self.port, count, **keywords).stdout.split()))


class Hosts(_Safety):
	def test_no_other_port_address_or_connection(self):
		port, other = self.peer(chaos.echo).port, self.peer(chaos.echo).port
		elsewhere = self.peer(chaos.echo, address='127.0.0.2').port
		for kind in KINDS:
			self.faults = {'F': f'127.0.0.1:{port} {kind}', 'G': f'127.0.0.2:{other} {kind}'}
			result = self.script(CALLS, '127.0.0.1', other, '127.0.0.2', elsewhere)
			self.assertEqual(result.stdout, f'{GOOD}\n' * 2, (kind, result))
		self.assertInjected()

	def test_a_number_that_another_connection_had(self):
		"""What was known of a closed connection is not known of the next with its number."""
		port, other = self.peer(chaos.echo).port, self.peer(chaos.echo).port
		for kind in ('reset', 'close', 'hang', 'errno=ETIMEDOUT dir=in', 'rate=1B/s', 'latency=1s per=call'):
			self.faults = {'F': f'127.0.0.1:{port} {kind}'}
			script = CALLS.replace('25', '1 if port == sys.argv[2] else 25').replace('s.shutdown', 'print(s.fileno()); s.shutdown')
			lines = self.script(script, '127.0.0.1', port, '127.0.0.1', other, '127.0.0.1', other).stdout.splitlines()
			self.assertEqual([line for line in lines if not line.isdigit()][-2:], [GOOD] * 2, (kind, lines))
			self.assertEqual({i['connection'] for i in self.injections()}, {1}, kind)
			os.unlink(self.report)

	def test_an_exclusion(self):
		self.strike('refuse', ALL='any unreachable', KEEP=f'^127.0.0.1:{self.port}')
		self.assertEqual(self.outcomes(2), [0, 0])
		self.faults['KEEP'] = '^127.0.0.2'
		self.assertIn(self.outcomes()[0], (111, 113))

	def test_all_rules_that_match_apply(self):
		self.strike('latency=300ms', ALL='any latency=200ms', LAST='127.0.0.0/8 refuse calls=2')
		result = self.script('import socket, sys, time\nfor _ in range(2):\n\tbegan = time.monotonic()\n'
			'\twith socket.socket() as s:\n\t\tprint(s.connect_ex(("127.0.0.1", int(sys.argv[1]))))\n'
			'\tprint(time.monotonic() - began)\n', self.port)
		errors, seconds = result.stdout.split()[::2], list(map(float, result.stdout.split()[1::2]))
		self.assertEqual(errors, ['0', '111'])
		self.assertGreaterEqual(min(seconds), 0.5)


class Scope(_Safety):
	def test_programs(self):
		self.needs('wget')
		self.strike('refuse proc=curl|nobody')
		wget = ['wget', '-q', '-O-', f'http://127.0.0.1:{self.port}/']
		self.assertFails(self.curl(self.port), r'curl: \(7\)', 7)
		self.assertWorks(self.run_program(wget))
		self.strike('refuse proc=w*')
		self.assertWorks(self.curl(self.port))
		self.assertNotEqual(self.run_program(wget).returncode, 0)

	def test_users(self):
		for uid, expected in ((os.geteuid(), 111), (os.geteuid() + 1, 0)):
			self.strike(f'refuse uid={uid}')
			self.assertEqual(self.outcomes(), [expected])

	def test_children_are_under_the_same_rules(self):
		self.strike('refuse')
		result = self.run_program(['sh', '-c', f'(curl -s http://127.0.0.1:{self.port}/; echo $?) & wait; '
			f'exec {harness.PYTHON} -c "import os, socket\nif os.fork(): print(os.waitstatus_to_exitcode(os.wait()[1]))\n'
			f'else: os._exit(socket.socket().connect_ex((\'127.0.0.1\', {self.port})))"'])
		self.assertEqual(result.stdout.split(), ['7', '111'], result)


class Times(_Safety):
	"""Of a window of time there is one beginning in the program's start by which every attempt came out right."""

	def assertWindow(self, is_down, seconds, **settings):
		self.settings = settings
		began = time.monotonic()
		result = self.script(SAMPLES, self.port, seconds)
		samples = [line.split() for line in result.stdout.splitlines()]
		samples = [(float(before), float(after), error == '111') for before, after, error in samples]
		self.assertFalse(samples[-1][2], result)

		def fits(start):
			return all(down in (is_down(before - start), is_down(after - start)) for before, after, down in changes + samples)
		# In steps of a tenth of a millisecond; where it changes tells most.
		changes = [one for pair in zip(samples, samples[1:]) if pair[0][2] != pair[1][2] for one in pair]
		first = int((samples[0][0] - began) * 10000)
		self.assertTrue(any(fits(began + offset / 10000) for offset in range(first + 1)),
			[(before - began, after - began, down) for before, after, down in samples[:100]])

	def test_for(self):
		self.strike('refuse for=1500ms')
		self.assertWindow(lambda at: at < 1.5, 3)

	def test_after_and_for(self):
		self.strike('refuse after=1s for=1s')
		self.assertWindow(lambda at: 1 <= at < 2, 4)

	def test_expire(self):
		self.strike('refuse')
		self.assertWindow(lambda at: at < 1.5, 3, SHUNT_EXPIRE='1500ms')

	def test_every(self):
		self.strike('refuse every=500ms for=2s')
		samples = [line.split() for line in self.script(SAMPLES, self.port, 3).stdout.splitlines()]
		struck = [(float(before), float(after)) for before, after, error in samples if error == '111']
		self.assertGreaterEqual(len(struck), 2)
		for (before, _), (_, after) in zip(struck, struck[1:]):
			self.assertGreaterEqual(after - before, 0.5)

	def test_times_over_processes_side_by_side(self):
		self.strike('refuse times=3')
		result = self.run_program(['sh', '-c', f'seq 12 | xargs -P 6 -I % sh -c "curl -s -o file-% http://127.0.0.1:{self.port}/;'
			' echo \\$?"'])
		self.assertEqual(sorted(result.stdout.split()), ['0'] * 9 + ['7'] * 3, result)
		self.assertEqual(len(self.injections()), 3)

	def test_times_over_threads(self):
		self.strike('refuse times=5')
		result = self.script('import socket, sys, threading\nwith_errors = []\ndef work():\n\tfor _ in range(10):\n'
			'\t\twith socket.socket() as s:\n\t\t\twith_errors.append(s.connect_ex(("127.0.0.1", int(sys.argv[1]))))\n'
			'threads = [threading.Thread(target=work) for _ in range(6)]\n[t.start() for t in threads]\n'
			'[t.join() for t in threads]\nprint(with_errors.count(111), with_errors.count(0))\n', self.port)
		self.assertEqual(result.stdout, '5 55\n', result)


class Modes(_Safety):
	def test_observing(self):
		port = self.peer(chaos.echo).port
		self.settings['SHUNT_MODE'] = 'observe'
		self.settings['SHUNT_LOG'] = os.path.join(self.scratch, 'log')
		for kind in KINDS:
			self.faults = {'F': f'127.0.0.1:{port} {kind}'}
			result = self.script(CALLS, '127.0.0.1', port)
			self.assertEqual(result.stdout, f'{GOOD}\n', (kind, result))
		self.assertInjected()
		self.strike('refuse')
		self.assertEqual(self.outcomes(3), [0, 0, 0])
		fault = self.fault('F')
		self.assertEqual((fault['matched'], fault['injected'], fault['suppressed']['mode']), (3, 0, 3), fault)

	def test_the_kill_switch(self):
		self.strike('refuse')
		self.settings['SHUNT_OFF'] = '1'
		self.assertEqual(self.outcomes(), [0])

	def test_a_bad_rule_harms_nobody_and_no_other(self):
		self.strike('refus', GOOD=f'127.0.0.1:{self.port} unreachable calls=1', SHORT='127.0.0.1 rate=5')
		self.assertEqual(self.outcomes(2), [113, 0])

	def test_under_a_filter_only_what_needs_no_call_of_ours(self):
		"""A seccomp filter may kill for a system call that the program does not make."""
		self.strike('latency=20s', G=f'127.0.0.1:{self.port} refuse calls=2')
		result = self.script(FILTERED, self.port)
		self.assertEqual(result.stdout, '0\n111\n0\n', result)
		self.assertLess(result.seconds, 20)
		self.assertEqual(self.fault('F')['suppressed']['mode'], 3)
		self.assertEqual(self.injections(), [])


FILTERED = r'''
import ctypes, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
class Program(ctypes.Structure):
	_fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_char_p)]
allow = (0x06).to_bytes(2, 'little') + bytes(2) + (0x7fff0000).to_bytes(4, 'little')
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(1, allow))) == 0
for _ in range(3):
	with socket.socket() as s:
		print(s.connect_ex(('127.0.0.1', int(sys.argv[1]))), flush=True)
'''

# What of the process could be changed by what is injected; the draws are on every path.
STATE = r'''
import ctypes, os, random, signal, socket, sys, time
libc = ctypes.CDLL(None)
libc.srandom(7)
libc.srand48(7)
random.seed(7)
def numbers():
	return [libc.random() for _ in range(3)], [libc.rand() for _ in range(3)], libc.mrand48(), random.random()
def state():
	status = [line for line in open('/proc/self/status') if line.startswith(('SigPnd', 'SigBlk', 'SigIgn', 'SigCgt', 'Shd', 'Threads', 'Umask', 'NoNew', 'Seccomp'))]
	limits = open('/proc/self/limits').read()
	return status, limits, sorted(os.listdir('/proc/self/fd')), [signal.getitimer(n) for n in range(3)], dict(os.environ), \
		os.getcwd(), signal.pthread_sigmask(signal.SIG_BLOCK, []), open('/proc/self/timers').read()
print(numbers())
before = state()
for _ in range(int(sys.argv[2])):
	with socket.socket() as s:
		s.settimeout(20)
		if not s.connect_ex(('127.0.0.1', int(sys.argv[1]))):
			try:
				s.sendall(b'GET / HTTP/1.0\r\n\r\n')
				while s.recv(100):
					pass
			except OSError:
				pass
	print(numbers())
offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.time_ns()
print(abs(offset) < 10 ** 9, time.get_clock_info('monotonic').adjustable)
# The thread that lets go what is held ends when nothing is.
end = time.monotonic() + 20
while len(os.listdir('/proc/self/task')) > 1 and time.monotonic() < end:
	time.sleep(0.01)
after = state()
print([(a, b) for a, b in zip(before, after) if a != b])
'''


class Untouched(_Safety):
	def test_numbers_time_signals_descriptors_and_threads(self):
		server = self.peer(lambda connection: (connection.recv(99), connection.sendall(b'HTTP/1.0 200 OK\r\n\r\nhello\n')))
		self.port = server.port
		bare = self.script(STATE, self.port, 8, library=False)
		target = f'127.0.0.1:{self.port}'
		self.faults = {'A': f'{target} refuse 20%', 'B': f'{target} latency=5ms~5ms 50%', 'C': f'{target} short=1..9',
			'D': f'{target} reset 20%', 'E': f'{target} corrupt 50%', 'F': f'{target} rate=10KB/s 50%',
			'G': f'{target} eagain 50%', 'H': f'{target} eintr 50%'}
		ours = self.script(STATE, self.port, 8)
		self.assertEqual((ours.returncode, ours.stderr), (0, ''), ours)
		self.assertEqual(ours.stdout, bare.stdout)
		self.assertTrue(ours.stdout.endswith('\n[]\n'), ours)
		self.assertGreater(len(self.injections()), 8)

	def test_nothing_is_left_when_the_program_is_killed(self):
		"""In the midst of a delay, of silence, of a slow transfer."""
		http = self.peer(chaos.Http())
		self.port = http.port
		for kind in ('latency=30s', 'hang', 'rate=100B/s', 'timeout=30s'):
			self.strike(kind)
			process = self.start(['curl', '-s', '-o', 'file', f'http://127.0.0.1:{self.port}/100000'])
			harness.wait_until(self.injections, 30, f'{kind} is injected')
			process.send_signal(signal.SIGKILL)
			process.wait(30)
			os.unlink(self.report)
			result, seconds = chaos.timed(lambda: self.curl(self.port, '-o', 'file', path='/100000', library=False))
			self.assertEqual(result.returncode, 0, result)
			self.assertLess(seconds, 25)
			self.faults = {}
			self.assertEqual(self.curl(self.port, '-o', 'file', path='/100000').returncode, 0)

	def test_standard_input_to_error_and_files_are_no_targets(self):
		"""`any` is about sockets of the internet alone."""
		self.faults = {f'F{number}': f'any {kind}' for number, kind in enumerate(('short', 'corrupt', 'reset', 'errno=EPIPE dir=out'))}
		result = self.run_program(['sh', '-c', 'head -c 300000 /dev/zero | tr "\\0" x | cat | wc -c; cat'], stdin=b'as it is\n')
		self.assertEqual((result.stdout, result.returncode), ('300000\nas it is\n', 0), result)
		result = self.script('import socket, os\na, b = socket.socketpair()\na.sendall(b"x" * 1000)\n'
			'print(len(b.recv(2000)), socket.gethostbyname("127.0.0.1"))\n')
		self.assertEqual(result.stdout, '1000 127.0.0.1\n')
		self.assertInjected()


class ByHand(_Safety):
	"""`shunt fault add` on programs that run."""

	def setUp(self):
		super().setUp()
		self.rules['TARGET'] = f'127.0.0.1:{self.port} volume=100000'

	def add(self, rule, *more):
		result = self.shunt('fault', 'add', 'F', f'127.0.0.1:{self.port} {rule}', *more)
		self.assertEqual(result.returncode, 0, result)

	def clear(self):
		result = self.shunt('fault', 'clear', 'F')
		self.assertEqual(result.returncode, 0, result)

	def test_the_next_call_of_a_running_program(self):
		"""Which is sooner than in 100 ms, on whatever machine."""
		for name, words in (('client_urllib.py', r'\[Errno 111\]'), ('client_asyncio.py', r'\[Errno 111\]'),
				('client_http.js', 'ECONNREFUSED')):
			if name.endswith('js') and not harness.find_program('node'):
				continue
			client = self.client(name, self.port)
			self.assertWorks(client.calls()[0])
			self.add('refuse', '--for', '5m')
			self.assertFails(client.calls()[0], words)
			self.clear()
			self.assertWorks(client.calls()[0])

	def test_a_connection_that_was_there_before(self):
		client = self.client('client_keepalive.py', self.port)
		self.assertWorks(client.calls()[0])
		self.add('reset per=call', '--for', '5m')
		self.assertFails(client.calls()[0], '^ConnectionResetError')
		self.clear()
		self.assertWorks(client.calls()[0])
		self.add('latency=500ms per=call', '--for', '5m')
		result = client.calls()[0]
		self.assertWorks(result)
		self.assertGreaterEqual(result.seconds, 0.5)

	def test_a_connection_that_no_rule_was_about_before(self):
		"""Where the program waits in poll or epoll, as those with timeouts do, or those with event loops."""
		self.rules['TARGET'] = 'dead.internal:9'
		clients = [('client_keepalive.py', []), ('client_http.js', ['keep'])]
		for name, arguments in clients[:1 if not harness.find_program('node') else 2]:
			client = self.client(name, self.port, *arguments)
			for _ in range(3):
				self.assertWorks(client.calls()[0])
			self.add('latency=500ms per=call', '--for', '5m')
			client.calls()
			result = client.calls()[0]
			self.assertWorks(result)
			self.assertGreaterEqual(result.seconds, 0.5)
			self.clear()
			self.add('reset per=call', '--for', '5m')
			self.assertFails(client.calls()[0], 'ConnectionResetError|ECONNRESET')
			self.clear()

	def test_one_that_only_sends_and_receives_needs_a_rule_from_the_start(self):
		server = self.peer(lambda connection: [connection.sendall(b'x') for _ in iter(
			lambda: connection.recv(1), b'')])
		program = ('import socket, sys\ns = socket.create_connection(("localhost", int(sys.argv[1])))\n'
			'for _ in sys.stdin:\n\ttry:\n\t\ts.sendall(b"x")\n\t\tprint(len(s.recv(1)), flush=True)\n'
			'\texcept OSError as error:\n\t\tprint(error, flush=True)\n')

		def ask(process):
			process.stdin.write('\n')
			process.stdin.flush()
			return process.stdout.readline()
		self.rules['TARGET'] = f'localhost:{server.port} enabled=no'
		process = self.start([harness.PYTHON, '-c', program, str(server.port)], stdin=-1, stdout=-1, text=True)
		self.assertEqual(ask(process), '1\n')
		result = self.shunt('fault', 'add', 'F', f'localhost:{server.port} errno=ETIMEDOUT per=call dir=in')
		self.assertEqual(result.returncode, 0, result)
		self.assertEqual(ask(process), '[Errno 110] Connection timed out\n')

	def test_a_program_that_makes_no_connection(self):
		self.rules['TARGET'] = 'dead.internal:9'
		program = ('import socket, sys\nto = ("127.0.0.1", int(sys.argv[1]))\n'
			's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in sys.stdin:\n'
			'\ttry:\n\t\ts.sendto(b"x", to)\n\t\tsocket.getaddrinfo("localhost", 1)\n'
			'\t\tprint("ok", flush=True)\n\texcept OSError as error:\n\t\tprint(error, flush=True)\n')
		with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
			peer.bind(('127.0.0.1', 0))
			port = peer.getsockname()[1]
			process = self.start([harness.PYTHON, '-c', program, str(port)], stdin=-1, stdout=-1, text=True)

			def answer():
				process.stdin.write('\n')
				process.stdin.flush()
				return process.stdout.readline()
			self.assertEqual(answer(), 'ok\n')
			for rule, words in (('dns:localhost again', '[Errno -3] Temporary failure in name resolution\n'),
					(f'127.0.0.1:{port} proto=udp errno=EPERM dir=out', '[Errno 1] Operation not permitted\n')):
				result = self.shunt('fault', 'add', 'F', rule, '--for', '5m')
				self.assertEqual(result.returncode, 0, result)
				self.assertEqual(answer(), words)
				self.clear()
				self.assertEqual(answer(), 'ok\n')

	def test_readiness_is_held_in_loops_that_wait_already(self):
		for name in ('client_asyncio.py', 'client_http.js'):
			if name.endswith('js') and not harness.find_program('node'):
				continue
			client = self.client(name, self.port, *(['new', 20000] if name.endswith('js') else [20]))
			client.calls(5)
			self.add('latency=500ms', '--for', '5m')
			for result in client.calls(5):
				self.assertWorks(result)
				self.assertGreaterEqual(result.seconds, 0.5)
			self.clear()

	def test_a_download_that_is_under_way(self):
		started, stop = threading.Event(), threading.Event()

		def trickle(connection):
			connection.recv(100)
			while not stop.is_set():
				connection.sendall(b'x')
				started.set()
				time.sleep(0.01)
		self.port = self.peer(trickle).port
		self.addCleanup(stop.set)
		self.rules['TARGET'] = f'127.0.0.1:{self.port} volume=100000'
		process = self.start([harness.PYTHON, '-c', 'import socket, sys\ns = socket.create_connection(("127.0.0.1", '
			'int(sys.argv[1])))\ns.sendall(b"x")\ntry:\n\twhile s.recv(100):\n\t\tprint("more", flush=True)\n'
			'except OSError as error:\n\tprint(error, flush=True)\n', str(self.port)], stdout=-1, text=True)
		self.assertEqual(process.stdout.readline(), 'more\n')
		lines = []
		reader = threading.Thread(target=lambda: lines.extend(line for line in process.stdout if line != 'more\n'))
		began = time.monotonic()
		self.add('reset', '--for', '5m')
		reader.start()
		reader.join(20)
		took = time.monotonic() - began
		stop.set()
		reader.join()
		self.assertEqual(lines, ['[Errno 104] Connection reset by peer\n'])
		if chaos.STRICT:
			self.assertLess(took, 0.2)

	def test_it_ends_by_itself(self):
		client = self.client('client_urllib.py', self.port)
		self.assertWorks(client.calls()[0])
		before = time.monotonic()
		self.add('refuse', '--for', '2s')
		after = time.monotonic()
		while True:
			began = time.monotonic()
			works = client.calls()[0].returncode == 0
			ended = time.monotonic()
			if ended < before + 2:
				self.assertFalse(works)
			elif began > after + 2:
				self.assertTrue(works)
				break

	def test_a_minute_unless_said(self):
		self.add('refuse')
		result = self.shunt('fault', 'list')
		self.assertRegex(result.stdout, r'(?m)^F .* (60\.0|5\d\.\d)s ')

	def test_a_program_that_starts_later_and_one_that_has_no_rule(self):
		self.add('refuse', '--for', '5m')
		self.assertEqual(self.outcomes(), [111])

	def test_lookups(self):
		result = self.shunt('fault', 'add', 'F', 'dns:localhost', 'again', '--for', '5m')
		self.assertEqual(result.returncode, 0, result)
		result = self.script('import socket\ntry:\n\tsocket.getaddrinfo("localhost", 80)\nexcept OSError as error:\n\tprint(error)\n')
		self.assertEqual(result.stdout, '[Errno -3] Temporary failure in name resolution\n', result)


if __name__ == '__main__':
	harness.main()
