# SPDX-License-Identifier: MIT
"""The story that every program lives through, whatever way its server fails:

it fails `volume` times in the program's own words and the circuit opens; further calls fail at once,
in the program's own words, and nothing reaches the server; when the sleep window has passed, one call
reaches it; and when the server is well again, so is the program, which was never restarted or told.
"""
import re
import time

import harness

VOLUME = 3
SLEEP = 2.0
# A window that even slow machines need not hurry to fill.
RULE = f'127.0.0.1:{{port}} volume={VOLUME} errors=50% sleep={int(SLEEP)}s window=60s'


class Story(harness.Case):
	"""Subclasses say what the program is, and name the failures that their program can show:
	a pattern of the message for each, None where the program would wait for ever."""

	refused = None
	silent = None
	backlog = None
	reset = None
	open = None          # the message while the circuit is open, where it is not `refused`
	works = 'hello from the server'
	tries_again = False  # one call of the program is up to two connections
	outcome = {'refuse': 'failure', 'silent': 'timeout', 'full_backlog': 'timeout',
		'reset_after_request': 'failure'}

	def __init_subclass__(cls):
		"""A way of failing that the program could not show is no test of it."""
		if cls.__name__.startswith('_'):
			return
		for pattern, test in (('silent', 'test_a_server_that_accepts_and_is_silent'),
				('backlog', 'test_a_server_with_a_full_backlog'), ('reset', 'test_a_server_that_resets')):
			if getattr(cls, pattern) is None:
				setattr(cls, test, None)

	def backend(self):
		"""Address of the real server behind the one that can fail, or None for a little HTTP."""
		return None

	def prepare(self):
		"""Called once the server's port is known."""

	def command(self):
		"""The program, as argv."""
		raise NotImplementedError

	def calls(self, count=1):
		"""`count` calls side by side."""
		return self.run_many([self.command()] * count)

	def setUp(self):
		super().setUp()
		self.server_under_test = self.server(backend=self.backend())
		self.port = self.server_under_test.port
		self.rules['TARGET'] = RULE.format(port=self.port)
		self.witness = self.wire(self.port)
		self.prepare()

	def tell(self, way, message):
		"""The whole story, with a server that fails in `way`."""
		getattr(self.server_under_test, way)()
		tripped = self.circuit_opens(way, message)
		if harness.BARE:
			self.recovers()
			return
		self.fails_at_once(tripped, way)
		self.one_probe(way, message)
		self.recovers()

	def circuit_opens(self, way, message):
		for result in self.calls(VOLUME):
			self.assertNotEqual(result.returncode, 0, result)
			self.assertMatches(message, result)
		tripped = time.monotonic()
		self.assertState('open', name='TARGET')
		self.assertTotals({'success': 0, 'trips': 1}, name='TARGET')
		if not harness.BARE:
			self.errors = self.cell(name='TARGET')['totals'][self.outcome[way]]
			# The second tries of calls side by side may be under way when the circuit opens.
			self.assertIn(self.errors, range(VOLUME, 2 * VOLUME) if self.tries_again else [VOLUME])
		return tripped

	def fails_at_once(self, tripped, way):
		results = []
		while len(results) < 3 or (len(results) < 8 and time.monotonic() < tripped + SLEEP / 2):
			results += self.calls()
			if time.monotonic() > tripped + SLEEP / 2:
				break
		self.assertTrue(self.witness.quiet(tripped), self.witness.attempts(tripped))
		for result in results:
			self.assertNotEqual(result.returncode, 0, result)
			self.assertMatches(self.open or self.refused, result)
		self.assertAtOnce(results)
		self.assertTotals({self.outcome[way]: self.errors, 'trips': 1}, name='TARGET')
		self.assertGreaterEqual(self.cell(name='TARGET')['totals']['short_circuited'], len(results))

	def one_probe(self, way, message):
		"""Three calls at once when the window has passed: one of them gets through, and no more."""
		self.wait_for_probe(name='TARGET')
		asked = time.monotonic()
		results = self.calls(3)
		reopened = time.monotonic()
		self.assertEqual(len(self.witness.attempts(asked)), 1, (self.witness.attempts(asked), results))
		slow = [r for r in results if r.seconds >= harness.AT_ONCE]
		self.assertLessEqual(len(slow), 1, results)
		self.assertTrue(any(re.search(message, r.text, re.M) for r in results), results)
		self.assertState('open', name='TARGET')
		self.assertTotals({self.outcome[way]: self.errors + 1}, name='TARGET')
		results = self.calls()
		self.assertTrue(self.witness.quiet(reopened), self.witness.attempts(reopened))

	def recovers(self):
		self.server_under_test.healthy()
		self.wait_for_probe(name='TARGET')
		for _ in range(2):
			result = self.calls()[0]
			self.assertEqual(result.returncode, 0, result)
			self.assertMatches(self.works, result)
		self.assertState('closed', name='TARGET')

	def test_a_server_that_refuses(self):
		self.tell('refuse', self.refused)

	def test_a_server_that_accepts_and_is_silent(self):
		self.tell('silent', self.silent)

	def test_a_server_with_a_full_backlog(self):
		self.tell('full_backlog', self.backlog)

	def test_a_server_that_resets(self):
		self.tell('reset_after_request', self.reset)
