# SPDX-License-Identifier: MIT
"""Real programs at real work, once bare and once through the library: the same bytes, the same exit code.

A row names a program, the healthy server it works on, and a command. The library's run goes through
`shunt run` with a rule for that server, and what its segment says afterwards is part of the test: the rule
matched, calls succeeded, none failed or timed out, the circuit is closed.
"""
import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import typing
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), 'e2e'))

import harness  # noqa: E402
import named_filters  # noqa: E402
from daemons import find  # noqa: E402

PROGRAMS = os.path.join(HERE, 'programs')
UNTOUCHED = 'untouched'
# Errors that a healthy server gives nobody.
NEVER = ('failure', 'timeout', 'rejected', 'short_circuited', 'trips', 'late')


@dataclasses.dataclass
class Row:
	program: str
	did: str                       # what it did, for people
	command: str                   # for bash; a single program replaces bash
	on: str = 'web'                # the server, a name in backends.py
	port: str = 'PORT'             # which of the server's ports the rule names
	rule: str = '127.0.0.1:{port}'
	calls: typing.Any = None       # how many calls must have succeeded, exactly; or UNTOUCHED
	shows: str = ''                # what stdout must contain, so that a row cannot fail alike twice
	code: int = 0
	compared: typing.Optional[named_filters.Filter] = None
	needs: tuple = ()              # executables, where the program's name is not one
	package: str = ''              # where the program comes from, if not from a package of its name
	before: str = ''               # run bare before each run, so that both find the same world
	server: str = ''               # the row is a server: `command` is its client and runs bare
	ends: bool = True              # is that server's exit code the same from one bare run to the next?
	user: typing.Optional[str] = None  # who runs it, and may read the segment
	timeout: int = 90

	@property
	def name(self):
		return f'{self.program}: {self.did}'

	def executables(self):
		return self.needs or (self.program,)


class Answer(typing.NamedTuple):
	code: int
	stdout: bytes
	stderr: bytes

	def __str__(self):
		return f'exit {self.code}, {self.stdout[-600:]!r}, {self.stderr[-600:]!r}'


def difference(bare, ours):
	"""What is not the same, from the first byte on that differs."""
	for name in Answer._fields:
		one, other = getattr(bare, name), getattr(ours, name)
		if one != other and name != 'code':
			start = max(0, len(os.path.commonprefix([one, other])) - 40)
			yield f'{name} from byte {start} on: bare {one[start:start + 300]!r}, with the library {other[start:start + 300]!r}'
		elif one != other:
			yield f'exit code: bare {one}, with the library {other}'


