# SPDX-License-Identifier: MIT
"""What every end-to-end test stands on: run a program under the library, ask `shunt status`, TAP.

E2E_LIBRARY and E2E_SHUNT name the two built files. With E2E_BARE=1 programs run without the library,
which shows what they do by themselves.
"""
import itertools
import json
import os
import queue
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'support'))

from servers import Server  # noqa: E402
from wire import Wire  # noqa: E402

LIBRARY = os.environ.get('E2E_LIBRARY', os.path.join(ROOT, 'build', 'shim', 'libshunt.so'))
SHUNT = os.environ.get('E2E_SHUNT', os.path.join(ROOT, 'build', 'cli', 'shunt'))
BARE = os.environ.get('E2E_BARE') == '1'
PYTHON = '/usr/bin/python3'
PROGRAMS = os.path.join(ROOT, 'tests', 'programs')

# A call that would have to wait for a server lasts two seconds or more in these tests.
AT_ONCE = 1.0

_numbers = itertools.count(1)

TOTALS = ('success', 'failure', 'timeout', 'rejected', 'short_circuited', 'cancelled', 'ignored', 'fallback',
	'unused', 'late', 'trips')


class Result:
	"""How one run of a program, or one call of a long-lived one, ended."""

	def __init__(self, returncode, stdout, stderr, began, ended):
		self.returncode = returncode
		self.stdout = stdout
		self.stderr = stderr
		self.began, self.ended = began, ended
		self.seconds = ended - began

	@property
	def text(self):
		return self.stdout + self.stderr

	def __repr__(self):
		return f'[rc {self.returncode}, {self.seconds:.3f} s] {self.text.strip()[-600:]}'


