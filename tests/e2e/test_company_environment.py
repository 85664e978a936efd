# SPDX-License-Identifier: MIT
"""No value of any variable can be heard or felt in a program: `true` is silent and succeeds, and one that
connects gets what it would get."""
import os

import harness

VARIABLES = ('SHUNT_OFF', 'SHUNT_BREAK', 'SHUNT_BREAK_X', 'SHUNT_FAULT', 'SHUNT_FAULT_X', 'SHUNT_CONF', 'SHUNT_MODE',
	'SHUNT_STATE', 'SHUNT_LOG', 'SHUNT_SEED', 'SHUNT_TIMER', 'SHUNT_EXPIRE', 'SHUNT_BACKTRACE', 'SHUNT_PROC',
	'SHUNT_SKIP')

# The longest string that exec takes is 128 KiB.
VALUES = {
	'empty': b'',
	'blank': b' \t\n ',
	'one letter': b'x',
	'a number': b'-1',
	'a large number': b'9' * 1000,
	'huge': b'x' * 120000,
	'huge, of separators': b', ' * 60000,
	'huge, of settings': b'h ' + b'sleep=1s ' * 12000,
	'huge, of slashes': b'/' * 120000,
	'no text': bytes(range(1, 256)),
	'broken UTF-8': b'\xff\xfe\xc3\x28\xe2\x82',
	'a format': b'%s%n%d%1000000000s',
	'a shell': b'$(reboot); `id` & | > /etc/passwd',
	'nothing but signs': b'=,=;:[]^.*/%=',
}

# Where a segment or a log cannot be.
PLACES = (b'relative/path', b'/', b'/dev', b'/dev/null', b'/dev/full', b'/proc/self/mem', b'/proc/nothing/here',
	b'/etc/hostname/below', b'/sys/kernel', b'\xff\xfe', b'/dev/shm/../shm/../../dev/shm', b'stderr ', b'private ')

CONNECT = '''import errno, socket
for _ in range(3):
	with socket.socket() as s:
		print(errno.errorcode[s.connect_ex(("127.0.0.1", %d))])'''


class Environment(harness.Case):
	def run_with(self, argv, variables):
		env = {name.encode(): value.encode() for name, value in self.environment().items()}
		env.update({name.encode(): value for name, value in variables.items()})
		# Bytes that are no text, as Popen takes them.
		env = {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()}
		return self.run_program(argv, library=False, extra=env)

	def assertSilent(self, variables):
		result = self.run_with(['true'], variables)
		self.assertEqual((result.returncode, result.text), (0, ''), result)

	def test_any_variable_and_any_value(self):
		for rules in ({}, {'GOOD': '127.0.0.1:1'}):
			self.rules = rules
			for variable in VARIABLES:
				for what, value in VALUES.items():
					with self.subTest(variable=variable, value=what, beside=rules):
						self.assertSilent({variable: value})

	def test_all_at_once(self):
		for what, value in VALUES.items():
			with self.subTest(what):
				# All strings together have a limit, too.
				self.assertSilent({variable: value[:60000] for variable in VARIABLES})

	def test_very_many_rules(self):
		self.assertSilent({f'SHUNT_BREAK_N{i}': b'host%d.test:%d' % (i, i + 1) for i in range(2000)})
		self.assertSilent({f'SHUNT_BREAK_B{i}': b'nonsense sleep=%d' % i for i in range(2000)})

	def test_odd_names(self):
		names = ('SHUNT_', 'SHUNT_BREAK_' + 'N' * 5000, 'SHUNT_BREAK_\udcff', 'SHUNT_BREAK_a b', 'SHUNT_BREAKX', 'shunt_break',
			'SHUNT_BREAK__', 'SHUNT_BREAK_%s%n')
		for name in names:
			with self.subTest(name[:40]):
				env = dict(self.environment(), **{name: 'one.test sleep=5s'})
				result = self.run_program(['true'], library=False, extra=env)
				self.assertEqual((result.returncode, result.text), (0, ''), result)

	def test_places_where_nothing_can_be(self):
		"""Breakers are then the process's own, lines are lost, and it is guarded all the same."""
		fifo = self.scratch + '/fifo'
		os.mkfifo(fifo)
		for variable in ('SHUNT_STATE', 'SHUNT_LOG', 'SHUNT_CONF'):
			for place in (*PLACES, os.fsencode(fifo)):
				with self.subTest(variable=variable, place=place):
					# One of its own: a value that is no path may leave the user's own segment in use.
					target = self.server()
					self.rules = {'T': f'127.0.0.1:{target.port} volume=1 sleep=1h'}
					witness = self.wire(target.port)
					result = self.run_with([harness.PYTHON, '-c', CONNECT % target.port], {variable: place})
					self.assertEqual((result.returncode, result.stdout, result.stderr), (0, 'ECONNREFUSED\n' * 3, ''))
					if not harness.BARE:
						self.assertEqual(len(witness.attempts()), 1)


if __name__ == '__main__':
	harness.main()
