# SPDX-License-Identifier: MIT
"""Where nothing fails, small clients see no difference with the library: not in what they print, not in the
errno of any call, not in the system calls they make, not in what they are left with."""
import re
import subprocess
import tempfile
import unittest

import harness
import parity

HOSTS = '''127.0.0.1 localhost one.parity.test other.parity.test
127.0.0.1 both.parity.test alias.parity.test
::1 both.parity.test
'''
# Nobody is there, and the kernel says so at once.
RESOLV = 'nameserver 127.0.0.77\noptions timeout:1 attempts:1\n'
MANY = 1000

# Those of the processes are in test_processes.py.
PROGRAMS = ('attempts', 'descriptors', 'lifetimes', 'races', 'inherited', 'names', 'transfers', 'waits', 'fortified',
	'processes')


class Attempts(parity.Program):
	program = 'attempts'
	refused = ('refused', 'bad_arguments', 'bad_sockets', 'lengths', 'mapped_refused',
		'any_address_refused', 'not_ours')
	# The timer's signals.
	loose = {'interrupted': {'rt_sigreturn'}}
	counts = {
		'refused': {'failure': 2},
		'bad_arguments': {},
		'bad_sockets': {},
		'not_ours': {},
		'mapped_refused': {'failure': 3},
		'any_address_refused': {'failure': 3},
		'interrupted': {'unused': 2},
		'reset_before_send': {'failure': 3},
	}


class Descriptors(parity.Program):
	program = 'descriptors'
	# Copies and numbers of any height are the connection; what takes its place is not.
	counts = {
		'copy_dup': {'success': 1},
		'copy_dup2': {'success': 1},
		'copy_dup3': {'success': 1},
		'copy_fcntl': {'success': 2},
		'copy_fcntl64': {'success': 2},
		'copy_syscall': {'success': 4},
		'copy_onto_itself': {'success': 1},
		'copy_fails': {'success': 1},
		'replaced_by_file': {'cancelled': 1},
		'closed_in_range': {'success': 1, 'unused': 1},
		'number_reused': {'cancelled': 1},
		'left_to_stdio': {'success': 2},
		'everything_closed': {'failure': 4, 'cancelled': 4, 'unused': 8},
		'high_numbers': {'success': 4, 'unused': 4},
	}

	def test_closing_four_million_numbers_costs_what_it_costs_bare(self):
		"""Daemons close all that could be open. Processor time, and the best of several: the machine is shared."""
		argv = [parity.program_path('descriptors'), 'time_of_closing', '4000000']
		best = [float('inf'), float('inf')]
		for _ in range(8):
			for index, library in enumerate((False, True)):
				took = parity.run(argv, {'TARGET': parity.CLOSED}, library=library, traced=False)
				best[index] = min(best[index], int(took.texts['']))
			if best[1] <= 1.3 * best[0]:
				break
		self.assertLessEqual(best[1], 1.3 * best[0])


class Lifetimes(parity.Program):
	program = 'lifetimes'
	counts = {
		'ends_of_connections': {'success': 66, 'unused': 11},
		'born_and_gone_out_of_sight': {'success': 2},
		'numbers_swapped': {'success': 5},
		'inherited_by_fork': {'success': 4, 'cancelled': 1},
	}
	opening = ('births_on_old_numbers', 'births_on_cut_numbers', 'uses_of_old_numbers', 'stderr_replaced',
		'daemonised', 'logged_in')

	def test_a_log_never_goes_into_a_file_that_got_its_number(self):
		ours = self.check_alone('stderr_replaced', parity.OPENS, SHUNT_LOG='stderr')
		self.assertEqual(ours.stderr, '')


class Races(parity.Program):
	program = 'races'
	loose = {
		# How often the acceptor has to look depends on who comes when.
		'many_connect_and_close': parity.OF_THREADS | {'poll'},
		'replaced_under_reader': parity.OF_THREADS,
		'closed_under_reader': parity.OF_THREADS,
		'shut_under_reader': parity.OF_THREADS,
	}
	counts = {
		'many_connect_and_close': {'failure': 160, 'unused': 160},
		'replaced_under_reader': {'cancelled': 1},
		'closed_under_reader': {'success': 1, 'cancelled': 1},
		'shut_under_reader': {'unused': 1},
	}


