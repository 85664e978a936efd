# SPDX-License-Identifier: MIT
"""Beside other preloads, in every order: allocators, made-up clocks, and those that wrap the same functions."""
import datetime

import harness
import company
from company import CLIENTS, OURS, orders

NODE = 'fetch("http://127.0.0.1:%d/").then((r) => r.text()).then((t) => process.stdout.write(t),' \
	' (e) => {console.log(e.cause.code); process.exitCode = 1})'


class Preloads(company.Company):
	def check(self, *names, clients=tuple(CLIENTS), settings=None):
		for order in orders(names):
			for client in clients:
				with self.subTest(order=order, client=client):
					self.check_closed(order, client, settings)
					self.check_open(order, client, settings)

	def test_jemalloc(self):
		self.check('jemalloc')

	def test_tcmalloc(self):
		self.check('tcmalloc')

	def test_eatmydata(self):
		self.check('eatmydata')

	# jemalloc and libfaketime wait for each other without us; Debian's redis-cli is linked with the one.
	def test_faketime(self):
		self.check('faketime', clients=('curl', 'python'), settings={'FAKETIME': '+1d'})

	def test_faketime_for_threads(self):
		self.check('faketimeMT', clients=('curl', 'python'), settings={'FAKETIME': '-3y x2'})

	def test_one_that_wraps_write(self):
		self.check('writer')

	def test_three_at_once(self):
		self.check('jemalloc', 'eatmydata', 'writer')

	def test_three_others_at_once(self):
		self.check('tcmalloc', 'faketime', 'writer', clients=('curl', 'python'), settings={'FAKETIME': '+1d'})

	def test_node_among_allocators(self):
		if not harness.find_program('node'):
			self.skipTest('node is missing')
		CLIENTS['node'] = lambda port: ['node', '-e', NODE % port]
		self.addCleanup(CLIENTS.pop, 'node')
		for name in ('jemalloc', 'tcmalloc'):
			self.check(name, clients=('node',))

	def test_the_library_itself_a_second_time(self):
		"""The loader takes the same file once."""
		argv = CLIENTS['curl'](self.port_of('curl'))
		self.rules = {'T': f'127.0.0.1:{self.port_of("curl")}'}
		result = self.run_among((OURS, 'eatmydata', OURS), argv)
		self.assertEqual((result.returncode, result.stderr), (0, ''), result)
		self.assertTotals({'success': 1}, name='T')


class Allocators(company.Company):
	def test_jemalloc_tells_its_statistics_at_the_end(self):
		"""Which is after our destructor, or before it, by the order; it writes through a hook."""
		for order in orders(('jemalloc',)):
			for client in CLIENTS:
				with self.subTest(order=order, client=client):
					argv = CLIENTS[client](self.port_of(client))
					self.rules = {'T': f'127.0.0.1:{self.port_of(client)}'}
					self.fresh_state()
					settings = {'MALLOC_CONF': 'stats_print:true'}
					bare = self.run_among(('jemalloc',), argv, settings)
					ours = self.run_among(order, argv, settings)
					self.assertEqual((ours.returncode, ours.stdout), (bare.returncode, bare.stdout))
					for run in (bare, ours):
						self.assertIn('--- End jemalloc statistics ---', run.stderr)
					self.assertTotals({'success': 1}, name='T')


class Writers(company.Company):
	SCRIPT = '''import os, socket
os.write(2, b"to stderr")
s = socket.create_connection(("127.0.0.1", %d))
os.write(s.fileno(), b"GET / HTTP/1.0\\r\\nConnection: close\\r\\n\\r\\n")
print(os.read(s.fileno(), 12))
os.write(2, b"again")'''

	def test_what_both_wrap_passes_through_both(self):
		for order in orders(('writer',)):
			with self.subTest(order=order):
				self.rules = {'T': f'127.0.0.1:{self.port_of("python")}'}
				self.fresh_state()
				argv = [harness.PYTHON, '-c', self.SCRIPT % self.port_of('python')]
				result = self.run_among(order, argv)
				self.assertEqual((result.returncode, result.stderr), (0, '<to stderr><again>'), result)
				self.assertEqual(result.stdout, "b'HTTP/1.1 200'\n")
				self.assertTotals({'success': 1}, name='T')

	def test_our_own_lines_are_nobody_elses_writes(self):
		"""They go straight to the kernel: a wrapper that calls back would find itself in a hook."""
		for order in orders(('writer',)):
			with self.subTest(order=order):
				self.rules = {'T': f'127.0.0.1:{self.port_refusing()} volume=1 sleep=1h'}
				self.settings = {'SHUNT_LOG': 'stderr'}
				self.fresh_state()
				result = self.run_among(order, CLIENTS['curl'](self.port_refusing()))
				if not harness.BARE:
					self.assertRegex(result.stderr, r'(?m)^shunt: T: 127\.0\.0\.1:\d+: open')


