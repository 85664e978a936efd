# SPDX-License-Identifier: MIT
"""Where nothing fails, small clients see no difference with the library: not in what they print, not in the
errno of any call, not in the system calls they make, not in what they are left with."""
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
	opening = ('births_on_old_numbers', 'births_on_cut_numbers', 'uses_of_old_numbers')


class Transfers(parity.Program):
	program = 'transfers'


class Waits(parity.Program):
	program = 'waits'


class Fortified(parity.Program):
	program = 'fortified'


for program_class in (Attempts, Descriptors, Lifetimes, Transfers, Waits, Fortified):
	parity.add_scenes(program_class)

if __name__ == '__main__':
	harness.main()