class Case(unittest.TestCase):
	"""A test with a segment of its own. `rules` maps names to rules, `settings` to other variables."""

	maxDiff = None

	def setUp(self):
		number = next(_numbers)
		self.state = f'/dev/shm/shunt-e2e-{os.getpid()}-{number}'
		self.rules = {}
		self.settings = {}
		self.scratch = tempfile.mkdtemp(prefix='shunt-e2e-')
		self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
		self.addCleanup(self._remove_state)

	def _remove_state(self):
		if os.path.lexists(self.state):
			os.unlink(self.state)

	# Running programs.

	def shunt_variables(self):
		variables = {'SHUNT_BREAK_' + name: rule for name, rule in self.rules.items()}
		variables['SHUNT_STATE'] = self.state
		variables.update(self.settings)
		return variables

	def environment(self, library=True, extra=None):
		env = {
			'PATH': os.environ.get('PATH', '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'),
			'HOME': self.scratch,
			'LC_ALL': 'C',
			'TERM': 'dumb',
			'GIT_TERMINAL_PROMPT': '0',
			'GIT_CONFIG_NOSYSTEM': '1',
		}
		if library and not BARE:
			env.update(self.shunt_variables())
			env['LD_PRELOAD'] = LIBRARY
		env.update(extra or {})
		return env

	def start(self, argv, library=True, extra=None, hosts=None, resolv=None, **keywords):
		"""A running program; it is killed at the end of the test if it still runs."""
		env = self.environment(library, extra)
		mounts = self._mounts(hosts, resolv)
		if mounts:
			# The library goes to the program alone: not to unshare, mount and the shell.
			inner = ['env'] + [f'{k}={v}' for k, v in env.items() if k == 'LD_PRELOAD']
			env.pop('LD_PRELOAD', None)
			argv = ['unshare', '-m', 'sh', '-c', mounts + 'exec "$@"', 'sh'] + inner + list(argv)
		process = subprocess.Popen(argv, env=env, cwd=self.scratch, start_new_session=True, **keywords)
		self.addCleanup(self.stop, process)
		return process

	def _mounts(self, hosts, resolv):
		lines = ''
		for name, text in (('hosts', hosts), ('resolv.conf', resolv)):
			if text is not None:
				path = os.path.join(self.scratch, name)
				with open(path, 'w', encoding='ascii') as file:
					file.write(text)
				lines += f'mount --bind {path} /etc/{name} && '
		return lines

	@staticmethod
	def stop(process, signal_number=signal.SIGKILL):
		"""Ends a program that start() began, with what it started itself."""
		if process.poll() is None:
			try:
				os.killpg(process.pid, signal_number)
			except ProcessLookupError:
				pass
			process.wait(30)
		for pipe in (process.stdin, process.stdout, process.stderr):
			if pipe:
				pipe.close()

	def run_program(self, argv, stdin=None, timeout=60, **keywords):
		began = time.monotonic()
		process = self.start(argv, stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
			stdout=subprocess.PIPE, stderr=subprocess.PIPE, **keywords)
		try:
			out, err = process.communicate(stdin, timeout)
		except subprocess.TimeoutExpired:
			self.stop(process)
			raise AssertionError(f'still running after {timeout} s: {argv}') from None
		return Result(process.returncode, out.decode(errors='replace'), err.decode(errors='replace'),
			began, time.monotonic())

	def run_many(self, argvs, **keywords):
		"""Runs programs side by side; results in the order of `argvs`."""
		return side_by_side([lambda argv=argv: self.run_program(argv, **keywords) for argv in argvs])

	# Servers and witnesses.

	def server(self, **keywords):
		server = Server(**keywords)
		self.addCleanup(server.close)
		return server

	def wire(self, port):
		try:
			wire = Wire(port)
		except PermissionError:
			self.skipTest('needs CAP_NET_RAW')
		self.addCleanup(wire.close)
		return wire

	# What the breaker knows.

	def shunt(self, *arguments, library=False, **keywords):
		return self.run_program([SHUNT, *arguments], library=library, extra=self.shunt_variables(), **keywords)

	def status(self, *arguments):
		result = self.shunt('status', '--json', *arguments)
		self.assertEqual(result.returncode, 0, result)
		return json.loads(result.stdout)

	def cells(self, **wanted):
		"""Cells whose fields are as wanted; the lookups' only when asked for by kind."""
		wanted.setdefault('kind', 'connection')
		return [c for c in self.status('--all')['cells']
			if all(c.get(key) == value for key, value in wanted.items())]

	def cell(self, **wanted):
		found = self.cells(**wanted)
		self.assertEqual(len(found), 1, f'one cell with {wanted} in {self.status("--all")["cells"]}')
		return found[0]

	def totals(self, **wanted):
		"""The totals that are not zero, of one cell."""
		totals = self.cell(**wanted)['totals']
		return {key: totals[key] for key in TOTALS if totals.get(key)}

	def events(self):
		result = self.shunt('events', '--json')
		self.assertEqual(result.returncode, 0, result)
		return [json.loads(line) for line in result.stdout.splitlines() if line.startswith('{')]

	def assertState(self, state, **wanted):
		if not BARE:
			cell = self.cell(**wanted)
			self.assertEqual(cell['state'], state, cell)

	def wait_for_probe(self, **wanted):
		"""Until the sleep window of an open circuit is over, as status tells it."""
		def is_over():
			cell = self.cell(**wanted)
			return cell['state'] == 'half_open' or cell['retry_in_ms'] == 0
		if not BARE:
			wait_until(is_over, 30, f'the sleep window of {wanted} is over')

	def assertTotals(self, expected, **wanted):
		"""The named totals of one cell, exactly; others are free. A client may report that it gave up
		before another thread of it has closed the connection: it is given a while."""
		if BARE:
			return
		until = time.monotonic() + 5
		totals = self.cell(**wanted)['totals']
		while {key: totals[key] for key in expected} != expected and time.monotonic() < until:
			time.sleep(0.05)
			totals = self.cell(**wanted)['totals']
		self.assertEqual({key: totals[key] for key in expected}, expected, totals)

	def assertAtOnce(self, results, limit=AT_ONCE):
		"""Fast at the median: one late wake-up of a busy machine is no finding."""
		seconds = [r.seconds for r in results]
		self.assertLess(statistics.median(seconds), limit, results)

	def assertMatches(self, pattern, result):
		self.assertIsNotNone(re.search(pattern, result.text, re.M), f'{pattern!r} in {result}')