class Matrix(harness.Case):
	"""A file of rows makes a subclass of this with `cases()`."""

	results = []
	backends = None

	def setUp(self):
		super().setUp()
		if harness.BARE:
			self.skipTest('compares with bare runs by itself')
		# Both runs have the same directory, whose name programs may print.
		self.base = self.scratch
		self.scratch = os.path.join(self.base, 'run')

	def check(self, row):
		"""One line of the table, whatever comes of it."""
		line = {'program': row.program, 'package': row.package or row.program, 'did': row.did, 'bytes': '', 'code': '',
			'calls': '', 'same': 'NO', 'compared': row.compared.name if row.compared else 'all bytes'}
		self.results.append(line)
		try:
			line.update(self.compare(row), same='yes')
		except unittest.SkipTest as reason:
			line['same'] = f'skipped: {reason}'
			raise

	def compare(self, row):
		for name in row.executables():
			if find(name) is None:
				self.skipTest(f'no {name} on this machine')
		try:
			self.variables = dict(self.backends.get(row.on).variables())
		except FileNotFoundError as error:
			self.skipTest(f'no {error.args[-1]} on this machine')
		self.variables.update(PROGRAMS=PROGRAMS, PYTHONDONTWRITEBYTECODE='1')
		port = self.variables[row.port]
		# A machine that is busy is no server that hangs.
		self.rules['TARGET'] = row.rule.format(port=port) + ' abandon=20s'
		bare = self.run_row(row, library=False)
		self.assertEqual(bare.code, row.code, bare)
		if row.code == 0:
			self.assertRegex(bare.stdout.decode(errors='replace'), row.shows or '.', bare)
		ours = self.run_row(row, library=True)
		status = self.status_of(row)
		self.assertSame(row, bare, ours)
		calls = self.assertCounted(row, status)
		return {'bytes': len(ours.stdout) + len(ours.stderr), 'code': ours.code, 'calls': calls}

	def assertSame(self, row, bare, ours):
		narrow = row.compared or (lambda data: data)

		def narrowed(answer):
			return Answer(answer.code, narrow(answer.stdout), narrow(answer.stderr))
		bare, ours = narrowed(bare), narrowed(ours)
		if bare != ours:
			steady = narrowed(self.run_row(row, library=False)) == bare
			self.fail('\n'.join(['bare runs agree with each other' if steady else 'bare runs differ, too',
				*difference(bare, ours)]))

	def assertCounted(self, row, status):
		"""Was the library at work, and did it see a healthy server? Returns the calls it counted."""
		rules = {rule['name']: rule for rule in status['rules']}
		cells = [c for c in status['cells'] if c['name'] == 'TARGET' and c['kind'] == 'connection']
		totals = {key: sum(c['totals'][key] for c in cells) for key in harness.TOTALS}
		if row.calls == UNTOUCHED:
			self.assertFalse(any(totals.values()), totals)
			return 0
		self.assertGreater(rules['TARGET']['matched'], 0, status)
		self.assertEqual({key: totals[key] for key in NEVER if totals[key]}, {}, cells)
		self.assertEqual({c['state'] for c in cells}, {'closed'}, cells)
		self.assertEqual(status['overflow'], 0)
		self.assertEqual(sum(c['in_flight'] for c in cells), 0, cells)
		if row.calls is None:
			self.assertGreater(totals['success'], 0, cells)
		else:
			self.assertEqual(totals['success'], row.calls, totals)
		return totals['success']

	# One run.

	def run_row(self, row, library):
		shutil.rmtree(self.scratch, ignore_errors=True)
		os.mkdir(self.scratch, 0o755)
		if row.user and os.geteuid() == 0:
			os.chmod(self.base, 0o755)
			shutil.chown(self.scratch, row.user)
		extra = dict(self.variables)
		if row.before:
			subprocess.run(['bash', '-ec', row.before], env=self.environment(False, extra), cwd=self.scratch,
				check=True, stdin=subprocess.DEVNULL, capture_output=True)
		if row.server:
			return self.run_server(row, library, extra)
		return self.ask(row, library, extra)

	def ask(self, row, library, extra):
		argv = ['bash', '-c', row.command]
		if library:
			argv = [harness.SHUNT, 'run', '--', *argv]
			extra = {**extra, **self.shunt_variables()}
		# `run` brings the library; the environment must not.
		process = self.start(argv, library=False, extra=extra, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
			stderr=subprocess.PIPE)
		try:
			out, err = process.communicate(timeout=row.timeout)
		except subprocess.TimeoutExpired:
			self.stop(process)
			out, err = b'', b''
			self.fail(f'still running after {row.timeout} s: {row.command}')
		return Answer(process.returncode, out, err)

	def run_server(self, row, library, extra):
		"""The server under test has the library; its client, and what it says, tell how it did."""
		extra['FRONT'] = str(self.backends.free_port())
		extra['FRONT_URL'] = f'http://127.0.0.1:{extra["FRONT"]}'
		as_user = self.backends.as_user(row.user)
		log = os.path.join(self.base, 'log')
		with open(log, 'wb') as file:
			server = self.start(['bash', '-c', row.server], library=library, extra=extra, stdin=subprocess.DEVNULL,
				stdout=file, stderr=file, **as_user)
		self.backends.wait_for(int(extra['FRONT']), server, log)
		answer = self.ask(row, False, extra)
		server.terminate()
		try:
			server.wait(30)
		except subprocess.TimeoutExpired:
			self.stop(server)
			self.fail('the server does not end')
		ended = b'the server ended with %d\n' % server.returncode if row.ends else b''
		return answer._replace(stderr=answer.stderr + ended)

	def status_of(self, row):
		argv = [harness.SHUNT, 'status', '--json', '--all']
		# A segment is private to its user.
		result = subprocess.run(argv, env=self.environment(False, self.shunt_variables()), capture_output=True,
			check=True, timeout=60, **self.backends.as_user(row.user))
		return json.loads(result.stdout)


def cases(rows, backends, module):
	"""A test for each row, in a class called as the file is."""
	def test_of(row):
		return lambda self: self.check(row)
	group = os.path.basename(module.__file__)[:-3].split('_', 1)[-1].capitalize()
	made = type(group, (Matrix,), {'backends': backends, 'results': [], '__module__': module.__name__,
		'setUpClass': classmethod(lambda cls: cls.addClassCleanup(backends.close))})
	for row in rows:
		name = 'test_' + re.sub(r'\W+', '_', row.name).strip('_')
		assert not hasattr(made, name), f'two rows are called {row.name}'
		setattr(made, name, test_of(row))
	return group, made


def main(rows):
	"""Runs the rows of a file, or those that an argument names. With MATRIX_RESULTS set, what came of them
	goes to a file there, from which table.py makes the table."""
	from backends import Backends  # pylint: disable=import-outside-toplevel
	module = sys.modules['__main__']
	group, made = cases(rows, Backends(), module)
	setattr(module, group, made)
	# In the order of the rows, which share servers.
	order = ['test_' + re.sub(r'\W+', '_', row.name).strip('_') for row in rows]
	unittest.defaultTestLoader.sortTestMethodsUsing = lambda a, b: order.index(a) - order.index(b)
	try:
		harness.main()
	finally:
		directory = os.environ.get('MATRIX_RESULTS')
		if directory and not sys.argv[1:]:
			os.makedirs(directory, exist_ok=True)
			with open(os.path.join(directory, group.lower() + '.json'), 'w', encoding='utf-8') as file:
				json.dump(made.results, file, indent=1)
