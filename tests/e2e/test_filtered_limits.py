# SPDX-License-Identifier: MIT
"""Limits in a program that sets a seccomp filter in its middle, which kills for every call that the program bare
was not seen to make: `concurrency` with a queue, `timeout`, lookups on a pool and answers that are kept."""
import re
import signal
import unittest

import filters
import harness
import namespaces
from parity import program_path
from resolver import Resolver

ZONE = {'good.example.test': [('A', '127.0.0.1')], 'silent.example.test': []}

# What a runtime does of its own accord, now and then, and what a process ends with.
NOISE = {'rt_sigreturn', 'exit_group', 'futex', 'mmap', 'munmap', 'mprotect', 'brk', 'restart_syscall'}
# What ends a thread.
THREAD_END = {'rt_sigprocmask', 'madvise', 'exit'}

# What the library would call, if it might.
OURS = {'fcntl', 'getsockopt', 'shutdown', 'rt_sigprocmask', 'rt_sigaction', 'sigaltstack', 'getpid', 'gettid', 'kill', 'tgkill',
	'clone', 'clone3', 'prctl', 'readlinkat', 'process_vm_readv'}


@unittest.skipUnless(filters.is_available(), 'libseccomp is missing (Debian: apt install libseccomp2)')
class FilteredLimits(harness.Case):
	CONFIG = 'nameserver 127.0.0.53\noptions timeout:2 attempts:1\n'

	def setUp(self):
		super().setUp()
		self.target, self.slow = self.server(), self.server()
		self.target.healthy()
		self.slow.slow(2)
		self.resolver = Resolver(ZONE)
		self.resolver.answering = True
		self.resolver.silent.add('silent.example.test')
		self.addCleanup(self.resolver.close)
		self.rules = {
			'T': f'127.0.0.1:{self.target.port} concurrency=1 queue=4 queue-wait=1h volume=1000',
			'SLOW': f'127.0.0.1:{self.slow.port} timeout=1s volume=1000',
			'NAMES': '.example.test volume=1000 resolve-timeout=4s resolve-cache=1h resolve-stale=1h',
		}
		self.settings = {'SHUNT_LOG': self.scratch + '/log'}

	def play(self, path, by, words, argv=(), library=True):
		"""What each word came to, by word and in their order."""
		result = self.run_program([*argv, program_path('limited'), path, by, str(self.target.port), str(self.slow.port),
			*words], library=library, resolv=self.CONFIG)
		self.assertEqual((result.returncode, result.stderr), (0, ''), f'{result}: killed for a call, if by {signal.SIGSYS}')
		said = {}
		for line in result.stdout.splitlines():
			word, _, what = line.partition(' ')
			said.setdefault(word, []).append(what)
		self.assertEqual(said['all'], ['ended'])
		return said

	def filter_path(self, by, words, more=()):
		"""A filter for all that the bare program calls after it would have set one."""
		trace = self.scratch + '/trace'
		self.play('', by, words, argv=['strace', '-f', '-o', trace], library=False)
		with open(trace, encoding='utf-8', errors='replace') as file:
			text = file.read()
		after = text[text.index('write(1, "filter'):]
		names = set(re.findall(r'^\d+ +(\w+)\(', after, re.M))
		self.assertIn('write', names)
		self.assertEqual(names & OURS, set())
		path = self.scratch + '/filter'
		with open(path, 'wb') as file:
			file.write(filters.allowing(names | NOISE | set(more) | {'clock_nanosleep'}))
		return path

	def assertLives(self, by, before, threads, after, more=()):
		"""Bare, as what it is compared to, and with the library, whose part is returned."""
		words = (before, threads, after)
		path = self.filter_path(by, words, more)
		self.play(path, by, words, library=False)
		return self.play(path, by, words)

	def test_by_itself(self):
		"""One thread, in whose process the timer's and the pool's threads were."""
		said = self.assertLives('alone', 'slow,good,keep,hold', '', 'fresh,good,slow,drop,fresh,kept,good')
		if harness.BARE:
			return
		# Full, and nobody is put to sleep; then there is a place.
		self.assertEqual(said['fresh'], ['ECONNREFUSED', 'answered'])
		self.assertEqual(said['kept'], ['answered'])
		self.assertEqual(said['good'], ['found'] * 3)
		self.assertEqual(said['slow'][1], 'answered', 'not bounded')
		self.assertTotals({'rejected': 1, 'rejected_queue': 0}, name='T')
		self.assertEqual(self.cell(name='T')['in_flight'], 0)

	def test_a_request_without_a_place_is_cut(self):
		said = self.assertLives('alone', 'keep,hold', '', 'kept,kept')
		if not harness.BARE:
			self.assertEqual(said['kept'], ['ECONNRESET'] * 2)

	def test_for_threads_in_the_middle_of_calls(self):
		"""Two stand in the queue, two wait for a slow answer: by the timer thread, or by the socket's own time."""
		for timer in ('auto', 'off'):
			with self.subTest(timer=timer):
				self._remove_state()
				self.settings['SHUNT_TIMER'] = timer
				said = self.assertLives('all', 'good,hold', 'fresh,fresh,slow,slow', 'good,slow,rest,drop,fresh')
				if harness.BARE:
					continue
				self.assertEqual(said['fresh'], ['ECONNREFUSED'] * 2 + ['answered'])
				self.assertEqual(said['good'], ['found'] * 2)
				# Those that were under way may have been bounded; the one after was not.
				self.assertEqual(len(said['slow']), 3)
				self.assertIn('answered', said['slow'])
				self.assertTotals({'rejected': 2, 'rejected_queue': 2}, name='T')
				self.assertEqual(self.cell(name='T')['in_flight'], 0)

	def test_for_threads_in_the_middle_of_lookups(self):
		"""libc is still asking, on a thread of ours that has to end."""
		said = self.assertLives('all', 'good', 'silent,silent', 'good,silent', more=THREAD_END)
		self.assertEqual(said['silent'], ['unknown'] * 3)
		self.assertEqual(said['good'], ['found'] * 2)


if __name__ == '__main__':
	namespaces.enter('127.0.0.53/32')
	harness.main()
