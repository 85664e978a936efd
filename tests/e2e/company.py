# SPDX-License-Identifier: MIT
"""Who else is loaded into a program: where other preloads are, and the clients that are run with them."""
import os
import re

import harness
import daemons

BUILT = os.path.join(os.environ.get('E2E_PROGRAMS',
	os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(harness.LIBRARY))), 'tests', 'programs')), 'company')

# The name under which the library itself stands in a list of preloads.
OURS = 'ours'

_LIBRARIES = {
	'jemalloc': ('libjemalloc.so.2',),
	'tcmalloc': ('libtcmalloc_minimal.so.4',),
	'faketime': ('faketime/libfaketime.so.1',),
	'faketimeMT': ('faketime/libfaketimeMT.so.1',),
	'eatmydata': ('libeatmydata.so.1', 'libeatmydata.so'),
}
_PACKAGES = {'jemalloc': 'libjemalloc2', 'tcmalloc': 'libtcmalloc-minimal4', 'faketime': 'libfaketime',
	'faketimeMT': 'libfaketime', 'eatmydata': 'libeatmydata1'}


def built(name):
	"""Path of what tests/programs/company has built."""
	return os.path.join(BUILT, name)


def program(name):
	"""Path of a program of tests/programs itself."""
	return os.path.join(os.path.dirname(BUILT), 'program_' + name)


def library(name):
	"""Path of a preload, or None."""
	if name == OURS:
		return harness.LIBRARY
	if name in ('writer', 'early'):
		return built(f'libcompany_{name}.so')
	for root in ('/usr/lib', '/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu'):
		for file in _LIBRARIES[name]:
			if os.path.exists(f'{root}/{file}'):
				return f'{root}/{file}'
	return None


def orders(names):
	"""Every place that the library can have among the others."""
	return [names[:place] + (OURS,) + names[place:] for place in range(len(names) + 1)]


def steady(text):
	"""Without what differs from run to run: how long it took, names of files, numbers of processes."""
	text = re.sub(r'after \d+ ms', 'after N ms', text)
	text = re.sub(r'report-\w{6}|shunt-e2e-\w{8}|valgrind_proc_\w+', 'NAME', text)
	return re.sub(r'(?m)^(get\w+) = \d+ ', r'\1 = N ', text)


ASK = 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:%d/", timeout=20).read())'

# Each makes one connection, at most.
CLIENTS = {
	'curl': lambda port: ['curl', '-sS', '-m', '20', f'http://127.0.0.1:{port}/'],
	'python': lambda port: [harness.PYTHON, '-c', ASK % port],
	'redis-cli': lambda port: ['redis-cli', '-p', str(port), 'ping'],
}


class Company(harness.Case):
	"""A test whose program has other preloads beside the library."""

	@classmethod
	def setUpClass(cls):
		cls.redis = daemons.Redis()
		cls.addClassCleanup(cls.redis.close)

	def preload(self, names):
		"""What LD_PRELOAD must be; skips the test where one is missing."""
		paths = {name: library(name) for name in names}
		for name, path in paths.items():
			if path is None:
				self.skipTest(f'{name} is missing (Debian: apt install {_PACKAGES[name]})')
		if harness.BARE:
			paths.pop(OURS, None)
		return ' '.join(paths[name] for name in names if name in paths)

	def run_among(self, names, argv, settings=None, **keywords):
		"""Runs a program with these preloads, the library among them or not."""
		extra = dict(settings or {}, LD_PRELOAD=self.preload(names))
		return self.run_program(argv, library=OURS in names, extra=extra, **keywords)

	def assertSameRun(self, ours, bare):
		self.assertEqual((ours.returncode, steady(ours.stdout), steady(ours.stderr)),
			(bare.returncode, steady(bare.stdout), steady(bare.stderr)))

	def fresh_state(self):
		self._remove_state()

	def port_of(self, client):
		"""Where a healthy server of the client's protocol is."""
		if client == 'redis-cli':
			return self.redis.port
		if not hasattr(self, '_web'):
			self._web = self.server()
			self._web.healthy()
		return self._web.port

	def port_refusing(self):
		if not hasattr(self, '_dead'):
			self._dead = self.server()
		return self._dead.port

	def check_closed(self, names, client, settings=None):
		"""A healthy server: as with the others alone, and counted."""
		argv = CLIENTS[client](self.port_of(client))
		alone = tuple(name for name in names if name != OURS)
		self.rules = {'T': f'127.0.0.1:{self.port_of(client)}'}
		self.fresh_state()
		bare, ours = self.run_among(alone, argv, settings), self.run_among(names, argv, settings)
		self.assertEqual(bare.returncode, 0, bare)
		self.assertSameRun(ours, bare)
		self.assertTotals({'success': 1, 'failure': 0}, name='T')

	def check_open(self, names, client, settings=None):
		"""A dead one: the same errors, the first from the kernel and the rest from us."""
		argv = CLIENTS[client](self.port_refusing())
		alone = tuple(name for name in names if name != OURS)
		self.rules = {'T': f'127.0.0.1:{self.port_refusing()} volume=1 sleep=1h'}
		self.fresh_state()
		bare = self.run_among(alone, argv, settings)
		self.assertNotEqual(bare.returncode, 0, bare)
		for _ in range(2):
			self.assertSameRun(self.run_among(names, argv, settings), bare)
		self.assertState('open', name='T')
		if not harness.BARE:
			totals = self.cell(name='T')['totals']
			self.assertEqual(totals['failure'], 1, totals)
			self.assertGreaterEqual(totals['short_circuited'], 1, totals)
