# SPDX-License-Identifier: MIT
"""Programs built with sanitizers: with the library they print the same and are as clean as without, whichever
compiler made them, and whether the sanitizer's runtime is in the program or beside it. Programs that take
long are left out unless E2E_ALL=1."""
import concurrent.futures
import os
import re
import subprocess
import tempfile

import harness
import company

FLAGS = ['-w', '-g', '-O1', '-fno-omit-frame-pointer', '-std=gnu17', '-D_GNU_SOURCE', '-I' + harness.ROOT,
	'-U_FORTIFY_SOURCE']
CLOSED = 'any volume=1000000'

# What a sanitizer finds, or its runtime cannot bear, in the programs themselves.
EXCEPTED = {
	'lifetimes births_on_old_numbers': 'it keeps nothing of opendir() but the descriptor',
	'lifetimes births_on_cut_numbers': 'it keeps nothing of opendir() but the descriptor',
	'fortified overruns': 'it overruns, on purpose',
	'waits bad_arguments': 'it polls more than it has',
	'stacks used': 'its threads are left by longjmp, with what getaddrinfo gave them',
	'stacks least': 'its threads are left by longjmp, with what getaddrinfo gave them',
	'processes child_has_child': 'the runtime cannot bear a vfork within a vfork',
	'threads unshares': 'the runtime has a thread of its own',
	'names two_names_of_one_address': 'it needs an /etc/hosts of its own',
}

# They print counts that hang on the time it took.
LOOSE = ('storm', 'children')
# They take their time: only where all is asked for.
LONG = ('storm', 'children', 'cancels', 'stacks', 'threads', 'filters', 'names')

SOURCES = {
	'clients': (['tests/programs/company/clients.c'], []),
	'calls': (['tests/programs/company/calls.c', 'shim/raw.c'], ['-U_FILE_OFFSET_BITS']),
}


def programs():
	"""All of tests/programs, with their arguments to the compiler."""
	with open(os.path.join(harness.PROGRAMS, 'meson.build'), encoding='utf-8') as file:
		found = re.findall(r"^\t'(\w+)': \[(.*)\],$", file.read(), re.M)
	shared = ['tests/programs/scene.c', 'tests/programs/report.c']
	return {name: ([f'tests/programs/{name}.c', *shared], re.findall(r"'([^']+)'", arguments))
		for name, arguments in found}


SOURCES.update(programs())
ALL = os.environ.get('E2E_ALL') == '1'
NAMES = tuple(name for name in SOURCES if ALL or name not in LONG)


def finding(text):
	"""The first line of what a sanitizer has to say."""
	match = re.search(r'^.*(?:(?:ERROR|WARNING): \w*Sanitizer|runtime error: |^Sanitizer).*$', text, re.M)
	return match and match[0]


class _Host(harness.Case):
	"""A way to build; `runtime` must be loaded before the library."""

	compiler = 'gcc'
	flags = ()
	runtime = None
	names = ()

	@classmethod
	def setUpClass(cls):
		cls.directory = tempfile.TemporaryDirectory(prefix='shunt-sanitized-')
		cls.addClassCleanup(cls.directory.cleanup)
		cls.missing = None
		if not harness.find_program(cls.compiler):
			cls.missing = f'{cls.compiler} is missing'
			return
		if cls.runtime:
			path = subprocess.run([cls.compiler, f'-print-file-name={cls.runtime}'], check=True,
				capture_output=True, text=True).stdout.strip()
			if not os.path.exists(path):
				cls.missing = f'{cls.runtime} is missing'
				return
			cls.runtime_path = os.path.realpath(path)
		with concurrent.futures.ThreadPoolExecutor(2) as pool:
			list(pool.map(cls.compile, cls.names))

	@classmethod
	def compile(cls, name):
		sources, arguments = SOURCES[name]
		subprocess.run([cls.compiler, *FLAGS, *arguments, *cls.flags, *(os.path.join(harness.ROOT, s) for s in sources),
			'-o', cls.path(name), '-lpthread', '-ldl'], check=True)

	@classmethod
	def path(cls, name):
		return os.path.join(cls.directory.name, name)

	def setUp(self):
		super().setUp()
		if self.missing:
			self.skipTest(self.missing)

	def run_host(self, argv, library=True, **keywords):
		preloads = [self.runtime_path] if self.runtime else []
		preloads += [harness.LIBRARY] if library and not harness.BARE else []
		extra = {
			'LD_PRELOAD': ' '.join(preloads),
			'ASAN_OPTIONS': 'detect_leaks=1:detect_stack_use_after_return=1:handle_segv=0',
			'UBSAN_OPTIONS': 'print_stacktrace=1',
			'TSAN_OPTIONS': 'die_after_fork=0:report_signal_unsafe=0',
		}
		return self.run_program(argv, library=library, extra=extra, timeout=150, **keywords)

	def scenes(self, name):
		usage = self.run_host([self.path(name)], library=False).stderr
		match = re.search(r'all\|(\S+) \[PORT\]', usage)
		self.assertIsNotNone(match, usage)
		return match[1].split('|')

	def check(self, argv, rules, is_loose=False):
		self.rules = rules
		self._remove_state()
		bare, ours = self.run_host(argv, library=False), self.run_host(argv)
		self.assertIsNone(finding(bare.text), bare.text[:3000])
		self.assertIsNone(finding(ours.text), ours.text[:3000])
		self.assertEqual((bare.returncode, ours.returncode), (0, 0), ours)
		if not is_loose:
			self.assertEqual((company.steady(ours.stdout), company.steady(ours.stderr)), (company.steady(bare.stdout), company.steady(bare.stderr)))

	def check_programs(self, names):
		for name in names:
			scenes = self.scenes(name)
			excepted = [scene for scene in scenes if f'{name} {scene}' in EXCEPTED]
			for scene in [s for s in scenes if s not in excepted] if excepted else ['all']:
				with self.subTest(program=name, scene=scene):
					self.check([self.path(name), scene], {'T': CLOSED}, is_loose=name in LOOSE)

	def check_clients(self):
		"""Threads, with a circuit that is closed, and with one that opens and tries again all the time."""
		target = self.server()
		argv = [self.path('clients'), str(target.port), '8', '25']
		rules = {'T': f'127.0.0.1:{target.port} volume=1 sleep=2ms'}
		self.check(argv, rules)
		if not harness.BARE:
			totals = self.cell(name='T')['totals']
			self.assertGreater(totals['short_circuited'], 0)
			self.assertEqual(totals['success'], 0)
		target.healthy()
		self.check(argv, rules)
		self.assertTotals({'success': 200, 'failure': 0}, name='T')


