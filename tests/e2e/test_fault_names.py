# SPDX-License-Identifier: MIT
"""Faults of lookups, and faults of connections by the name that the program asked for."""
import os

import chaos
import daemons
import harness
import namespaces

HOSTS = '127.0.0.1 localhost api.test db.test\n127.0.0.1 one.shop.test two.shop.test\n'

LOOKUPS = r'''
import socket, sys, time
for name in sys.argv[1:]:
	began = time.monotonic()
	try:
		text = socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)[0][4][0]
	except OSError as error:
		text = str(error)
	try:
		other = socket.gethostbyname(name)
	except OSError as error:
		other = str(error)
	print(text, other, sep=' / ', flush=True)
'''

ASYNC = r'''
import asyncio, sys, time
async def main():
	loop = asyncio.get_running_loop()
	began = last = time.monotonic()
	lookup = asyncio.ensure_future(loop.getaddrinfo(sys.argv[1], 80))
	ticks = 0
	while not lookup.done():
		await asyncio.sleep(0.01)
		ticks += 1
	print(f'took={time.monotonic() - began} ticks={ticks}')
	print(lookup.exception() or lookup.result()[0][4][0])
asyncio.run(main())
'''

NODE = r'''
const dns = require('dns');
const began = Date.now();
dns.lookup(process.argv[1], { family: 4 }, (error, address) => {
	console.log(error ? error.message : address);
	console.log(`took=${(Date.now() - began) / 1000}`);
});
'''

JAVA = r'''
public class Lookup {
	public static void main(String[] arguments) {
		try {
			System.out.println(java.net.InetAddress.getByName(arguments[0]));
		} catch (java.net.UnknownHostException error) {
			System.out.println(error);
			System.exit(1);
		}
	}
}
'''


class _Names(chaos.Case):
	def strike(self, rule, **more):
		self.faults.update(F=rule, **more)

	def run_here(self, *argv, **keywords):
		return self.run_program(list(map(str, argv)), hosts=HOSTS, **keywords)

	def lookups(self, *names):
		result = self.run_here(harness.PYTHON, '-c', LOOKUPS, *names)
		self.assertEqual(result.returncode, 0, result)
		return result.stdout.splitlines()


