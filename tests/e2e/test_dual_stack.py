# SPDX-License-Identifier: MIT
"""A name with two addresses, of which the first is dead: the program always gets through to the second."""
import os
import time

import harness
import daemons
import namespaces
from servers import reserve_port

HOSTS = '::1 dual.test\n127.0.0.1 dual.test localhost\n'
URLLIB = 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=2).read().decode())'
NODE = '''
require('http').get(process.argv[1], { agent: false }, (response) => response.pipe(process.stdout))
	.on('error', (error) => { console.error(error); process.exitCode = 1; });
'''
NC = r"printf 'GET / HTTP/1.0\r\n\r\n' | nc -N -w 2 dual.test "


class _DualStack(harness.Case):
	"""Both addresses share a port; only 127.0.0.1 has a server that works."""

	works = 'hello from the server'
	exchanges = 1   # in one run of the program that succeeds
	postgres = None

	def begin(self, backend=None):
		self.live = self.server(backend=backend)
		self.live.healthy()
		self.port = self.live.port
		self.url = f'http://dual.test:{self.port}/'
		self.rules['DUAL'] = f'dual.test:{self.port} volume=3 errors=50% sleep=60s'
		self.witness = self.wire(self.port)

	def succeed(self, argv, count):
		results = [self.run_program(argv, hosts=HOSTS) for _ in range(count)]
		for result in results:
			self.assertEqual(result.returncode, 0, result)
			self.assertIn(self.works, result.text)
		return results

	def assertOnlySixIsOpen(self, succeeded, **six):
		self.assertState('open', address='::1')
		self.assertState('closed', address='127.0.0.1')
		self.assertTotals(six, address='::1')
		self.assertTotals({'success': succeeded, 'failure': 0, 'timeout': 0}, address='127.0.0.1')

	def psql(self):
		# The session's start, and the query.
		self.exchanges = 2
		return ['psql', f'host=dual.test port={self.port} user=postgres dbname=postgres connect_timeout=2 '
			'sslmode=disable gssencmode=disable', '-XAtc', "select 'hello from the server'"]


class _WithPostgres(_DualStack):
	@classmethod
	def setUpClass(cls):
		cls.postgres = daemons.Postgres()
		cls.addClassCleanup(cls.postgres.close)


class FirstAddressRefuses(_WithPostgres):
	def tell(self, argv):
		holder = reserve_port('::1', self.port)
		self.addCleanup(holder.close)
		self.succeed(argv, 3)
		self.assertEqual(len(self.witness.attempts(address='::1')), 3)
		opened = time.monotonic()
		self.succeed(argv, 4)
		self.assertEqual(self.witness.attempts(opened, address='::1'), [])
		self.assertEqual(len(self.witness.attempts(opened, address='127.0.0.1')), 4)
		self.assertOnlySixIsOpen(7 * self.exchanges, failure=3, short_circuited=4)

	def test_curl(self):
		self.begin()
		self.tell(['curl', '-sS', '-m', '10', self.url])

	def test_wget(self):
		self.begin()
		self.tell(['wget', '-qO-', '-t', '1', '-T', '10', self.url])

	def test_python(self):
		self.begin()
		self.tell([harness.PYTHON, '-c', URLLIB, self.url])

	def test_node(self):
		self.begin()
		self.tell(['node', '-e', NODE, self.url])

	def test_psql(self):
		self.begin(backend=('127.0.0.1', self.postgres.port))
		self.tell(self.psql())

	def test_nc(self):
		self.begin()
		self.tell(['sh', '-c', NC + str(self.port)])


class FirstAddressHangs(_WithPostgres):
	"""Clients that try one address after the other wait for the dead one, until its circuit is open."""

	def tell(self, argv):
		dead = self.server(address='::1', port=self.port)
		dead.full_backlog()
		for result in harness.side_by_side([lambda: self.run_program(argv, hosts=HOSTS)] * 3):
			self.assertEqual(result.returncode, 0, result)
			self.assertGreater(result.seconds, 1.5)
		opened = time.monotonic()
		self.assertAtOnce(self.succeed(argv, 3))
		self.assertEqual(self.witness.attempts(opened, address='::1'), [])
		self.assertOnlySixIsOpen(6 * self.exchanges, timeout=3, short_circuited=3)

	def test_wget(self):
		self.begin()
		self.tell(['wget', '-qO-', '-t', '1', '-T', '2', self.url])

	def test_python(self):
		self.begin()
		self.tell([harness.PYTHON, '-c', URLLIB, self.url])

	def test_psql(self):
		self.begin(backend=('127.0.0.1', self.postgres.port))
		self.tell(self.psql())

	def test_nc(self):
		self.begin()
		self.tell(['sh', '-c', NC + str(self.port)])


if __name__ == '__main__':
	# With AI_ADDRCONFIG libc gives IPv6 addresses only where there is one beside ::1.
	namespaces.enter('fd00::1/128', '10.255.255.1/32')
	if not os.path.exists('/proc/net/if_inet6'):
		print('1..0 # SKIP needs IPv6')
	else:
		harness.main()
