# SPDX-License-Identifier: MIT
"""Faults of what is sent and received: reset, close, short, eintr, eagain, corrupt, slowclose, errno and rate,
in the programs' own words, however they wait. E2E_STRICT=1, on a machine that does nothing else, wants rates
to be right within 5 %."""
import os

import chaos
import daemons
import harness

SIZE = 300000
HEAD = len(b'HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n')
WAYS = ('blocking', 'limit', 'poll', 'epoll', 'asyncio')


class _Transfer(chaos.Case):
	"""Raw downloads and uploads, in all ways of waiting."""

	def setUp(self):
		super().setUp()
		self.http = chaos.Http()
		self.port = self.peer(self.http).port

	def strike(self, rule):
		self.faults['F'] = f'127.0.0.1:{self.port} {rule}'

	def transfers(self, method='get', size=SIZE):
		"""(way, result) of each client; the last is node's."""
		for way in WAYS:
			yield way, self.client('client_transfer.py', way, self.port, method, size).calls()[0]
		if harness.find_program('node'):
			yield 'node', self.client('client_transfer.js', self.port, method, size).calls()[0]

	def wget(self, *options):
		self.needs('wget')
		return self.run_program(['wget', '-O', 'file', '-t', '1', *options, f'http://127.0.0.1:{self.port}/{SIZE}'])


class Reset(_Transfer):
	def test_after_64_kibibytes_of_a_download(self):
		self.strike('reset=64KiB')
		for way, result in self.transfers():
			with self.subTest(way):
				self.assertRegex(result.stdout, r'^bad bytes=65536 differing=0 (ConnectionResetError \[Errno 104\] '
					'Connection reset by peer|read ECONNRESET)')

	def test_curl_and_wget(self):
		self.strike('reset=64KiB')
		result = self.curl(self.port, '-o', 'file', '-w', '%{size_download}', path=f'/{SIZE}')
		self.assertFails(result, r'curl: \(56\) Recv failure: Connection reset by peer', 56)
		self.assertEqual(result.stdout, str(65536 - HEAD), result)
		self.assertFails(self.wget(), rf'Read error at byte {65536 - HEAD}/{SIZE} \(Connection reset by peer\)')

	def test_in_the_midst_of_an_upload(self):
		self.strike('reset=64KiB dir=out')
		for way, result in self.transfers('put'):
			with self.subTest(way):
				self.assertRegex(result.stdout, r'^bad bytes=0 .*(ConnectionResetError \[Errno 104\]|ECONNRESET)')
		self.assertEqual(self.http.received and max(map(len, self.http.received)) >= SIZE, False)

	def test_java(self):
		self.strike('reset=64KiB')
		client = self.java('HttpURLConnection', f'http://127.0.0.1:{self.port}/{SIZE}', 20000)
		self.assertFails(client.calls()[0], r'^java.net.SocketException: Connection reset')

	def test_nginx_upstream(self):
		self.strike('reset')
		front = self.nginx(self.port)
		result = self.run_program(['curl', '-s', '-m', '60', f'http://127.0.0.1:{front}/10'], library=False)
		self.assertMatches('502 Bad Gateway', result)
		self.assertRegex(self.nginx_log(), r'recv\(\) failed \(104: Connection reset by peer\)')

	def test_redis_cli(self):
		self.needs('redis-cli')
		self.port = self.daemon(daemons.Redis).port
		self.strike('reset')
		result = self.run_program(['redis-cli', '-h', '127.0.0.1', '-p', str(self.port), 'ping'])
		self.assertFails(result, 'Error: Connection reset by peer')


