# SPDX-License-Identifier: MIT
"""fork, vfork, exec, daemons: of C programs that have threads and open circuits, of python and of java."""
import os
import re
import shutil
import subprocess
import tempfile

import harness
import parity
import processes
from processes import OPENS


class Parity(parity.Program):
	"""Without a fault. What the children do is in the trace as well."""
	program = 'processes'
	# Of vforks in many threads at once strace tells what it can.
	loose = {'threads_have_children': parity.OF_THREADS | {'vfork', 'wait4'}}


parity.add_scenes(Parity)


class Children(processes.Program):
	program = 'children'

	def counted(self, scene):
		"""Each call of each process was counted once, the ones that a fork cut off as cancelled."""
		ours = self.both(scene)
		attempts, calls, port = map(int, re.search(r'^attempts (\d+) calls (\d+) port (\d+)$', ours.stderr, re.M).groups())
		if harness.BARE:
			return {}
		dead = self.cell(port=port)['totals']
		self.assertEqual(dead['failure'] + dead['short_circuited'], attempts, dead)
		live = [cell for cell in self.cells() if cell['port'] != port]
		self.assertEqual(len(live), 1)
		totals = {name: count for name, count in live[0]['totals'].items() if count}
		return {**totals, 'calls': calls}

	def forks(self, scene):
		totals = self.counted(scene)
		if totals:
			self.assertEqual(totals.pop('success') + totals.pop('cancelled'), totals.pop('calls'))
			self.assertEqual(totals, {})

	def test_forks_of_a_program_whose_threads_are_at_work(self):
		self.forks('forks')

	def test_forks_by_the_number_of_the_system_call(self):
		self.forks('forks_by_number')

	def test_forks_by_clone3(self):
		self.forks('forks_by_clone3')

	def test_vforks_of_a_program_whose_threads_are_at_work(self):
		totals = self.counted('vforks')
		if totals:
			# And the connection that every child replaced and closed, in its own table.
			self.assertEqual(totals, {'success': totals['calls'] + 1, 'unused': 1, 'calls': totals['calls']})

	def test_a_signal_handler_of_the_parent_before_vfork_returns(self):
		self.both('vfork_is_interrupted')
		if not harness.BARE:
			self.assertEqual(self.sums(), {'success': 1, 'failure': 1, 'short_circuited': 2, 'trips': 1})

	def test_posix_spawn_system_and_popen(self):
		self.both('spawns')
		if not harness.BARE:
			self.assertEqual(self.sums(), {'success': 2, 'failure': 1, 'short_circuited': 2, 'trips': 1})

	def test_exec_over_an_open_circuit(self):
		self.both('executes')
		if not harness.BARE:
			self.assertEqual(self.sums(), {'failure': 1, 'short_circuited': 2, 'trips': 1})

	def test_daemons(self):
		self.both('daemons')
		if harness.BARE:
			return
		sums = self.sums()
		# The program's own four, and one of each daemon.
		self.assertEqual(sums, {'success': 8, 'failure': 1, 'short_circuited': 11, 'trips': 1})
		event = [e for e in self.events() if e['name'] == 'X']
		self.assertTrue(event, self.events())


class Launchers(harness.Case):
	"""What starts others does so in the middle of its own calls, which go on."""

	@classmethod
	def setUpClass(cls):
		cls.classes = None
		if shutil.which('javac'):
			cls.classes = tempfile.mkdtemp(prefix='shunt-java-')
			cls.addClassCleanup(shutil.rmtree, cls.classes)
			subprocess.run(['javac', '-d', cls.classes, os.path.join(harness.PROGRAMS, 'java', 'Launcher.java')],
				check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

	def setUp(self):
		super().setUp()
		self.live, self.dead = self.server(), self.server()
		self.live.healthy()
		self.rules = {'X': OPENS}

	def both(self, argv):
		argv = [*argv, str(self.live.port), str(self.dead.port)]
		bare, ours = self.run_program(argv, library=False), self.run_program(argv)
		self.assertEqual((ours.returncode, ours.stdout), (0, bare.stdout), ours)
		self.assertEqual(bare.returncode, 0, bare)
		return ours

	def assertCounted(self, exchanges, refused):
		if not harness.BARE:
			self.assertTotals({'success': exchanges, 'failure': 0, 'cancelled': 0, 'timeout': 0}, port=self.live.port)
			self.assertTotals({'failure': 1, 'short_circuited': refused - 1}, port=self.dead.port)

	def test_python(self):
		ours = self.both([harness.PYTHON, os.path.join(harness.PROGRAMS, 'clients', 'client_launching.py')])
		exchanges, refused = map(int, re.search(r'exchanges (\d+) refused (\d+)', ours.stderr).groups())
		# Those of the children, which each knows for itself.
		self.assertCounted(exchanges, refused + 7)

	def java(self, mechanism):
		if not self.classes:
			self.skipTest('no javac here')
		self.both(['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xmx128m',
			'-Djdk.lang.Process.launchMechanism=' + mechanism, '-cp', self.classes, 'Launcher'])
		self.assertCounted(6, 5)

	def test_java_by_vfork(self):
		self.java('VFORK')

	def test_java_by_posix_spawn(self):
		self.java('POSIX_SPAWN')

	def test_java_by_fork(self):
		self.java('FORK')


if __name__ == '__main__':
	harness.main()
