# SPDX-License-Identifier: MIT
"""Servers small enough to be written here: each speaks just what the rows ask of it, in threads."""
import base64
import gzip
import hashlib
import io
import json
import socket
import socketserver
import struct
import tarfile
import threading
from http.server import BaseHTTPRequestHandler


class Little:
	"""`handler` on a port of its own."""

	handler = None

	def __init__(self):
		class Threads(socketserver.ThreadingTCPServer):
			allow_reuse_address = True
			daemon_threads = True
			request_queue_size = 128
		self._server = Threads(('127.0.0.1', 0), self.handler)
		self._server.owner = self
		self.port = self._server.server_address[1]
		threading.Thread(target=self._server.serve_forever, daemon=True).start()

	def variables(self):
		return {'PORT': str(self.port), 'URL': f'http://127.0.0.1:{self.port}'}

	def close(self):
		self._server.shutdown()
		self._server.server_close()


class _Http(BaseHTTPRequestHandler):
	protocol_version = 'HTTP/1.1'
	# The header and the body leave in one piece, and the same every time.
	wbufsize = -1

	def log_message(self, *_):
		pass

	def answer(self, body, kind='text/plain', code=200, more=()):
		self.send_response_only(code)
		self.send_header('Content-Type', kind)
		self.send_header('Content-Length', str(len(body)))
		for name, value in more:
			self.send_header(name, value)
		self.end_headers()
		if self.command != 'HEAD':
			self.wfile.write(body)


class _EchoHandler(_Http):
	"""Says what it was sent."""

	def do_GET(self):
		if self.path == '/redirect':
			self.answer(b'', code=302, more=[('Location', '/there')])
		elif self.path == '/chunked':
			self.send_response_only(200)
			self.send_header('Transfer-Encoding', 'chunked')
			self.end_headers()
			for i in range(20):
				self.wfile.write(b'10\r\nchunk number %02d\n\r\n' % i)
				self.wfile.flush()
			self.wfile.write(b'0\r\n\r\n')
		elif self.path == '/missing':
			self.answer(b'no such thing\n', code=404)
		else:
			self.answer(f'{self.command} {self.path}\n'.encode())

	do_HEAD = do_DELETE = do_GET

	def do_POST(self):
		body = self._body()
		text = f'{self.command} {self.path} {len(body)} bytes, sha1 {hashlib.sha1(body).hexdigest()}\n'
		self.answer(text.encode())

	do_PUT = do_POST

	def _body(self):
		if self.headers.get('Transfer-Encoding', '').lower() != 'chunked':
			return self.rfile.read(int(self.headers.get('Content-Length', 0)))
		body = b''
		while True:
			size = int(self.rfile.readline(), 16)
			body += self.rfile.read(size)
			self.rfile.readline()
			if size == 0:
				return body


class Echo(Little):
	handler = _EchoHandler


class _RegistryHandler(_Http):
	def do_GET(self):
		registry = self.server.owner
		if self.path == '/greeting':
			self.answer(registry.document(), 'application/json')
		elif self.path == '/greeting/-/greeting-1.0.0.tgz':
			self.answer(registry.tarball, 'application/octet-stream')
		else:
			self.answer(b'{}', 'application/json', 404)

	def do_POST(self):
		self.rfile.read(int(self.headers.get('Content-Length', 0)))
		self.answer(b'{}', 'application/json')


class Registry(Little):
	"""An npm registry with one package."""

	handler = _RegistryHandler

	def __init__(self):
		self.tarball = self._pack({
			'package.json': '{"name": "greeting", "version": "1.0.0", "main": "index.js"}\n',
			'index.js': 'module.exports = "hello from the server";\n',
		})
		super().__init__()

	@staticmethod
	def _pack(files):
		packed = io.BytesIO()
		with tarfile.open(fileobj=packed, mode='w') as tar:
			for name, text in files.items():
				info = tarfile.TarInfo('package/' + name)
				info.size, info.mode = len(text), 0o644
				tar.addfile(info, io.BytesIO(text.encode()))
		return gzip.compress(packed.getvalue(), mtime=0)

	def document(self):
		digest = base64.b64encode(hashlib.sha512(self.tarball).digest()).decode()
		version = {'name': 'greeting', 'version': '1.0.0', 'main': 'index.js', 'dist': {
			'tarball': f'http://127.0.0.1:{self.port}/greeting/-/greeting-1.0.0.tgz', 'integrity': 'sha512-' + digest}}
		return json.dumps({'name': 'greeting', 'dist-tags': {'latest': '1.0.0'}, 'versions': {'1.0.0': version}}).encode()


