# SPDX-License-Identifier: MIT
"""The same program, rules and seed have the same faults, run after run; another seed has others; and what a
report says was injected is injected again by its replay. Each run begins with number 1, as `shunt run` makes it."""
import os

import chaos
import harness

RUNS = 10

# One connection after the other, three calls on each; tells what it saw.
SINGLE = r'''
import socket, sys
def exchange(connection):
	try:
		connection.sendall(b'hello\n')
		had = b''
		while len(had) < 6:
			part = connection.recv(6 - len(had))
			if not part:
				return had
			had += part
		return had == b'hello\n'
	except OSError as error:
		return error.errno
for _ in range(int(sys.argv[2])):
	with socket.socket() as connection:
		connection.settimeout(eval(sys.argv[3]))
		error = connection.connect_ex(('127.0.0.1', int(sys.argv[1])))
		print(error or [exchange(connection) for _ in range(3)])
'''

# The same from eight threads that are in nobody's order.
THREADED = r'''
import socket, sys, threading
def work():
	for _ in range(int(sys.argv[2])):
		with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as connection:
			for _ in range(3):
				connection.sendall(b'hello\n')
				had = b''
				while had != b'hello\n':
					had += connection.recv(100)
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
	thread.start()
for thread in threads:
	thread.join()
'''

ASYNC = r'''
import asyncio, sys
async def work():
	reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
	for _ in range(3):
		writer.write(b'hello\n')
		assert await reader.readline() == b'hello\n'
	writer.close()
async def main():
	for _ in range(int(sys.argv[2])):
		await asyncio.gather(*(work() for _ in range(4)))
asyncio.run(main())
'''


class _Report(chaos.Case):
	runs = 0

	def setUp(self):
		super().setUp()
		self.port = self.peer(chaos.echo).port

	def run_once(self, argv, **settings):
		"""(result, its report as text), of a run of its own."""
		self.runs += 1
		self.report = os.path.join(self.scratch, f'report-{self.runs}')
		# A table of its own as well: each has room for so many rules of all runs of a minute.
		state = f'{self.state}-{self.runs}'
		self.addCleanup(lambda: os.path.exists(state) and os.unlink(state))
		self.settings = {'SHUNT_RUN': str(self.runs), 'SHUNT_STATE': state, **settings}
		result = self.run_program(list(map(str, argv)))
		self.assertEqual(result.stderr, '', result)
		return result, self.read(self.report)

	@staticmethod
	def read(path):
		if not os.path.exists(path):
			return ''
		with open(path, encoding='ascii') as file:
			return file.read()

	def in_order(self, text):
		return text

	def as_set(self, text):
		"""By connection and call."""
		return sorted(text.splitlines())

	def seek(self, argv):
		"""A first run with something to see: what a seed draws hangs on the rule's text, which has the port in it."""
		for self.seed in range(1, 21):
			first, report = self.run_once(argv)
			if {i['rule'] for i in self.injections()} == set(self.faults):
				return first, report
		raise AssertionError(f'not one of 20 seeds strikes with all of {self.faults}: {report}')

	def assertSame(self, argv, form=None, runs=RUNS):
		"""In all runs, what is injected and what the program tells; the report."""
		form = form or self.in_order
		first, report = self.seek(argv)
		for _ in range(runs - 1):
			result, again = self.run_once(argv)
			self.assertEqual(form(again), form(report))
			self.assertEqual(result.stdout, first.stdout)
		return report

	def assertOther(self, argv, report):
		others = []
		for self.seed in range(101, 104):
			others.append(self.run_once(argv)[1])
		self.assertNotEqual(set(others), {report})

	def assertReplayed(self, argv, report, form=None):
		"""With a seed that has nothing to do with it."""
		form = form or self.in_order
		path = os.path.join(self.scratch, 'replayed')
		with open(path, 'w', encoding='ascii') as file:
			file.write(report)
		self.seed = 12345
		result, again = self.run_once(argv, SHUNT_REPLAY=path)
		self.assertEqual(form(again), form(report))
		return result


