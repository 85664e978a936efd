# SPDX-License-Identifier: MIT
"""Faults of datagrams: drop, dup, latency and errno, on python, asyncio, node and dig."""
import re
import socket
import subprocess
import threading

import chaos
import harness

# Sends the numbers from 1, and then `end` until that comes back; tells what came, and what failed.
ASKS = r'''
import socket, sys
how, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
	if how == 'connected':
		s.connect(('127.0.0.1', port))
	s.settimeout(0.5)
	def attempt(function, *arguments):
		try:
			return function(*arguments)
		except socket.timeout:
			pass
		except OSError as error:
			print(type(error).__name__, error)
	def send(text):
		s.send(text) if how == 'connected' else s.sendto(text, ('127.0.0.1', port))
	for number in range(1, count + 1):
		attempt(send, b'%d' % number)
	data = None
	while data != b'end':
		if data is None:
			attempt(send, b'end')
		data = attempt(s.recv, 100) if how == 'connected' else (attempt(s.recvfrom, 100) or [None])[0]
		if data not in (None, b'end'):
			print(data.decode())
'''

# Each that is told to be there is: of three answers the last.
READINESS = r'''
import select, socket, sys
way, port = sys.argv[1], int(sys.argv[2])
with socket.socket(type=socket.SOCK_DGRAM) as s:
	s.connect(('127.0.0.1', port))
	s.setblocking(False)
	if way not in ('select', 'poll'):
		poll = select.epoll()
		flags = {'level': 0, 'edge': select.EPOLLET, 'oneshot': select.EPOLLONESHOT}[way]
		poll.register(s, select.EPOLLIN | flags)
	elif way == 'poll':
		poll = select.poll()
		poll.register(s, select.POLLIN)
	came = []
	for text in b'1', b'2', b'3':
		s.send(text)
		limit = 60 if text == b'3' else 0.3
		ready = select.select([s], [], [], limit)[0] if way == 'select' else poll.poll(limit * (1000 if way == 'poll' else 1))
		if ready:
			came.append(s.recv(100))
	print(came)
'''

ASYNC = r'''
import asyncio, sys, time
count = int(sys.argv[2])
class Asks(asyncio.DatagramProtocol):
	def __init__(self):
		self.came, self.error = [], None
	def datagram_received(self, data, address):
		self.came.append((data.decode(), time.monotonic() - began))
	def error_received(self, error):
		self.error = error
async def main():
	global began
	transport, asks = await asyncio.get_running_loop().create_datagram_endpoint(Asks, remote_addr=('127.0.0.1', int(sys.argv[1])))
	began = time.monotonic()
	for number in range(count):
		transport.sendto(b'%d' % (number + 1))
	ticks = 0
	while str(count) not in [data for data, _ in asks.came] and time.monotonic() < began + 20 and not asks.error:
		await asyncio.sleep(0.01)
		ticks += 1
	print(asks.error or ' '.join(data for data, _ in asks.came))
	if asks.came:
		print(f'first={asks.came[0][1] * 1000} ticks={ticks}')
asyncio.run(main())
'''

NODE = r'''
const socket = require('dgram').createSocket('udp4');
const [port, count] = process.argv.slice(1).map(Number);
const came = [];
let began;
const end = (text) => { console.log(text); socket.close(); clearTimeout(limit); };
const limit = setTimeout(() => end('only ' + came.join(' ')), 20000);
socket.on('error', (error) => end(error.message));
socket.on('message', (data) => {
	if (came.push(String(data)) === 1)
		console.log(`first=${Number(process.hrtime.bigint() - began) / 1e6}`);
	if (String(data) === String(count))
		end(came.join(' '));
});
socket.connect(port, '127.0.0.1', () => {
	began = process.hrtime.bigint();
	for (let i = 1; i <= count; i++)
		socket.send(String(i));
});
'''


class _Datagrams(chaos.Case):
	def setUp(self):
		super().setUp()
		self.echo = chaos.UdpEcho()
		self.addCleanup(self.echo.close)
		self.port = self.echo.port

	def strike(self, rule):
		self.faults['F'] = f'127.0.0.1:{self.port} proto=udp {rule}'

	def ask(self, count, how='connected'):
		result = self.script(ASKS, how, self.port, count)
		self.assertEqual(result.stderr, '', result)
		return result.stdout.splitlines()

	def reached(self):
		return [data.decode() for data in self.echo.received if data != b'end']