class Inherited(parity.Program):
	program = 'inherited'
	# What was handed over is no rule's.
	refused = ('handed_over',)
	counts = {'handed_over': {}, 'watched': {'success': 1}, 'left_open': {'success': 1, 'failure': 1}}
	opening = ('left_open', 'none_open')

	def test_no_log_is_among_what_the_next_program_has(self):
		for name in 'left_open', 'none_open':
			with self.subTest(name), tempfile.NamedTemporaryFile() as log:
				self.check_alone(name, parity.OPENS, SHUNT_LOG=log.name)
				if not harness.BARE:
					self.assertIn(b': open: ', log.read())

	def test_no_log_goes_to_a_socket_at_the_number_of_stderr(self):
		self.check_alone('none_open', parity.OPENS, SHUNT_LOG='stderr')


class Names(parity.Program):
	program = 'names'
	refused = ('nothing_to_ask', 'numeric', 'resolver_is_dead')
	keywords = {'hosts': HOSTS, 'resolv': RESOLV}

	def test_memory_does_not_grow_with_names(self):
		"""The second half of many names."""
		hosts = ''.join(f'127.0.0.1 name{i}.parity.test\n' for i in range(2 * MANY))
		argv = [parity.program_path('names'), 'many_names', str(MANY)]
		ours = parity.run(argv, {'TARGET': '*.parity.test:80', 'REST': parity.CLOSED}, traced=False, hosts=hosts)
		self.assertEqual(ours.returncode, 0, ours)
		self.assertLess(int(ours.texts['']), 128)


class Transfers(parity.Program):
	program = 'transfers'
	# Asking in vain, bytes out of band and other sockets are nothing.
	counts = {
		'sends': {'success': 6},
		'sends_out_of_sight': {'success': 3},
		'receives': {'success': 6},
		'receive_flags': {'success': 1},
		'kept_alive': {'success': 3},
		'ends': {'success': 1, 'failure': 1},
		'asks_until_answered': {'success': 1},
		'out_of_band': {'success': 1},
		'flags_of_sends': {'success': 1},
		'datagrams': {},
		'unix_sockets': {},
		'broken_pipes': {'failure': 6},
	}


class Waits(parity.Program):
	program = 'waits'
	# The timer's signals.
	loose = {'interrupted': {'rt_sigreturn'}}


class Fortified(parity.Program):
	program = 'fortified'

	def test_an_overrun_is_told_on_stderr(self):
		self.assertEqual(self.bare.stderr.count('buffer overflow detected'), 5)


class Coverage(unittest.TestCase):
	# Whose success no line tells: they do not come back, or have no result.
	UNTOLD = {'_exit', '_Exit', 'quick_exit', 'vfork', 'closefrom', 'daemon', 'login_tty',
		# What libc itself makes of errno; it is compared all the same.
		'gethostbyname_r', 'gethostbyname2_r',
		# A number that differs, and freopen() by another name: test_descriptors calls them.
		'_Fork', 'freopen64',
		# Needs a right that not all have.
		'setns'}

	def told(self, program):
		"""What succeeded in a client, and left errno alone."""
		keywords = Names.keywords if program == 'names' else {}
		bare = parity.run([parity.program_path(program), 'all'], library=False, traced=False, **keywords)
		names = set(re.findall(r'^.*?\b(\w+)\(.* = \d+ EDOM$', bare.stdout, re.M))
		return {f'__{name}_chk' for name in names} if program == 'fortified' else names

	def test_system_calls_are_compared(self):
		if not parity.can_trace():
			self.skipTest('system calls were not compared: needs strace, and the right to use it')

	def test_every_hook_succeeds_in_a_client(self):
		out = subprocess.run(['nm', '-D', '--defined-only', harness.LIBRARY], check=True, capture_output=True, text=True).stdout
		hooks = {line.split()[-1].partition('@')[0] for line in out.splitlines() if ' T ' in line or ' W ' in line}
		self.assertIn('connect', hooks)
		told = set().union(*(self.told(program) for program in PROGRAMS))
		self.assertEqual(sorted(hooks - told - self.UNTOLD), [])


for program_class in (Attempts, Descriptors, Lifetimes, Races, Inherited, Names, Transfers, Waits, Fortified):
	parity.add_scenes(program_class)

if __name__ == '__main__':
	harness.main()
