# SPDX-License-Identifier: MIT
"""Programs for whom another thread is not harmless, ends of processes, and filters that kill: with open circuits."""
import os
import re
import subprocess

import harness
import parity
import processes
from processes import OPENS, OPENS_SHORTLY

UNDER_EXIT = r'''
import os, socket, sys
for _ in range(2):
	with socket.socket() as connection:
		connection.connect_ex(('127.0.0.1', int(sys.argv[1])))
os._exit(3)
'''


# The scenes play in the children of a fork, which get no thread of ours by themselves before they have one.
TIMER_ON = {'SHUNT_TIMER': 'on'}


class Threads(processes.Program):
	program = 'threads'

	def test_a_main_that_leaves_by_pthread_exit(self):
		self.assertTimerWasThere(self.both('main_by_pthread_exit', settings=TIMER_ON))

	def test_unshare(self):
		self.both('unshares')

	def test_unshare_again_and_again(self):
		self.both('unshares_again_and_again')

	def test_unshare_while_the_timer_runs_for_a_single_threaded_program(self):
		self.assertTimerWasThere(self.both('unshares', settings=TIMER_ON))

	def test_setns(self):
		self.assertTimerWasThere(self.both('joins', settings=TIMER_ON))

	def test_setuid_reaches_all_threads(self):
		self.assertTimerWasThere(self.both('users', '127.0.0.1/32 volume=1 sleep=1s', settings=TIMER_ON))

	def test_setuid_while_the_timer_thread_comes_and_goes(self):
		self.both('users', '127.0.0.1/32 volume=1 sleep=1ms')

	def test_a_single_threaded_program_stays_so(self):
		ours = self.both('stays_single')
		if not harness.BARE:
			self.assertEqual(ours.stdout.count('single 1, threads 1'), 3, ours)
			self.assertEqual(self.sums()['short_circuited'], 5)


class Ends(processes.Program):
	program = 'threads'

	def test_exit_of_a_thread_while_others_are_in_hooks(self):
		self.both('exits_of_a_thread')

	def test_exit_of_main_while_others_are_in_hooks(self):
		self.both('exits_of_main')

	def test_all_exit_codes_with_a_call_open(self):
		self.both('codes')
		if not harness.BARE:
			self.assertEqual(self.sums(), {'cancelled': 256})

	def test_deaths_by_signals(self):
		self.both('deaths')

	def test_a_child_that_exits_leaves_its_parent_alone(self):
		self.both('children_exit')
		if not harness.BARE:
			self.assertEqual(self.sums(), {'success': 4, 'failure': 1, 'short_circuited': 11, 'trips': 1})

	def test_the_event_of_a_program_that_leaves_by_underscore_exit(self):
		target = self.server()
		self.rules['X'] = f'127.0.0.1:{target.port} volume=1'
		result = self.run_program([harness.PYTHON, '-c', UNDER_EXIT, str(target.port)])
		self.assertEqual((result.returncode, result.text), (3, ''))
		if not harness.BARE:
			self.assertTotals({'failure': 1, 'short_circuited': 1}, name='X')
			self.assertTrue([e for e in self.events() if e['name'] == 'X'], self.events())