class Psql(chaos.Case):
	"""A real server; its second answer is what fails."""

	def psql(self, fault):
		self.needs('psql')
		port = self.daemon(daemons.Postgres).port
		self.faults['F'] = f'127.0.0.1:{port} {fault}'
		return self.run_program(['psql', f'host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=20 '
			'sslmode=disable gssencmode=disable', '-XAt', '-c', 'select 41', '-c', 'select 42', '-c', 'select 43'])

	def test_reset(self):
		result = self.psql('reset per=call calls=3')
		self.assertFails(result, 'could not receive data from server: Connection reset by peer|'
			'server closed the connection unexpectedly')
		self.assertEqual(result.stdout, '41\n', result)

	def test_close(self):
		result = self.psql('close per=call calls=3')
		self.assertFails(result, 'server closed the connection unexpectedly')
		self.assertEqual(result.stdout, '41\n', result)

	def test_short_changes_nothing(self):
		result = self.psql('short=1..3')
		self.assertEqual((result.returncode, result.stdout), (0, '41\n42\n43\n'), result)
		self.assertGreaterEqual(len(self.injections()), 3)

	def test_latency_of_each_answer(self):
		result = self.psql('latency=300ms calls=2..4 per=call')
		self.assertEqual((result.returncode, result.stdout), (0, '41\n42\n43\n'), result)
		self.assertGreater(result.seconds, 0.9)
		self.assertInjected(*(('F', 1, call, 'latency') for call in (2, 3, 4)))


class Close(_Transfer):
	def test_after_64_kibibytes_of_a_download(self):
		self.strike('close=64KiB')
		for way, result in self.transfers():
			with self.subTest(way):
				self.assertRegex(result.stdout, r'^bad bytes=65536 differing=0 (NoneType|none)')

	def test_curl_and_wget(self):
		self.strike('close=64KiB')
		result = self.curl(self.port, '-o', 'file', path=f'/{SIZE}')
		self.assertFails(result, r'curl: \(18\) transfer closed with \d+ bytes remaining to read', 18)
		self.assertFails(self.wget(), rf'Connection closed at byte {65536 - HEAD}')

	def test_in_place_of_an_answer(self):
		self.strike('close')
		self.assertFails(self.curl(self.port), r'curl: \(52\) Empty reply from server', 52)
		self.assertFails(self.wget(), 'No data received')
		self.assertFails(self.client('client_urllib.py', self.port).calls()[0], '^RemoteDisconnected')
		self.assertFails(self.client('client_asyncio.py', self.port).calls()[0],
			'^ConnectionError the server said nothing')

	def test_node_and_java(self):
		self.strike('close')
		self.assertFails(self.client('client_http.js', self.port).calls()[0], '^ECONNRESET socket hang up')
		client = self.java('HttpURLConnection', f'http://127.0.0.1:{self.port}/', 20000)
		self.assertFails(client.calls()[0], r'^java.net.SocketException: Unexpected end of file from server')
		client = self.java('HttpClient', f'http://127.0.0.1:{self.port}/', 20000)
		self.assertFails(client.calls()[0], r'^java.io.IOException: HTTP/1.1 header parser received no bytes')

	def test_nginx_upstream(self):
		self.strike('close')
		front = self.nginx(self.port)
		result = self.run_program(['curl', '-s', '-m', '60', f'http://127.0.0.1:{front}/10'], library=False)
		self.assertMatches('502 Bad Gateway', result)
		self.assertRegex(self.nginx_log(), 'upstream prematurely closed connection')

	def test_redis_cli(self):
		self.needs('redis-cli')
		self.port = self.daemon(daemons.Redis).port
		self.strike('close')
		result = self.run_program(['redis-cli', '-h', '127.0.0.1', '-p', str(self.port), 'ping'])
		self.assertFails(result, 'Error: Server closed the connection')


PIECES = r'''
import socket, sys
with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as connection:
	data, sent, received = bytes(range(48, 80)) + b'\n', [], []
	while sum(sent) < len(data):
		sent.append(connection.send(data[sum(sent):]))
	had = b''
	while len(had) < len(data):
		had += (part := connection.recv(100))
		received.append(len(part))
	print(had == data, sent, received)
	print(connection.recv(100, socket.MSG_DONTWAIT | socket.MSG_PEEK) if len(sys.argv) > 2 else '')
'''

PEEKS = r'''
import socket, sys
with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as connection:
	connection.sendall(b'0123456789\n')
	print(connection.recv(5, socket.MSG_WAITALL | socket.MSG_PEEK), len(connection.recv(5)))
'''


