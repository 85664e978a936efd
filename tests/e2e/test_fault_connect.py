# SPDX-License-Identifier: MIT
"""Faults of the attempt: refuse, unreachable, timeout, hang, errno and maxconn, on healthy servers, in
the programs' own words."""
import errno
import socket
import time

import chaos
import daemons
import harness

BOUND = 'import socket, sys\n' \
	'with socket.socket() as s:\n\ts.settimeout(60)\n\tprint(s.connect_ex(("127.0.0.1", int(sys.argv[1]))))\n'

ASYNC = r'''
import asyncio, sys
async def main():
	try:
		reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
	except OSError as error:
		sys.exit(str(error))
	writer.write(b'x\n')
	print(await asyncio.wait_for(reader.readline(), 60))
asyncio.run(main())
'''

HOLDS = r'''
import socket, sys
port, held = int(sys.argv[1]), []
def attempt():
	connection = socket.socket()
	error = connection.connect_ex(('127.0.0.1', port))
	if not error:
		connection.sendall(b'x\n')
		assert connection.recv(2) == b'x\n'
		held.append(connection)
	else:
		connection.close()
	return error
print([attempt() for _ in range(4)], flush=True)
held.pop().close()
print([attempt() for _ in range(2)])
'''

KEPT = r'''
import socket, sys
with socket.create_connection(('127.0.0.1', int(sys.argv[1])), 60) as connection:
	for number in range(1, 4):
		connection.sendall(b'%d\n' % number)
		connection.settimeout(60 if number < int(sys.argv[2]) else 1)
		try:
			print(connection.recv(100))
		except OSError as error:
			print(type(error).__name__, error)
			break
'''


class _Connect(chaos.Case):
	def setUp(self):
		super().setUp()
		self.target = self.healthy()
		self.port = self.target.port

	def strike(self, rule):
		self.faults['F'] = f'127.0.0.1:{self.port} {rule}'

	def assertUntouched(self):
		"""Nothing of the program's came to the server."""
		if not harness.BARE:
			self.assertEqual(self.target.requests, [])


class Refuse(_Connect):
	def setUp(self):
		super().setUp()
		self.strike('refuse')

	def test_curl(self):
		wire = self.wire(self.port)
		self.assertFails(self.curl(self.port), r"curl: \(7\) Failed to connect to 127.0.0.1 port \d+", 7)
		self.assertEqual(wire.attempts(), [])
		self.assertInjected(('F', 1, 1, 'refuse'))

	def test_wget(self):
		self.needs('wget')
		result = self.run_program(['wget', '-O-', '-t', '1', f'http://127.0.0.1:{self.port}/'])
		self.assertFails(result, 'failed: Connection refused', 4)
		self.assertUntouched()

	def test_python_blocking(self):
		self.assertFails(self.client('client_urllib.py', self.port).calls()[0],
			r'^URLError <urlopen error \[Errno 111\] Connection refused>')

	def test_python_asyncio(self):
		result = self.client('client_asyncio.py', self.port).calls(3)
		for one in result:
			self.assertFails(one, r"^ConnectionRefusedError \[Errno 111\]")
		self.assertUntouched()

	def test_node(self):
		for one in self.client('client_http.js', self.port).calls(3):
			self.assertFails(one, r'^ECONNREFUSED connect ECONNREFUSED 127.0.0.1:\d+')
		self.assertUntouched()

	def test_java(self):
		for kind in ('HttpURLConnection', 'HttpClient'):
			client = self.java(kind, f'http://127.0.0.1:{self.port}/')
			self.assertFails(client.calls()[0], r'^java.net.ConnectException')
		self.assertUntouched()

	def test_nginx_upstream(self):
		front = self.nginx(self.port)
		result = self.run_program(['curl', '-s', '-m', '60', f'http://127.0.0.1:{front}/'], library=False)
		self.assertMatches('502 Bad Gateway', result)
		self.assertRegex(self.nginx_log(), r'connect\(\) .*failed \(111: Connection refused\)')
		self.assertUntouched()


