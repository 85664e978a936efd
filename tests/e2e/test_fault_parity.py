# SPDX-License-Identifier: MIT
"""Faults that never strike change nothing: of a probability of zero, for other hosts, for other programs, by
observing. Small clients print the same, have the same errno of every call, and are left with the same as without
the library; and with faults that are not about them they make the same system calls."""
import test_parity_programs as programs

import harness
import parity

# One of each kind that could strike a call.
KINDS = ('refuse', 'unreachable', 'timeout=1s', 'hang', 'reset', 'close', 'latency=1s')
MORE = ('rate=1KB/s', 'short', 'eintr', 'eagain', 'errno=ECONNRESET', 'slowclose=1s', 'corrupt', 'maxconn=1')
DATAGRAMS = ('drop', 'dup', 'latency=1s', 'errno=ECONNREFUSED')
LOOKUPS = ('nxdomain', 'servfail', 'again', 'nodata', 'addr=192.0.2.1', 'latency=1s')


def rules(kinds, target='any', more='0%'):
	return {f'SHUNT_FAULT_{kind.partition("=")[0].upper()}': f'{target} {kind} {more}' for kind in kinds}


DATAGRAM_RULES = {f'SHUNT_FAULT_U{number}': f'any proto=udp {kind} 0%' for number, kind in enumerate(DATAGRAMS)}
LOOKUP_RULES = {f'SHUNT_FAULT_L{number}': f'dns:any {kind} 0%' for number, kind in enumerate(LOOKUPS)}

# By what the test calls it: settings of the library.
FAULTS = {
	'never by chance': rules(KINDS),
	'never by chance, other kinds': rules(MORE) | DATAGRAM_RULES | LOOKUP_RULES,
	'another host': rules(KINDS, '192.0.2.1', '') | {'SHUNT_FAULT_NAME': 'dns:other.test nxdomain'},
	'another program': rules(KINDS, 'any', 'proc=nobody'),
	'observed': rules(('refuse', 'reset')) | {'SHUNT_MODE': 'observe', 'SHUNT_FAULT_N': 'any refuse'},
	'kept out': rules(KINDS, 'any', '') | {'SHUNT_FAULT_KEEP': '^any'},
}


# Of these nothing is asked about any socket.
APART = ('another host', 'another program', 'kept out')


class _Passing:
	"""A program of test_parity_programs, with a breaker's rule beside the faults."""

	refused = opening = ()
	counts = {}

	@classmethod
	def setUpClass(cls):
		argv = [parity.program_path(cls.program), 'all']
		runs = [lambda: parity.run(argv, library=False, **cls.keywords)]
		runs += [lambda settings=settings: parity.run(argv, {'TARGET': parity.CLOSED}, settings, **cls.keywords)
			for settings in FAULTS.values()]
		cls.ways = {what: {'TARGET': parity.CLOSED} for what in FAULTS}
		cls.bare, *ours = harness.side_by_side(runs)
		cls.ours = dict(zip(FAULTS, ours))

	def check_calls(self, name, ours):
		if any(ours is self.ours[way] for way in APART):
			super().check_calls(name, ours)


class Attempts(_Passing, programs.Attempts):
	pass


class Descriptors(_Passing, programs.Descriptors):
	test_closing_four_million_numbers_costs_what_it_costs_bare = None


class Transfers(_Passing, programs.Transfers):
	pass


class Waits(_Passing, programs.Waits):
	pass


class Names(_Passing, programs.Names):
	test_memory_does_not_grow_with_names = None


for _class in (Attempts, Descriptors, Transfers, Waits, Names):
	parity.add_scenes(_class)
del _class

if __name__ == '__main__':
	harness.main()
