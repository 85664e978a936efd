# SPDX-License-Identifier: MIT
"""Downloads or uploads over plain sockets, and tells how many bytes it had and how that ended:
client_transfer.py blocking|limit|poll|epoll|asyncio PORT get|put SIZE; a line on stdin makes one."""
import asyncio
import select
import socket
import sys
import time

WAY, PORT, METHOD, SIZE = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
BODY = (bytes(range(251)) * (SIZE // 251 + 1))[:SIZE]
PIECE = 16384
REQUEST = f'GET /{SIZE} HTTP/1.1\r\nConnection: close\r\n\r\n'.encode() if METHOD == 'get' else \
	f'PUT / HTTP/1.1\r\nConnection: close\r\nContent-Length: {SIZE}\r\n\r\n'.encode()
CONTENT = BODY if METHOD == 'get' else b'received %d\n' % SIZE
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(CONTENT) + CONTENT


class Blocking:
	def __init__(self):
		self.socket = socket.create_connection(('127.0.0.1', PORT), 60 if WAY == 'limit' else None)

	def send(self, data):
		self.socket.sendall(data)

	def receive(self):
		return self.socket.recv(PIECE)


class Polled(Blocking):
	"""Level-triggered."""

	def __init__(self):
		super().__init__()
		self.socket.setblocking(False)
		self.poll = select.poll()

	def wait(self, what):
		self.poll.register(self.socket, what)
		self.poll.poll()

	def send(self, data):
		while data:
			self.wait(select.POLLOUT)
			try:
				data = data[self.socket.send(data[:PIECE]):]
			except BlockingIOError:
				pass

	def receive(self):
		while True:
			self.wait(select.POLLIN)
			try:
				return self.socket.recv(PIECE)
			except BlockingIOError:
				pass


class Edged(Polled):
	"""Registered once, for edges: waits only after EAGAIN."""

	def __init__(self):
		super().__init__()
		self.epoll = select.epoll()
		self.epoll.register(self.socket, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)

	def until_done(self, function):
		while True:
			try:
				return function()
			except BlockingIOError:
				self.epoll.poll()

	def send(self, data):
		while data:
			part = data[:PIECE]
			data = data[self.until_done(lambda: self.socket.send(part)):]

	def receive(self):
		return self.until_done(lambda: self.socket.recv(PIECE))


def transfer():
	had = bytearray()
	try:
		peer = {'poll': Polled, 'epoll': Edged}.get(WAY, Blocking)()
		with peer.socket:
			peer.send(REQUEST + (BODY if METHOD == 'put' else b''))
			while data := peer.receive():
				had += data
	except OSError as error:
		return had, error
	return had, None


async def transfer_async():
	had = bytearray()
	try:
		reader, writer = await asyncio.open_connection('127.0.0.1', PORT)
		writer.write(REQUEST + (BODY if METHOD == 'put' else b''))
		await writer.drain()
		while data := await reader.read(PIECE):
			had += data
		writer.close()
	except OSError as error:
		return had, error
	return had, None


print('ready', flush=True)
for _ in sys.stdin:
	began = time.monotonic()
	had, error = asyncio.run(transfer_async()) if WAY == 'asyncio' else transfer()
	milliseconds = (time.monotonic() - began) * 1000
	differing = sum(a != b for a, b in zip(had, ANSWER))
	result = 'ok' if had == ANSWER else 'bad'
	print(f'{milliseconds:.1f} {result} bytes={len(had)} differing={differing} {type(error).__name__} {error}', flush=True)
