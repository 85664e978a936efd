# SPDX-License-Identifier: MIT
"""Connections that live on while the circuit opens and closes."""
import os
import pty
import re
import select
import subprocess
import time

import harness
import daemons

CLIENTS = os.path.join(harness.PROGRAMS, 'clients')

IDLE = r'''
import socket, sys, time
held, began = [], time.monotonic()
while len(held) < 10 and time.monotonic() < began + 50:
	connection, tried = socket.socket(), time.monotonic()
	try:
		connection.connect(('127.0.0.1', int(sys.argv[1])))
		held.append(connection)
		print(f'{tried - began:.3f} {time.monotonic() - began:.3f}', flush=True)
	except ConnectionRefusedError:
		connection.close()
		time.sleep(0.02)
held[-1].sendall(b'GET / HTTP/1.0\r\n\r\n')
print(held[-1].recv(4096).decode().splitlines()[-1], flush=True)
'''


class _KeptAlive(harness.Case):
	def begin(self, backend=None, sleep='2s'):
		self.target = self.server(backend=backend)
		self.target.healthy()
		self.port = self.target.port
		self.rules['TARGET'] = f'127.0.0.1:{self.port} volume=5 errors=30% window=60s sleep={sleep}'
		self.witness = self.wire(self.port)

	def cut_mid_life(self, session, cut_message):
		"""Four connections; three of them hang and open the circuit; the fourth is idle and well, and is
		refused all the same."""
		for result in session.calls(4):
			self.assertEqual(result.returncode, 0, result)
		self.target.silent()
		for result in session.calls(3):
			self.assertNotEqual(result.returncode, 0, result)
		opened = time.monotonic()
		self.assertState('open', name='TARGET')
		refused = session.calls(4)
		self.assertAtOnce(refused)
		self.assertTrue(self.witness.quiet(opened), self.witness.attempts(opened))
		self.assertEqual(len([r for r in refused if re.search(cut_message, r.text)]), 1, refused)
		self.assertEqual(len([r for r in refused if re.search('ECONNREFUSED|Connection refused', r.text)]), 3, refused)
		self.target.healthy()
		self.wait_for_probe(name='TARGET')
		for _ in range(2):
			result = session.calls(1)[0]
			self.assertEqual(result.returncode, 0, result)
		self.assertState('closed', name='TARGET')
		for result in session.calls(4):
			self.assertEqual(result.returncode, 0, result)


class KeptAlive(_KeptAlive):
	def test_python_is_refused_mid_life_and_goes_on_later(self):
		self.begin()
		client = os.path.join(CLIENTS, 'client_keepalive.py')
		self.cut_mid_life(harness.LongLived(self, [harness.PYTHON, client, str(self.port)]), r'^ConnectionResetError')

	def test_a_node_agent_is_refused_mid_life_and_goes_on_later(self):
		self.begin()
		client = os.path.join(CLIENTS, 'client_http.js')
		self.cut_mid_life(harness.LongLived(self, ['node', client, str(self.port), 'keep']), r'^ECONNRESET')

	def test_ten_idle_connections_hold_no_probe_longer_than_a_second(self):
		self.begin(sleep='1s lease=30s')
		self.target.refuse()
		for result in self.run_many([['curl', '-s', f'http://127.0.0.1:{self.port}/']] * 5):
			self.assertEqual(result.returncode, 7)
		self.assertState('open', name='TARGET')
		self.target.healthy()
		result = self.run_program([harness.PYTHON, '-c', IDLE, str(self.port)])
		lines = result.stdout.splitlines()
		self.assertEqual(len(lines), 11, result)
		self.assertEqual(lines[-1], 'hello from the server')
		# Each was let in between these two times.
		times = [tuple(map(float, line.split())) for line in lines[:-1]]
		gaps = [after[1] - before[0] for before, after in zip(times, times[1:])]
		# A lease would be thirty seconds.
		self.assertLess(max(gaps), 15, gaps)
		self.assertGreater(min(gaps), 0.9, gaps)
		self.assertState('closed', name='TARGET')


class Sessions(_KeptAlive):
	def talk(self, process, line, pattern, seconds=15):
		"""Types a line into a terminal and waits for what it says; returns that and how long it took."""
		began = time.monotonic()
		os.write(self.terminal, line.encode() + b'\n')
		heard = ''
		while not re.search(pattern, heard):
			left = began + seconds - time.monotonic()
			self.assertGreater(left, 0, f'{line!r}: {heard!r}, rc {process.poll()}')
			if select.select([self.terminal], [], [], left)[0]:
				try:
					heard += os.read(self.terminal, 4096).decode(errors='replace')
				except OSError:
					self.assertRegex(heard, pattern)
		return heard, time.monotonic() - began

	def session(self, argv):
		self.terminal, inner = pty.openpty()
		self.addCleanup(os.close, self.terminal)
		process = self.start(argv, stdin=inner, stdout=inner, stderr=subprocess.STDOUT)
		os.close(inner)
		return process

	def test_redis_cli_is_refused_mid_life_and_goes_on_later(self):
		redis = daemons.Redis()
		self.addCleanup(redis.close)
		self.begin(backend=('127.0.0.1', redis.port), sleep='60s')
		process = self.session(['redis-cli', '-h', '127.0.0.1', '-p', str(self.port)])
		self.talk(process, 'ECHO one', r'"one"')
		self.assertEqual(self.shunt('trip', 'TARGET').returncode, 0)
		opened = time.monotonic()
		said, seconds = self.talk(process, 'PING', r'(Connection reset by peer|Connection refused|not connected>)')
		self.assertLess(seconds, harness.AT_ONCE)
		self.assertNotIn('PONG', said)
		self.assertTrue(self.witness.quiet(opened), self.witness.attempts(opened))
		self.assertEqual(self.shunt('reset', 'TARGET').returncode, 0)
		self.talk(process, 'ECHO two', r'"two"')
		self.assertState('closed', name='TARGET')

	def test_psql_fails_at_once_and_a_new_session_works(self):
		postgres = daemons.Postgres()
		self.addCleanup(postgres.close)
		self.begin(backend=('127.0.0.1', postgres.port), sleep='60s')
		argv = ['psql', '-XAtq', '-P', 'pager=off', f'host=127.0.0.1 port={self.port} user=postgres dbname=postgres sslmode=disable '
			'gssencmode=disable connect_timeout=5']
		process = self.session(argv)
		self.talk(process, "select 'o'||'ne';", r'one')
		self.assertEqual(self.shunt('trip', 'TARGET').returncode, 0)
		opened = time.monotonic()
		_, seconds = self.talk(process, "select 'tw'||'o';", r'(server closed the connection unexpectedly|could not (send|receive) data)')
		self.assertLess(seconds, harness.AT_ONCE)
		self.assertTrue(self.witness.quiet(opened), self.witness.attempts(opened))
		refused = self.run_program(argv + ['-c', 'select 3'])
		self.assertEqual(refused.returncode, 2, refused)
		self.assertIn('Connection refused', refused.stderr)
		self.assertEqual(self.shunt('reset', 'TARGET').returncode, 0)
		again = self.run_program(argv + ['-c', 'select 4'])
		self.assertEqual((again.returncode, again.stdout), (0, '4\n'), again)


if __name__ == '__main__':
	harness.main()
