# SPDX-License-Identifier: MIT
"""Answers that are given again: in every field what libc gave, and when libc can not."""
import os
import subprocess

import harness
import namespaces
import parity
from resolver import Resolver
from servers import Server

NAME = 'Www.Example.Test'
ZONE = {
	'www.example.test': [('CNAME', 'host.example.test')],
	'host.example.test': [('A', '10.1.2.3'), ('A', '10.1.2.4'), ('AAAA', 'fd00::1:2:3'), ('A', '127.0.0.1')],
	'a.example.test': [('A', '127.0.0.1')],
	'b.example.test': [('A', '127.0.0.1')],
}

LOOKUPS = r'''
import os, socket, sys, time
pids = []
for line in sys.stdin:
	name = line.strip()
	began = time.monotonic()
	if name == 'fork':
		if os.fork() == 0:
			continue
		os.wait()
		break
	try:
		text = 'ok ' + socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)[0][4][0]
	except OSError as error:
		text = str(error)
	print(f'{time.monotonic() - began:.3f} {text}', flush=True)
'''

CONNECTS = r'''
import socket, sys
for line in sys.stdin:
	try:
		socket.create_connection((sys.argv[1], int(sys.argv[2]))).close()
		print('ok', flush=True)
	except OSError as error:
		print(error, flush=True)
'''

AGAIN = '[Errno -3] Temporary failure in name resolution'


class _WithResolver(harness.Case):
	def setUp(self):
		super().setUp()
		self.resolver = Resolver(ZONE)
		self.resolver.answering = True
		self.addCleanup(self.resolver.close)

	def begin(self, argv, **keywords):
		return self.start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, resolv=Resolver.config,
			**keywords)

	@staticmethod
	def ask(process, line='\n'):
		"""What it says up to the line "done"."""
		process.stdin.write(line)
		process.stdin.flush()
		lines = []
		while not lines or lines[-1] not in ('done\n', ''):
			lines.append(process.stdout.readline())
		return ''.join(lines)

	def look_up(self, process, name):
		process.stdin.write(name + '\n')
		process.stdin.flush()
		seconds, text = process.stdout.readline().strip().split(' ', 1)
		return float(seconds), text

	def lookup_totals(self, host):
		totals = self.cell(name='NAMES', kind='lookup', host=host)['totals']
		return {key: value for key, value in totals.items() if value}


class Parity(_WithResolver):
	def setUp(self):
		super().setUp()
		self.argv = [parity.program_path('answers'), NAME]
		bare = self.begin(self.argv, library=False)
		self.bare = self.ask(bare)
		self.stop(bare)
		# It looked at more than errors.
		self.assertGreater(self.bare.count('flags 0'), 60, self.bare)
		self.assertIn('name host.example.test', self.bare)
		self.assertIn('alias ', self.bare)
		self.assertIn('::ffff:10.1.2.3', self.bare)

	def assertSame(self, process, what):
		self.assertEqual(self.ask(process).splitlines(), self.bare.splitlines(), what)

	def test_on_the_pool(self):
		self.rules['NAMES'] = '.example.test volume=100000 resolve-timeout=60s'
		process = self.begin(self.argv)
		for time in range(2):
			self.assertSame(process, time)
		self.assertNotIn('cached', self.lookup_totals(NAME.lower()))

	def test_of_the_cache(self):
		self.rules['NAMES'] = '.example.test volume=100000 resolve-cache=1h'
		process = self.begin(self.argv)
		self.assertSame(process, 'asked')
		totals, questions = self.lookup_totals(NAME.lower()), self.resolver.questions
		self.assertSame(process, 'kept')
		# What has no answer is asked again.
		cached = self.lookup_totals(NAME.lower())['cached'] - totals.get('cached', 0)
		self.assertGreater(cached, 40)
		self.assertLess(self.resolver.questions - questions, questions / 2)

	def test_of_the_cache_and_on_the_pool(self):
		self.rules['NAMES'] = '.example.test volume=100000 resolve-cache=1h resolve-timeout=60s'
		process = self.begin(self.argv)
		self.assertSame(process, 'asked')
		self.assertSame(process, 'kept')

	def test_stale(self):
		"""With the circuit held open, what had an answer has it still; the rest fails at once."""
		self.rules['NAMES'] = '.example.test volume=100000 resolve-stale=1h'
		process = self.begin(self.argv)
		self.assertSame(process, 'asked')
		self.assertEqual(self.shunt('force', 'NAMES@lookup', 'open').returncode, 0)
		for asked, stale in zip(self.bare.splitlines(), self.ask(process).splitlines(), strict=True):
			if asked.startswith('  error'):
				self.assertEqual(stale, '  error -3, errno 0')
			elif ' none, ' in asked:
				self.assertRegex(stale, ': (11|0), none, 2$')
			else:
				self.assertEqual(stale, asked)

	def test_freed_by_libc_without_a_fault(self):
		if not harness.find_program('valgrind'):
			self.skipTest('no valgrind')
		self.rules['NAMES'] = '.example.test volume=100000 resolve-cache=1h resolve-stale=1h resolve-timeout=60s'
		process = self.begin(['valgrind', '-q', '--error-exitcode=99', '--leak-check=full',
			'--errors-for-leak-kinds=definite', *self.argv], stderr=subprocess.PIPE)
		for what in 'asked', 'kept', 'kept again':
			self.assertSame(process, what)
		self.assertEqual(self.shunt('force', 'NAMES@lookup', 'open').returncode, 0)
		self.ask(process)
		# What libc keeps for a thread is lost with it, where that still lives at the end.
		harness.wait_until(lambda: len(os.listdir(f'/proc/{process.pid}/task')) == 1, 60, 'no thread of the pool is left')
		_, text = process.communicate('')
		self.assertEqual((process.returncode, text), (0, ''))