class Drop(_Datagrams):
	def test_what_is_sent(self):
		self.strike('drop dir=out calls=2')
		for how in ('connected', 'apart'):
			self.echo.received.clear()
			self.assertEqual(self.ask(3, how), ['1', '3'])
			self.assertEqual(self.reached(), ['1', '3'])
		self.assertInjected(('F', 1, 2, 'drop'), ('F', 2, 2, 'drop'))

	def test_what_is_received(self):
		self.strike('drop dir=in calls=2')
		for how in ('connected', 'apart'):
			self.echo.received.clear()
			self.assertEqual(self.ask(3, how), ['1', '3'])
			self.assertEqual(self.reached(), ['1', '2', '3'])

	def test_what_is_lost_makes_nothing_readable(self):
		self.strike('drop dir=in calls=1..2')
		for way in ('select', 'poll', 'level', 'edge', 'oneshot'):
			result = self.script(READINESS, way, self.port)
			self.assertEqual(result.stdout, "[b'3']\n", (way, result))

	def test_asyncio_and_node(self):
		self.strike('drop dir=in calls=1')
		for command in self.programs(2):
			result = self.run_program(command)
			self.assertMatches(r'^2$', result)

	def programs(self, count):
		yield [harness.PYTHON, '-c', ASYNC, str(self.port), str(count)]
		if harness.find_program('node'):
			yield ['node', '-e', NODE, str(self.port), str(count)]

	def test_a_share_of_them(self):
		self.strike('drop dir=out 50%')
		answers = self.ask(20)
		lost = {i['call'] for i in self.injections() if i['call'] <= 20}
		self.assertIn(len(lost), range(1, 20))
		self.assertEqual([int(a) for a in answers if a.isdigit()], [n for n in range(1, 21) if n not in lost])

	def test_dig_asks_again(self):
		self.needs('dig')
		server = NameServer()
		self.addCleanup(server.close)
		self.port = server.port
		command = ['dig', '@127.0.0.1', '-p', str(self.port), '+short', '+time=1', '+noedns', 'a.test', 'A']
		self.strike('drop dir=out times=1')
		self.assertEqual(self.run_program(command + ['+tries=30']).stdout.strip().splitlines()[-1], '192.0.2.7')
		self.assertInjected(('F', 1, 1, 'drop'))
		for way in ('out', 'in'):
			before = len(self.injections())
			self.strike(f'drop dir={way}')
			result = self.run_program(command + ['+tries=2'])
			self.assertFails(result, 'no servers could be reached', 9)
			self.assertEqual(len(re.findall('timed out', result.text)), 2, result)
			self.assertGreater(len(self.injections()), before)
		self.assertEqual({i['fault'] for i in self.injections()}, {'drop'})


# Asks for a.test as resolvers have always done: select with a time, then a recv that would wait.
RESOLVER = r'''
import select, socket, sys, time
port, tries, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
query = b'\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x04test\x00\x00\x01\x00\x01'
with socket.socket(type=socket.SOCK_DGRAM) as s:
	if sys.argv[4] == 'connected':
		s.connect(('127.0.0.1', port))
	for attempt in range(tries):
		s.sendto(query, ('127.0.0.1', port)) if sys.argv[4] == 'apart' else s.send(query)
		if select.select([s], [], [], seconds)[0]:
			print('answer', socket.inet_ntoa(s.recvfrom(512)[0][-4:]))
			break
		print('timeout')
'''

NODE_RESOLVER = r'''
const [port, tries, timeout] = process.argv.slice(1).map(Number);
const resolver = new (require('dns').Resolver)({ timeout, tries });
resolver.setServers([`127.0.0.1:${port}`]);
resolver.resolve4('a.test', (error, addresses) => console.log(error ? error.code : `answer ${addresses}`));
'''

# A server of one thread with something else to do: it ticks while nobody asks.
SERVER = r'''
import select, socket, sys
with socket.socket(type=socket.SOCK_DGRAM) as s:
	s.bind(('127.0.0.1', 0))
	print(s.getsockname()[1], flush=True)
	data = None
	while data != b'end':
		if select.select([s], [], [], 0.05)[0]:
			data = s.recvfrom(100)[0]
			print(data.decode(), flush=True)
		else:
			print('tick', flush=True)
'''


