# SPDX-License-Identifier: MIT
"""Runs a small client of tests/programs bare and with the library, and compares all that can be seen of it:
output, how it ended, the result and errno of every call it prints, the system calls it made, and what it
is left with (tests/programs/report.h). Any difference is a failure.

	class Attempts(parity.Program):
		program = 'attempts'

	parity.add_scenes(Attempts)

gives a test per scene of program_attempts, and one for its end. Each way (WAYS) is run once for all of them.
"""
import collections
import dataclasses
import os
import re
import shutil
import subprocess
import unittest

import harness

PROGRAMS = os.environ.get('E2E_PROGRAMS',
	os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(harness.LIBRARY))), 'tests', 'programs'))

# For programs that mark no scenes (tests/programs/mark.c): all they do in main() is one.
MARK = os.path.join(PROGRAMS, 'libmark.so')
MAIN = 'main'

# Rules by which a program whose target is well must be as without the library. All but the first two judge
# every connection and lookup of a client; no window is ever full enough to trip.
CLOSED = 'any volume=1000000'
OPENS = 'any per=rule consecutive=1 sleep=1h'
WAYS = {
	'no rule': {},
	'a rule that matches nothing': {'OTHER': '192.0.2.1:9'},
	'a rule whose circuit is closed': {'TARGET': CLOSED},
	'an open circuit for another port': {'OTHER': '127.0.0.1:1 force=open', 'TARGET': CLOSED},
}

# Scheduling alone decides how often threads make these.
OF_THREADS = frozenset({'futex', 'sched_yield', 'mmap', 'munmap', 'mprotect', 'madvise', 'brk', 'rseq',
	'set_robust_list', 'rt_sigprocmask', 'restart_syscall'})

END = 'the end'
PROCESS = 'the process'

_CALL = re.compile(r'(\w+)\(')
_MARK = re.compile(r'(?:access|faccessat2?)\((?:AT_FDCWD, )?"/scene/(\w+)/([^"]*)"')
# By strace itself, of an argument that does not lie wholly in memory.
_COMPLAINT = re.compile(r'^strace: umoven: .*\n', re.M)
_RESUMED = re.compile(r'<\.\.\. (\w+) resumed>')
_RESULT = re.compile(r'= (\?|-?\d+|0x[0-9a-f]+)(?: (E[A-Z0-9]+))?[^=]*$')


def program_path(name):
	return os.path.join(PROGRAMS, 'program_' + name)


def scene_names(name):
	"""As the program itself lists them."""
	path = program_path(name)
	usage = subprocess.run([path], check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True).stderr
	match = re.search(r'all\|(\S+) \[PORT\]', usage)
	if not match:
		raise AssertionError(f'{path} lists no scenes: {usage}')
	return match[1].split('|')


class Trace:
	"""What strace -f wrote, as a multiset of `NAME RESULT` per scene. Only what follows a mark that a scene
	begins is counted: not the loader, not the constructors, not what a program that was executed does
	until it marks one itself, and then that is a scene within the scene."""

	def __init__(self, text):
		self.scenes = {}
		self._stack = []
		self._deaf = set()
		self._waiting = {}
		for line in text.splitlines():
			pid, _, rest = line.partition(' ')
			self._read(pid, rest.strip())

	def _read(self, pid, line):
		mark = _MARK.match(line)
		if mark:
			self._marked(pid, mark[1], mark[2])
		elif line.startswith('<... '):
			name = _RESUMED.match(line)[1]
			if self._waiting.pop(pid, None) == name:
				self._count(pid, name, line)
		elif _CALL.match(line):
			name = _CALL.match(line)[1]
			if line.endswith('<unfinished ...>'):
				self._waiting[pid] = name if self._counts(pid) else None
			elif self._counts(pid):
				self._count(pid, name, line)
		elif line.startswith('+++ ') and self._waiting.get(pid):
			self._count(pid, self._waiting.pop(pid), '= ?')

	def _marked(self, pid, what, name):
		if what in ('begins', 'leaves', 'resumes'):
			self._deaf.discard(pid)
		if what in ('begins', 'leaves'):
			self._stack.append(self.scenes.setdefault(name if what == 'begins' else END, collections.Counter()))
		elif what == 'ends':
			self._stack.pop()
		if what in ('ends', 'pauses'):
			self._deaf.add(pid)

	def _counts(self, pid):
		return bool(self._stack) and pid not in self._deaf

	def _count(self, pid, name, line):
		result = _RESULT.search(line)
		if not self._stack:
			return
		what = '?' if not result or result[1] == '?' else result[2] or 'ok'
		self._stack[-1][f'{name} {what}'] += 1
		if name in ('execve', 'execveat') and what == 'ok':
			self._deaf.add(pid)