class Short(_Transfer):
	def test_every_way_of_waiting_gets_all_of_it(self):
		self.strike('short=100..1000')
		for method in ('get', 'put'):
			for way, result in self.transfers(method, 30000):
				with self.subTest(f'{way} {method}'):
					self.assertRegex(result.stdout, '^ok ')
		self.assertStruck()

	def test_no_more_at_a_time(self):
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} short=4'
		lines = self.script(PIECES, port).stdout.split('\n')
		pieces = '4, ' * 8 + '1'
		self.assertEqual(lines[0], f'True [{pieces}] [{pieces}]')

	def test_one_direction(self):
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} short=30 dir=out'
		self.assertRegex(self.script(PIECES, port).stdout, r'\ATrue \[30, 3\] \[\d+')
		self.faults['F'] = f'127.0.0.1:{port} short=30 dir=in'
		self.assertRegex(self.script(PIECES, port).stdout, r'\ATrue \[33\] \[30, 3\]')

	def test_peeking_is_none(self):
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} short dir=in'
		self.assertEqual(self.script(PEEKS, port).stdout, "b'01234' 1\n")

	def test_curl_node_and_redis(self):
		self.strike('short=7')
		result = self.curl(self.port, '-o', 'file', path='/30000')
		self.assertEqual(result.returncode, 0, result)
		with open(os.path.join(self.scratch, 'file'), 'rb') as file:
			self.assertEqual(file.read(), chaos.body_of(30000))
		self.needs('redis-cli')
		self.port = self.daemon(daemons.Redis).port
		self.strike('short')
		result = self.run_program(['redis-cli', '-h', '127.0.0.1', '-p', str(self.port), 'echo', 'hello'])
		self.assertWorks(result, '^"?hello"?$')
		self.assertStruck()


# Its server answers two lines together: without a fault it would wait for ever.
PERL = r'''
use Socket;
socket(my $connection, PF_INET, SOCK_STREAM, 0);
connect($connection, sockaddr_in($ARGV[0], INADDR_LOOPBACK)) or die "connect: $!\n";
syswrite($connection, "a\n") == 2 or die "write: $!\n";
my $size = sysread($connection, my $data, 100);
print defined $size ? "read $data" : "$!\n";
syswrite($connection, "b\n") == 2 or die "write: $!\n";
$size = sysread($connection, $data, 100);
print defined $size ? "read $data" : "$!\n";
'''


def answer_pairs(connection):
	with connection.makefile('rb') as lines:
		while first := lines.readline():
			connection.sendall(first.strip() + lines.readline())


class Eintr(chaos.Case):
	def test_perl(self):
		self.needs('perl')
		port = self.peer(answer_pairs).port
		self.faults['F'] = f'127.0.0.1:{port} eintr dir=in'
		result = self.run_program(['perl', '-e', PERL, str(port)])
		self.assertEqual(result.stdout, 'Interrupted system call\nread ab\n', result)
		self.assertInjected(('F', 1, 1, 'eintr'))

	def test_python_goes_on_by_itself(self):
		server = self.healthy()
		server.slow(1)
		self.faults['F'] = f'127.0.0.1:{server.port} eintr'
		for limit in ('none', 20):
			self.assertWorks(self.client('client_urllib.py', server.port, limit).calls()[0])
		self.assertStruck()

	def test_curl_and_wget_go_on(self):
		server = self.healthy()
		self.faults['F'] = f'127.0.0.1:{server.port} eintr'
		self.assertWorks(self.curl(server.port))
		self.needs('wget')
		self.assertWorks(self.run_program(['wget', '-q', '-O-', f'http://127.0.0.1:{server.port}/']))


AGAIN = r'''
import select, socket, sys
with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as connection:
	connection.setblocking(False)
	connection.send(b'hello\n')
	for _ in range(2):
		assert select.select([connection], [], [], 60)[0]
		try:
			print(connection.recv(100))
		except BlockingIOError as error:
			print(error)
'''