class RefuseDatabases(chaos.Case):
	"""Two servers that are real and well."""

	def test_psql(self):
		self.needs('psql')
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} refuse'
		self.assertFails(self.psql(port), r'psql: error: connection to server at "127.0.0.1", port \d+ failed: '
			'Connection refused')

	def test_psql_of_a_server_that_hangs(self):
		self.needs('psql')
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} hang'
		self.assertFails(self.psql(port), r'psql: error: connection to server at "127.0.0.1", port \d+ failed: '
			'timeout expired')

	def psql(self, port):
		return self.run_program(['psql', f'host=127.0.0.1 port={port} user=postgres dbname=postgres '
			'connect_timeout=2 sslmode=disable gssencmode=disable', '-XAtc', 'select 42'])

	def test_redis_cli(self):
		self.needs('redis-cli')
		redis = self.daemon(daemons.Redis)
		command = ['redis-cli', '-h', '127.0.0.1', '-p', str(redis.port), 'ping']
		self.faults['F'] = f'127.0.0.1:{redis.port} refuse calls=1..2'
		self.assertFails(self.run_program(command), r'Could not connect to Redis at 127.0.0.1:\d+: Connection refused')
		# It tries twice.
		self.assertWorks(self.run_program(command), 'PONG')


class Unreachable(_Connect):
	def setUp(self):
		super().setUp()
		self.strike('unreachable')

	def test_wget(self):
		self.needs('wget')
		result = self.run_program(['wget', '-O-', '-t', '1', f'http://127.0.0.1:{self.port}/'])
		self.assertFails(result, 'failed: No route to host', 4)

	def test_python_blocking_and_asyncio(self):
		self.assertFails(self.client('client_urllib.py', self.port).calls()[0], r'\[Errno 113\] No route to host')
		self.assertFails(self.client('client_asyncio.py', self.port).calls()[0], r'^OSError \[Errno 113\]')
		self.assertUntouched()

	def test_node(self):
		self.assertFails(self.client('client_http.js', self.port).calls()[0], r'^EHOSTUNREACH connect EHOSTUNREACH')

	def test_java(self):
		client = self.java('HttpURLConnection', f'http://127.0.0.1:{self.port}/')
		self.assertFails(client.calls()[0], r'^java.net.NoRouteToHostException: No route to host')


class Timeout(_Connect):
	"""A failure that comes late, whatever way the program waits for it."""

	def assertLate(self, result):
		if not harness.BARE:
			self.assertGreaterEqual(result.seconds, 0.99)
			if chaos.STRICT:
				self.assertLess(result.seconds, 1.3)
		self.assertUntouched()

	def setUp(self):
		super().setUp()
		self.strike('timeout=1s')

	def test_wget(self):
		self.needs('wget')
		result = self.run_program(['wget', '-O-', '-t', '1', f'http://127.0.0.1:{self.port}/'])
		self.assertFails(result, 'failed: Connection timed out', 4)
		self.assertLate(result)

	def test_curl(self):
		result = self.curl(self.port)
		self.assertFails(result, r'curl: \((7|28)\) Failed to connect to 127.0.0.1 port \d+')
		self.assertLate(result)

	def test_python_blocking(self):
		result = self.client('client_urllib.py', self.port, 'none').calls()[0]
		self.assertFails(result, r'^URLError <urlopen error \[Errno 110\] Connection timed out>')
		self.assertLate(result)

	def test_python_with_a_limit(self):
		result = self.client('client_urllib.py', self.port, '60').calls()[0]
		self.assertFails(result, r'^URLError <urlopen error \[Errno 110\] Connection timed out>')
		self.assertLate(result)

	def test_python_asyncio(self):
		for result in self.client('client_asyncio.py', self.port, 60).calls(5):
			self.assertFails(result, r'^TimeoutError \[Errno 110\] Connect call failed')
			self.assertLate(result)

	def test_node(self):
		for result in self.client('client_http.js', self.port, 'new', 60000).calls(5):
			self.assertFails(result, r'^ETIMEDOUT connect ETIMEDOUT 127.0.0.1:\d+')
			self.assertLate(result)

	def test_java(self):
		for kind in ('HttpURLConnection', 'HttpClient'):
			client = self.java(kind, f'http://127.0.0.1:{self.port}/', 60000)
			result = client.calls()[0]
			self.assertFails(result, r'^java.net.ConnectException')
			self.assertLate(result)

	def test_nginx_upstream(self):
		front = self.nginx(self.port)
		result = self.run_program(['curl', '-s', '-m', '60', f'http://127.0.0.1:{front}/'], library=False)
		self.assertMatches('504 Gateway Time-out|502 Bad Gateway', result)
		self.assertRegex(self.nginx_log(), r'110: Connection timed out')
		self.assertLate(result)

	def test_at_once_without_a_duration(self):
		self.strike('timeout')
		result = self.script(BOUND, self.port)
		self.assertEqual(result.stdout, '110\n', result)