class SingleThread(_Report):
	"""Event for event."""

	def setUp(self):
		super().setUp()
		target = f'127.0.0.1:{self.port}'
		self.faults = {'REFUSE': f'{target} refuse 20%', 'SLOW': f'{target} latency=3ms~2ms 1/3',
			'SHORT': f'{target} short=1..5 40%', 'RESET': f'{target} reset per=call 10%',
			'ERRNO': f'{target} errno=EHOSTUNREACH dir=in per=call 10%'}

	def test_blocking(self):
		argv = [harness.PYTHON, '-c', SINGLE, self.port, 20, 'None']
		report = self.assertSame(argv)
		self.assertOther(argv, report)
		self.assertReplayed(argv, report)

	def test_with_a_limit_of_its_own(self):
		argv = [harness.PYTHON, '-c', SINGLE, self.port, 20, '60']
		self.assertSame(argv, runs=3)

	def test_what_the_program_tells_is_the_same_again(self):
		argv = [harness.PYTHON, '-c', SINGLE, self.port, 20, 'None']
		first, report = self.seek(argv)
		self.assertEqual(self.assertReplayed(argv, report).stdout, first.stdout)

	def test_it_does_not_depend_on_how_long_things_take(self):
		"""Nor on whether the segment is one's own."""
		argv = [harness.PYTHON, '-c', SINGLE, self.port, 20, 'None']
		_, report = self.seek(argv)
		_, traced = self.run_once(['nice', '-n', 19, *argv], SHUNT_STATE='private')
		self.assertEqual(traced, report)


class ShellLoop(_Report):
	"""Numbers go on from process to process."""

	LOOP = 'for i in 1 2 3 4 5 6 7 8 9 10; do curl -s -o file http://127.0.0.1:{}/; echo $?; done'

	def setUp(self):
		super().setUp()
		self.port = self.healthy().port
		target = f'127.0.0.1:{self.port}'
		self.faults = {'REFUSE': f'{target} refuse 30%', 'SLOW': f'{target} latency=5ms~4ms 50%',
			'CLOSE': f'{target} close 30%'}

	def test_event_for_event(self):
		argv = ['sh', '-c', self.LOOP.format(self.port)]
		report = self.assertSame(argv)
		self.assertGreater(max(i['connection'] for i in self.injections()), 1)
		self.assertOther(argv, report)
		self.assertReplayed(argv, report)

	def test_processes_side_by_side(self):
		"""As a set."""
		self.faults = {'REFUSE': f'127.0.0.1:{self.port} refuse 30%'}
		argv = ['sh', '-c', f'seq 12 | xargs -P 4 -I % curl -s -o file-% http://127.0.0.1:{self.port}/; true']
		report = self.assertSame(argv, self.as_set, runs=3)
		self.assertReplayed(argv, report, self.as_set)


class Threads(_Report):
	"""As a set sorted by connection and call."""

	def setUp(self):
		super().setUp()
		target = f'127.0.0.1:{self.port}'
		self.faults = {'SLOW': f'{target} latency=3ms~2ms 1/3', 'SHORT': f'{target} short=1..5 40%',
			'AGAIN': f'{target} eagain 20%'}

	def test_threads(self):
		del self.faults['AGAIN']
		argv = [harness.PYTHON, '-c', THREADED, self.port, 4]
		report = self.assertSame(argv, self.as_set)
		self.assertOther(argv, report)
		self.assertReplayed(argv, report, self.as_set)

	def test_a_loop_with_connections_side_by_side(self):
		argv = [harness.PYTHON, '-c', ASYNC, self.port, 5]
		report = self.assertSame(argv, self.as_set, runs=5)
		self.assertReplayed(argv, report, self.as_set)


class Replay(_Report):
	def test_times_and_hours_do_not_matter(self):
		self.faults = {'F': f'127.0.0.1:{self.port} refuse 50% times=3'}
		argv = [harness.PYTHON, '-c', SINGLE, self.port, 20, 'None']
		first, report = self.seek(argv)
		self.assertLessEqual(len(report.splitlines()), 3)
		for more in ('for=1ns', 'after=24h', 'flap=1ns/24h', 'times=1'):
			self.faults = {'F': f'127.0.0.1:{self.port} refuse 0% {more}'}
			self.assertEqual(self.assertReplayed(argv, report).stdout, first.stdout)

	def test_nothing_else_is_injected(self):
		self.faults = {'F': f'127.0.0.1:{self.port} refuse', 'G': f'127.0.0.1:{self.port} reset'}
		argv = [harness.PYTHON, '-c', SINGLE, self.port, 5, 'None']
		line = '{"rule": "F", "connection": 3, "call": 1, "fault": "refuse", "value": 0}\n'
		result = self.assertReplayed(argv, line)
		self.assertEqual(result.stdout.splitlines(), ['[True, True, True]'] * 2 + ['111'] + ['[True, True, True]'] * 2)

	def test_lookups(self):
		self.faults = {'F': 'dns:localhost again 50%'}
		argv = [harness.PYTHON, '-c', 'import socket\nfor _ in range(10):\n\ttry:\n\t\tsocket.getaddrinfo("localhost", 80)\n'
			'\t\tprint("ok")\n\texcept OSError as error:\n\t\tprint(error)\n']
		report = self.assertSame(argv, runs=3)
		self.assertReplayed(argv, report)