class Failures(_Names):
	def assertPython(self, words):
		"""getaddrinfo and gethostbyname alike; and of another name nothing."""
		self.assertEqual(self.lookups('api.test', 'db.test'), [f'{words} / {words}', '127.0.0.1 / 127.0.0.1'])

	def psql(self):
		self.needs('psql')
		return self.run_here('psql', 'host=api.test port=9 user=postgres dbname=postgres', '-XAtc', 'select 42')

	def test_nxdomain(self):
		self.strike('dns:api.test nxdomain')
		self.assertPython('[Errno -2] Name or service not known')
		self.assertInjected(('F', 1, 1, 'nxdomain'), ('F', 2, 1, 'nxdomain'))
		self.assertFails(self.run_here('curl', '-sS', 'http://api.test:9/'), 'Could not resolve host: api.test', 6)
		self.needs('wget')
		self.assertFails(self.run_here('wget', '-O-', '-t', '1', 'http://api.test:9/'),
			'Name or service not known|unable to resolve host address', 4)
		self.assertFails(self.psql(), 'could not translate host name "api.test" to address: Name or service not known')

	def test_servfail(self):
		self.strike('dns:api.test servfail')
		self.assertPython('[Errno -4] Non-recoverable failure in name resolution')
		self.assertFails(self.psql(), 'to address: Non-recoverable failure in name resolution')

	def test_again(self):
		self.strike('dns:api.test again')
		self.assertPython('[Errno -3] Temporary failure in name resolution')
		self.assertFails(self.psql(), 'to address: Temporary failure in name resolution')

	def test_nodata(self):
		self.strike('dns:api.test nodata')
		self.assertPython('[Errno -5] No address associated with hostname')
		self.needs('wget')
		self.assertFails(self.run_here('wget', '-O-', '-t', '1', 'http://api.test:9/'), 'No address associated with hostname')

	def test_node(self):
		self.needs('node')
		for kind, words in (('nxdomain', 'ENOTFOUND'), ('again', 'EAI_AGAIN'), ('servfail', 'EAI_FAIL')):
			self.strike(f'dns:api.test {kind}')
			self.assertMatches(f'^getaddrinfo {words} api.test', self.run_here('node', '-e', NODE, 'api.test'))

	def test_java(self):
		self.needs('java')
		path = os.path.join(self.scratch, 'Lookup.java')
		with open(path, 'w', encoding='ascii') as file:
			file.write(JAVA)
		self.strike('dns:api.test nxdomain')
		result = self.run_here('java', '-XX:TieredStopAtLevel=1', '-Xmx128m', path, 'api.test')
		self.assertFails(result, r'java.net.UnknownHostException: api.test: Name or service not known')

	def test_redis_cli(self):
		self.needs('redis-cli')
		self.strike('dns:api.test nxdomain')
		self.assertFails(self.run_here('redis-cli', '-h', 'api.test', '-p', 9, 'ping'),
			'Could not connect to Redis at api.test:9: Name or service not known')

	def test_nginx_that_starts(self):
		self.needs('nginx')
		self.strike('dns:api.test nxdomain')
		config = os.path.join(self.scratch, 'nginx.conf')
		with open(config, 'w', encoding='ascii') as file:
			file.write(daemons.nginx_config(self.scratch,
				f'server {{ listen 127.0.0.1:{daemons.free_port()}; location / {{ proxy_pass http://api.test:9; }} }}'))
		result = self.run_here(*daemons.nginx_command(config), '-t')
		self.assertFails(result, 'host not found in upstream "api.test"')

	def test_the_first_two_and_then_no_more(self):
		self.strike('dns:api.test again calls=1..2')
		self.assertEqual(self.lookups('api.test', 'api.test'),
			['[Errno -3] Temporary failure in name resolution / [Errno -3] Temporary failure in name resolution',
				'127.0.0.1 / 127.0.0.1'])

	def test_suffix_glob_case_and_exclusion(self):
		for target in ('dns:.shop.test', 'dns:*.sh?p.test', 'dns:any'):
			self.strike(f'{target} nxdomain', KEEP='^dns:two.shop.test')
			failure = '[Errno -2] Name or service not known'
			self.assertEqual(self.lookups('one.shop.test', 'ONE.Shop.test.', 'two.shop.test', '127.0.0.7'),
				[f'{failure} / {failure}'] * 2 + ['127.0.0.1 / 127.0.0.1', '127.0.0.7 / 127.0.0.7'])


class Address(_Names):
	def test_python_curl_and_node(self):
		server = self.healthy(address='127.0.0.9')
		self.strike('dns:api.test addr=127.0.0.9')
		self.assertEqual(self.lookups('api.test', 'db.test'), ['127.0.0.9 / 127.0.0.9', '127.0.0.1 / 127.0.0.1'])
		result = self.run_here('curl', '-sS', '-w', '%{remote_ip}', f'http://api.test:{server.port}/')
		self.assertEqual((result.returncode, result.stdout), (0, 'hello from the server\n127.0.0.9'), result)
		self.assertEqual(len(server.requests), 1)
		self.assertIn(f'Host: api.test:{server.port}'.encode(), server.requests[0][1])
		self.needs('node')
		self.assertMatches(r'^127\.0\.0\.9$', self.run_here('node', '-e', NODE, 'api.test'))

	def test_a_name_that_nobody_knows(self):
		self.strike('dns:gone.test addr=127.0.0.9')
		self.assertEqual(self.lookups('gone.test'), ['127.0.0.9 / 127.0.0.9'])

	def test_ipv6(self):
		self.strike('dns:api.test addr=fd00::7')
		result = self.run_here('getent', 'ahostsv6', 'api.test')
		self.assertWorks(result, r'^fd00::7\s+STREAM')
		self.assertEqual(self.lookups('api.test')[0].split(' / ')[0], 'fd00::7')


