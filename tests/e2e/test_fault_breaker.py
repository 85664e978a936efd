# SPDX-License-Identifier: MIT
"""Faults are injected beneath the breaker: it opens on them as on real failures, closes when they end, and what
it counts tells them from an outage."""
import time

import chaos
import harness

VOLUME = 3
SLEEP = 2
# A window in which all calls of a test are, on whatever machine.
WINDOW = 'window=5m'
RULE = f'volume={VOLUME} sleep={SLEEP}s {WINDOW}'


class _Breaker(chaos.Case):
	fault_rule = None

	def setUp(self):
		super().setUp()
		self.target = self.healthy()
		self.port = self.target.port
		self.rules['TARGET'] = f'127.0.0.1:{self.port} {RULE}'

	def strike(self, rule):
		self.faults['F'] = f'127.0.0.1:{self.port} {rule}'

	def kinds(self):
		return [event['event'] for event in self.events()]

	def assertStory(self, calls, outcome, injected=VOLUME):
		"""It opens on the faults; while open nothing is injected or sent; then it closes."""
		for _ in range(VOLUME):
			self.assertNotEqual(calls().returncode, 0)
		self.assertState('open', name='TARGET')
		self.assertTotals({outcome: VOLUME, 'injected': injected, 'success': 0, 'trips': 1}, name='TARGET')
		self.assertRefused(calls)
		if self.cell(name='TARGET')['state'] != 'closed':
			self.wait_for_probe(name='TARGET')
		self.assertWorks(calls())
		self.assertState('closed', name='TARGET')
		self.assertTotals({outcome: VOLUME, 'injected': injected}, name='TARGET')
		self.assertTold()

	def assertRefused(self, calls):
		"""While it is open; unless the sleep window was over before the call was, on a slow machine."""
		attempts = self.fault('F')['connections']
		before = time.monotonic()
		left = self.cell(name='TARGET')['retry_in_ms'] / 1000
		result = calls()
		if time.monotonic() < before + left:
			self.assertNotEqual(result.returncode, 0)
			self.assertEqual(self.fault('F')['connections'], attempts)

	def assertTold(self):
		"""An event at most each second, with how many it was by then."""
		events = [event for event in self.events() if event['event'] == 'injected']
		self.assertGreaterEqual(len(events), 1)
		self.assertEqual({event['name'] for event in events}, {'F'})
		kinds = self.kinds()
		self.assertLess(kinds.index('injected'), kinds.index('tripped'))


class OpensAndCloses(_Breaker):
	def test_refuse_on_curl(self):
		self.strike(f'refuse calls=1..{VOLUME}')
		self.assertStory(lambda: self.curl(self.port), 'failure')
		if not harness.BARE:
			self.assertEqual(len(self.target.requests), self.totals(name='TARGET')['success'])

	def test_refuse_on_asyncio(self):
		self.strike(f'refuse calls=1..{VOLUME}')
		client = self.client('client_asyncio.py', self.port)
		self.assertStory(lambda: client.calls()[0], 'failure')

	def test_timeout_on_node(self):
		self.strike(f'timeout=100ms calls=1..{VOLUME}')
		client = self.client('client_http.js', self.port, 'new', 60000)
		self.assertStory(lambda: client.calls()[0], 'timeout')

	def test_reset_on_python(self):
		self.strike(f'reset calls=1..{VOLUME}')
		client = self.client('client_urllib.py', self.port, 60)
		self.assertStory(lambda: client.calls()[0], 'failure')

	def test_close_on_curl(self):
		self.strike(f'close calls=1..{VOLUME}')
		self.assertStory(lambda: self.curl(self.port), 'failure')

	def test_hang_on_a_program_that_gives_up(self):
		self.strike(f'hang calls=1..{VOLUME}')
		client = self.client('client_urllib.py', self.port, 1.5)
		self.assertStory(lambda: client.calls()[0], 'timeout')

	def assertEnded(self, program, limit):
		self.rules['TARGET'] = f'127.0.0.1:{self.port} {RULE} timeout=1500ms'
		self.strike(f'latency=30s calls=1..{VOLUME} per=conn')
		client = self.client(program, self.port, limit)
		self.assertStory(lambda: client.calls()[0], 'timeout')

	def test_latency_that_is_longer_than_the_timeout_of_a_blocking_program(self):
		self.assertEnded('client_urllib.py', 'none')

	def test_latency_that_is_longer_than_the_timeout_of_a_program_that_polls(self):
		self.assertEnded('client_urllib.py', '60')

	def test_latency_that_is_longer_than_the_timeout_of_asyncio(self):
		self.assertEnded('client_asyncio.py', '60')

	def test_unreachable_on_nginx(self):
		self.strike(f'unreachable calls=1..{VOLUME}')
		front = self.nginx(self.port)
		def call():
			result = self.run_program(['curl', '-sf', '-m', '60', f'http://127.0.0.1:{front}/'], library=False)
			return result
		self.assertStory(call, 'failure')

	def test_errors_of_exchanges_on_a_connection_that_is_kept(self):
		self.strike('reset per=call calls=2')
		client = self.client('client_keepalive.py', self.port)
		for _ in range(VOLUME):
			self.assertWorks(client.calls()[0])
			self.assertNotEqual(client.calls()[0].returncode, 0)
		self.assertTotals({'success': VOLUME, 'injected': VOLUME}, name='TARGET')


