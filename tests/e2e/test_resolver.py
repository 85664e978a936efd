# SPDX-License-Identifier: MIT
"""Lookups that wait no longer than resolve-timeout says, whoever asks and however, and leave nothing behind."""
import statistics

import harness
import namespaces
from resolver import Resolver

# How long a lookup may take; and less than what libc alone takes: the machine is shared.
BOUND = 0.3
LOOSE = 1.5

PYTHON_ERROR = '[Errno -3] Temporary failure in name resolution'

LOOKUPS = r'''
import os, socket, sys, time
for line in sys.stdin:
	began = time.monotonic()
	try:
		text = 'ok ' + socket.getaddrinfo(line.strip(), 80, type=socket.SOCK_STREAM)[0][4][0]
	except OSError as error:
		text = str(error)
	print(f'{time.monotonic() - began:.3f} {text}', flush=True)
'''

# Prints how long each of many lookups in threads took, how many threads there were at most, and waits for
# those that are not its own to end; then, whether the same files are open.
STORM = r'''
import os, socket, sys, threading, time
def threads():
	return len(os.listdir('/proc/self/task'))
def ask():
	start.wait()
	began = time.monotonic()
	try:
		socket.getaddrinfo(sys.argv[1], 80)
		text = 'ok'
	except OSError as error:
		text = str(error)
	answers.append((time.monotonic() - began, text))
	most.append(threads())
answers, most = [], []
files = os.listdir('/proc/self/fd')
start = threading.Barrier(int(sys.argv[2]))
askers = [threading.Thread(target=ask) for _ in range(int(sys.argv[2]))]
for asker in askers:
	asker.start()
for asker in askers:
	asker.join()
for seconds, text in answers:
	print(f'{seconds:.3f} {text}')
print('most', max(most), flush=True)
deadline = time.monotonic() + 60
while threads() > 1 and time.monotonic() < deadline:
	time.sleep(0.05)
print('left', threads(), files == os.listdir('/proc/self/fd'))
'''

ASYNCIO = r'''
import asyncio, sys, time
async def ask(name):
	began = time.monotonic()
	try:
		await asyncio.get_running_loop().getaddrinfo(name, 80)
		text = 'ok'
	except OSError as error:
		text = str(error)
	print(f'{time.monotonic() - began:.3f} {text}')
async def main():
	ticks, began = 0, time.monotonic()
	asked = [asyncio.create_task(ask(f'a{i}.example.test')) for i in range(4)]
	while not all(task.done() for task in asked):
		await asyncio.sleep(0.01)
		ticks += 1
	print('ticks', ticks)
asyncio.run(main())
'''

FORKS = r'''
import os, socket, sys, threading, time
def ask(name):
	try:
		return 'ok ' + socket.getaddrinfo(name, 80)[0][4][0]
	except OSError as error:
		return str(error)
# Nobody is inside libc's own start now, which no fork survives.
print('before', ask('good.example.test'), flush=True)
askers = [threading.Thread(target=lambda: print('parent', ask('silent.example.test'), flush=True)) for _ in range(2)]
for asker in askers:
	asker.start()
# Itself, the askers, and who asks for them.
while len(os.listdir('/proc/self/task')) < 5:
	time.sleep(0.001)
child = os.fork()
if child == 0:
	print('child', ask('good.example.test'), flush=True)
	print('child', ask('silent.example.test'), flush=True)
	os._exit(7)
print('status', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
for asker in askers:
	asker.join()
print('after', ask('good.example.test'), flush=True)
'''

ALONE = r'''
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def ask(name):
	try:
		return 'ok ' + socket.getaddrinfo(name, 80)[0][4][0]
	except OSError as error:
		return str(error)
print(ask('good.example.test'), len(os.listdir('/proc/self/task')))
# A user namespace of its own: only where there is one thread.
print('unshare', libc.unshare(0x10000000), ctypes.get_errno(), len(os.listdir('/proc/self/task')))
print(ask('good.example.test'), len(os.listdir('/proc/self/task')))
'''

ZONE = {'good.example.test': [('A', '127.0.0.1')], 'silent.example.test': []}


class _WithResolver(harness.Case):
	def setUp(self):
		super().setUp()
		self.resolver = Resolver(ZONE)
		self.resolver.silent.add('silent.example.test')
		self.addCleanup(self.resolver.close)

	def run_python(self, source, *arguments, config=Resolver.config, **keywords):
		result = self.run_program([harness.PYTHON, '-c', source, *arguments], resolv=config, **keywords)
		self.assertEqual((result.returncode, result.stderr), (0, ''), result)
		return result.stdout.splitlines()

	def lookup_totals(self, host):
		totals = self.cell(name='NAMES', kind='lookup', host=host)['totals']
		return {key: value for key, value in totals.items() if value}


