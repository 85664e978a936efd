# SPDX-License-Identifier: MIT
"""Functions found past the loader's usual search are not seen, and nothing else changes; what goes round
libc's functions, or calls them with any arguments, comes to what it comes to without us."""
import os

import harness
import company

# How tests/programs/company/loads.c finds a function that connects, and whether it is one of ours.
WAYS = {
	'plain': True,
	'default': True,
	'program': True,
	'deepbind': False,
	'dlmopen': False,
	'handle': False,
}


class Loaders(harness.Case):
	def run_way(self, way, port, library=True):
		return self.run_program([company.built('company_loads'), way,
			company.built('libcompany_plugin.so'), str(port)], library=library)

	def check_same(self, way, port):
		bare, ours = self.run_way(way, port, library=False), self.run_way(way, port)
		self.assertEqual(bare.returncode, 0, bare)
		self.assertEqual((ours.returncode, ours.stdout, ours.stderr), (bare.returncode, bare.stdout, bare.stderr))

	def test_with_a_healthy_server(self):
		target = self.server()
		target.healthy()
		for way in WAYS:
			with self.subTest(way):
				self.rules = {'T': f'127.0.0.1:{target.port} guard=connect'}
				self._remove_state()
				self.check_same(way, target.port)
				# Three connections by the way, three by the program's own connect().
				self.assertTotals({'success': 6 if WAYS[way] else 3, 'failure': 0}, name='T')

	def test_with_a_dead_one(self):
		target = self.server()
		for way in WAYS:
			with self.subTest(way):
				self.rules = {'T': f'127.0.0.1:{target.port} volume=1 sleep=1h'}
				self._remove_state()
				self.check_same(way, target.port)
				self.assertTotals({'failure': 1, 'short_circuited': 5 if WAYS[way] else 2}, name='T')

	def test_an_open_circuit_refuses_those_it_sees_alone(self):
		target = self.server()
		target.healthy()
		for way, is_seen in WAYS.items():
			with self.subTest(way):
				self.rules = {'T': f'127.0.0.1:{target.port} force=open'}
				result = self.run_way(way, target.port)
				if not harness.BARE:
					seen, unseen = 'ECONNREFUSED', '0'
					by_way = seen if is_seen else unseen
					self.assertEqual(result.stdout, f'{way}: {by_way}\nown: {seen}\n' * 3, result)

	def test_python_by_either_handle(self):
		"""CDLL(None) is the program's own search, CDLL('libc.so.6') is libc itself."""
		target = self.server()
		target.healthy()
		script = f'''import ctypes, socket, struct
address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons({target.port}), socket.inet_aton("127.0.0.1"))
for name in (None, "libc.so.6"):
	with socket.socket() as s:
		print(ctypes.CDLL(name).connect(s.fileno(), address, 16))'''
		self.rules = {'T': f'127.0.0.1:{target.port} force=open'}
		result = self.run_program([harness.PYTHON, '-c', script])
		self.assertEqual(result.stdout, '0\n0\n' if harness.BARE else '-1\n0\n', result)


class Calls(harness.Case):
	"""syscall(), fcntl() and prctl() with every kind of argument."""

	RULES = {'no rule': {}, 'a rule': {'T': 'any volume=1 sleep=1h'}}

	def calls(self, library):
		result = self.run_program([company.built('company_calls')], library=library)
		self.assertEqual((result.returncode, result.stderr), (0, ''), result)
		return company.steady(result.stdout)

	def test_they_come_to_the_same(self):
		bare = self.calls(library=False)
		self.assertGreater(len(bare.splitlines()), 60)
		self.assertNotIn('DIFFERS', bare)
		for what, rules in self.RULES.items():
			with self.subTest(what):
				self.rules = rules
				self.assertEqual(self.calls(library=True), bare)


class Zones(harness.Case):
	def test_lines_are_logged_while_threads_hold_the_time_zone(self):
		target = self.server()
		path = self.scratch + '/log'
		self.settings = {'SHUNT_LOG': path}
		# Every refusal is a transition, and each of them a line.
		self.rules = {'T': f'127.0.0.1:{target.port} volume=1 sleep=1ms'}
		for zone in (':/etc/localtime', 'Europe/Berlin', ''):
			with self.subTest(zone):
				result = self.run_program([company.built('company_zones'), str(target.port)],
					extra={'TZ': zone}, timeout=90)
				self.assertEqual((result.returncode, result.stdout, result.stderr),
					(0, 'refused 400 of 400\n', ''), result)
		if not harness.BARE:
			with open(path, encoding='utf-8') as log:
				lines = log.read().splitlines()
			self.assertGreater(len(lines), 100)
			for line in lines:
				self.assertRegex(line, r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ shunt\[\d+\]: T: ')


class ExitCodes(harness.Case):
	"""With an open circuit and what status and log there is to write, a process ends as it would."""

	SCRIPT = 'import os, socket; [socket.socket().connect_ex(("127.0.0.1", %d)) for _ in range(3)]; '

	def setUp(self):
		super().setUp()
		self.target = self.server()
		self.rules = {'T': f'127.0.0.1:{self.target.port} volume=1 sleep=1h'}
		self.settings = {'SHUNT_LOG': self.scratch + '/log'}

	def ends(self, end, **keywords):
		return self.run_program([harness.PYTHON, '-c', self.SCRIPT % self.target.port + end], **keywords)

	def test_every_exit_code(self):
		"""One process that forks 256 times."""
		end = '''
for code in range(256):
	pid = os.fork()
	if not pid:
		os._exit(code)
	assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code, code
for code in range(0, 256, 5):
	assert os.system(f"exit {code}") >> 8 == code, code
print("all")'''
		result = self.ends(end)
		self.assertEqual((result.returncode, result.stdout, result.stderr), (0, 'all\n', ''), result)

	def test_ways_to_end(self):
		ways = {
			'os._exit(3)': 3,
			'raise SystemExit(200)': 200,
			'os.abort()': -6,
			'os.kill(os.getpid(), 9)': -9,
			'os.kill(os.getpid(), 15)': -15,
			'os.kill(os.getpid(), 11)': -11,
			'import ctypes; ctypes.CDLL(None).quick_exit(7)': 7,
			'import ctypes; ctypes.CDLL(None)._Exit(8)': 8,
			'import ctypes; ctypes.CDLL(None).syscall(231, 9)' if os.uname().machine == 'x86_64'
			else 'os._exit(9)': 9,
			'os.execv("/bin/sh", ["sh", "-c", "exit 11"])': 11,
		}
		for end, code in ways.items():
			with self.subTest(end):
				self._remove_state()
				result = self.ends(end)
				self.assertEqual((result.returncode, result.text), (code, ''), result)
				# Whatever the end was, what had happened is known.
				self.assertTotals({'failure': 1, 'short_circuited': 2, 'trips': 1}, name='T')


if __name__ == '__main__':
	harness.main()