class Eagain(_Transfer):
	def test_once_and_then_the_data(self):
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} eagain dir=in'
		result = self.script(AGAIN, port)
		self.assertEqual(result.stdout, "[Errno 11] Resource temporarily unavailable\nb'hello\\n'\n", result)
		self.assertInjected(('F', 1, 1, 'eagain'))

	def test_every_way_of_waiting_gets_all_of_it(self):
		for method in ('get', 'put'):
			self.strike('eagain' + (' dir=in' if method == 'get' else ''))
			for way, result in self.transfers(method, 30000):
				with self.subTest(f'{way} {method}'):
					self.assertRegex(result.stdout, '^ok ')
		self.assertGreater(self.fault('F')['injected'], 0)

	def test_curl_and_nginx(self):
		self.strike('eagain')
		result = self.curl(self.port, '-o', 'file', path='/30000')
		self.assertEqual(result.returncode, 0, result)
		front = self.nginx(self.port)
		result = self.run_program(['curl', '-s', '-m', '60', '-o', 'file', f'http://127.0.0.1:{front}/30000'], library=False)
		self.assertEqual(result.returncode, 0, result)
		with open(os.path.join(self.scratch, 'file'), 'rb') as file:
			self.assertEqual(file.read(), chaos.body_of(30000))
		self.assertStruck()

	def test_java(self):
		server = self.healthy()
		self.faults['F'] = f'127.0.0.1:{server.port} eagain'
		self.assertWorks(self.java('HttpClient', f'http://127.0.0.1:{server.port}/', 60000).calls()[0])
		self.assertStruck()


class Corrupt(_Transfer):
	def test_one_byte_of_a_download(self):
		self.strike('corrupt dir=in')
		for way, result in self.transfers():
			with self.subTest(way):
				self.assertRegex(result.stdout, rf'^bad bytes={SIZE + HEAD} differing=1 ')

	def test_curl(self):
		"""One that reads the raw stream: its header may be what is changed."""
		port = self.peer(lambda connection: (connection.recv(100), connection.sendall(chaos.body_of(SIZE)))).port
		self.faults['F'] = f'127.0.0.1:{port} corrupt=5 dir=in'
		result = self.curl(port, '--http0.9', '-o', 'file')
		self.assertEqual(result.returncode, 0, result)
		with open(os.path.join(self.scratch, 'file'), 'rb') as file:
			data = file.read()
		self.assertEqual(len(data), SIZE)
		self.assertIn(sum(a != b for a, b in zip(data, chaos.body_of(SIZE))), range(1, 6))

	def test_what_is_sent_and_not_what_the_program_holds(self):
		lines = []

		def listen(connection):
			with connection.makefile('rb') as file:
				for line in file:
					lines.append(line)
					connection.sendall(b'ok\n')
		port = self.peer(listen).port
		self.faults['F'] = f'127.0.0.1:{port} corrupt dir=out'
		result = self.script('import socket, sys\ndata = bytearray(b"x" * 99 + b"\\n")\n'
			'with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:\n\ts.sendall(data)\n'
			'\ts.sendall(b"\\n")\n\ts.recv(9)\n\tprint(data == b"x" * 99 + b"\\n")\n', port)
		self.assertEqual(result.stdout, 'True\n', result)
		sent = b''.join(lines)
		self.assertEqual(sum(a != b for a, b in zip(sent, b'x' * 99 + b'\n')), 1, sent)


class SlowClose(_Transfer):
	def test_the_end_comes_late_and_nothing_else(self):
		self.strike('slowclose=1s')
		for way, result in self.transfers(size=1000):
			with self.subTest(way):
				self.assertRegex(result.stdout, '^ok ')
				if not harness.BARE:
					self.assertGreaterEqual(result.seconds, 1)
				if chaos.STRICT:
					self.assertLess(result.seconds, 1.1)

	def test_curl_that_reads_to_the_end(self):
		port = self.peer(lambda connection: (connection.recv(999),
			connection.sendall(b'HTTP/1.0 200 OK\r\n\r\nhello from the server\n'))).port
		self.faults['F'] = f'127.0.0.1:{port} slowclose=1s'
		result = self.curl(port, '-w', 'first=%{time_starttransfer} all=%{time_total}\n')
		self.assertWorks(result)
		times = chaos.milliseconds(result.stdout)
		self.assertGreaterEqual(times['all'] - times['first'], 0.9, result)

	def test_an_answer_with_a_length_is_not_late(self):
		self.strike('slowclose=60s')
		self.assertEqual(self.curl(self.port, '-o', 'file', path='/1000', timeout=50).returncode, 0)