class Filters(processes.Program):
	program = 'filters'

	def setUp(self):
		super().setUp()
		self.log = os.path.join(self.scratch, 'log')
		self.asks = {'SHUNT_LOG': self.log, 'SHUNT_BACKTRACE': '1', 'SHUNT_TIMER': 'on'}

	def assertNoLog(self):
		self.assertFalse(os.path.exists(self.log))

	def assertWentThroughAllStates(self, times):
		if not harness.BARE:
			sums = self.sums()
			self.assertEqual((sums['failure'], sums['short_circuited'], sums['trips']), (2 * times, 2 * times, times))
			self.assertEqual(self.cells(state='open') + self.cells(state='half_open'), [])

	def test_connections_go_through_all_states(self):
		self.both('connections', OPENS_SHORTLY, self.asks)
		self.assertWentThroughAllStates(4)
		self.assertNoLog()

	def test_a_thread_of_ours_is_gone_before(self):
		ours = self.both('after_threads', OPENS_SHORTLY, self.asks)
		self.assertTimerWasThere(ours)
		if not harness.BARE:
			# What came before the filter may be told.
			with open(self.log, encoding='ascii') as file:
				self.assertEqual(len(re.findall(r': open: 1 of 1', file.read())), 4)

	def test_threads_that_connect_while_it_is_set(self):
		self.both('among_threads', '127.0.0.1/32 volume=1 sleep=1ms')

	def test_threads_that_only_connect_while_it_is_set(self):
		self.both('beside_threads', '127.0.0.1/32 consecutive=1 sleep=1ms', {'SHUNT_LOG': self.log})

	def test_descriptors(self):
		self.both('descriptors', OPENS, {'SHUNT_LOG': self.log})
		self.assertNoLog()

	def test_children(self):
		self.both('children', '127.0.0.1/32 volume=1 sleep=100ms', {'SHUNT_LOG': self.log})
		self.assertNoLog()

	def test_a_kept_alive_connection_is_cut(self):
		if harness.BARE:
			self.skipTest('bare, nothing is cut')
		self.rules, self.settings = {'X': OPENS + ' per=rule'}, self.asks
		ours = self.play('kept_alive')
		self.assertEqual(len(re.findall(r'^(?:send|recv)\(.*\) = -1 ECONNRESET$', ours.stdout, re.M)), 3, ours)
		self.assertIn('kept alive: exit 5', ours.stdout)
		self.assertNoLog()

	def test_asking_what_the_kernel_has_is_no_filter(self):
		ours = self.both('only_asks', OPENS, {'SHUNT_LOG': self.log})
		self.assertTimerWasThere(ours)
		if not harness.BARE:
			self.assertTrue(os.path.exists(self.log))

	def numbers(self, argv, library):
		"""Of the system calls that a program makes."""
		trace = os.path.join(self.scratch, 'trace')
		variables = self.shunt_variables() | {'LD_PRELOAD': harness.LIBRARY} if library else {}
		given = [x for pair in variables.items() for x in ('-E', '='.join(pair))]
		result = self.run_program(['strace', '-f', '-n', '-o', trace, *given, *argv], library=False)
		self.assertEqual(result.returncode, 0, result)
		with open(trace, encoding='utf-8', errors='replace') as file:
			return set(re.findall(r'^\d+ +\[ *(\d+)\]', file.read(), re.M))

	def test_one_that_was_there_from_the_start(self):
		if not parity.can_trace():
			self.skipTest('strace may not trace here')
		self.rules, self.settings = {'X': OPENS_SHORTLY}, self.asks
		argv = [parity.program_path(self.program), 'from_start']
		allowed = self.numbers(argv, library=False)
		# To start is to be allowed as well, with a segment to be made and with one that is there.
		for _ in range(2):
			allowed |= self.numbers(['/bin/true'], library=not harness.BARE)
		self._remove_state()
		result = self.run_program([argv[0], 'under', ','.join(sorted(allowed)), *argv])
		self.assertEqual(result.returncode, 0, result)
		self.assertIn('recv(pair.client, text, sizeof(text), 0) = 4', result.stdout)
		self.assertWentThroughAllStates(1)
		self.assertNoLog()
		self.assertRegex(' '.join(self.status()['notes']), r'\d of the processes so far had a seccomp filter')


class Linked(harness.Case):
	def test_nothing_is_left_to_be_bound_at_the_first_call(self):
		dynamic = subprocess.run(['readelf', '-d', harness.LIBRARY], check=True, capture_output=True, text=True).stdout
		self.assertRegex(dynamic, r'\(FLAGS_1\).*\bNOW\b')


if __name__ == '__main__':
	harness.main()