class Dns(_Datagrams):
	"""An answer that is lost is a timeout of the client's own."""

	def setUp(self):
		super().setUp()
		server = NameServer()
		self.addCleanup(server.close)
		self.port = server.port

	def test_select_and_recv(self):
		for how in ('connected', 'apart'):
			self.faults['F'] = f'127.0.0.1:{self.port} proto=udp drop dir=in calls=1'
			result = self.script(RESOLVER, self.port, 30, 1, how)
			self.assertMatches(r'^timeout\n(timeout\n)*answer 192\.0\.2\.7\n$', result)
			self.faults['F'] = f'127.0.0.1:{self.port} proto=udp drop dir=in'
			result = self.script(RESOLVER, self.port, 2, 0.3, how)
			self.assertEqual(result.stdout, 'timeout\n' * 2, result)

	def test_node(self):
		self.needs('node')
		self.strike('drop dir=in')
		result = self.run_program(['node', '-e', NODE_RESOLVER, str(self.port), '2', '300'])
		self.assertEqual(result.stdout, 'ETIMEOUT\n', result)
		self.assertStruck()
		self.strike('drop dir=in times=1')
		result = self.run_program(['node', '-e', NODE_RESOLVER, str(self.port), '30', '1000'])
		self.assertEqual(result.stdout, 'answer 192.0.2.7\n', result)

	def test_nobody_is_there(self):
		"""What the kernel says of a closed port is told at once, whoever the rule is about."""
		self.faults['F'] = '127.0.0.9 proto=udp drop'
		self.faults['G'] = 'any proto=udp drop dir=in'
		with socket.socket(type=socket.SOCK_DGRAM) as closed:
			closed.bind(('127.0.0.1', 0))
			port = closed.getsockname()[1]
		result = self.script(RESOLVER, port, 1, 60, 'connected')
		self.assertMatches('ConnectionRefusedError', result)
		self.assertLess(result.seconds, 50)

	def test_a_server_goes_on(self):
		with socket.socket(type=socket.SOCK_DGRAM) as client:
			client.bind(('127.0.0.1', 0))
			self.faults['F'] = f'127.0.0.1:{client.getsockname()[1]} proto=udp drop dir=in calls=1'
			server = self.start([harness.PYTHON, '-c', SERVER], stdout=subprocess.PIPE, text=True)
			client.connect(('127.0.0.1', int(server.stdout.readline())))
			client.send(b'lost')
			harness.wait_until(lambda: self.injections() or harness.BARE, 30, 'it is lost')
			self.assertEqual([server.stdout.readline() for _ in range(3)][-1], 'tick\n')
			client.send(b'end')
			self.assertEqual([line for line in server.stdout if line != 'tick\n'], ['end\n'])


class Dup(_Datagrams):
	def test_what_is_sent(self):
		self.strike('dup dir=out calls=1')
		self.assertEqual(self.ask(1), ['1', '1'])
		self.assertEqual(self.reached(), ['1', '1'])

	def test_what_is_received(self):
		self.strike('dup dir=in calls=1')
		for how in ('connected', 'apart'):
			self.echo.received.clear()
			self.assertEqual(self.ask(1, how), ['1', '1'])
			self.assertEqual(self.reached(), ['1'])

	def test_asyncio_and_node(self):
		self.strike('dup dir=out')
		result = self.run_program([harness.PYTHON, '-c', ASYNC, str(self.port), '2'])
		self.assertMatches('^1 1( 2)?', result)
		self.needs('node')
		self.assertMatches('^1 1', self.run_program(['node', '-e', NODE, str(self.port), '2']))


