# SPDX-License-Identifier: MIT
"""A server on one loopback port that is healthy or fails in the way a test asks for.

`Server()` speaks a little HTTP by itself. `Server(backend=('127.0.0.1', port))` stands in front of a
real server. `Server(tls=context)` does the handshake, and then behaves as told. The way can be changed
at any time and holds for connections that are already there, too.
"""
import select
import socket
import ssl
import struct
import threading
import time

BODY = b'hello from the server\n'


def reserve_port(address='127.0.0.1', port=0):
	"""A socket that holds a port without listening: connects to it are refused."""
	family = socket.AF_INET6 if ':' in address else socket.AF_INET
	holder = socket.socket(family, socket.SOCK_STREAM)
	holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
	holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
	if family == socket.AF_INET6:
		holder.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
	holder.bind((address, port))
	return holder


def reset(connection):
	connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
	connection.close()


class Server:
	def __init__(self, backend=None, tls=None, address='127.0.0.1', port=0, body=BODY, apart=False):
		self.backend = backend
		self.tls = tls
		self.address = address
		self.body = body
		self.apart = apart   # header and body as two writes, and two TLS records
		self.mode = 'refuse'
		self.delay = 0.0
		self.accepted = 0
		self.handshakes = 0
		self.requests = []
		self._holder = reserve_port(address, port)
		self.port = self._holder.getsockname()[1]
		self._listener = None
		self._fillers = []
		self._open = set()
		self._lock = threading.Lock()
		self._changed = threading.Event()

	# How to behave from now on.

	def refuse(self):
		self._become('refuse')

	def healthy(self):
		self._become('healthy', backlog=128)

	def slow(self, seconds):
		"""Answers, but only after `seconds`."""
		self._become('slow', backlog=128, delay=seconds)

	def silent(self):
		"""Accepts, reads, and never says a word."""
		self._become('silent', backlog=128)

	def reset_after_request(self):
		self._become('reset', backlog=128)

	def reset_at_accept(self):
		self._become('reset-at-accept', backlog=128)

	def eof(self):
		"""Closes in place of an answer."""
		self._become('eof', backlog=128)

	def full_backlog(self):
		"""Listens, but its queue is full and nobody accepts: a SYN is never answered."""
		self._become('backlog', backlog=0)

	def drop_connections(self):
		"""Resets every connection there is; the way to behave stays."""
		for connection in list(self._open):
			try:
				connection.shutdown(socket.SHUT_RDWR)
			except OSError:
				pass

	def close(self):
		self._become('refuse')
		self.drop_connections()
		self._holder.close()

	def _become(self, mode, backlog=None, delay=0.0):
		self.mode, self.delay = mode, delay
		self._changed.set()
		self._changed = threading.Event()
		listening = self._listener is not None and not self._fillers
		if listening and backlog:
			return
		self._stop_listening()
		if backlog is None:
			return
		listener = reserve_port(self.address, self.port)
		listener.listen(backlog)
		self._listener = listener
		if backlog == 0:
			self._fill()
		else:
			threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

	def _stop_listening(self):
		listener, self._listener = self._listener, None
		if listener is not None:
			try:
				listener.shutdown(socket.SHUT_RDWR)
			except OSError:
				pass
			listener.close()
		for filler in self._fillers:
			filler.close()
		self._fillers = []

	def _fill(self):
		while True:
			filler = socket.socket(socket.AF_INET6 if ':' in self.address else socket.AF_INET)
			filler.settimeout(0.3)
			self._fillers.append(filler)
			try:
				filler.connect((self.address, self.port))
			except OSError:
				# The last one would go on sending SYNs into the test's count.
				self._fillers.pop().close()
				return

	def _accept(self, listener):
		while self._listener is listener:
			try:
				connection, _ = listener.accept()
			except OSError:
				return
			with self._lock:
				self.accepted += 1
			if self.mode == 'reset-at-accept':
				reset(connection)
				continue
			threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

	def _serve(self, connection):
		self._open.add(connection)
		try:
			if self.tls is not None:
				connection = self._shake_hands(connection)
			if self.backend is not None:
				self._relay(connection)
			else:
				self._answer_http(connection)
		except (OSError, ValueError):
			pass
		finally:
			self._open.discard(connection)
			connection.close()

	def _shake_hands(self, connection):
		self._open.discard(connection)
		connection.settimeout(30)
		wrapped = self.tls.wrap_socket(connection, server_side=True)
		wrapped.settimeout(None)
		self._open.add(wrapped)
		with self._lock:
			self.handshakes += 1
		return wrapped

	def _answer_http(self, connection):
		pending = b''
		while True:
			data = connection.recv(65536)
			if not data:
				return
			pending += data
			while b'\r\n\r\n' in pending:
				request, pending = pending.split(b'\r\n\r\n', 1)
				self.requests.append((time.monotonic(), request))
				if not self._may_answer(connection):
					return
				is_last = b'connection: close' in request.lower()
				header = b'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n' % len(self.body)
				if is_last:
					header += b'Connection: close\r\n'
				for part in self._parts(header + b'\r\n', self.body):
					connection.sendall(part)
				if is_last:
					linger(connection)
					return

	def _parts(self, header, body):
		return (header, body) if self.apart else (header + body,)

	def _may_answer(self, connection):
		"""Does what the mode says before an answer; False where there is none to give."""
		asked = time.monotonic()
		while True:
			mode, changed = self.mode, self._changed
			if mode == 'healthy':
				return True
			if mode == 'slow':
				left = asked + self.delay - time.monotonic()
				if left <= 0:
					return True
				changed.wait(left)
			elif mode == 'reset':
				reset(connection)
				return False
			elif mode == 'eof':
				return False
			else:
				# Silent for this request, whatever comes later: wait for the client to go.
				while connection.recv(65536):
					pass
				return False

	def _relay(self, connection):
		if self.mode in ('silent', 'reset', 'eof') and not self._swallow_first(connection):
			return
		with socket.create_connection(self.backend) as behind:
			while True:
				ready = select.select([connection, behind], [], [])[0]
				for source in ready:
					data = source.recv(65536)
					if not data:
						return
					if source is connection and not self._may_pass(connection):
						return
					if source is behind and self.mode == 'slow':
						time.sleep(self.delay)
					(behind if source is connection else connection).sendall(data)

	def _swallow_first(self, connection):
		"""A server that fails says no greeting: it takes what the client sends, and then fails."""
		select.select([connection], [], [], 0.3 if self.mode == 'reset' else None)
		return self._may_pass(connection)

	def _may_pass(self, connection):
		if self.mode in ('healthy', 'slow'):
			return True
		return self._may_answer(connection)


def linger(connection):
	"""Ends the answer and waits for the client to go, as servers do: closing at once, with the client's own
	close_notify unread, would reset the connection and perhaps overtake the answer."""
	connection.shutdown(socket.SHUT_WR)
	connection.settimeout(5)
	while connection.recv(65536):
		pass


def tls_context(certificate, key, version='1.3', tickets=2):
	"""A server context for exactly one version of TLS."""
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(certificate, key)
	number = ssl.TLSVersion.TLSv1_2 if version == '1.2' else ssl.TLSVersion.TLSv1_3
	context.minimum_version = context.maximum_version = number
	context.num_tickets = tickets
	return context
