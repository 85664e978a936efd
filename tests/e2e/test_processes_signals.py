# SPDX-License-Identifier: MIT
"""Calls from places where little is allowed: signal handlers, threads that are cancelled, tiny stacks, other
libraries' constructors and destructors."""
import os
import re

import harness
import parity
import processes
from processes import OPENS, OPENS_SHORTLY
from resolver import Resolver

# What any path of ours may take of a stack beyond what the call itself takes; the start of the timer thread
# is the most, and most of that is pthread_create's.
STACK_MORE = 6 * 1024


class Storms(processes.Program):
	"""Handlers connect, send, receive and close in the middle of the program's own calls."""
	program = 'storm'

	def storm(self, scene, rule):
		"""Nothing went wrong, and each call was counted, once."""
		self.rules = {'X': rule}
		ours = self.play(scene)
		match = re.search(r'^exchanges (\d+) refused (\d+) wrong (\d+)$', ours.stdout, re.M)
		self.assertTrue(match, ours)
		exchanges, refused, wrong = map(int, match.groups())
		self.assertEqual(wrong, 0, ours)
		self.assertGreater(exchanges, 0)
		if harness.BARE:
			return
		sums = self.sums()
		trips = sums.pop('trips')
		self.assertEqual(sums.pop('success'), exchanges)
		self.assertEqual(sum(sums.values()), refused, sums)
		self.assertLessEqual(set(sums), {'failure', 'short_circuited', 'late'})
		self.assertEqual(trips, 1)

	def test_alarms(self):
		self.storm('alarms', OPENS)

	def test_alarms_while_circuits_open_and_close(self):
		self.storm('alarms', '127.0.0.1/32 volume=1 sleep=1ms')

	def test_virtual_alarms(self):
		self.storm('virtual_alarms', OPENS)

	def test_threads(self):
		self.storm('threads', OPENS)

	def test_threads_while_the_timer_thread_comes_and_goes(self):
		self.storm('threads', '127.0.0.1/32 volume=1 sleep=1ms')

	def test_a_signal_that_the_program_blocks_is_handled_by_nobody(self):
		ours = self.both('blocked_everywhere')
		self.assertIn('handled 0, pending 1 1', ours.stdout)
		self.assertIn('Threads:\t' + ('1' if harness.BARE else '2'), ours.stdout)


class Cancels(processes.Program):
	"""Calls that never return."""
	program = 'cancels'

	def lost(self, scene):
		"""The probe is lost; its lease is not for ever."""
		self.both(scene, OPENS_SHORTLY)
		if harness.BARE:
			return
		cell = self.cell(name='X')
		self.assertEqual((cell['state'], cell['totals']['success'], cell['totals']['trips']), ('closed', 1, 1), cell)

	def test_a_probe_whose_thread_is_cancelled(self):
		self.lost('cancelled')

	def test_a_probe_whose_thread_is_cancelled_asynchronously(self):
		self.lost('cancelled_asynchronously')

	def test_a_probe_whose_thread_leaves_in_a_handler(self):
		self.lost('left_by_handler')

	def test_a_probe_that_a_handler_jumps_out_of(self):
		self.lost('jumps_out_of_connect')

	def test_threads_that_are_cancelled_at_any_instruction(self):
		self.both('cancelled_anywhere')

	def test_threads_that_are_cancelled_while_circuits_open_and_close(self):
		self.both('cancelled_anywhere', '127.0.0.1/32 volume=1 sleep=1ms')

	def test_a_recv_that_a_handler_jumps_out_of(self):
		self.both('jumps_out_of_recv')
		if not harness.BARE:
			self.assertEqual(self.sums(), {'success': 2})


class Silent(Resolver):
	"""At an address of its own: other tests have one at the same time."""
	address = '127.0.0.54'
	config = 'nameserver 127.0.0.54\noptions timeout:2 attempts:1\n'


class Lookups(processes.Program):
	program = 'cancels'

	def setUp(self):
		super().setUp()
		self.addCleanup(Silent().close)

	def left(self, scene, times):
		self.both(scene, 'silent.test volume=1', hosts='127.0.0.1 localhost\n', resolv=Silent.config)
		if not harness.BARE:
			cell = self.cell(name='X', kind='lookup')
			totals = {name: count for name, count in cell['totals'].items() if count}
			self.assertEqual(totals, {'cancelled': times}, cell)

	def test_one_that_a_handler_jumps_out_of(self):
		self.left('jumps_out_of_lookup', 2)

	def test_one_whose_thread_is_cancelled(self):
		self.left('cancelled_in_lookup', 1)


