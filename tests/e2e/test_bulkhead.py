# SPDX-License-Identifier: MIT
"""Calls in flight over all processes: a limit, a queue, places that come back whoever dies."""
import os
import random
import signal
import subprocess

import harness

# Makes calls side by side that a silent server never answers; says how each began. `N nonblocking`,
# `N blocking`, then waits for a line before it leaves.
CALLER = r'''
import os, socket, sys, threading
port, count, blocking = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == 'blocking'
said = threading.Lock()
def say(text):
	with said:
		os.write(1, text.encode() + b'\n')
open_ones = []
def call():
	s = socket.socket()
	s.setblocking(blocking)
	error = s.connect_ex(('127.0.0.1', port))
	open_ones.append(s)
	say('began' if error in (0, 115) else 'refused %d' % error)
threads = [threading.Thread(target=call) for _ in range(count)]
for thread in threads:
	thread.start()
for thread in threads:
	thread.join()
for line in sys.stdin:
	if line == 'end one\n':
		open_ones.pop(0).close()
	else:
		break
'''

# One call after the other on one kept-alive connection.
ASKS = r'''
import os, socket, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
for _ in range(3):
	s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
	print(s.recv(65536) != b'')
'''

# Holds a call, then becomes a program that lives on without it.
BECOMES_ANOTHER = r'''
import os, socket, sys
s = socket.socket()
print(s.connect_ex(('127.0.0.1', int(sys.argv[1]))), flush=True)
os.execv(sys.executable, [sys.executable, '-c', 'print("became another", flush=True); input()'])
'''


