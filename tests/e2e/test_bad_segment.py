# SPDX-License-Identifier: MIT
"""A file that is no segment of ours: the program runs, the breaker works for it alone, status says why."""
import os
import random
import re
import resource
import shutil

import harness

CLIENT = os.path.join(harness.PROGRAMS, 'clients', 'client_urllib.py')


class BadSegment(harness.Case):
	def setUp(self):
		super().setUp()
		self.target = self.server()
		self.port = self.target.port
		self.rules['TARGET'] = f'127.0.0.1:{self.port} volume=3 sleep=60s'
		self.witness = self.wire(self.port)
		self.state = os.path.join('/dev/shm', f'shunt-e2e-{os.getpid()}-bad')
		self.addCleanup(self._remove)

	def _remove(self):
		if os.path.isdir(self.state) and not os.path.islink(self.state):
			shutil.rmtree(self.state)
		elif os.path.lexists(self.state):
			os.unlink(self.state)

	def good_segment(self):
		"""A segment as the library makes it, with one call in it."""
		self.run_program(['curl', '-s', f'http://127.0.0.1:{self.port}/'])
		self.assertTrue(os.path.isfile(self.state))
		with open(self.state, 'rb') as file:
			return file.read()

	def assertPrivate(self):
		"""One process has a breaker of its own, and the file is as it was."""
		before = os.lstat(self.state) if os.path.lexists(self.state) else None
		session = harness.LongLived(self, [harness.PYTHON, CLIENT, str(self.port)])
		began = harness.time.monotonic()
		for _ in range(5):
			self.assertMatches('Connection refused', session.calls()[0])
		self.assertEqual(len(self.witness.attempts(began)), 3)
		if before:
			after = os.lstat(self.state)
			self.assertEqual((after.st_ino, after.st_size, after.st_mode), (before.st_ino, before.st_size, before.st_mode))
		result = self.shunt('status', '--json')
		self.assertEqual(result.returncode, 0, result)
		self.assertNotEqual(harness.json.loads(result.stdout)['notes'], [], result)

	def test_a_directory(self):
		os.mkdir(self.state)
		self.assertPrivate()

	def test_a_link(self):
		elsewhere = os.path.join(self.scratch, 'segment')
		self.good_segment()
		os.rename(self.state, self.state + '.real')
		self.addCleanup(os.unlink, self.state + '.real')
		os.symlink(self.state + '.real', self.state)
		self.assertPrivate()
		self.assertFalse(os.path.exists(elsewhere))

	def test_a_second_name(self):
		self.good_segment()
		os.link(self.state, self.state + '.second')
		self.addCleanup(os.unlink, self.state + '.second')
		self.assertPrivate()

	def test_a_mode_that_lets_others_in(self):
		self.good_segment()
		os.chmod(self.state, 0o666)
		self.assertPrivate()

	def test_a_file_too_short(self):
		data = self.good_segment()
		with open(self.state, 'r+b') as file:
			file.truncate(len(data) // 2)
		self.assertPrivate()

	def test_an_empty_file(self):
		os.close(os.open(self.state, os.O_CREAT | os.O_WRONLY, 0o600))
		self.assertPrivate()

	def test_another_version(self):
		data = bytearray(self.good_segment())
		data[:16] = bytes(16)
		self.overwrite(data)
		self.assertPrivate()

	def test_another_owner(self):
		if os.geteuid() != 0:
			self.skipTest('needs root')
		self.good_segment()
		os.chown(self.state, 65534, 65534)
		self.assertPrivate()

	def test_a_fifo(self):
		os.mkfifo(self.state, 0o600)
		self.assertPrivate()

	def test_a_directory_that_is_not_there(self):
		self.state = '/dev/shm/shunt-e2e-no-such-directory/segment'
		self.assertPrivate()

	def test_a_file_size_limit_below_its_own(self):
		script = f'for i in 1 2 3; do curl -sS http://127.0.0.1:{self.port}/; done; exit 9'
		argv = ['bash', '-c', script]
		env = [f'{name}={value}' for name, value in self.environment().items()]
		bare = self.run_program(argv, library=False)
		ours = self.run_program(['prlimit', '--fsize=4096', 'env', *env, *argv], library=False)
		self.assertEqual(ours.returncode, bare.returncode)
		self.assertEqual(re.sub(r'\d+ ms', '', ours.text), re.sub(r'\d+ ms', '', bare.text))
		self.assertFalse(os.path.exists(self.state))

	def test_random_bytes_in_its_cells_neither_crash_nor_hang_a_host(self):
		data = self.good_segment()
		header = 256
		self.target.healthy()
		for seed in range(12):
			with self.subTest(seed=seed):
				chance = random.Random(seed)
				garbage = bytearray(data)
				if seed % 2:
					garbage[header:] = chance.randbytes(len(data) - header)
				else:
					for _ in range(2000):
						garbage[chance.randrange(header, len(data))] = chance.randrange(256)
				self.overwrite(garbage)
				result = self.run_program(['curl', '-sS', '-m', '5', f'http://127.0.0.1:{self.port}/'], timeout=20)
				self.assertIn(result.returncode, (0, 7), result)
				for command in (['status', '--json', '--all'], ['events'], ['reset', 'TARGET']):
					told = self.shunt(*command, timeout=20)
					self.assertGreaterEqual(told.returncode, 0, (command, told))

	def overwrite(self, data):
		with open(self.state, 'r+b') as file:
			file.write(data)

	def test_a_segment_unlinked_under_a_running_program(self):
		session = harness.LongLived(self, [harness.PYTHON, CLIENT, str(self.port)])
		for _ in range(3):
			session.calls()
		self.assertState('open', name='TARGET')
		os.unlink(self.state)
		began = harness.time.monotonic()
		for _ in range(3):
			self.assertMatches('Connection refused', session.calls()[0])
		self.assertTrue(self.witness.quiet(began))
		self.good_segment()
		self.assertState('closed', name='TARGET')


if __name__ == '__main__':
	resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
	harness.main()