class _Lines(socketserver.StreamRequestHandler):
	"""Protocols of lines."""

	wbufsize = -1

	def say(self, *lines):
		for line in lines:
			self.wfile.write(line.encode() + b'\r\n')
		self.wfile.flush()

	def lines(self):
		for line in self.rfile:
			yield line.decode(errors='replace').rstrip('\r\n')


class _SmtpHandler(_Lines):
	def handle(self):
		self.say('220 localhost ESMTP')
		lines = self.lines()
		for line in lines:
			word = line.split(' ')[0].upper()
			if word == 'EHLO':
				self.say('250-localhost', '250-PIPELINING', '250 8BITMIME')
			elif word == 'DATA':
				self.say('354 go on')
				size = sum(len(text) for text in iter(lambda: next(lines), '.'))
				self.say(f'250 taken, {"some" if size else "no"} text')
			elif word == 'QUIT':
				self.say('221 bye')
				return
			else:
				self.say('250 ok')


class Smtp(Little):
	"""Takes every mail."""

	handler = _SmtpHandler


MAIL = ['From: a@localhost', 'To: b@localhost', 'Subject: a greeting', 'Message-ID: <1@localhost>', '',
	'hello from the server', '.']


class _Pop3Handler(_Lines):
	def handle(self):
		self.say('+OK ready')
		size = sum(len(line) + 2 for line in MAIL[:-1])
		for line in self.lines():
			word = line.split(' ')[0].upper()
			if word == 'STAT':
				self.say(f'+OK 1 {size}')
			elif word == 'LIST':
				self.say('+OK', f'1 {size}', '.') if line.upper() == 'LIST' else self.say(f'+OK 1 {size}')
			elif word == 'UIDL':
				self.say('+OK', '1 first', '.') if line.upper() == 'UIDL' else self.say('+OK 1 first')
			elif word in ('RETR', 'TOP'):
				self.say('+OK', *MAIL)
			elif word in ('CAPA', 'AUTH', 'STLS'):
				self.say('-ERR no')
			else:
				self.say('+OK')
			if word == 'QUIT':
				return


class Pop3(Little):
	"""One mail, for everybody."""

	handler = _Pop3Handler


class _WhoisHandler(_Lines):
	def handle(self):
		self.say(f'you asked for {next(self.lines())}', *(f'line {i}' for i in range(50)))


class Whois(Little):
	"""One line in, some out, and the end."""

	handler = _WhoisHandler


class _DnsOverTcp(socketserver.BaseRequestHandler):
	def handle(self):
		while True:
			head = self.request.recv(2, socket.MSG_WAITALL)
			if len(head) < 2:
				return
			packet = self.request.recv(struct.unpack('!H', head)[0], socket.MSG_WAITALL)
			answer = address_of(packet)
			self.request.sendall(struct.pack('!H', len(answer)) + answer)


def address_of(packet):
	"""The answer to a question for an A record: 192.0.2.1."""
	end = packet.index(b'\0', 12) + 5
	header = packet[:2] + struct.pack('!HHHHH', 0x8580, 1, 1, 0, 0)
	return header + packet[12:end] + struct.pack('!HHHIH4s', 0xC00C, 1, 1, 60, 4, socket.inet_aton('192.0.2.1'))


class Dns(Little):
	"""A name server, over UDP and TCP, on one port."""

	handler = _DnsOverTcp

	def __init__(self):
		super().__init__()
		self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		self._socket.bind(('127.0.0.1', self.port))
		threading.Thread(target=self._serve, daemon=True).start()

	def _serve(self):
		while True:
			try:
				packet, client = self._socket.recvfrom(2048)
				if not packet:
					return
				self._socket.sendto(address_of(packet), client)
			except OSError:
				return

	def close(self):
		self._socket.sendto(b'', self._socket.getsockname())
		super().close()