class Bulkhead(harness.Case):
	def setUp(self):
		super().setUp()
		self.target = self.server()
		self.target.silent()

	def rule(self, text):
		self.rules['TARGET'] = f'127.0.0.1:{self.target.port} volume=100000 {text}'

	def caller(self, count, how='nonblocking'):
		return self.start([harness.PYTHON, '-c', CALLER, str(self.target.port), str(count), how],
			stdin=subprocess.PIPE, stdout=subprocess.PIPE)

	def lines(self, process, count):
		return [process.stdout.readline().decode().strip() for _ in range(count)]

	def tell(self, process, text):
		process.stdin.write(text.encode() + b'\n')
		process.stdin.flush()

	def in_flight(self):
		return self.cell(name='TARGET')['in_flight']

	def test_the_eleventh_of_ten_calls_in_four_processes_is_refused(self):
		self.rule('concurrency=10')
		callers = [self.caller(count) for count in (3, 3, 2, 2)]
		for process, count in zip(callers, (3, 3, 2, 2)):
			self.assertEqual(self.lines(process, count), ['began'] * count)
		self.assertEqual(self.in_flight(), 10)
		eleventh = self.caller(1)
		self.assertEqual(self.lines(eleventh, 1), ['refused 111'])
		self.assertTotals({'rejected': 1, 'short_circuited': 0}, name='TARGET')
		self.tell(callers[0], 'end one')
		harness.wait_until(lambda: self.in_flight() == 9, 10, 'a place came back')
		again = self.caller(1)
		self.assertEqual(self.lines(again, 1), ['began'])

	def test_status_does_not_count_what_the_dead_held(self):
		self.rule('concurrency=5')
		killed, reaped_late = self.caller(3), self.caller(2)
		self.lines(killed, 3)
		self.lines(reaped_late, 2)
		killed.kill()
		killed.wait(30)
		self.assertEqual(self.in_flight(), 2)
		reaped_late.kill()
		harness.wait_until(lambda: self.in_flight() == 0, 30, 'a process that nobody has waited for is dead')

	def test_what_a_process_held_before_an_exec_comes_back(self):
		self.rule('concurrency=1')
		changed = self.start([harness.PYTHON, '-c', BECOMES_ANOTHER, str(self.target.port)],
			stdin=subprocess.PIPE, stdout=subprocess.PIPE)
		self.assertEqual(self.lines(changed, 2), ['0', 'became another'])
		self.assertEqual(self.lines(self.caller(1), 1), ['began'])

	def test_a_blocking_caller_waits_its_turn_and_is_served(self):
		self.rule('concurrency=2 queue=1 queue-wait=30s')
		holder = self.caller(2)
		self.lines(holder, 2)
		waiting = self.caller(1, 'blocking')
		third = self.caller(1, 'nonblocking')
		self.assertEqual(self.lines(third, 1), ['refused 111'], 'one that does not block is never put to sleep')
		self.tell(holder, 'end one')
		self.assertEqual(self.lines(waiting, 1), ['began'])

	def test_the_queue_is_bounded_in_length_and_time(self):
		self.rule('concurrency=1 queue=1 queue-wait=2s')
		holder = self.caller(1)
		self.lines(holder, 1)
		two = self.caller(2, 'blocking')
		self.assertEqual(self.lines(two, 2), ['refused 111'] * 2)
		totals = self.cell(name='TARGET')['totals']
		self.assertEqual((totals['rejected'], totals['rejected_queue']), (2, 1), totals)

	def test_killed_holders_lose_their_places_and_the_living_keep_theirs(self):
		self.rule('concurrency=8')
		draw = random.Random(7)
		living = self.caller(1)
		self.lines(living, 1)
		for _ in range(34):
			holders = [self.caller(2) for _ in range(3)]
			for holder in holders:
				for _ in range(draw.randrange(3)):
					self.lines(holder, 1)
				holder.send_signal(signal.SIGKILL)
				holder.wait(30)

			def is_free():
				probe = self.caller(7)
				answers = self.lines(probe, 7)
				probe.kill()
				probe.wait(30)
				return answers == ['began'] * 7
			harness.wait_until(is_free, 30, 'the places of the dead came back')
		self.assertTotals({'timeout': 0, 'failure': 0}, name='TARGET')
		last = self.caller(8)
		answers = self.lines(last, 8)
		self.assertEqual(answers.count('began'), 7, answers)

	def test_open_connections_are_bounded_until_they_are_closed(self):
		self.target.healthy()
		self.rule('connections=1')
		holder = self.caller(1)
		self.lines(holder, 1)
		second = self.caller(1)
		self.assertEqual(self.lines(second, 1), ['refused 111'])
		totals = self.cell(name='TARGET')['totals']
		self.assertEqual((totals['rejected'], totals['rejected_connections']), (1, 1), totals)
		self.tell(holder, 'end one')
		harness.wait_until(lambda: self.lines(self.caller(1), 1) == ['began'], 10, 'the connection is closed')

	def test_a_call_ends_with_the_first_byte_of_its_answer(self):
		self.target.healthy()
		self.rule('concurrency=1')
		result = self.run_program([harness.PYTHON, '-c', ASKS, str(self.target.port)])
		self.assertEqual(result.stdout, 'True\n' * 3, result)
		self.assertEqual(self.in_flight(), 0)
		self.assertTotals({'success': 3, 'rejected': 0}, name='TARGET')

	def test_a_limit_set_by_hand_holds_at_once_and_below_what_is_in_flight(self):
		self.rule('concurrency=3')
		holder = self.caller(3)
		self.lines(holder, 3)
		self.assertEqual(self.shunt('set', 'TARGET', 'concurrency=2').returncode, 0)
		self.tell(holder, 'end one')
		harness.wait_until(lambda: self.in_flight() == 2, 10, 'one ended')
		self.assertEqual(self.lines(self.caller(1), 1), ['refused 111'])
		self.tell(holder, 'end one')
		harness.wait_until(lambda: self.in_flight() == 1, 10, 'another ended')
		self.assertEqual(self.lines(self.caller(1), 1), ['began'])
		self.assertEqual(self.shunt('set', 'TARGET', 'concurrency=off').returncode, 0)
		self.assertEqual(self.lines(self.caller(5), 5), ['began'] * 5)

	def test_rejections_open_the_circuit_unless_told_otherwise(self):
		for rejects, state in (('count', 'open'), ('ignore', 'closed')):
			with self.subTest(rejects):
				self.rules['TARGET'] = f'127.0.0.1:{self.target.port} volume=4 concurrency=1 rejects={rejects}'
				self._remove_state()
				holder = self.caller(6)
				self.lines(holder, 6)
				self.assertState(state, name='TARGET')
				holder.kill()

	def test_a_forked_child_holds_nothing_of_its_parent(self):
		self.rule('concurrency=1')
		script = r'''
import os, socket, sys
s = socket.socket()
s.setblocking(False)
s.connect_ex(('127.0.0.1', int(sys.argv[1])))
if os.fork() == 0:
	s.close()
	t = socket.socket()
	t.setblocking(False)
	print(t.connect_ex(('127.0.0.1', int(sys.argv[1]))))
	sys.exit()
os.wait()
for place in ('still held', 'free'):
	t = socket.socket()
	t.setblocking(False)
	print(t.connect_ex(('127.0.0.1', int(sys.argv[1]))))
	s.close()
'''
		result = self.run_program([harness.PYTHON, '-c', script, str(self.target.port)])
		# The circuit knows nothing more of a call that a fork cancelled; to its parent it goes on.
		self.assertEqual(result.stdout, '111\n111\n115\n', result)
		self.assertEqual(self.in_flight(), 0, os.listdir('/dev/shm'))


if __name__ == '__main__':
	harness.main()
