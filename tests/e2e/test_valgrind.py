# SPDX-License-Identifier: MIT
"""Under valgrind's memcheck: with the library a program has no error, no leak and no open descriptor that it
has not without. Programs that take long are left out unless E2E_ALL=1."""
import collections
import glob
import os
import re

import harness
import company
import daemons

ALL = os.environ.get('E2E_ALL') == '1'
CLOSED = 'any volume=1000000'

# tests/programs; those that only wait, or fill the machine, take minutes here.
QUICK = ('attempts', 'descriptors', 'transfers')
SLOW = ('lifetimes', 'waits', 'inherited', 'fortified', 'processes', 'cancels')

# What memcheck itself cannot bear, in programs that do on purpose what no sane one does.
EXCEPTED = {
	'waits bad_arguments': 'it polls more than it has',
	'processes child_has_child': 'its own vfork is a fork, within which another is not expected',
}


def kinds(log):
	"""What memcheck found, as a multiset: kind and, for a leak, how much."""
	found = collections.Counter()
	for block in re.split(r'(?m)^==\d+== \n', log):
		lines = [re.sub(r'^==\d+== ?', '', line) for line in block.splitlines()]
		head = next((line for line in lines if line.strip()), '')
		if re.search(r'(?:Invalid|Conditional jump|Use of uninit|Syscall param|Mismatched|Source and dest|points to|'
				r'are (?:definitely|indirectly|possibly) lost|Jump to|Process terminating|Warning)', head):
			found[re.sub(r'0x[0-9A-F]+|loss record \d+ of \d+|in loss record.*|^Open.*', '', head).strip()] += 1
	for line in re.findall(r'FILE DESCRIPTORS: .*', log):
		found[line] += 1
	return found


class _Valgrind(harness.Case):
	@classmethod
	def setUpClass(cls):
		cls.has_valgrind = harness.find_program('valgrind')

	def setUp(self):
		super().setUp()
		if not self.has_valgrind:
			self.skipTest('valgrind is missing (Debian: apt install valgrind)')

	def run_checked(self, argv, library=True, preload=None, **keywords):
		"""The run, and what was found in it: by the program alone, not by what it executes."""
		log = f'{self.scratch}/valgrind'
		extra = {'PYTHONMALLOC': 'malloc', 'PYTHONHASHSEED': '0'}
		if preload:
			extra['LD_PRELOAD'] = preload
		result = self.run_program(['valgrind', '--leak-check=full', '--track-fds=yes', '--trace-children=no',
			'--child-silent-after-fork=yes', '--num-callers=30', '--vgdb=no', f'--log-file={log}', *argv], library=library,
			extra=extra, timeout=200, **keywords)
		with open(log, encoding='utf-8', errors='replace') as file:
			return result, file.read()

	def check(self, argv, rules, preload=None):
		self.rules = rules
		self._remove_state()
		bare, bare_log = self.run_checked(argv, library=False)
		ours, log = self.run_checked(argv, preload=preload)
		self.assertEqual((ours.returncode, company.steady(ours.stdout), company.steady(ours.stderr)),
			(bare.returncode, company.steady(bare.stdout), company.steady(bare.stderr)))
		self.assertIn('ERROR SUMMARY', log)
		self.assertNotIn('libshunt', log, 'a frame of ours in what was found')
		self.assertEqual(kinds(log) - kinds(bare_log), collections.Counter(), log[:6000])
		return ours