class Latency(_Names):
	def setUp(self):
		super().setUp()
		self.strike('dns:api.test latency=1s')

	def test_curl(self):
		server = self.healthy()
		result = self.run_here('curl', '-sS', '-w', 'name=%{time_namelookup} whole=%{time_total}',
			f'http://api.test:{server.port}/')
		self.assertWorks(result)
		times = chaos.milliseconds(result.stdout)
		self.assertGreaterEqual(times['name'], 1)
		self.assertLess(times['name'], 1.1 if chaos.STRICT else 10)

	def test_wget_that_has_a_limit(self):
		self.needs('wget')
		self.strike('dns:api.test latency=30s')
		result = self.run_here('wget', '-O-', '-t', '1', '--dns-timeout=1', 'http://api.test:9/')
		self.assertFails(result, 'timed out', 4)
		self.assertLess(result.seconds, 25)

	def test_the_loops_of_asyncio_and_node_go_on(self):
		result = self.run_here(harness.PYTHON, '-c', ASYNC, 'api.test')
		figures = chaos.milliseconds(result.stdout)
		self.assertGreaterEqual(figures['took'], 1)
		self.assertGreater(figures['ticks'], 5, result)
		self.assertMatches(r'^127\.0\.0\.1$', result)
		self.needs('node')
		result = self.run_here('node', '-e', NODE, 'api.test')
		self.assertGreaterEqual(chaos.milliseconds(result.stdout)['took'], 0.99, result)

	def test_another_name_is_not_late(self):
		self.strike('dns:api.test latency=60s')
		_, seconds = chaos.timed(lambda: self.lookups('db.test', 'localhost'))
		self.assertLess(seconds, 50)


class ByName(_Names):
	"""Two names of one address: the rule is about one of them."""

	def get(self, host, *options):
		return self.run_here('curl', '-sS', '-m', '20', *options, f'http://{host}:{self.server_here.port}/')

	def setUp(self):
		super().setUp()
		self.server_here = self.healthy()

	def test_exact_suffix_and_glob(self):
		for target in ('one.shop.test', '.shop.test', '*.sh?p.test'):
			self.strike(f'{target}:{self.server_here.port} refuse')
			self.assertFails(self.get('one.shop.test'), r'curl: \(7\)', 7)
			self.assertWorks(self.get('api.test'))
			self.assertWorks(self.get('127.0.0.1'))

	def test_an_exclusion(self):
		self.strike(f'.shop.test:{self.server_here.port} refuse', KEEP='^two.shop.test')
		self.assertFails(self.get('one.shop.test'), r'curl: \(7\)', 7)
		self.assertWorks(self.get('two.shop.test'))

	def test_in_one_process(self):
		self.strike(f'one.shop.test:{self.server_here.port} refuse')
		result = self.run_here(harness.PYTHON, '-c', 'import socket, sys\nfor name in sys.argv[2:]:\n'
			'\ttry:\n\t\tsocket.create_connection((name, int(sys.argv[1]))).close()\n\t\tprint("ok")\n'
			'\texcept OSError as error:\n\t\tprint(error)\n', self.server_here.port, 'one.shop.test', 'api.test',
			'one.shop.test', 'two.shop.test')
		refused = '[Errno 111] Connection refused'
		self.assertEqual(result.stdout.splitlines(), [refused, 'ok', refused, 'ok'], result)


if __name__ == '__main__':
	# With AI_ADDRCONFIG libc gives addresses only of families that have one beside loopback.
	namespaces.enter('fd00::1/128', '10.255.255.1/32')
	harness.main()
