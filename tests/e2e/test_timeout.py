# SPDX-License-Identifier: MIT
"""`timeout`: what it ends, what it never ends, and what it leaves behind."""
import os
import subprocess
import threading
import time

import harness
import filters
import https
from servers import reserve_port, tls_context

# Short where calls are to be ended; on a quiet machine E2E_STRICT=1 makes what has to live tighter.
SHORT = '300ms'
LIFE = 0.3 if os.environ.get('E2E_STRICT') else 0.8

ONE_CALL = r'''
import socket, sys, time
began = time.monotonic()
connection = socket.socket()
try:
	connection.connect(('127.0.0.1', int(sys.argv[1])))
	connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
	print('answered', connection.recv(1000))
except OSError as error:
	print(error.errno, f'{(time.monotonic() - began) * 1000:.0f} ms')
'''

AFTERWARDS = r'''
import errno, signal, socket, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
connection = socket.socket()
connection.connect(('127.0.0.1', int(sys.argv[1])))
connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
def tell(function):
	try:
		return function()
	except OSError as error:
		return errno.errorcode[error.errno]
print(tell(lambda: connection.recv(100)), tell(lambda: connection.recv(100)), tell(lambda: connection.send(b'more')),
	tell(lambda: connection.connect(('127.0.0.1', int(sys.argv[1])))),
	errno.errorcode[connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)])
'''

EDGES = r'''
import errno, select, socket, sys
connection = socket.socket()
connection.setblocking(False)
connection.connect_ex(('127.0.0.1', int(sys.argv[1])))
epoll = select.epoll()
epoll.register(connection, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET)
has_asked, seen = False, []
while True:
	for _, events in epoll.poll():
		error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
		if error:
			print('edge', errno.errorcode[error])
			sys.exit()
		if not has_asked:
			connection.send(b'GET / HTTP/1.0\r\n\r\n')
			has_asked = True
		try:
			connection.recv(100)
		except BlockingIOError:
			pass
		except OSError as error:
			print('edge', errno.errorcode[error.errno])
			sys.exit()
'''

# One thread sits in recv, another one in something else; each is told at its next call.
ELSEWHERE = r'''
import errno, queue, socket, sys, threading, time
began = time.monotonic()
connections = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(2)]
for connection in connections:
	connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
told = queue.Queue()
def wait():
	try:
		connections[0].recv(100)
	except OSError as error:
		told.put((errno.errorcode[error.errno], time.monotonic() - began))
threading.Thread(target=wait).start()
print(told.get()[0], flush=True)
sys.stdin.readline()
began = time.monotonic()
try:
	connections[1].recv(100)
except OSError as error:
	print(errno.errorcode[error.errno], time.monotonic() - began < float(sys.argv[2]) / 2)
'''

POOL = r'''
import select, socket, sys, time
pool = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(5)]
seconds, how = float(sys.argv[2]), sys.argv[3]
if how == 'poll':
	watch = select.poll()
	for connection in pool:
		watch.register(connection, select.POLLIN)
	watch.poll(seconds * 1000)
elif how == 'epoll':
	watch = select.epoll()
	for connection in pool:
		watch.register(connection, select.EPOLLIN)
	watch.poll(seconds)
else:
	time.sleep(seconds)
for _ in range(2):
	for connection in pool:
		connection.sendall(b'GET / HTTP/1.1\r\n\r\n')
		print(connection.recv(4096).decode().splitlines()[-1])
	time.sleep(seconds)
'''

TLS_POOL = r'''
import socket, ssl, sys, time
context = ssl._create_unverified_context()
pool = [context.wrap_socket(socket.create_connection(('127.0.0.1', int(sys.argv[1])))) for _ in range(3)]
time.sleep(float(sys.argv[2]))
for _ in range(2):
	for connection in pool:
		connection.sendall(b'GET / HTTP/1.1\r\n\r\n')
		print(connection.recv(4096).decode().splitlines()[-1])
	time.sleep(float(sys.argv[2]))
'''

# A process is as it was when its last connection is gone.
LEAVES = r'''
import os, socket, sys, time
def look():
	return os.listdir('/proc/self/task'), os.listdir('/proc/self/fd')
before = look()
for _ in range(3):
	connection = socket.socket()
	connection.connect(('127.0.0.1', int(sys.argv[1])))
	connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
	try:
		connection.recv(100)
	except OSError as error:
		print(error.errno)
	connection.close()
deadline = time.monotonic() + 20
while look() != before and time.monotonic() < deadline:
	time.sleep(0.01)
print('as before' if look() == before else f'{before} {look()}')
'''