class Early(company.Company):
	"""One that connects, with threads, before our constructor or after our destructor."""

	def test_work_before_and_after(self):
		for order in orders(('early',)):
			with self.subTest(order=order):
				self.rules = {'T': f'127.0.0.1:{self.port_refusing()} volume=1 sleep=1h'}
				self.fresh_state()
				result = self.run_among(order, [harness.PYTHON, '-c', 'print("main")'],
					{'EARLY_PORT': str(self.port_refusing())})
				self.assertEqual((result.returncode, result.stdout, result.stderr),
					(0, 'main\n', 'before: 16 refused\nafter: 16 refused\n'), result)
				self.assertState('open', name='T')


# Frozen, ahead, behind, and fast: each answers CLOCK_MONOTONIC, too.
CLOCKS = ('2020-01-01 00:00:00', '+10d', '-10d', '@2020-01-01 00:00:00 x100')


class Clocks(company.Company):
	"""The breaker lives on the kernel's clock, whatever the program is told."""

	def rule(self, port, sleep):
		self.rules = {'T': f'127.0.0.1:{port} volume=1 sleep={sleep}'}
		self.fresh_state()

	def run_faked(self, clock, order, port):
		return self.run_among(order, CLIENTS['curl'](port), {'FAKETIME': clock})

	def test_a_sleep_window_ends_in_true_time(self):
		target = self.server()
		for order in orders(('faketime',)):
			for clock in CLOCKS:
				with self.subTest(order=order, clock=clock):
					target.refuse()
					self.rule(target.port, '600ms')
					self.run_faked(clock, order, target.port)
					self.assertState('open', name='T')
					self.wait_for_probe(name='T')
					target.healthy()
					result = self.run_faked(clock, order, target.port)
					self.assertEqual(result.returncode, 0, result)
					self.assertState('closed', name='T')

	def test_it_does_not_end_sooner(self):
		"""An hour passes in 36 s of a fast clock, and in no time of one that is ahead."""
		for clock in CLOCKS:
			with self.subTest(clock=clock):
				self.rule(self.port_refusing(), '1h')
				self.run_among((OURS,), CLIENTS['curl'](self.port_refusing()))
				self.run_faked(clock, ('faketime', OURS), self.port_refusing())
				self.assertState('open', name='T')
				self.assertTotals({'failure': 1, 'short_circuited': 1}, name='T')

	def test_who_trips_it_by_a_made_up_clock_trips_it_now(self):
		for clock in CLOCKS:
			with self.subTest(clock=clock):
				self.rule(self.port_refusing(), '1h')
				self.run_faked(clock, ('faketime', OURS), self.port_refusing())
				if harness.BARE:
					continue
				retry_ms = self.cell(name='T')['retry_in_ms']
				self.assertGreater(retry_ms, 3000000)
				self.assertLessEqual(retry_ms, 3600000)

	def test_the_log_tells_true_time(self):
		path = self.scratch + '/log'
		self.settings = {'SHUNT_LOG': path}
		self.rule(self.port_refusing(), '1h')
		self.run_faked('2020-01-01 00:00:00', ('faketime', OURS), self.port_refusing())
		if not harness.BARE:
			with open(path, encoding='utf-8') as log:
				line = log.read()
			told = datetime.datetime.strptime(line.split()[0], '%Y-%m-%dT%H:%M:%SZ')
			now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
			self.assertLess(abs((now - told).total_seconds()), 3600, line)

	def test_the_program_still_sees_its_own(self):
		argv = [harness.PYTHON, '-c', 'import time; print(time.gmtime().tm_year)']
		self.rule(self.port_refusing(), '1h')
		for order in orders(('faketime',)):
			result = self.run_among(order, argv, {'FAKETIME': '@2001-02-03 04:05:06'})
			self.assertEqual(result.stdout, '2001\n', result)


if __name__ == '__main__':
	harness.main()
