# SPDX-License-Identifier: MIT
"""Where nothing fails, small clients see no difference with the library: not in what they print, not in the
errno of any call, not in the system calls they make, not in what they are left with."""
import tempfile

import harness
import parity


class Attempts(parity.Program):
	program = 'attempts'
	refused = ('refused', 'bad_arguments', 'bad_sockets', 'lengths', 'mapped_refused',
		'any_address_refused', 'not_ours')
	# The timer's signals.
	loose = {'interrupted': {'rt_sigreturn'}}


class Descriptors(parity.Program):
	program = 'descriptors'


class Lifetimes(parity.Program):
	program = 'lifetimes'
	opening = ('births_on_old_numbers', 'births_on_cut_numbers', 'uses_of_old_numbers', 'stderr_replaced')

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


class Transfers(parity.Program):
	program = 'transfers'


class Waits(parity.Program):
	program = 'waits'


class Fortified(parity.Program):
	program = 'fortified'


for program_class in (Attempts, Descriptors, Lifetimes, Races, Inherited, Transfers, Waits, Fortified):
	parity.add_scenes(program_class)

if __name__ == '__main__':
	harness.main()