MANY = r'''
import asyncio, errno, sys
async def call():
	try:
		reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
		writer.write(b'GET / HTTP/1.0\r\n\r\n')
		await reader.read(100)
	except OSError as error:
		return errno.errorcode[error.errno]
async def main():
	print(set(await asyncio.gather(*(call() for _ in range(200)))))
asyncio.run(main())
'''

UPLOAD = r'''
import socket, sys
connection = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
connection.sendall(b'POST / HTTP/1.0\r\n\r\n' + bytes(5000000))
print(connection.recv(100))
'''

FORGETFUL = r'''
import ctypes, errno, os, socket, sys, time
connections = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(20)]
for connection in connections:
	connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
# Closed where no preload sees it, and the numbers given to something else.
pairs = []
for connection in connections:
	other, kept = socket.socketpair()
	pairs.append((connection.fileno(), other, kept))
	ctypes.CDLL(None)['__close'](connection.fileno())
	assert os.dup(other.fileno()) == connection.fileno()
time.sleep(float(sys.argv[2]))
alive = 0
for number, other, kept in pairs:
	os.write(number, b'alive')
	alive += kept.recv(10) == b'alive'
print(alive)
'''


FILTERED = r'''
import ctypes, sys
code = bytes.fromhex(sys.argv[2])
class Program(ctypes.Structure):
	_fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_char_p)]
program = Program(len(code) // 8, code)
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
'''


class _Timeout(harness.Case):
	def setUp(self):
		super().setUp()
		self.target = self.server()
		self.port = self.target.port

	def rule(self, timeout, more='volume=1000'):
		self.rules['PAY'] = f'127.0.0.1:{self.port} timeout={timeout} {more}'

	def python(self, script, *arguments, **keywords):
		return self.run_program([harness.PYTHON, '-c', script, str(self.port), *map(str, arguments)], **keywords)

	def notes(self):
		return ' '.join(self.status()['notes'])


class Ends(_Timeout):
	def test_a_connection_that_timed_out_says_so_to_every_call_and_raises_no_signal(self):
		self.rule(SHORT)
		self.target.silent()
		witness = self.wire(self.port)
		began = time.monotonic()
		result = self.python(AFTERWARDS)
		self.assertEqual(result.stdout, 'ETIMEDOUT ' * 4 + 'ETIMEDOUT\n', result)
		self.assertEqual(result.returncode, 0, result)
		self.assertEqual(len(witness.attempts(began)), 1, 'the second connect makes none')
		self.assertTotals({'timeout': 1, 'success': 0, 'failure': 0, 'cancelled': 0, 'unused': 0}, name='PAY')

	def test_an_edge_triggered_client(self):
		self.rule(SHORT)
		for way in ('silent', 'full_backlog'):
			getattr(self.target, way)()
			self.assertEqual(self.python(EDGES).stdout, 'edge ETIMEDOUT\n')
		self.assertTotals({'timeout': 2, 'failure': 0, 'cancelled': 0}, name='PAY')

	def test_a_thread_that_is_blocked_elsewhere_is_told_at_its_next_call(self):
		self.rule('2s')
		self.target.silent()
		process = self.start([harness.PYTHON, '-c', ELSEWHERE, str(self.port), '2'], stdin=subprocess.PIPE,
			stdout=subprocess.PIPE, text=True)
		self.assertEqual(process.stdout.readline(), 'ETIMEDOUT\n')
		harness.wait_until(lambda: self.totals(name='PAY') == {'timeout': 2}, 20, 'both are counted')
		process.stdin.write('\n')
		process.stdin.flush()
		self.assertEqual(process.stdout.readline(), 'ETIMEDOUT True\n')

	def test_two_hundred_calls_side_by_side_each_once(self):
		self.rule(SHORT)
		self.target.silent()
		self.assertEqual(self.python(MANY).stdout, "{'ETIMEDOUT'}\n")
		self.assertTotals({'timeout': 200, 'success': 0, 'failure': 0, 'cancelled': 0, 'unused': 0}, name='PAY')

	def test_the_circuit_opens_by_timeouts_and_refuses_the_next_call_at_once(self):
		self.rule(SHORT, 'volume=3 sleep=60s')
		self.target.silent()
		for _ in range(3):
			self.assertRegex(self.python(ONE_CALL).stdout, r'^110 \d+ ms')
		self.assertState('open', name='PAY')
		# Nobody waits: that would be 110, as the server is silent.
		self.assertRegex(self.python(ONE_CALL).stdout, r'^111 \d+ ms')
		self.assertTotals({'timeout': 3, 'short_circuited': 1, 'trips': 1}, name='PAY')
		latency = self.cell(name='PAY')['latency_ms']
		self.assertGreaterEqual(latency['max'], 290)

	def test_it_says_in_the_log_why_the_circuit_opened_before_the_program_is_woken(self):
		self.rule(SHORT, 'volume=1 sleep=60s')
		self.settings['SHUNT_LOG'] = 'stderr'
		self.target.silent()
		result = self.python(ONE_CALL)
		self.assertIn('open: 1 of 1 calls failed', result.stderr)

	def test_a_handshake_that_hangs(self):
		self.rule(SHORT)
		self.target.silent()
		result = self.run_program(['curl', '-sSk', '-m', '10', f'https://127.0.0.1:{self.port}/'])
		# Its own limit would be 28.
		self.assertEqual(result.returncode, 35, result)
		self.assertTotals({'timeout': 1}, name='PAY')


