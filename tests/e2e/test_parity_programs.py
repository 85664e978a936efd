# SPDX-License-Identifier: MIT
"""Where nothing fails, small clients see no difference with the library: not in what they print, not in the
errno of any call, not in the system calls they make, not in what they are left with."""
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


class Descriptors(parity.Program):
	program = 'descriptors'

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


class Inherited(parity.Program):
	program = 'inherited'
	# What was handed over is no rule's.
	refused = ('handed_over',)
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


class Waits(parity.Program):
	program = 'waits'
	# The timer's signals.
	loose = {'interrupted': {'rt_sigreturn'}}


class Fortified(parity.Program):
	program = 'fortified'

	def test_an_overrun_is_told_on_stderr(self):
		self.assertEqual(self.bare.stderr.count('buffer overflow detected'), 5)


class Coverage(unittest.TestCase):
	def imports(self, path):
		out = subprocess.run(['nm', '-D', '--undefined-only', path], check=True, capture_output=True, text=True).stdout
		return {line.split()[-1].partition('@')[0] for line in out.splitlines()}

	def test_every_hook_is_called_by_a_client(self):
		out = subprocess.run(['nm', '-D', '--defined-only', harness.LIBRARY], check=True, capture_output=True, text=True).stdout
		hooks = {line.split()[-1].partition('@')[0] for line in out.splitlines() if ' T ' in line or ' W ' in line}
		called = set().union(*(self.imports(parity.program_path(name)) for name in PROGRAMS))
		self.assertIn('connect', hooks)
		self.assertEqual(sorted(hooks - called), [])


for program_class in (Attempts, Descriptors, Lifetimes, Races, Inherited, Names, Transfers, Waits, Fortified):
	parity.add_scenes(program_class)

if __name__ == '__main__':
	harness.main()