@dataclasses.dataclass
class Run:
	"""One run of a program: how it ended, what it printed, also by scene, the calls it made by scene, and what the
	breaker knows after it."""
	returncode: int
	stdout: str
	stderr: str
	texts: dict
	calls: dict
	status: dict


def _by_scene(text):
	"""The parts of an output, by their headings."""
	parts = collections.defaultdict(str)
	name = ''
	for line in text.splitlines(keepends=True):
		if line.startswith('-- '):
			name = line[3:].strip()
		else:
			parts[name] += line
	return dict(parts)


def _trace_prefix(path, variables):
	"""strace that gives `variables` to the program alone."""
	return ['strace', '-f', '-qq', '-e', 'signal=none', '-s', '128', '-o', path] + \
		[x for pair in variables.items() for x in ('-E', '='.join(pair))]


def run(argv, rules=None, settings=None, library=True, traced=True, marked=False, **keywords):
	"""Runs a program with a segment of its own, and all that can be told of it. Without strace, or where it may
	not trace, `calls` is None. `marked`: one that marks no scenes."""
	case = harness.Case()
	case.setUp()
	try:
		case.rules, case.settings = dict(rules or {}), dict(settings or {})
		library = library and not harness.BARE
		variables = case.shunt_variables() | {'LD_PRELOAD': harness.LIBRARY} if library else {}
		if marked:
			variables['LD_PRELOAD'] = f'{MARK}:{harness.LIBRARY}' if library else MARK
		trace = os.path.join(case.scratch, 'trace')
		if traced and can_trace():
			result = case.run_program(_trace_prefix(trace, variables) + list(argv), library=False, **keywords)
			with open(trace, encoding='utf-8', errors='replace') as file:
				seen = Trace(file.read())
		else:
			result, seen = case.run_program(argv, library=library, **keywords), None
		# Each run has a directory of its own.
		out, err = (text.replace(case.scratch, 'SCRATCH') for text in (result.stdout, result.stderr))
		err = _COMPLAINT.sub('', err)
		status = case.status('--all') if library and os.path.exists(case.state) else None
		return Run(result.returncode, out, err, _by_scene(out), seen.scenes if seen else None, status)
	finally:
		case.doCleanups()


_may_trace = []


