# SPDX-License-Identifier: MIT
"""What the tests of faults stand on: rules beside the breaker's, what was injected, servers whose own
behaviour is beyond doubt, and clients that tell what they saw."""
import json
import os
import re
import socket
import threading
import time

import harness
import daemons
import java
from servers import linger

STRICT = os.environ.get('E2E_STRICT') == '1'
CLIENTS = os.path.join(harness.PROGRAMS, 'clients')


class Case(harness.Case):
	"""`faults` maps names to fault rules. What is injected goes to a report."""

	def setUp(self):
		super().setUp()
		self.faults = {}
		self.seed = 1
		self.report = os.path.join(self.scratch, 'report')

	def shunt_variables(self):
		variables = {'SHUNT_FAULT_' + name: rule for name, rule in self.faults.items()}
		variables.update(SHUNT_SEED=str(self.seed), SHUNT_REPORT=self.report)
		variables.update(super().shunt_variables())
		return variables

	def needs(self, *names):
		for name in names:
			if not harness.find_program(name):
				self.skipTest(f'{name} is not installed')

	# What was injected.

	def injections(self, report=None):
		"""The lines of a report, in order."""
		try:
			with open(report or self.report, encoding='ascii') as file:
				return [json.loads(line) for line in file]
		except FileNotFoundError:
			return []

	def assertInjected(self, *expected):
		"""Exactly these, each (rule, connection, call, fault), in this order."""
		if not harness.BARE:
			found = [(i['rule'], i['connection'], i['call'], i['fault']) for i in self.injections()]
			self.assertEqual(found, list(expected))

	def assertStruck(self):
		"""Or that a program works shows nothing."""
		if not harness.BARE:
			self.assertNotEqual(self.injections(), [])

	def fault(self, name):
		"""What `shunt fault list` tells of a rule as it is now."""
		result = self.shunt('fault', 'list', '--json')
		self.assertEqual(result.returncode, 0, result)
		found = [fault for fault in json.loads(result.stdout)['faults'] if fault['name'] == name]
		if len(found) > 1:
			rule = sorted(self.faults[name].replace(',', ' ').split())
			found = [fault for fault in found if sorted(fault['rule'].split()) == rule]
		self.assertEqual(len(found), 1, result)
		return found[0]

	# Programs.

	def script(self, text, *arguments, **keywords):
		"""A run of a python program."""
		return self.run_program([harness.PYTHON, '-c', text, *map(str, arguments)], **keywords)

	def client(self, name, *arguments, **keywords):
		"""A client of tests/programs/clients that lives through the test."""
		runner = 'node' if name.endswith('.js') else harness.PYTHON
		self.needs(runner)
		return harness.LongLived(self, [runner, os.path.join(CLIENTS, name), *map(str, arguments)], **keywords)

	def curl(self, port, *options, path='/', host='127.0.0.1', **keywords):
		return self.run_program(['curl', '-sS', '-m', '60', *options, f'http://{host}:{port}{path}'], **keywords)

	# Servers.

	def peer(self, serve, **keywords):
		peer = Peer(serve, **keywords)
		self.addCleanup(peer.close)
		return peer

	def healthy(self, **keywords):
		"""A server that answers HTTP with a greeting, and is well all the time."""
		server = self.server(**keywords)
		server.healthy()
		return server

	def daemon(self, kind):
		"""A server of daemons.py, one for all tests of a class."""
		found = type(self).__dict__.get('_daemon')
		if found is None:
			try:
				found = kind()
			except FileNotFoundError as missing:
				self.skipTest(f'{missing} is not installed')
			type(self)._daemon = found
			type(self).addClassCleanup(found.close)
		return found

	def nginx(self, port, more='', **keywords):
		"""nginx under the library, with 127.0.0.1:port as its upstream; its own port."""
		self.needs('nginx')
		front = daemons.free_port()
		config = os.path.join(self.scratch, 'nginx.conf')
		with open(config, 'w', encoding='ascii') as file:
			file.write(daemons.nginx_config(self.scratch, f'''server {{
	listen 127.0.0.1:{front} backlog=511;
	location / {{
		proxy_pass http://127.0.0.1:{port};
		proxy_connect_timeout 20s;
		proxy_read_timeout 20s;
		{more}
	}}
}}'''))
		with open(os.path.join(self.scratch, 'log'), 'wb') as log:
			self.front_process = self.start(daemons.nginx_command(config), stderr=log, **keywords)
		harness.wait_until(lambda: daemons.answers(front), 30, 'nginx listens')
		return front

	def nginx_log(self):
		with open(os.path.join(self.scratch, 'log'), encoding='utf-8', errors='replace') as log:
			return log.read()

	def java_classes(self, source='Client.java'):
		"""A class path with a program of tests/programs/java, compiled once for all tests of a class."""
		self.needs('java', 'javac')
		classes = type(self).__dict__.get('_classes')
		if classes is None:
			classes = type(self)._classes = java.compile_client(type(self), source)
		return classes

	def java(self, kind, *arguments, **keywords):
		return java.client(self, self.java_classes(), kind, *arguments, **keywords)

	def assertFails(self, result, pattern, returncode=None):
		"""In the program's own words."""
		self.assertNotEqual(result.returncode, 0, result)
		if returncode is not None:
			self.assertEqual(result.returncode, returncode, result)
		self.assertMatches(pattern, result)

	def assertWorks(self, result, pattern='hello from the server'):
		self.assertEqual(result.returncode, 0, result)
		self.assertMatches(pattern, result)