class Crowded(_Report):
	def test_a_run_after_many_others_counts_on(self):
		self.faults = {'F': f'127.0.0.1:{self.port} refuse calls=2'}
		for number in range(40):
			self.run_program(['true'], extra={'SHUNT_RUN': str(1000 + number)})
		script = f'import socket; print(socket.socket().connect_ex(("127.0.0.1", {self.port})))'
		results = [self.script(script, extra={'SHUNT_RUN': '7'}).stdout for _ in range(3)]
		self.assertEqual(results, ['0\n', '111\n', '0\n'])


class Command(_Report):
	"""By the options of `shunt run`."""

	def run_under(self, *options, script=ShellLoop.LOOP):
		result = self.run_program([harness.SHUNT, 'run', *options, '--', 'sh', '-c', script.format(self.port)],
			library=False, extra={'SHUNT_STATE': self.state})
		return result

	def setUp(self):
		super().setUp()
		self.port = self.healthy().port
		self.rule = f'127.0.0.1:{self.port} refuse 40%'

	def test_seed_report_and_replay(self):
		reports = []
		for number in (1, 1, 2, 3, 4):
			path = os.path.join(self.scratch, f'of-{len(reports)}')
			result = self.run_under('--fault', self.rule, '--seed', str(number), '--report', path)
			self.assertEqual(result.returncode, 0, result)
			reports.append(self.read(path))
			injected = len(reports[-1].splitlines())
			self.assertEqual(result.stdout.split().count('7'), injected)
			self.assertMatches(rf'^shunt: RUN1: 10 calls seen, 10 matched, {injected} injected', result)
		self.assertEqual(reports[0], reports[1])
		self.assertGreater(len(set(reports)), 1)
		again = os.path.join(self.scratch, 'again')
		result = self.run_under('--fault', self.rule, '--replay', os.path.join(self.scratch, 'of-0'), '--report', again)
		self.assertEqual(result.returncode, 0, result)
		self.assertEqual(self.read(again), reports[0])

	def test_hits_that_are_required(self):
		script = 'curl -s http://127.0.0.1:{}/'
		result = self.run_under('--require-hits', '--fault', f'127.0.0.1:{self.port} refuse', script=script)
		self.assertEqual(result.returncode, 7, result)
		result = self.run_under('--require-hits', '--fault', f'127.0.0.1:{self.port} refuse calls=2', script=script)
		self.assertEqual(result.returncode, 125, result)
		self.assertMatches('hello from the server', result)


class Figures(_Report):
	def test_what_was_not_injected_is_told_with_its_reason(self):
		self.faults = {'CHANCE': f'127.0.0.1:{self.port} refuse 50%', 'NUMBER': f'127.0.0.2:{self.port} refuse calls=2',
			'TIMES': f'127.0.0.3:{self.port} refuse times=1', 'TIME': f'127.0.0.4:{self.port} refuse after=24h',
			'NEVER': f'127.0.0.5:{self.port} refuse'}
		script = 'import socket, sys\nfor last in (1, 2, 3, 4):\n\tfor _ in range(20):\n\t\twith socket.socket() as s:\n' \
			'\t\t\ts.connect_ex((f"127.0.0.{last}", int(sys.argv[1])))\n'
		self.assertEqual(self.script(script, self.port).returncode, 0)
		for name, reason, injected in (('CHANCE', 'chance', None), ('NUMBER', 'number', 1), ('TIMES', 'times', 1),
				('TIME', 'time', 0)):
			fault = self.fault(name)
			self.assertEqual((fault['connections'], fault['matched']), (20, 20), fault)
			self.assertEqual(fault['injected'] + fault['suppressed'][reason], 20, fault)
			self.assertEqual(fault['injected'], len([i for i in self.injections() if i['rule'] == name]), fault)
			if injected is not None:
				self.assertEqual(fault['injected'], injected, fault)
		self.assertIn(self.fault('CHANCE')['injected'], range(1, 20))
		self.assertEqual((self.fault('NEVER')['connections'], self.fault('NEVER')['injected']), (0, 0))


if __name__ == '__main__':
	harness.main()