class Latency(_Datagrams):
	DELAY = 300

	def assertLate(self, milliseconds):
		self.assertGreaterEqual(milliseconds, 0 if harness.BARE else self.DELAY)
		self.assertLess(milliseconds, self.DELAY + (20 if chaos.STRICT else 3000))

	def test_python_blocking_and_with_a_limit(self):
		self.strike(f'latency={self.DELAY}ms')
		for limit in ('None', '60'):
			result = self.script('import socket, sys, time\nwith socket.socket(type=socket.SOCK_DGRAM) as s:\n'
				'\ts.connect(("127.0.0.1", int(sys.argv[1])))\n\ts.settimeout(eval(sys.argv[2]))\n'
				'\tfor _ in range(3):\n\t\tbegan = time.monotonic()\n\t\ts.send(b"x")\n\t\ts.recv(9)\n'
				'\t\tprint((time.monotonic() - began) * 1000)\n', self.port, limit)
			took = [float(line) for line in result.stdout.split()]
			self.assertEqual(len(took), 3, result)
			print(f'# limit {limit}: {took}')
			self.assertLate(sorted(took)[1])

	def test_a_limit_that_is_shorter(self):
		self.strike('latency=20s')
		result = self.script('import socket, sys\nwith socket.socket(type=socket.SOCK_DGRAM) as s:\n'
			'\ts.settimeout(0.3)\n\ts.sendto(b"x", ("127.0.0.1", int(sys.argv[1])))\n'
			'\ttry:\n\t\tprint(s.recvfrom(9))\n\texcept OSError as error:\n\t\tprint(error)\n', self.port)
		self.assertEqual(result.stdout, 'timed out\n', result)
		self.assertLess(result.seconds, 15)

	def test_asyncio_whose_loop_goes_on(self):
		self.strike('latency=1s')
		result = self.run_program([harness.PYTHON, '-c', ASYNC, str(self.port), '1'])
		figures = chaos.milliseconds(result.stdout)
		self.assertGreaterEqual(figures['first'], 1000)
		self.assertGreater(figures['ticks'], 5)

	def test_node(self):
		self.needs('node')
		self.strike(f'latency={self.DELAY}ms')
		result = self.run_program(['node', '-e', NODE, str(self.port), '1'])
		self.assertMatches('^1$', result)
		self.assertLate(chaos.milliseconds(result.stdout)['first'])


class Errno(_Datagrams):
	def test_of_sending(self):
		self.strike('errno=ECONNREFUSED dir=out calls=2 per=call')
		self.assertEqual(self.ask(3), ['ConnectionRefusedError [Errno 111] Connection refused', '1', '3'])
		self.assertEqual(self.reached(), ['1', '3'])

	def test_of_receiving(self):
		self.strike('errno=ECONNREFUSED dir=in calls=1 per=call')
		self.assertEqual(self.ask(1)[0], 'ConnectionRefusedError [Errno 111] Connection refused')

	def test_asyncio_and_node(self):
		self.strike('errno=ECONNREFUSED dir=in calls=1 per=call')
		self.assertMatches(r'\[Errno 111\]', self.run_program([harness.PYTHON, '-c', ASYNC, str(self.port), '1']))
		self.needs('node')
		self.assertMatches('ECONNREFUSED', self.run_program(['node', '-e', NODE, str(self.port), '1']))


class Apart(_Datagrams):
	def test_stream_rules_are_not_about_datagrams(self):
		self.faults['F'] = 'any refuse'
		self.faults['G'] = 'any reset'
		self.assertEqual(self.ask(2), ['1', '2'])
		self.assertInjected()

	def test_datagram_rules_are_not_about_streams(self):
		self.faults['F'] = 'any drop proto=udp'
		self.assertWorks(self.curl(self.healthy().port))

	def test_another_port(self):
		other = chaos.UdpEcho()
		self.addCleanup(other.close)
		self.strike('drop')
		result = self.script(ASKS, 'apart', other.port, 2)
		self.assertEqual(result.stdout.splitlines()[:2], ['1', '2'], result)


class NameServer:
	"""Every name is 192.0.2.7."""

	def __init__(self):
		self._socket = socket.socket(type=socket.SOCK_DGRAM)
		self._socket.bind(('127.0.0.1', 0))
		self.port = self._socket.getsockname()[1]
		threading.Thread(target=self._serve, daemon=True).start()

	def close(self):
		# It waits in recvfrom for a datagram.
		self._running = False
		self._socket.sendto(b'', self._socket.getsockname())

	_running = True

	def _serve(self):
		while self._running:
			packet, client = self._socket.recvfrom(2048)
			if packet:
				end = packet.index(b'\0', 12) + 5
				self._socket.sendto(packet[:2] + b'\x81\x80\0\1\0\1\0\0\0\0' + packet[12:end]
					+ b'\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4' + socket.inet_aton('192.0.2.7'), client)
		self._socket.close()


if __name__ == '__main__':
	harness.main()