class Hang(_Connect):
	"""The peer falls silent: each program gives up by its own limit."""

	def setUp(self):
		super().setUp()
		self.strike('hang')

	def test_curl(self):
		result = self.run_program(['curl', '-sS', '-m', '1', f'http://127.0.0.1:{self.port}/'])
		self.assertFails(result, r'curl: \(28\) .*timed out', 28)
		self.assertUntouched()
		self.assertInjected(('F', 1, 1, 'hang'))

	def test_python_blocking_and_asyncio(self):
		self.assertFails(self.client('client_urllib.py', self.port, 1).calls()[0],
			r'^(URLError <urlopen error timed out>|timeout timed out|TimeoutError timed out)')
		self.assertFails(self.client('client_asyncio.py', self.port, 1).calls()[0], r'^TimeoutError')
		self.assertUntouched()

	def test_node(self):
		self.assertFails(self.client('client_http.js', self.port, 'new', 1000).calls()[0], '^timed out')

	def test_java(self):
		client = self.java('HttpURLConnection', f'http://127.0.0.1:{self.port}/', 1000)
		self.assertFails(client.calls()[0], r'^java.net.SocketTimeoutException: [Cc]onnect timed out')
		client = self.java('HttpClient', f'http://127.0.0.1:{self.port}/', 1000)
		self.assertFails(client.calls()[0], r'^java.net.http.HttpConnectTimeoutException')

	def test_wget(self):
		self.needs('wget')
		result = self.run_program(['wget', '-O-', '-t', '1', '-T', '1', f'http://127.0.0.1:{self.port}/'])
		self.assertFails(result, 'failed: Connection timed out', 4)

	def test_the_second_call_of_a_connection(self):
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} hang per=call calls=2'
		result = self.script(KEPT, port, 2)
		self.assertRegex(result.stdout, r"\Ab'1\\n'\n(TimeoutError|timeout) timed out\n\Z", result)
		self.assertInjected(('F', 1, 2, 'hang'))

	def test_another_connection_of_the_same_process(self):
		self.strike('hang calls=1')
		client = self.client('client_asyncio.py', self.port, 5)
		results = client.calls(3)
		self.assertEqual(sorted(r.returncode for r in results), [0, 0, 1], results)


class Errno(_Connect):
	def test_names(self):
		for name, words in (('ENETUNREACH', 'Network is unreachable'), ('ECONNRESET', 'Connection reset by peer'),
				('EACCES', 'Permission denied'), ('EADDRNOTAVAIL', 'Cannot assign requested address')):
			with self.subTest(name):
				self.strike(f'errno={name}')
				number = getattr(errno, name)
				self.assertFails(self.script(ASYNC, self.port), rf'^\[Errno {number}\]')
				result = self.script(BOUND, self.port)
				self.assertEqual(result.stdout, f'{number}\n', result)
				self.needs('wget')
				result = self.run_program(['wget', '-O-', '-t', '1', f'http://127.0.0.1:{self.port}/'])
				self.assertFails(result, words)
		self.assertUntouched()

	def test_node(self):
		self.strike('errno=ENETUNREACH')
		self.assertFails(self.client('client_http.js', self.port).calls()[0], r'^ENETUNREACH connect ENETUNREACH')

	def test_only_what_connect_can_come_to(self):
		"""The rule is left out, and shunt run does not start on it."""
		self.strike('errno=ENOENT')
		self.assertWorks(self.curl(self.port))
		result = self.run_program([harness.SHUNT, 'run', '--fault', f'127.0.0.1:{self.port} errno=ENOENT', '--', 'true'],
			library=False)
		self.assertEqual(result.returncode, 125, result)
		self.assertMatches('errno: expected', result)


