# SPDX-License-Identifier: MIT
"""Runs a scene of a client of tests/programs bare and with the library, and compares what it prints and how it
ends. Where every circuit may open, unlike in parity.py, and at full speed."""
import re

import harness
import parity

# The first refused connect opens the circuit of its address; a scene that waits lets 150 ms pass.
OPENS = '127.0.0.1/32 volume=1 sleep=1h'
OPENS_SHORTLY = '127.0.0.1/32 volume=1 sleep=100ms'


def told(text):
	"""Without what the process is left with: of threads and descriptors the tests here have their own."""
	lines = text.partition('-- the process\n')[0].splitlines()
	return '\n'.join(line for line in lines if not line.startswith('   '))


class Program(harness.Case):
	program = None

	def play(self, scene, library=True, **keywords):
		result = self.run_program([parity.program_path(self.program), scene], library=library, **keywords)
		self.assertEqual(result.returncode, 0, result)
		return result

	def both(self, scene, rule=OPENS, settings=None, **keywords):
		"""The run with the library, which prints the same as the bare one."""
		self.rules, self.settings = {'X': rule}, dict(settings or {})
		bare = self.play(scene, library=False, **keywords)
		ours = self.play(scene, **keywords)
		self.assertEqual(told(ours.stdout), told(bare.stdout))
		return ours

	def sums(self):
		"""The totals of all connections' cells together, those that are not zero."""
		sums = {}
		for cell in self.cells():
			for name, count in cell['totals'].items():
				if count:
					sums[name] = sums.get(name, 0) + count
		return sums

	def assertTimerWasThere(self, ours):
		"""As the scene told on stderr, wherever it counted threads."""
		if harness.BARE:
			return
		counts = re.findall(r'^(\d+) threads, (\d+) of them', ours.stderr, re.M)
		self.assertTrue(counts, ours)
		for threads, own in counts:
			self.assertEqual(int(threads), int(own) + 1, ours.stderr)