class Lives(_Timeout):
	"""Healthy, only slow or patient: none of it is ended."""

	def setUp(self):
		super().setUp()
		self.rule(f'{int(LIFE * 1000)}ms')

	def slow_reader(self, rate):
		"""Takes a request at so many bytes a second, and answers at its end."""
		listener = reserve_port()
		listener.listen(8)
		self.addCleanup(listener.close)
		self.port = listener.getsockname()[1]
		self.rule(f'{int(LIFE * 1000)}ms')

		def serve():
			connection = listener.accept()[0]
			began, size = time.monotonic(), 0
			while size < 5000000:
				size += len(connection.recv(65536))
				time.sleep(max(0.0, began + size / rate - time.monotonic()))
			connection.sendall(b'HTTP/1.0 200 OK\r\n\r\ntaken\n')
			connection.close()
		threading.Thread(target=serve, daemon=True).start()

	def assertUntouched(self, successes):
		self.assertTotals({'success': successes, 'timeout': 0, 'failure': 0, 'cancelled': 0}, name='PAY')

	def test_an_upload_of_a_program_that_does_not_block(self):
		self.slow_reader(2000000)
		path = os.path.join(self.scratch, 'data')
		with open(path, 'wb') as file:
			file.write(bytes(5000000))
		result = self.run_program(['curl', '-sS', '-m', '60', '-H', 'Expect:', '--data-binary', '@' + path,
			f'http://127.0.0.1:{self.port}/'])
		self.assertEqual(result.stdout, 'taken\n', result)
		self.assertGreater(result.seconds, 2)
		self.assertUntouched(1)

	def test_an_upload_in_one_blocking_send(self):
		self.slow_reader(2000000)
		result = self.python(UPLOAD)
		self.assertIn('taken', result.stdout, result)
		self.assertGreater(result.seconds, 2)
		self.assertUntouched(1)

	def test_a_download_whose_bytes_come_slowly(self):
		listener = reserve_port()
		listener.listen(8)
		self.addCleanup(listener.close)
		self.port = listener.getsockname()[1]
		self.rule(f'{int(LIFE * 1000)}ms')

		def serve():
			connection = listener.accept()[0]
			connection.recv(65536)
			connection.sendall(b'HTTP/1.0 200 OK\r\n\r\n')
			for _ in range(3):
				time.sleep(LIFE * 1.5)
				connection.sendall(b'more\n')
			connection.close()
		threading.Thread(target=serve, daemon=True).start()
		result = self.run_program(['curl', '-sS', '-m', '60', f'http://127.0.0.1:{self.port}/'])
		self.assertEqual(result.stdout, 'more\n' * 3, result)
		self.assertUntouched(1)

	def test_a_silent_pool_and_a_kept_alive_one(self):
		# In poll it may wait for greetings, as far as `abandon` can tell.
		self.rule(f'{int(LIFE * 1000)}ms', 'volume=1000 abandon=1h')
		self.target.healthy()
		for how in ('sleep', 'poll', 'epoll'):
			result = self.python(POOL, LIFE * 2.5, how)
			self.assertEqual(result.stdout, 'hello from the server\n' * 10, result)
		self.assertTotals({'timeout': 0, 'failure': 0, 'cancelled': 0}, name='PAY')

	def test_a_descriptor_that_is_another_files_by_now(self):
		self.target.silent()
		result = self.python(FORGETFUL, LIFE * 2)
		self.assertEqual(result.stdout, '20\n', result)


