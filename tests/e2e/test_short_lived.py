# SPDX-License-Identifier: MIT
"""Many processes, one breaker."""
import os
import random
import signal
import time

import harness

WORKERS = r'''
import os, socket, sys, time
port, seconds = int(sys.argv[1]), float(sys.argv[2])
until = time.monotonic() + seconds

def work():
	while time.monotonic() < until:
		with socket.socket() as connection:
			try:
				connection.connect(('127.0.0.1', port))
				connection.sendall(b'GET / HTTP/1.0\r\n\r\n')
				connection.recv(4096)
			except OSError:
				pass
		time.sleep(0.01)

children = []
for _ in range(8):
	child = os.fork()
	if child == 0:
		work()
		os._exit(0)
	children.append(child)
for child in children:
	os.waitpid(child, 0)
'''

# One call after the other, until it is killed.
RESTLESS = r'''
import socket, sys
while True:
	connection = socket.socket()
	connection.settimeout(0.3)
	try:
		connection.connect(('127.0.0.1', int(sys.argv[1])))
		for _ in range(3):
			connection.sendall(b'GET / HTTP/1.1\r\n\r\n')
			if not connection.recv(4096):
				break
	except OSError:
		pass
	connection.close()
'''


class ShortLived(harness.Case):
	def begin(self, rule):
		self.target = self.server()
		self.port = self.target.port
		self.rules['TARGET'] = f'127.0.0.1:{self.port} {rule}'
		self.witness = self.wire(self.port)

	def loop(self, count):
		script = f'for i in $(seq {count}); do curl -sS -m 2 http://127.0.0.1:{self.port}/; done; true'
		return self.run_program(['bash', '-c', script])

	def test_a_loop_of_curl_trips_the_breaker_of_a_refusing_host(self):
		self.begin('volume=5 sleep=60s')
		result = self.loop(12)
		self.assertEqual(result.stderr.count('curl: (7)'), 12, result)
		self.assertEqual(len(self.witness.attempts()), 5)
		self.assertTotals({'failure': 5, 'short_circuited': 7, 'trips': 1}, name='TARGET')

	def test_a_loop_of_curl_waits_for_a_hung_host_only_until_the_circuit_opens(self):
		self.begin('volume=2 sleep=60s')
		self.target.silent()
		result = self.loop(6)
		self.assertEqual(result.stderr.count('curl: (28)'), 2, result)
		self.assertEqual(result.stderr.count('curl: (7)'), 4, result)
		# Six times curl's limit would be twelve seconds.
		self.assertLess(result.seconds, 10.0)
		self.assertTotals({'timeout': 2, 'short_circuited': 4, 'trips': 1}, name='TARGET')

	def test_eight_workers_send_one_probe_per_sleep_window(self):
		self.begin('volume=5 sleep=1s')
		self.run_program([harness.PYTHON, '-c', WORKERS, str(self.port), '6'])
		times = [attempt.when for attempt in self.witness.attempts()]
		tripped = times[4]
		probes = [when for when in times[5:] if when > tripped + 0.5]
		gaps = [after - before for before, after in zip([tripped] + probes, probes)]
		# Workers that had been admitted before the trip may still be under way.
		self.assertLessEqual(len(times) - len(probes), 5 + 7, times)
		self.assertGreaterEqual(len(probes), 3, gaps)
		# Each was admitted a second after the one before it, and none reached the wire before it was.
		self.assertLessEqual(len(probes), (probes[-1] - tripped) / 0.99, gaps)

	def test_kill_at_random_moments_leaves_nothing_stuck(self):
		self.begin('volume=5 sleep=200ms abandon=100ms window=2s')
		chance = random.Random(20)
		until = time.monotonic() + 20
		ways = [self.target.healthy, self.target.healthy, self.target.refuse, self.target.silent, self.target.reset_after_request]
		running = []
		kills = 0
		while time.monotonic() < until or kills <= 50:
			chance.choice(ways)()
			while len(running) < 4:
				running.append(self.start([harness.PYTHON, '-S', '-c', RESTLESS, str(self.port)]))
			time.sleep(chance.uniform(0.0, 0.12))
			victim = running.pop(chance.randrange(len(running)))
			self.assertIsNone(victim.poll(), 'a client died by itself')
			os.kill(victim.pid, signal.SIGKILL)
			victim.wait()
			kills += 1
		for process in running:
			self.stop(process)
		self.settles()

	def settles(self):
		self.target.healthy()
		harness.wait_until(lambda: self.run_program(['curl', '-s', '-m', '2', f'http://127.0.0.1:{self.port}/']).returncode == 0,
			30, 'a call gets through')
		harness.wait_until(lambda: self.cell(name='TARGET')['state'] == 'closed', 30, 'the circuit closes')
		cell = self.cell(name='TARGET')
		totals = cell['totals']
		self.assertEqual(cell['in_flight'], 0, cell)
		self.assertLessEqual(cell['errors'], cell['requests'], cell)
		self.assertLessEqual(cell['requests'], totals['success'] + totals['failure'] + totals['timeout'], cell)
		for name, count in totals.items():
			self.assertGreaterEqual(count, 0, name)
			self.assertLess(count, 1 << 32, name)
		self.assertGreater(totals['trips'], 0, totals)
		self.assertGreater(totals['success'], 0, totals)


if __name__ == '__main__':
	harness.main()