def can_trace():
	if not _may_trace:
		_may_trace.append(bool(shutil.which('strace')) and subprocess.run(['strace', '-o', '/dev/null', 'true'],
			check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0)
	return _may_trace[0]


def without(calls, names):
	return {call: count for call, count in calls.items() if call.split()[0] not in names}


def difference(bare, ours):
	"""`+1 getsockopt ok` for each call that was made more often, or less, than bare."""
	return [f'{ours.get(call, 0) - bare.get(call, 0):+d} {call}' for call in sorted({*bare, *ours})
		if ours.get(call, 0) != bare.get(call, 0)]


def totals(status):
	"""Of all connections' cells together."""
	sums = collections.Counter()
	for cell in status['cells'] if status else []:
		if cell['kind'] == 'connection':
			sums.update({key: value for key, value in cell['totals'].items() if value})
	return sums


class Program(unittest.TestCase):
	"""A program of scenes; subclasses name it and what is special about it."""

	program = None
	ways = WAYS
	# By scene: system calls whose number hangs on scheduling.
	loose = {}
	# Scenes that print the same even where every circuit is open: they would be refused anyway.
	refused = ()
	# Scenes with one refused connect, after which no connection is asked anything any more: what they print
	# is the same where that opens all circuits.
	opening = ()
	# What a scene by itself comes to, in totals of the one circuit that all its calls share.
	counts = {}
	keywords = {}
	maxDiff = None

	@classmethod
	def setUpClass(cls):
		argv = [program_path(cls.program), 'all']
		runs = [lambda: run(argv, library=False, **cls.keywords)]
		runs += [lambda rules=rules: run(argv, rules, **cls.keywords) for rules in cls.ways.values()]
		cls.bare, *ours = harness.side_by_side(runs)
		cls.ours = dict(zip(cls.ways, ours))

	def check_scene(self, name):
		self.assertIn(name, self.bare.texts)
		for way, ours in self.ours.items():
			with self.subTest(way):
				self.assertEqual(ours.texts.get(name), self.bare.texts[name])
				for part in [name] + [part for part in self.bare.calls or () if part == 'then_' + name]:
					self.check_calls(part, ours)
		if name in self.refused:
			self.check_refused(name)
		if name in self.opening:
			self.check_opening(name)
		if name in self.counts and not harness.BARE:
			self.check_counts(name)
		for reason in re.findall(r'^cannot be tried: (.*)$', self.bare.texts[name], re.M):
			self.skipTest(reason)

	def check_calls(self, name, ours):
		if self.bare.calls is None:
			return
		loose = self.loose.get(name, ())
		bare = without(self.bare.calls[name], loose)
		self.assertEqual(difference(bare, without(ours.calls.get(name, {}), loose)), [])

	def check_alone(self, name, rule, **settings):
		"""A scene by itself, by a rule under which the target itself may be refused."""
		argv = [program_path(self.program), name]
		bare = run(argv, library=False, traced=False, **self.keywords)
		ours = run(argv, {'TARGET': rule}, settings, traced=False, **self.keywords)
		self.assertEqual(ours.texts[name], bare.texts[name])
		return ours

	def check_refused(self, name):
		with self.subTest('every circuit is open'):
			self.check_alone(name, 'any force=open')

	def check_opening(self, name):
		with self.subTest('every circuit opens'):
			ours = self.check_alone(name, OPENS)
			if not harness.BARE:
				self.assertEqual(totals(ours.status)['trips'], 1)

	def check_counts(self, name):
		"""A machine that stands still for the second in which a silent connection is a fresh one makes other
		counts, and all but never thrice."""
		for _ in range(3):
			status = self.check_alone(name, CLOSED + ' per=rule abandon=60s').status
			if dict(totals(status)) == self.counts[name]:
				break
		with self.subTest('what was counted'):
			self.assertEqual(dict(totals(status)), self.counts[name])
			self.assertEqual([cell['in_flight'] for cell in status['cells'] if cell['in_flight']], [])

	def check_end(self):
		"""How the process ended, and what it was left with."""
		self.assertEqual(self.bare.returncode, 0, self.bare)
		for way, ours in self.ours.items():
			with self.subTest(way):
				self.assertEqual((ours.returncode, ours.stderr), (0, self.bare.stderr))
				self.assertEqual(ours.texts[PROCESS], self.bare.texts[PROCESS])
				self.check_calls(END, ours)

	def check_library_was_there(self):
		"""Or all of this would show nothing."""
		if harness.BARE:
			return
		for way, ours in self.ours.items():
			if 'TARGET' in self.ways[way]:
				rules = {rule['name']: rule['matched'] for rule in ours.status['rules']}
				self.assertGreater(rules['TARGET'], 0, way)


def add_scenes(program_class):
	"""A test for each scene of the program, for its end, and for that the library had something to do."""
	for name in scene_names(program_class.program):
		def check(self, name=name):
			self.check_scene(name)
		setattr(program_class, 'test_' + name, check)
	program_class.test_zz_the_end = lambda self: self.check_end()
	program_class.test_zz_the_library_was_there = lambda self: self.check_library_was_there()
	return program_class
