# SPDX-License-Identifier: MIT
"""Descriptors that came from elsewhere, or went out of sight; and a library that was loaded twice."""
import os
import shutil

import harness

PORT = 'import os, socket, sys\nPORT = int(sys.argv[1])\n'

CONNECTS = PORT + r'''
for i in range(3):
	with socket.socket() as s:
		print(s.connect_ex(('127.0.0.1', PORT)))
'''

# The child gets sockets over exec: of TCP, a file and a datagram socket.
HANDS_DOWN = PORT + r'''
stream, datagram = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
for s in stream, datagram:
	s.set_inheritable(True)
os.execv(sys.executable, [sys.executable, '-c', """
import socket, sys
for number in sys.argv[2:]:
	print(socket.socket(fileno=int(number)).connect_ex(('127.0.0.1', int(sys.argv[1]))))
""", sys.argv[1], str(stream.fileno()), str(datagram.fileno())])
'''

# ctypes asks libc itself: no preload sees this close.
CLOSES_OUT_OF_SIGHT = PORT + r'''
import ctypes
def closed_and_reopened(fd):
	assert ctypes.CDLL('libc.so.6').close(fd) == 0
	assert os.open('data', os.O_RDWR | os.O_CREAT) == fd
	print(os.write(fd, b'kept'), os.pread(fd, 9, 0), os.lseek(fd, 0, 0), os.read(fd, 9))
def answered():
	s = socket.create_connection(('127.0.0.1', PORT))
	s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
	s.recv(65536)
	return s
first, second = answered(), answered()
print('ready', flush=True)
sys.stdin.readline()
try:
	second.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
except ConnectionResetError:
	print('cut')
closed_and_reopened(first.detach())
closed_and_reopened(second.detach())
'''

# libc moves /dev/null over the standard descriptors by itself.
DAEMON = PORT + r'''
import ctypes
s = socket.create_connection(('127.0.0.1', PORT))
s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
s.recv(65536)
os.dup2(s.fileno(), 0)
s.close()
done = os.open('done', os.O_WRONLY | os.O_CREAT)
assert ctypes.CDLL(None).daemon(1, 0) == 0
os.write(done, b'%d %d\n' % (os.write(0, b'x'), len(os.read(0, 9))))
'''

# libc moves the new file to the number of the old one by itself.
REOPENS = PORT + r'''
import ctypes
s = socket.create_connection(('127.0.0.1', PORT))
s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
s.recv(65536)
os.dup2(s.fileno(), 0)
s.close()
libc = ctypes.CDLL(None)
libc.freopen.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
assert libc.freopen(b'/dev/zero', b'r+', ctypes.c_void_p.in_dll(libc, 'stdin')) is not None
print(os.write(0, b'x'), len(os.read(0, 9)), ctypes.get_errno())
'''

# No fork handler of libc runs.
FORKS_BARE = PORT + r'''
import ctypes
s = socket.create_connection(('127.0.0.1', PORT))
s.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
child = ctypes.CDLL(None)._Fork()
if child == 0:
	os._exit(0)
os.waitpid(child, 0)
print(s.recv(65536) != b'')
'''

LISTENS = PORT + r'''
with socket.socket() as s:
	s.bind(('127.0.0.1', 0))
	s.listen()
	print(os.strerror(s.connect_ex(('127.0.0.1', PORT))))
'''

# libunwind's own descriptors go, and their numbers to pipes that hold data.
TRIPS_WITH_PIPES = PORT + r'''
os.closerange(3, 300)
pipes = [os.pipe() for _ in range(20)]
for inward, outward in pipes:
	os.set_blocking(inward, False)
	os.write(outward, b'kept')
with socket.socket() as s:
	s.connect_ex(('127.0.0.1', PORT))
print(all(os.read(inward, 99) == b'kept' for inward, _ in pipes))
'''


