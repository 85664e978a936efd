# SPDX-License-Identifier: MIT
"""Answers that come when nobody waits any more, and probes that never come back."""
import os
import signal
import subprocess
import time

import harness

CLOSE_WHILE_PENDING = r'''
import errno, socket, sys
connection = socket.socket()
connection.setblocking(False)
error = connection.connect_ex(('127.0.0.1', int(sys.argv[1])))
connection.close()
print(errno.errorcode[error])
'''


class LateAndLost(harness.Case):
	def begin(self, rule):
		self.target = self.server()
		self.url = f'http://127.0.0.1:{self.target.port}/'
		self.rules['TARGET'] = f'127.0.0.1:{self.target.port} {rule}'
		self.witness = self.wire(self.target.port)

	def curl(self, patience=2):
		return self.run_program(['curl', '-sS', '-m', str(patience), self.url])

	def open_circuit(self, volume=3):
		self.target.refuse()
		for _ in range(volume):
			self.assertEqual(self.curl().returncode, 7)
		self.assertState('open', name='TARGET')

	def assertWorksWithin(self, seconds):
		"""The circuit is not wedged: with a healthy server a call soon gets through, and closes it."""
		harness.wait_until(lambda: self.curl().returncode == 0, seconds, 'a call gets through')
		self.assertState('closed', name='TARGET')

	def test_a_success_from_before_the_trip_does_not_close_the_circuit(self):
		slow, dead = self.server(), self.server()
		slow.slow(60)
		self.rules['BOTH'] = '127.0.0.1 per=rule volume=3 sleep=60s'
		early = self.start(['curl', '-sS', '-m', '60', f'http://127.0.0.1:{slow.port}/'], stdout=subprocess.PIPE)
		harness.wait_until(lambda: slow.requests, 10, 'the slow request is under way')
		for _ in range(3):
			self.run_program(['curl', '-sS', f'http://127.0.0.1:{dead.port}/'])
		self.assertState('open', name='BOTH')
		slow.healthy()
		out, _ = early.communicate(timeout=20)
		self.assertEqual(out, b'hello from the server\n')
		self.assertState('open', name='BOTH')
		self.assertTotals({'success': 1, 'trips': 1, 'failure': 3}, name='BOTH')

	def test_a_probe_whose_process_is_killed_wedges_nothing(self):
		self.begin('volume=3 sleep=1s')
		self.open_circuit()
		self.target.silent()
		self.wait_for_probe(name='TARGET')
		before = len(self.target.requests)
		probe = self.start(['curl', '-s', '-m', '60', self.url], stdout=subprocess.DEVNULL)
		harness.wait_until(lambda: len(self.target.requests) > before, 10, 'the probe is under way')
		self.assertState('half_open', name='TARGET')
		os.kill(probe.pid, signal.SIGKILL)
		probe.wait()
		self.target.healthy()
		self.assertWorksWithin(20)

	def test_a_probe_whose_descriptor_is_closed_while_pending_wedges_nothing(self):
		self.begin('volume=3 sleep=1s')
		self.open_circuit()
		self.target.full_backlog()
		self.wait_for_probe(name='TARGET')
		probe = self.run_program([harness.PYTHON, '-c', CLOSE_WHILE_PENDING, str(self.target.port)])
		self.assertEqual(probe.stdout, 'EINPROGRESS\n', probe)
		self.target.healthy()
		self.assertWorksWithin(20)

	def test_a_server_that_takes_six_seconds_gets_its_circuit_closed(self):
		self.begin('volume=3 sleep=1s')
		self.open_circuit()
		self.target.slow(6)
		opened = time.monotonic()
		running = []
		while time.monotonic() < opened + 60:
			running.append(self.start(['curl', '-s', '-m', '50', self.url], stdout=subprocess.DEVNULL))
			time.sleep(0.2)
			if self.cell(name='TARGET')['state'] == 'closed':
				break
		self.assertState('closed', name='TARGET')
		took = time.monotonic() - opened
		# One probe per lease, not one per call.
		self.assertLessEqual(len(self.witness.attempts(opened)), took + 2)


if __name__ == '__main__':
	harness.main()