class Tls(_Timeout):
	@classmethod
	def setUpClass(cls):
		https.Https.setUpClass.__func__(cls)

	def test_a_request_that_hangs_after_the_handshake(self):
		for kind in ('tls_1_2', 'tls_1_3_without_tickets', 'tls_1_3_with_two_tickets'):
			with self.subTest(kind):
				target = self.server(tls=tls_context(self.certificate, self.key, **https.KINDS[kind]))
				target.silent()
				self.rules = {'PAY': f'127.0.0.1:{target.port} timeout={SHORT} volume=1000'}
				result = self.run_program(['curl', '-sSk', '-m', '10', f'https://127.0.0.1:{target.port}/'])
				self.assertEqual(result.returncode, 56, result)
				self.assertTotals({'timeout': 1, 'success': 0}, port=target.port)

	def test_a_pool_with_and_without_requests_lives(self):
		for kind, arguments in https.KINDS.items():
			with self.subTest(kind):
				target = self.server(tls=tls_context(self.certificate, self.key, **arguments))
				target.healthy()
				self.port = target.port
				self.rule(f'{int(LIFE * 1000)}ms')
				result = self.python(TLS_POOL, LIFE * 2)
				self.assertEqual(result.stdout, 'hello from the server\n' * 6, result)
				self.assertTotals({'timeout': 0, 'failure': 0}, port=target.port)


class Settings(_Timeout):
	def test_nothing_is_left_behind(self):
		self.rule(SHORT)
		self.target.silent()
		self.assertEqual(self.python(LEAVES).stdout, '110\n' * 3 + 'as before\n')

	def test_guard_connect_bounds_the_connect_alone(self):
		self.rule('100ms', 'volume=1000 guard=connect')
		self.target.slow(0.5)
		self.assertRegex(self.python(ONE_CALL).stdout, '^answered')
		self.assertTotals({'success': 1, 'timeout': 0}, name='PAY')
		self.target.full_backlog()
		self.assertRegex(self.python(ONE_CALL).stdout, r'^110 \d+ ms')
		self.assertTotals({'success': 1, 'timeout': 1}, name='PAY')

	def test_observed_it_is_counted_and_nobody_is_ended(self):
		self.rule('100ms')
		self.settings['SHUNT_MODE'] = 'observe'
		self.target.slow(2)
		self.assertRegex(self.python(ONE_CALL).stdout, '^answered')
		self.assertTotals({'success': 0, 'timeout': 1}, name='PAY')

	def test_a_connect_that_times_out_goes_to_the_fallback(self):
		page = self.server(body=b'we are sorry\n')
		page.healthy()
		self.rule(SHORT, f'volume=1000 fallback=127.0.0.1:{page.port}')
		self.target.full_backlog()
		for timer in ('auto', 'off'):
			self.settings['SHUNT_TIMER'] = timer
			self.assertRegex(self.python(ONE_CALL).stdout, '^answered .*we are sorry')
		self.assertTotals({'timeout': 2, 'fallback': 2, 'success': 0}, name='PAY')

	def test_without_a_thread_blocking_calls_are_bounded_and_status_says_what_is_not(self):
		self.rule(SHORT)
		self.settings['SHUNT_TIMER'] = 'off'
		for way in ('silent', 'full_backlog'):
			getattr(self.target, way)()
			self.assertRegex(self.python(ONE_CALL).stdout, r'^110 \d+ ms')
		self.assertTotals({'timeout': 2}, name='PAY')
		self.assertRegex(self.notes(), r'PAY: timeout bounded blocking calls only, on 2 connections: no timer thread')

	def test_under_a_filter_nothing_is_enforced_and_status_says_so(self):
		self.rule('100ms')
		self.target.slow(0.5)
		if not filters.is_available():
			self.skipTest('no libseccomp')
		killing = filters.Filter(filters.ALLOW)
		for name in ('getsockopt', 'setsockopt', 'shutdown', 'clone', 'clone3', 'rt_sigprocmask', 'futex'):
			killing.rule(filters.KILL, name)
		result = self.python(FILTERED + ONE_CALL, killing.program().hex())
		self.assertEqual(result.returncode, 0, result)
		self.assertRegex(result.stdout, '^answered', result)
		self.assertTotals({'timeout': 0}, name='PAY')
		self.assertRegex(self.notes(), r'PAY: timeout was not enforced on 1 connection: under a seccomp filter')

	def test_a_rule_without_one_starts_no_thread(self):
		self.rules['PAY'] = f'127.0.0.1:{self.port} volume=1000'
		self.target.healthy()
		script = ONE_CALL + "\nimport os\nprint(len(os.listdir('/proc/self/task')))\n"
		self.assertEqual(self.python(script).stdout.splitlines()[-1], '1')


if __name__ == '__main__':
	harness.main()