class Descriptors(harness.Case):
	def python(self, script, port, *arguments, **keywords):
		return self.run_program([harness.PYTHON, '-c', script, str(port), *arguments], **keywords)

	def test_two_copies_of_the_library_count_once(self):
		target = self.server()
		self.rules['TARGET'] = f'127.0.0.1:{target.port} volume=100'
		copy = shutil.copy(harness.LIBRARY, self.scratch + '/libcopy.so')
		for count, preload in enumerate((f'{harness.LIBRARY}:{copy}', f'{copy}:{harness.LIBRARY}'), 1):
			result = self.python(CONNECTS, target.port, extra={'LD_PRELOAD': preload})
			self.assertEqual(result.stdout, '111\n' * 3, result)
			self.assertTotals({'failure': 3 * count}, name='TARGET')

	def test_a_stream_socket_inherited_over_exec_is_guarded_and_a_datagram_socket_is_not(self):
		target = self.server()
		self.rules['TARGET'] = f'127.0.0.1:{target.port} force=open'
		result = self.python(HANDS_DOWN, target.port)
		self.assertEqual(result.stdout, '111\n0\n', result)

	def test_neither_a_refusal_nor_a_cut_reaches_a_file_that_got_the_number(self):
		target = self.server()
		target.healthy()
		self.rules['TARGET'] = f'127.0.0.1:{target.port}'
		process = self.start([harness.PYTHON, '-c', CLOSES_OUT_OF_SIGHT, str(target.port)],
			stdin=harness.subprocess.PIPE, stdout=harness.subprocess.PIPE)
		self.assertEqual(process.stdout.readline(), b'ready\n')
		self.assertEqual(self.shunt('force', 'TARGET', 'open').returncode, 0)
		out, _ = process.communicate(b'go\n', timeout=30)
		self.assertEqual(out, b"cut\n" + b"4 b'kept' 0 b'kept'\n" * 2)

	def test_a_daemon_s_standard_descriptors_are_no_connection_any_more(self):
		target = self.server()
		target.healthy()
		self.rules['TARGET'] = f'127.0.0.1:{target.port}'
		self.assertEqual(self.python(DAEMON, target.port).returncode, 0)
		done = self.scratch + '/done'
		harness.wait_until(lambda: os.path.getsize(done) == 4, 30, 'the daemon wrote')
		with open(done, encoding='ascii') as file:
			self.assertEqual(file.read(), '1 0\n')
		self.assertTotals({'success': 1, 'failure': 0, 'cancelled': 0, 'unused': 0}, name='TARGET')

	def target_named(self, rule=''):
		target = self.server()
		target.healthy()
		self.rules['TARGET'] = f'127.0.0.1:{target.port} {rule}'
		return target

	def test_a_stream_that_was_reopened_is_no_connection_any_more(self):
		result = self.python(REOPENS, self.target_named().port)
		self.assertEqual(result.stdout, '1 9 0\n', result)
		self.assertTotals({'success': 1, 'cancelled': 0, 'unused': 0}, name='TARGET')

	def test_a_fork_that_no_handler_sees_cancels_an_open_call_once(self):
		result = self.python(FORKS_BARE, self.target_named().port)
		self.assertEqual(result.stdout, 'True\n', result)
		self.assertTotals({'success': 0, 'cancelled': 1, 'timeout': 0, 'late': 0}, name='TARGET')

	def test_a_backtrace_touches_no_file_that_got_a_number_of_libunwind_s(self):
		target = self.server()
		log = self.scratch + '/log'
		self.rules['TARGET'] = f'127.0.0.1:{target.port} volume=1'
		self.settings = {'SHUNT_BACKTRACE': '1', 'SHUNT_LOG': log}
		result = self.python(TRIPS_WITH_PIPES, target.port)
		self.assertEqual(result.stdout, 'True\n', result)
		with open(log, encoding='utf-8') as file:
			self.assertIn('no backtrace: the program closed', file.read())

	def test_what_listens_is_told_so_though_the_circuit_is_open(self):
		result = self.python(LISTENS, self.target_named('force=open').port)
		self.assertIn('already connected', result.stdout)


if __name__ == '__main__':
	harness.main()