class Timeout(_WithResolver):
	"""A name server that never answers: libc alone waits for two seconds or more."""

	def setUp(self):
		super().setUp()
		self.rules['NAMES'] = '.example.test volume=1000 resolve-timeout=300ms'

	def assertBounded(self, argv, pattern, times=5, host='silent.example.test'):
		"""Each run fails, and says so as it does when a name server is silent; its lookups last 300 ms."""
		if not harness.find_program(argv[0]):
			self.skipTest(f'no {argv[0]}')
		results = [self.run_program(argv, resolv=Resolver.config) for _ in range(times)]
		for result in results:
			self.assertMatches(pattern, result)
		cell = self.cell(name='NAMES', kind='lookup', host=host)
		totals = {key: value for key, value in cell['totals'].items() if value}
		self.assertEqual(set(totals), {'timeout'}, totals)
		self.assertGreaterEqual(totals['timeout'], times)
		print(f'# {argv[0]}: {totals["timeout"]} lookups, half of them within {cell["latency_ms"]["p50"]:.0f} ms; '
			f'a run takes {1000 * statistics.median(r.seconds for r in results):.0f} ms')
		self.assertGreaterEqual(cell['latency_ms']['p50'], 0.9 * 1000 * BOUND)
		self.assertLess(cell['latency_ms']['p50'], 1000 * LOOSE)
		self.assertEqual(self.status()['notes'], [])

	def test_curl(self):
		self.assertBounded(['curl', '-sS', 'http://silent.example.test/'], r'\(6\) Could not resolve host')

	def test_wget(self):
		self.assertBounded(['wget', '-nv', '-O-', '-t', '1', 'http://silent.example.test/'], 'unable to resolve host')

	def test_python(self):
		self.assertBounded([harness.PYTHON, '-c', 'import socket; socket.getaddrinfo("silent.example.test", 80)'],
			'Errno -3')

	def test_python_by_gethostbyname(self):
		self.assertBounded([harness.PYTHON, '-c', 'import socket; socket.gethostbyname_ex("silent.example.test")'],
			'Errno -3')

	def test_getent_ahosts(self):
		self.assertBounded(['getent', 'ahosts', 'silent.example.test'], '^$')

	def test_getent_hosts(self):
		self.assertBounded(['getent', 'hosts', 'silent.example.test'], '^$')

	def test_php(self):
		self.assertBounded(['php', '-n', '-r', 'var_dump(gethostbyname("silent.example.test"));'],
			'"silent.example.test"')

	def test_perl(self):
		self.assertBounded(['perl', '-MSocket', '-e',
			'my ($e) = Socket::getaddrinfo("silent.example.test", "80"); print "$e\n"; '
			'print defined(gethostbyname("silent.example.test")) ? "found" : "none", "\n";'],
			'Temporary failure in name resolution\nnone')

	def test_psql(self):
		self.assertBounded(['psql', '-h', 'silent.example.test', '-c', 'select 1'], 'could not translate host name')

	def test_git(self):
		self.assertBounded(['git', 'ls-remote', 'git://silent.example.test/a'], 'unable to look up silent.example.test')

	def test_ssh(self):
		self.assertBounded(['ssh', '-F', 'none', 'silent.example.test'], 'Could not resolve hostname')

	def test_a_thread_that_asked_libc_for_other_names_before(self):
		"""The first query of a thread leaves its traces in the resolver's state; they are no change."""
		self.resolver.answering = True
		lines = self.run_python(LOOKUPS, stdin=b'nobody.other.test\n' + b'silent.example.test\n' * 2)
		for line in lines[1:]:
			self.assertEqual(line.split(' ', 1)[1], PYTHON_ERROR)
		self.assertEqual(self.lookup_totals('silent.example.test'), {'timeout': 2})
		self.assertEqual(self.status()['notes'], [])

	def test_a_loop_waits_for_no_lookup(self):
		lines = self.run_python(ASYNCIO)
		for line in lines[:4]:
			seconds, text = line.split(' ', 1)
			self.assertEqual(text, PYTHON_ERROR)
			self.assertLess(float(seconds), LOOSE)
		self.assertGreater(int(lines[4].split()[1]), 2)

	def test_many_threads_at_once_and_none_is_left(self):
		"""Four threads and four that wait: of fifty lookups eight are late, and the rest is rejected at once."""
		self.rules['NAMES'] = ('.example.test volume=1000 resolve-timeout=2s resolve-pool=4 resolve-queue=4 '
			'resolve-queue-reject=4')
		lines = self.run_python(STORM, 'silent.example.test', '50', config=Resolver.config.replace(':2', ':5'))
		answers = [line.split(' ', 1) for line in lines[:50]]
		self.assertEqual({text for _, text in answers}, {PYTHON_ERROR})
		self.assertEqual(self.lookup_totals('silent.example.test'), {'timeout': 8, 'rejected': 42, 'rejected_pool': 42})
		self.assertLess(statistics.median(float(seconds) for seconds, _ in answers), LOOSE)
		self.assertLessEqual(int(lines[50].split()[1]), 1 + 50 + 4)
		self.assertEqual(lines[51], 'left 1 True')

	def test_a_pool_of_answers_serves_many_threads(self):
		self.resolver.answering = True
		self.rules['NAMES'] = '.example.test resolve-timeout=30s resolve-pool=4 resolve-queue=100 resolve-queue-reject=100'
		lines = self.run_python(STORM, 'good.example.test', '50')
		self.assertEqual({line.split(' ', 1)[1] for line in lines[:50]}, {'ok'})
		self.assertEqual(self.lookup_totals('good.example.test'), {'success': 50})
		self.assertEqual(lines[51], 'left 1 True')

	def test_a_fork_in_the_middle_of_a_lookup(self):
		self.resolver.answering = True
		self.rules['NAMES'] = '.example.test volume=1000 resolve-timeout=3s'
		lines = self.run_python(FORKS, config=Resolver.config.replace(':2', ':6'))
		self.assertEqual(sorted(lines), sorted([
			'before ok 127.0.0.1', 'child ok 127.0.0.1', f'child {PYTHON_ERROR}', 'status 7',
			f'parent {PYTHON_ERROR}', f'parent {PYTHON_ERROR}', 'after ok 127.0.0.1']))
		self.assertEqual(self.lookup_totals('silent.example.test'), {'timeout': 3})

	def test_a_program_that_leaves_by_longjmp(self):
		"""wget's own limit is an alarm, from whose handler it jumps out of getaddrinfo()."""
		self.rules['NAMES'] = '.example.test resolve-timeout=30s abandon=30s'
		for _ in range(3):
			result = self.run_program(['wget', '-O-', '-t', '1', '--dns-timeout=1', 'http://silent.example.test/'],
				resolv=Resolver.config)
			self.assertEqual(result.returncode, 4, result)
			self.assertMatches('Connection timed out', result)
			self.assertLess(result.seconds, 10)
		self.assertEqual(self.lookup_totals('silent.example.test'), {'cancelled': 3})

	def test_threads_of_the_pool_do_not_hinder_a_program_that_must_be_alone(self):
		self.resolver.answering = True
		lines = self.run_python(ALONE)
		self.assertEqual(lines, ['ok 127.0.0.1 2', 'unshare 0 0 1', 'ok 127.0.0.1 1'])
		self.assertRegex(self.status()['notes'][0], '^NAMES: resolve-timeout did not bound 1 lookup:')

	def test_without_threads_lookups_are_as_long_as_libc_makes_them(self):
		self.settings['SHUNT_TIMER'] = 'off'
		result = self.run_program(['getent', 'ahosts', 'silent.example.test'], resolv=Resolver.config)
		self.assertGreater(result.seconds, 1.5)
		self.assertEqual(self.lookup_totals('silent.example.test'), {'failure': 1})
		self.assertRegex(self.status()['notes'][0], '^NAMES: resolve-timeout did not bound 1 lookup:')
		self.assertIn('note: NAMES: resolve-timeout did not bound 1 lookup: ', self.shunt('status').stdout)

	def test_where_the_library_only_watches_nobody_is_bounded(self):
		self.settings['SHUNT_MODE'] = 'observe'
		result = self.run_program(['getent', 'ahosts', 'silent.example.test'], resolv=Resolver.config)
		self.assertGreater(result.seconds, 1.5)
		self.assertEqual(self.lookup_totals('silent.example.test'), {'timeout': 1})

	def test_late_lookups_open_the_circuit(self):
		self.rules['NAMES'] = '.example.test volume=3 sleep=60s resolve-timeout=300ms'
		lines = self.run_python(LOOKUPS, stdin=b'silent.example.test\n' * 5)
		self.assertEqual({line.split(' ', 1)[1] for line in lines}, {PYTHON_ERROR})
		self.assertLess(min(float(line.split()[0]) for line in lines[3:]), 0.9 * BOUND)
		self.assertEqual(self.lookup_totals('silent.example.test'), {'timeout': 3, 'short_circuited': 2, 'trips': 1})
		self.assertState('open', name='NAMES', kind='lookup')


class NoThreads(_WithResolver):
	def test_a_rule_that_does_not_ask_for_it_starts_none(self):
		self.resolver.answering = True
		self.rules['NAMES'] = '.example.test'
		lines = self.run_python(STORM, 'good.example.test', '1')
		self.assertEqual(lines[1:], ['most 2', 'left 1 True'])


if __name__ == '__main__':
	# With AI_ADDRCONFIG libc gives addresses only of families that have one beside loopback.
	namespaces.enter('fd00::1/128', '10.255.255.1/32')
	harness.main()