class Stale(_WithResolver):
	def begin_lookups(self, rule, sleep='60s'):
		self.rules['NAMES'] = f'.example.test volume=3 sleep={sleep} {rule}'
		return self.begin([harness.PYTHON, '-c', LOOKUPS])

	def test_a_program_goes_on_with_what_it_knew(self):
		"""One that asks for a name that was never resolved fails fast, once the circuit is open."""
		process = self.begin_lookups('resolve-timeout=300ms resolve-stale=1h')
		self.assertEqual(self.look_up(process, 'a.example.test')[1], 'ok 127.0.0.1')
		self.resolver.answering = False
		known = [self.look_up(process, 'a.example.test') for _ in range(6)]
		self.assertEqual({text for _, text in known}, {'ok 127.0.0.1'})
		self.assertLess(min(seconds for seconds, _ in known[4:]), 0.25, known)
		unknown = [self.look_up(process, 'b.example.test') for _ in range(5)]
		self.assertEqual({text for _, text in unknown}, {AGAIN})
		self.assertGreaterEqual(min(seconds for seconds, _ in unknown[:3]), 0.25, unknown)
		self.assertLess(min(seconds for seconds, _ in unknown[3:]), 0.25, unknown)
		self.assertEqual(self.lookup_totals('a.example.test'),
			{'success': 1, 'timeout': 2, 'short_circuited': 4, 'cached': 6, 'trips': 1})
		self.assertEqual(self.lookup_totals('b.example.test'), {'timeout': 3, 'short_circuited': 2, 'trips': 1})

	def test_a_forked_child_knows_what_its_parent_knew(self):
		process = self.begin_lookups('resolve-timeout=300ms resolve-stale=1h')
		self.assertEqual(self.look_up(process, 'a.example.test')[1], 'ok 127.0.0.1')
		self.resolver.answering = False
		process.stdin.write('fork\n')
		self.assertEqual(self.look_up(process, 'a.example.test')[1], 'ok 127.0.0.1')
		self.assertEqual(self.look_up(process, 'b.example.test')[1], AGAIN)

	def test_the_circuit_of_the_resolver_closes_again(self):
		process = self.begin_lookups('resolve-timeout=300ms resolve-stale=1h', sleep='2s')
		self.assertEqual(self.look_up(process, 'a.example.test')[1], 'ok 127.0.0.1')
		self.resolver.answering = False
		for _ in range(4):
			self.assertEqual(self.look_up(process, 'a.example.test')[1], 'ok 127.0.0.1')
		self.assertState('open', name='NAMES', kind='lookup')
		self.resolver.answering = True
		self.wait_for_probe(name='NAMES', kind='lookup')
		self.assertEqual(self.look_up(process, 'a.example.test')[1], 'ok 127.0.0.1')
		self.assertState('closed', name='NAMES', kind='lookup')

	def test_connections_by_a_name_that_was_kept_are_its_rules(self):
		server = Server()
		self.addCleanup(server.close)
		self.rules['NAMES'] = f'.example.test:{server.port} volume=3 sleep=60s resolve-cache=1h'
		process = self.begin([harness.PYTHON, '-c', CONNECTS, 'a.example.test', str(server.port)])
		for _ in range(5):
			process.stdin.write('\n')
			process.stdin.flush()
			self.assertIn('refused', process.stdout.readline())
		self.assertTotals({'failure': 3, 'short_circuited': 2}, name='NAMES')
		self.assertEqual(self.lookup_totals('a.example.test'), {'success': 1, 'cached': 4})


if __name__ == '__main__':
	# With AI_ADDRCONFIG libc gives addresses only of families that have one beside loopback.
	namespaces.enter('fd00::1/128', '10.255.255.1/32')
	harness.main()