class Maxconn(chaos.Case):
	def test_python(self):
		port = self.peer(chaos.echo).port
		self.faults['F'] = f'127.0.0.1:{port} maxconn=2'
		result = self.script(HOLDS, port)
		self.assertEqual(result.stdout, '[0, 0, 111, 111]\n[0, 111]\n', result)

	def test_node(self):
		server = self.healthy()
		self.faults['F'] = f'127.0.0.1:{server.port} maxconn=2'
		server.slow(1)
		results = self.client('client_http.js', server.port, 'new', 60000).calls(5)
		self.assertEqual(sorted(r.returncode for r in results), [0, 0, 1, 1, 1], results)

	def test_curl_side_by_side(self):
		server = self.healthy()
		self.faults['F'] = f'127.0.0.1:{server.port} maxconn=1'
		server.slow(1)
		result = self.run_program(['curl', '-sS', '-Z', '--parallel-immediate', '-m', '60'] +
			[f'http://127.0.0.1:{server.port}/'] * 3)
		self.assertFails(result, r'curl: \(7\) Failed to connect')
		self.assertEqual(result.stdout.count('hello from the server'), 1, result)


class Story(chaos.Case):
	"""Two failures, and then success."""

	def test_curl_that_tries_again(self):
		server = self.healthy()
		self.faults['F'] = f'127.0.0.1:{server.port} calls=1..2,refuse'
		result = self.curl(server.port, '--retry', '3', '--retry-connrefused', '--retry-delay', '1')
		self.assertWorks(result)
		self.assertEqual(result.stderr.count('Failed to connect'), 2, result)
		self.assertInjected(('F', 1, 1, 'refuse'), ('F', 2, 1, 'refuse'))
		self.assertEqual(len(server.requests), 1)

	def test_a_shell_loop_of_curl(self):
		server = self.healthy()
		self.faults['F'] = f'127.0.0.1:{server.port} refuse calls=2+3'
		loop = f'for i in 1 2 3 4 5 6 7 8 9; do curl -s http://127.0.0.1:{server.port}/ >/dev/null; echo $?; done'
		result = self.run_program(['sh', '-c', loop])
		self.assertEqual(result.stdout.split(), ['0', '7', '0', '0', '7', '0', '0', '7', '0'], result)

	def test_ipv6(self):
		if not socket.has_ipv6:
			self.skipTest('no IPv6')
		try:
			server = self.healthy(address='::1')
		except OSError:
			self.skipTest('no IPv6')
		self.faults['F'] = f'[::1]:{server.port} calls=1 refuse'
		self.assertFails(self.curl(server.port, host='[::1]'), r'curl: \(7\)', 7)
		self.assertWorks(self.curl(server.port, host='[::1]'))


FLAPS = r'''
import socket, sys, time
def down():
	with socket.socket() as s:
		return s.connect_ex(('127.0.0.1', int(sys.argv[1])))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
	before = time.monotonic()
	error = down()
	print(before, time.monotonic(), error, flush=True)
	time.sleep(0.02)
'''


class Flap(chaos.Case):
	def test_two_seconds_down_and_eight_up(self):
		"""There is one beginning in the program's start by which every attempt came out right."""
		server = self.healthy()
		self.faults['F'] = f'127.0.0.1:{server.port} refuse flap=2s/8s'
		began = time.monotonic()
		result = self.script(FLAPS, server.port, 13)
		samples = [line.split() for line in result.stdout.splitlines()]
		samples = [(float(before), float(after), error == '111') for before, after, error in samples]
		self.assertEqual({down for _, _, down in samples}, {True, False}, result)
		# In steps of a tenth of a millisecond; where it changes tells most.
		changes = [one for pair in zip(samples, samples[1:]) if pair[0][2] != pair[1][2] for one in pair]
		first = int((samples[0][0] - began) * 10000)
		fitting = any(self.fits(changes + samples, began + offset / 10000) for offset in range(first + 1))
		self.assertTrue(fitting, (began, samples[0], [s for s, t in zip(samples, samples[1:]) if s[2] != t[2]]))

	@staticmethod
	def fits(samples, start):
		def is_down(when):
			return (when - start) % 10 < 2
		return all(down in (is_down(before), is_down(after)) for before, after, down in samples)


if __name__ == '__main__':
	harness.main()