class ByHand(_Breaker):
	"""Faults begin and end while the program runs."""

	def test_it_opens_and_closes_with_them(self):
		client = self.client('client_keepalive.py', self.port)
		self.assertWorks(client.calls()[0])
		for kind in ('refuse', 'close'):
			before = self.cell(name='TARGET')['totals']
			added = self.shunt('fault', 'add', 'F', f'127.0.0.1:{self.port}', kind, '--for', '5m')
			self.assertEqual(added.returncode, 0, added)
			deadline = time.monotonic() + 60
			while self.cell(name='TARGET')['state'] != 'open':
				client.calls()
				self.target.drop_connections()
				self.assertLess(time.monotonic(), deadline, f'{kind} opens nothing')
			self.assertGreater(self.cell(name='TARGET')['totals']['injected'], before['injected'])
			cleared = self.shunt('fault', 'clear', 'F')
			self.assertEqual(cleared.stdout, '1 added fault rule cleared\n', cleared)
			self.wait_for_probe(name='TARGET')
			self.assertWorks(client.calls()[0])
			self.assertState('closed', name='TARGET')


class Lookups(chaos.Case):
	LOOKUP = 'import socket\ntry:\n\tprint("ok", socket.getaddrinfo("localhost", 80)[0][4][0])\n' \
		'except OSError as error:\n\tprint(error)\n'

	def test_lookups_that_fail(self):
		self.rules['NAMES'] = f'localhost {RULE}'
		self.faults['F'] = f'dns:localhost again calls=1..{VOLUME}'
		failure = '[Errno -3] Temporary failure in name resolution\n'
		for _ in range(VOLUME):
			self.assertEqual(self.script(self.LOOKUP).stdout, failure)
		before = time.monotonic()
		left = self.cell(name='NAMES', kind='lookup')['retry_in_ms'] / 1000
		result = self.script(self.LOOKUP)
		if time.monotonic() < before + left:
			self.assertEqual(result.stdout, failure)
		self.assertTotals({'failure': VOLUME, 'injected': VOLUME, 'trips': 1}, name='NAMES', kind='lookup')
		if self.cell(name='NAMES', kind='lookup')['state'] != 'closed':
			self.wait_for_probe(name='NAMES', kind='lookup')
		self.assertRegex(self.script(self.LOOKUP).stdout, '^ok ')
		self.assertState('closed', name='NAMES', kind='lookup')

	def test_a_late_lookup_that_has_a_limit(self):
		self.rules['NAMES'] = f'localhost {RULE} resolve-timeout=300ms'
		self.faults['F'] = 'dns:localhost latency=20s'
		result = self.script(self.LOOKUP)
		self.assertEqual(result.stdout, '[Errno -3] Temporary failure in name resolution\n', result)
		self.assertLess(result.seconds, 15)
		self.assertTotals({'timeout': 1, 'injected': 1}, name='NAMES', kind='lookup')


class Told(_Breaker):
	"""A dashboard tells chaos from an outage."""

	def test_a_real_failure_is_not_injected(self):
		self.strike('refuse calls=2')
		self.target.refuse()
		for _ in range(2):
			self.assertFails(self.curl(self.port), r'curl: \(7\)', 7)
		self.assertTotals({'failure': 2, 'injected': 1}, name='TARGET')

	def test_events_and_status(self):
		self.strike('refuse')
		self.curl(self.port)
		self.assertMatches('1 injected', self.shunt('status', '--all'))
		event = [event for event in self.events() if event['event'] == 'injected'][0]
		self.assertEqual((event['name'], event['target']), ('F', f'127.0.0.1:{self.port}'), event)

	def test_slow_answers_are_slow_calls(self):
		"""latency counts as time of the call, for `slow` as for the figures."""
		self.rules['TARGET'] = f'127.0.0.1:{self.port} volume=3 slow=200ms slow-rate=50% sleep=60s {WINDOW}'
		self.strike('latency=300ms')
		for _ in range(3):
			self.assertWorks(self.curl(self.port))
		self.assertState('open', name='TARGET')
		self.assertGreaterEqual(self.cell(name='TARGET')['latency_ms']['p50'], 250)


if __name__ == '__main__':
	harness.main()