class Gcc(_Host):
	flags = ['-fsanitize=address,undefined']
	runtime = 'libasan.so'
	names = NAMES

	def test_programs(self):
		self.check_programs([name for name in NAMES if name in programs()])

	def test_threads(self):
		self.check_clients()

	def test_calls_of_any_kind(self):
		result = self.run_host([self.path('calls')])
		self.assertEqual(result.returncode, 0, result)
		self.assertIsNone(finding(result.text), result.text)

	def test_runtime_that_does_not_come_first(self):
		"""Said by the runtime itself, with us as with any other preload."""
		others = {'ours': harness.LIBRARY, 'another': company.library('writer')}
		for name, path in others.items():
			with self.subTest(name):
				result = self.run_program([self.path('clients'), '9', '1', '1'], library=False,
					extra={'LD_PRELOAD': path})
				self.assertNotEqual(result.returncode, 0)
				self.assertIn('ASan runtime does not come first in initial library list', result.stderr)


class GccStatic(_Host):
	flags = ['-fsanitize=address,undefined', '-static-libasan', '-static-libubsan']
	names = ('clients', 'transfers', 'children')

	def test_programs(self):
		self.check_programs(('transfers', 'children'))

	def test_threads(self):
		self.check_clients()


class Clang(_Host):
	"""Its runtime is in the program, by default."""

	compiler = 'clang'
	flags = ['-fsanitize=address,undefined']
	names = NAMES

	def test_programs(self):
		self.check_programs([name for name in NAMES if name in programs()])

	def test_threads(self):
		self.check_clients()

	def test_calls_of_any_kind(self):
		result = self.run_host([self.path('calls')])
		self.assertEqual(result.returncode, 0, result)
		self.assertIsNone(finding(result.text), result.text)


class GccUndefined(_Host):
	flags = ['-fsanitize=undefined']
	names = ('clients',)

	def test_threads(self):
		self.check_clients()


class GccThread(_Host):
	flags = ['-fsanitize=thread']
	runtime = 'libtsan.so'
	names = ('clients',)

	def test_threads(self):
		self.check_clients()


class ClangThread(_Host):
	compiler = 'clang'
	flags = ['-fsanitize=thread']
	names = ('clients',)

	def test_threads(self):
		self.check_clients()


class Instrumented(harness.Case):
	"""The other way round: the library itself under both sanitizers, in programs that know nothing of it."""

	def runtime(self, name):
		path = subprocess.run(['gcc', f'-print-file-name={name}'], check=True, capture_output=True, text=True).stdout.strip()
		return os.path.realpath(path)

	def test_programs(self):
		directory = self.scratch + '/build'
		for argv in (['meson', 'setup', directory, harness.ROOT, '-Dtests=false', '-Db_sanitize=address,undefined',
				'-Db_lundef=false'], ['ninja', '-C', directory, '-j', '2', 'shim/libshunt.so']):
			subprocess.run(argv, env=dict(os.environ, CC='gcc'), check=True, stdout=subprocess.DEVNULL)
		preload = ' '.join([self.runtime('libasan.so'), self.runtime('libubsan.so'), directory + '/shim/libshunt.so'])
		self.settings = {'SHUNT_LOG': self.scratch + '/log'}
		for name in programs():
			# What the runtime cannot bear, needs more than a port, or takes minutes.
			if name in ('processes', 'waits', 'names', 'stacks', 'filters'):
				continue
			# Refusals all the time, or none at all: a program that cannot go on says so and ends with 99.
			for rule in (CLOSED, 'any volume=1 sleep=1ms'):
				with self.subTest(program=name, rule=rule):
					self.rules = {'T': rule}
					self._remove_state()
					result = self.run_program([company.program(name), 'all'], timeout=150,
						extra={'LD_PRELOAD': preload, 'ASAN_OPTIONS': 'detect_leaks=0'})
					self.assertIsNone(finding(result.text), result.text[:3000])
					self.assertIn(result.returncode, (0,) if rule == CLOSED else (0, 99), result)


if not ALL:
	del Instrumented

if __name__ == '__main__':
	harness.main()