class Programs(_Valgrind):
	def scenes(self, name):
		usage = self.run_program([company.program(name)], library=False).stderr
		return re.search(r'all\|(\S+) \[PORT\]', usage)[1].split('|')

	def check_program(self, name):
		scenes = self.scenes(name)
		excepted = [scene for scene in scenes if f'{name} {scene}' in EXCEPTED]
		for scene in [s for s in scenes if s not in excepted] if excepted else ['all']:
			with self.subTest(scene):
				self.check([company.program(name), scene], {'T': CLOSED})

	def test_calls_of_any_kind(self):
		"""syscall() hands six on, whatever it was given: nobody looks at what is not there."""
		program = company.built('company_calls')
		for rules in ({}, {'T': CLOSED}):
			self.rules = rules
			ours, log = self.run_checked([program])
			self.assertNotIn('libshunt', log)
			_, bare_log = self.run_checked([program], library=False)
			self.assertEqual(kinds(log) - kinds(bare_log), collections.Counter(), log[:6000])
			self.assertEqual(ours.returncode, self.run_checked([program], library=False)[0].returncode)

	def test_threads(self):
		target = self.server()
		argv = [company.built('company_clients'), str(target.port), '4', '10']
		rules = {'T': f'127.0.0.1:{target.port} volume=1 sleep=2ms'}
		# A thread that still sleeps at the end counts as possibly lost, whosever it is.
		self.settings = {'SHUNT_TIMER': 'off'}
		self.check(argv, rules)
		self.settings = {}
		target.healthy()
		self.check(argv, rules)
		self.assertTotals({'success': 40, 'failure': 0}, name='T')


def add_programs():
	for name in QUICK + (SLOW if ALL else ()):
		def check(self, name=name):
			self.check_program(name)
		setattr(Programs, 'test_' + name, check)


add_programs()


class _Clients(_Valgrind):
	"""Real programs: a healthy server, then a dead one, whose circuit opens and stays open."""

	def check_client(self, argv_of, port):
		self.check(argv_of(port), {'T': f'127.0.0.1:{port}'})
		self.assertTotals({'failure': 0}, name='T')
		self.assertState('closed', name='T')
		dead = self.server()
		rules = {'T': f'127.0.0.1:{dead.port} volume=1 sleep=1h'}
		self.check(argv_of(dead.port), rules)
		self.assertState('open', name='T')
		# Now every connect is refused by us.
		_, bare_log = self.run_checked(argv_of(dead.port), library=False)
		_, log = self.run_checked(argv_of(dead.port))
		self.assertNotIn('libshunt', log)
		self.assertEqual(kinds(log) - kinds(bare_log), collections.Counter(), log[:6000])
		if not harness.BARE:
			self.assertGreater(self.cell(name='T')['totals']['short_circuited'], 0)

	def web(self):
		target = self.server()
		target.healthy()
		return target.port


class Clients(_Clients):
	def test_curl(self):
		self.check_client(company.CLIENTS['curl'], self.web())

	def test_redis_cli(self):
		redis = daemons.Redis()
		self.addCleanup(redis.close)
		self.check_client(company.CLIENTS['redis-cli'], redis.port)

	def test_python(self):
		script = '''import errno, socket, sys
for _ in range(2):
	with socket.socket() as s:
		print(errno.errorcode.get(s.connect_ex(("127.0.0.1", int(sys.argv[1]))), "0"))'''
		self.check_client(lambda port: [harness.PYTHON, '-S', '-c', script, str(port)], self.web())


class MoreClients(_Clients):
	def test_psql(self):
		postgres = daemons.Postgres()
		self.addCleanup(postgres.close)
		# Not the wrapper that finds it and executes it.
		psql = sorted(glob.glob('/usr/lib/postgresql/*/bin/psql'))[-1]
		self.check_client(lambda port: [psql, '-w', '-h', '127.0.0.1', '-p', str(port), '-U', 'postgres',
			'-Atc', 'select 1'], postgres.port)

	def test_wget(self):
		self.check_client(lambda port: ['wget', '-qO-', '-t', '1', f'http://127.0.0.1:{port}/'], self.web())


if not ALL:
	del MoreClients


class Preloads(_Valgrind):
	"""Valgrind puts its own before what LD_PRELOAD says: an allocator beside us in either order is no matter."""

	def test_beside_an_allocator(self):
		path = company.library('tcmalloc')
		if not path:
			self.skipTest('tcmalloc is missing')
		target = self.server()
		target.healthy()
		for order in ((path, harness.LIBRARY), (harness.LIBRARY, path)):
			with self.subTest(order=order):
				self.rules = {'T': f'127.0.0.1:{target.port}'}
				self._remove_state()
				result, log = self.run_checked(company.CLIENTS['curl'](target.port), preload=' '.join(order))
				self.assertEqual((result.returncode, result.stdout), (0, 'hello from the server\n'), result)
				self.assertNotIn('libshunt', log)
				self.assertTotals({'success': 1}, name='T')