class Stacks(processes.Program):
	program = 'stacks'

	def setUp(self):
		super().setUp()
		self.log = os.path.join(self.scratch, 'log')
		self.asks = {'SHUNT_LOG': self.log}

	def assertLogged(self):
		if not harness.BARE:
			with open(self.log, encoding='ascii') as file:
				self.assertIn('open: 1 of 1', file.read())

	def test_the_first_call_of_all_in_a_handler_on_a_small_stack(self):
		self.both('first_call', OPENS, self.asks)
		self.assertLogged()

	def test_the_first_call_of_all_in_a_handler_without_a_rule(self):
		self.play('first_call')

	def test_threads_with_the_least_of_stacks(self):
		self.both('least', OPENS, self.asks)
		self.assertLogged()

	def test_threads_with_the_least_of_stacks_and_backtraces(self):
		self.both('least', OPENS, {**self.asks, 'SHUNT_BACKTRACE': '1'})
		self.assertLogged()

	def assertLittleMore(self, asks):
		def used(result):
			return re.findall(r'^(\w+) (\d+)$', result.stderr, re.M)
		bare = used(self.play('used', library=False))
		ours = used(self.both('used', 'any volume=1 sleep=1h', asks))
		self.assertLogged()
		self.assertEqual(len(ours), len(bare))
		for (name, before), (_, now) in zip(bare, ours):
			self.assertLess(int(now), int(before) + STACK_MORE, (name, bare, ours))

	def test_how_much_more_a_call_takes(self):
		self.assertLittleMore(self.asks)

	def test_how_much_more_a_call_takes_under_faults(self):
		"""Struck, and reported."""
		report = os.path.join(self.scratch, 'report')
		self.assertLittleMore({**self.asks, 'SHUNT_FAULT_SLOW': 'any latency=1ms', 'SHUNT_FAULT_SHORT': 'any short=100',
			'SHUNT_REPORT': report})
		if not harness.BARE:
			self.assertTrue(os.path.getsize(report))


class Neighbours(processes.Program):
	"""Another library connects before our constructor has run, and after our destructor."""

	def setUp(self):
		super().setUp()
		self.program = parity.program_path('beside')
		self.neighbour = os.path.join(parity.PROGRAMS, 'libneighbour.so')

	def compared(self, argv, preload=None):
		"""With the library, as bare; the ports that were refused before main began and after it ended."""
		self.rules = {'X': OPENS}
		bare = self.run_program(argv, library=False, extra=preload and {'LD_PRELOAD': self.neighbour})
		ours = self.run_program(argv, extra=preload and {'LD_PRELOAD': self.neighbour if harness.BARE else preload})
		self.assertEqual((ours.returncode, ours.stdout), (bare.returncode, bare.stdout))
		self.assertIn('wrong: 0\n', ours.stdout)
		self.assertEqual(ours.stdout.count(' = -1 ECONNREFUSED'), 4)
		return [int(port) for port in re.findall(r'^(?:before|after) (\d+)$', ours.stderr, re.M)]

	def assertJudged(self, port, judged):
		if not harness.BARE:
			cells = self.cells(name='X', port=port)
			self.assertEqual(len(cells), int(judged), cells)
			for cell in cells:
				self.assertEqual((cell['totals']['failure'], cell['totals']['short_circuited']), (1, 1), cell)

	def test_one_that_the_program_is_linked_with(self):
		before, after = self.compared([self.program])
		self.assertJudged(before, False)
		self.assertJudged(after, True)

	def test_one_that_is_preloaded_after_ours(self):
		before, after = self.compared(['/bin/true'], f'{harness.LIBRARY} {self.neighbour}')
		self.assertJudged(before, False)
		self.assertJudged(after, True)

	def test_one_that_is_preloaded_before_ours(self):
		before, after = self.compared(['/bin/true'], f'{self.neighbour} {harness.LIBRARY}')
		self.assertJudged(before, True)
		self.assertJudged(after, True)


if __name__ == '__main__':
	harness.main()
