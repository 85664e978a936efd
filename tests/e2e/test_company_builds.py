# SPDX-License-Identifier: MIT
"""The library works whichever compiler built it, at whatever level: what it does with stacks, return addresses
and thread-local storage hangs on neither. Two builds; all of them with E2E_ALL=1."""
import os
import subprocess
import tempfile

import harness
import company

ALL = os.environ.get('E2E_ALL') == '1'

LEVELS = {
	'O0': ['-Doptimization=0'],
	'O2': ['-Doptimization=2'],
	'O3': ['-Doptimization=3'],
	'Os': ['-Doptimization=s'],
	'LTO': ['-Doptimization=2', '-Db_lto=true'],
	'O2 without debugging': ['-Doptimization=2', '-Ddebug=false', '-Dstrip=true'],
}
BUILDS = [(compiler, level) for compiler in ('gcc', 'clang') for level in LEVELS] if ALL \
	else [('gcc', 'O0'), ('clang', 'O3')]

# Programs whose scenes go through what a compiler may get wrong: two returns from vfork, tail calls, all six
# arguments, frames on small stacks.
PROGRAMS = ('processes', 'transfers', 'attempts')


class Builds(harness.Case):
	def build(self, compiler, level):
		directory = tempfile.mkdtemp(dir=self.scratch)
		options = LEVELS[level]
		env = dict(os.environ, CC=compiler)
		if level == 'LTO' and compiler == 'clang':
			if not harness.find_program('ld.lld'):
				self.skipTest('clang needs a linker of its own for this (Debian: apt install lld)')
			env['CC_LD'] = 'lld'
		for argv in (['meson', 'setup', directory, harness.ROOT, '-Dtests=false', *options],
				['ninja', '-C', directory, '-j', '2', 'shim/libshunt.so']):
			result = subprocess.run(argv, env=env, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
			self.assertEqual(result.returncode, 0, result.stdout[-3000:])
		return directory + '/shim/libshunt.so'

	def check(self, compiler, level):
		if not harness.find_program(compiler):
			self.skipTest(f'{compiler} is missing')
		library = self.build(compiler, level)
		self.check_curl(library)
		self.check_programs(library)

	def run_with(self, library, argv):
		return self.run_program(argv, library=not harness.BARE, extra={} if harness.BARE else {'LD_PRELOAD': library})

	def check_curl(self, library):
		target = self.server()
		argv = ['curl', '-sS', f'http://127.0.0.1:{target.port}/']
		self.rules = {'T': f'127.0.0.1:{target.port} volume=1 sleep=1h'}
		self.assertEqual(repr(self.run_with(library, ['/bin/true']))[:5], '[rc 0')
		for _ in range(2):
			self.assertEqual(self.run_with(library, argv).returncode, 7)
		self.assertTotals({'failure': 1, 'short_circuited': 1}, name='T')
		target.healthy()
		self._remove_state()
		result = self.run_with(library, argv)
		self.assertEqual((result.returncode, result.text), (0, 'hello from the server\n'), result)
		self.assertTotals({'success': 1}, name='T')

	def check_programs(self, library):
		self.rules = {'T': 'any volume=1000000'}
		for argv in [[company.program(name), 'all'] for name in PROGRAMS] + [[company.built('company_calls')]]:
			with self.subTest(argv[0]):
				bare, ours = self.run_program(argv, library=False), self.run_with(library, argv)
				self.assertEqual((ours.returncode, company.steady(ours.stdout), company.steady(ours.stderr)),
					(0, company.steady(bare.stdout), company.steady(bare.stderr)))


def add_builds():
	for compiler, level in BUILDS:
		def check(self, compiler=compiler, level=level):
			self.check(compiler, level)
		setattr(Builds, f'test_{compiler}_{level}'.replace(' ', '_'), check)


add_builds()

if __name__ == '__main__':
	harness.main()