class Peer:
	"""A TCP server on a loopback port: `serve(connection)` talks in a thread of its own for each."""

	def __init__(self, serve, address='127.0.0.1'):
		self._serve = serve
		self._listener = socket.create_server((address, 0), backlog=512)
		self.port = self._listener.getsockname()[1]
		self.accepted = 0
		threading.Thread(target=self._accept, daemon=True).start()

	def close(self):
		try:
			self._listener.shutdown(socket.SHUT_RDWR)
		except OSError:
			pass
		self._listener.close()

	def _accept(self):
		while True:
			try:
				connection, _ = self._listener.accept()
			except OSError:
				return
			self.accepted += 1
			threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

	def _talk(self, connection):
		try:
			with connection:
				self._serve(connection)
		except OSError:
			pass


def echo(connection):
	"""Each line comes back."""
	with connection.makefile('rb') as lines:
		for line in lines:
			connection.sendall(line)


def body_of(size):
	"""Bytes of which each tells where it is."""
	return (bytes(range(251)) * (size // 251 + 1))[:size]


class Http:
	"""GET /SIZE comes to that many bytes of body_of(), PUT to how many came; what came is `received`."""

	def __init__(self):
		self.received = []

	def __call__(self, connection):
		with connection.makefile('rb') as lines:
			while True:
				head = []
				while (line := lines.readline()) not in (b'\r\n', b''):
					head.append(line.decode('latin-1').strip())
				if not line:
					return
				self._answer(connection, lines, head)
				if any(line.lower() == 'connection: close' for line in head):
					linger(connection)
					return

	def _answer(self, connection, lines, head):
		method, path = head[0].split()[:2]
		if method == 'GET':
			body = body_of(int(path[1:] or 0))
		else:
			length = [int(line.split(':')[1]) for line in head if line.lower().startswith('content-length:')][0]
			data = lines.read(length)
			self.received.append(data)
			body = f'received {len(data)}\n'.encode()
		connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(body) + body)


class UdpEcho:
	"""Each datagram comes back; `received` in the order in which they came."""

	def __init__(self):
		self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		self._socket.bind(('127.0.0.1', 0))
		self._socket.settimeout(0.1)
		self.port = self._socket.getsockname()[1]
		self.received = []
		self._running = True
		self._thread = threading.Thread(target=self._serve, daemon=True)
		self._thread.start()

	def _serve(self):
		while self._running:
			try:
				data, client = self._socket.recvfrom(2048)
			except socket.timeout:
				continue
			self.received.append(data)
			self._socket.sendto(data, client)

	def close(self):
		self._running = False
		self._thread.join()
		self._socket.close()


def cpu_seconds(pid):
	"""What a process has used."""
	with open(f'/proc/{pid}/stat', encoding='ascii') as file:
		fields = file.read().rpartition(')')[2].split()
	return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def milliseconds(text):
	"""The numbers of a client's answer such as `ok other=12.5 gap=3`."""
	return {key: float(value) for key, value in re.findall(r'(\w+)=(\d+(?:\.\d+)?)', text)}


def timed(function):
	"""Its result, and the seconds it took."""
	began = time.monotonic()
	result = function()
	return result, time.monotonic() - began