class LongLived:
	"""A client that lives through the whole test: reads `N` from stdin, makes N calls side by side, and
	answers each with a line `MILLISECONDS TEXT`."""

	PATIENCE = 60

	def __init__(self, case, argv, **keywords):
		self.process = case.start(argv, **keywords, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
			stderr=subprocess.STDOUT, text=True, bufsize=1)
		self._lines = queue.Queue()
		threading.Thread(target=self._read, daemon=True).start()
		self._heard = []
		while self._line() != 'ready\n':
			pass

	def _read(self):
		try:
			for line in self.process.stdout:
				self._lines.put(line)
		except ValueError:
			pass
		self._lines.put('')

	def _line(self):
		try:
			line = self._lines.get(timeout=self.PATIENCE)
		except queue.Empty:
			line = None
		if not line:
			raise AssertionError('the client ended or is silent: ' + ''.join(self._heard[-20:]))
		self._heard.append(line)
		return line

	def calls(self, count=1):
		self.process.stdin.write(f'{count}\n')
		results = []
		while len(results) < count:
			match = re.match(r'(\d+(?:\.\d+)?) (.*)', self._line())
			if match:
				now, seconds = time.monotonic(), float(match[1]) / 1000
				results.append(Result(0 if match[2].startswith('ok') else 1, match[2], '', now - seconds, now))
		return results


def side_by_side(functions):
	"""Runs them in threads; their results in order, or the first exception."""
	results = [None] * len(functions)
	errors = []

	def one(index):
		try:
			results[index] = functions[index]()
		except BaseException as error:  # pylint: disable=broad-except
			errors.append(error)
	threads = [threading.Thread(target=one, args=(i,)) for i in range(len(functions))]
	for thread in threads:
		thread.start()
	for thread in threads:
		thread.join()
	if errors:
		raise errors[0]
	return results


def wait_until(condition, seconds, what):
	deadline = time.monotonic() + seconds
	while not condition():
		if time.monotonic() > deadline:
			raise AssertionError(f'not within {seconds} s: {what}')
		time.sleep(0.01)


def find_program(name):
	"""Path of a program, or None. Daemons live where a user's PATH may not look."""
	return shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/local/sbin:/usr/sbin:/sbin')


class _TapResult(unittest.TestResult):
	def __init__(self):
		super().__init__()
		self.number = 0
		self.parts = []

	def _line(self, test, ok, tail='', detail=''):
		self.number += 1
		name = test.id().split('.', 1)[-1].replace('.test_', ': ').replace('_', ' ')
		print(f'{"ok" if ok else "not ok"} {self.number} - {name}{tail}')
		for line in detail.rstrip().splitlines():
			print('# ' + line[:2000])
		sys.stdout.flush()

	def addSuccess(self, test):
		self._line(test, True)

	def addSubTest(self, test, subtest, err):
		"""The failed parts of a test; they make one failure together."""
		super().addSubTest(test, subtest, err)
		if err is not None:
			self.parts.append(str(subtest) + '\n' + self._exc_info_to_string(err, test))

	def stopTest(self, test):
		super().stopTest(test)
		if self.parts:
			self._line(test, False, detail='\n'.join(self.parts))
			self.parts = []

	def addSkip(self, test, reason):
		self._line(test, True, f' # SKIP {reason}')

	def addFailure(self, test, err):
		super().addFailure(test, err)
		self._line(test, False, detail=self.failures[-1][1])

	def addError(self, test, err):
		super().addError(test, err)
		self._line(test, False, detail=self.errors[-1][1])


def _flatten(suite):
	for item in suite:
		if isinstance(item, unittest.TestSuite):
			yield from _flatten(item)
		else:
			yield item


def main(module='__main__'):
	"""Runs the tests of a file, or those whose name contains one of the arguments. Prints TAP."""
	tests = [t for t in _flatten(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module]))
		if type(t).__module__ == module and not type(t).__name__.startswith('_')]
	if sys.argv[1:]:
		tests = [t for t in tests if any(word in t.id() for word in sys.argv[1:])]
	print(f'1..{len(tests)}', flush=True)
	result = _TapResult()
	unittest.TestSuite(tests).run(result)
	sys.exit(0 if result.wasSuccessful() and tests else 1)