class Errno(_Transfer):
	def test_of_receiving(self):
		self.strike('errno=ETIMEDOUT dir=in')
		for way, result in self.transfers(size=1000):
			with self.subTest(way):
				self.assertRegex(result.stdout, r'^bad bytes=0 .*(TimeoutError \[Errno 110\]|ETIMEDOUT)')
		self.assertFails(self.curl(self.port), r'curl: \(56\) Recv failure: Connection timed out', 56)

	def test_of_sending(self):
		self.strike('errno=EPIPE dir=out')
		for way, result in self.transfers('put', 1000):
			with self.subTest(way):
				self.assertRegex(result.stdout, r'^bad bytes=0 .*(BrokenPipeError \[Errno 32\]|EPIPE|Connection lost)')
		self.assertFails(self.curl(self.port), r'curl: \(55\) Send failure: Broken pipe', 55)

	def test_of_one_call(self):
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} errno=EHOSTUNREACH dir=in per=call calls=2'
		result = self.script('import socket, sys\n'
			'with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as s:\n'
			'\tfor _ in range(2):\n\t\ts.sendall(b"x\\n")\n'
			'\t\ttry:\n\t\t\tprint(s.recv(9))\n\t\texcept OSError as error:\n\t\t\tprint(error)\n', port)
		self.assertEqual(result.stdout, "b'x\\n'\n[Errno 113] No route to host\n", result)


class Rate(_Transfer):
	"""640 kB at 64 kB a second."""

	RATE = 64000
	SECONDS = 10

	def assertSlow(self, seconds, what):
		print(f'# {what}: {seconds:.2f} s')
		if harness.BARE:
			return
		self.assertGreaterEqual(seconds, self.SECONDS * 0.95, what)
		self.assertLess(seconds, self.SECONDS * (1.05 if chaos.STRICT else 4), what)

	def setUp(self):
		super().setUp()
		self.strike('rate=64KB/s')
		self.size = self.RATE * self.SECONDS

	def test_curl(self):
		with open(os.path.join(self.scratch, 'upload'), 'wb') as file:
			file.write(chaos.body_of(self.size))
		# For an upload curl may wait to be told to go on.
		ways = {'get': [], 'put': ['-H', 'Expect:', '-T', 'upload']}
		results = harness.side_by_side([lambda options=options: self.curl(self.port, *options, '-o', 'file', '-w',
			'%{time_total}', path=f'/{self.size if not options else ""}') for options in ways.values()])
		for method, result in zip(ways, results):
			self.assertEqual(result.returncode, 0, result)
			self.assertSlow(float(result.stdout), f'curl {method}')
		self.assertEqual(self.http.received, [chaos.body_of(self.size)])

	def clients(self, method):
		ways = [(way, lambda way=way: self.client('client_transfer.py', way, self.port, method, self.size)) for way in WAYS]
		ways.append(('node', lambda: self.client('client_transfer.js', self.port, method, self.size)))
		for way, client in ways:
			yield way, client()

	def assertAllSlow(self, method):
		names, clients = zip(*self.clients(method))
		results = harness.side_by_side([lambda client=client: client.calls()[0] for client in clients])
		for way, result in zip(names, results):
			self.assertRegex(result.stdout, '^ok ')
			self.assertSlow(result.seconds, f'{way} {method}')

	def test_downloads_in_every_way_of_waiting(self):
		self.assertAllSlow('get')

	def test_uploads_in_every_way_of_waiting(self):
		self.assertAllSlow('put')

	def test_one_direction(self):
		self.strike('rate=64KB/s dir=out')
		result = self.client('client_transfer.py', 'blocking', self.port, 'get', self.size * 100).calls()[0]
		self.assertRegex(result.stdout, '^ok ')
		self.assertLess(result.seconds, 60)


class Edges(_Transfer):
	"""nginx asks for edges, and stops at a short transfer, as epoll(7) lets it."""

	def test_a_front_gets_all_of_what_comes_in_pieces(self):
		for rule in ('short=5000', 'rate=600KB/s', 'short=1000..9000 50%'):
			with self.subTest(rule):
				self.strike(rule)
				front = self.nginx(self.port)
				result = self.curl(front, '-o', 'file', '-w', '%{http_code} %{size_download}', path=f'/{SIZE}', library=False)
				self.assertEqual(result.stdout, f'200 {SIZE}', result)
				self.assertStruck()
				self.front_process.terminate()
				self.front_process.wait(30)


if __name__ == '__main__':
	harness.main()