class Faults(_Valgrind):
	"""What is injected, reported and held is of our own memory, and leaves none behind."""

	# All at once: the program works, with more calls, later and in pieces.
	DISTURBING = ('latency=20ms~10ms', 'short=1..9', 'eagain', 'eintr', 'rate=64KB/s', 'slowclose=20ms', 'maxconn=1000')
	FAILING = ('refuse', 'timeout=20ms', 'errno=EHOSTUNREACH', 'reset=5B', 'close', 'hang calls=2', 'corrupt')

	# By turns it waits in poll, and blocks.
	CALLS = '''import socket, struct, sys
for limit in (None, 3, None, 3):
	with socket.socket() as s:
		s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 3, 0))
		s.settimeout(limit)
		try:
			s.connect(("127.0.0.1", int(sys.argv[1])))
			s.sendall(b"GET / HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n")
			while s.recv(100):
				pass
		except OSError:
			pass'''

	def setUp(self):
		super().setUp()
		self.target = self.server()
		self.target.healthy()
		self.report = f'{self.scratch}/report'

	def strike(self, kinds):
		self.settings = {f'SHUNT_FAULT_F{number}': f'127.0.0.1:{self.target.port} {kind}' for number, kind in enumerate(kinds)}
		self.settings['SHUNT_REPORT'] = self.report

	def assertStruck(self, *kinds):
		if not harness.BARE:
			with open(self.report, encoding='ascii') as file:
				text = file.read()
			for kind in kinds:
				self.assertIn(f'"{kind}"', text)

	def test_programs_that_work(self):
		self.strike(self.DISTURBING)
		self.check(company.CLIENTS['curl'](self.target.port), {'T': f'127.0.0.1:{self.target.port}'})
		self.assertStruck('latency', 'short', 'rate')
		# Of threads, which take a piece for the whole.
		self.strike(('latency=20ms~10ms', 'rate=64KB/s', 'slowclose=20ms'))
		self.check([company.built('company_clients'), str(self.target.port), '4', '3'], {})

	def test_failures(self):
		argv = [harness.PYTHON, '-S', '-c', self.CALLS, str(self.target.port)]
		_, bare_log = self.run_checked(argv, library=False)
		for kind in self.FAILING:
			with self.subTest(kind):
				self.strike([kind])
				self._remove_state()
				result, log = self.run_checked(argv)
				self.assertEqual((result.returncode, result.text), (0, ''))
				self.assertIn('ERROR SUMMARY', log)
				self.assertNotIn('libshunt', log)
				self.assertEqual(kinds(log) - kinds(bare_log), collections.Counter(), log[:6000])
				self.assertStruck(kind.split('=')[0].split()[0])

	def test_lookups_and_datagrams(self):
		script = '''import socket
for name in ("a.invalid", "b.invalid", "c.invalid"):
	try:
		socket.getaddrinfo(name, 80)
	except OSError:
		pass
with socket.socket(type=socket.SOCK_DGRAM) as a, socket.socket(type=socket.SOCK_DGRAM) as b:
	b.bind(("127.0.0.1", 0))
	a.connect(b.getsockname())
	a.settimeout(1)
	for _ in range(4):
		a.send(b"x" * 100)
		try:
			a.recv(100)
		except OSError:
			pass'''
		argv = [harness.PYTHON, '-S', '-c', script]
		_, bare_log = self.run_checked(argv, library=False)
		self.settings = {'SHUNT_FAULT_A': 'dns:a.invalid nxdomain', 'SHUNT_FAULT_B': 'dns:b.invalid addr=192.0.2.1',
			'SHUNT_FAULT_C': 'dns:c.invalid latency=20ms', 'SHUNT_FAULT_U': 'any proto=udp drop dir=out calls=1',
			'SHUNT_FAULT_V': 'any proto=udp dup dir=out calls=2', 'SHUNT_REPORT': self.report}
		result, log = self.run_checked(argv)
		self.assertEqual((result.returncode, result.text), (0, ''))
		self.assertNotIn('libshunt', log)
		self.assertEqual(kinds(log) - kinds(bare_log), collections.Counter(), log[:6000])
		self.assertStruck('nxdomain', 'addr', 'latency', 'drop', 'dup')


if __name__ == '__main__':
	harness.main()
