# SPDX-License-Identifier: MIT
"""A name server on 127.0.0.53: it answers every A question with one address, or never says a word; or what its
zone says."""
import socket
import struct
import threading


def _wire_name(name):
	return b''.join(bytes([len(label)]) + label.encode() for label in name.split('.')) + b'\0'


def _record(name, kind, data):
	return _wire_name(name) + struct.pack('!HHIH', kind, 1, 60, len(data)) + data


class Resolver:
	address = '127.0.0.53'
	config = 'nameserver 127.0.0.53\noptions timeout:2 attempts:1\n'

	def __init__(self, zone=None):
		"""`zone`: names in lower case to lists of (type, value), of A, AAAA and CNAME. Those it has not are unknown."""
		self.answering = False
		self.silent = set()  # names that get no answer
		self._zone = zone
		self.questions = 0
		self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		self._socket.bind((self.address, 53))
		self._socket.settimeout(0.1)
		self._running = True
		self._thread = threading.Thread(target=self._serve, daemon=True)
		self._thread.start()

	def close(self):
		self._running = False
		self._thread.join()
		self._socket.close()

	def _serve(self):
		while self._running:
			try:
				packet, client = self._socket.recvfrom(2048)
			except socket.timeout:
				continue
			self.questions += 1
			if self.answering and self._name(packet) not in self.silent:
				self._socket.sendto(self._answer(packet), client)

	@staticmethod
	def _name(packet):
		labels, at = [], 12
		while packet[at]:
			labels.append(packet[at + 1:at + 1 + packet[at]].decode('latin-1').lower())
			at += 1 + packet[at]
		return '.'.join(labels)

	def _from_zone(self, packet, question):
		"""Aliases are followed; what is known has no record of another type."""
		wanted = {b'\0\1': 'A', b'\0\x1c': 'AAAA'}.get(question[-4:-2])
		name, records = self._name(packet), []
		known = name in self._zone
		while name in self._zone:
			alias = [value for kind, value in self._zone[name] if kind == 'CNAME']
			if not alias:
				break
			records.append(_record(name, 5, _wire_name(alias[0])))
			name = alias[0]
		for kind, value in self._zone.get(name, []):
			if kind == wanted:
				family = socket.AF_INET if kind == 'A' else socket.AF_INET6
				records.append(_record(name, 1 if kind == 'A' else 28, socket.inet_pton(family, value)))
		header = packet[:2] + struct.pack('!HHHHH', 0x8180 if known else 0x8183, 1, len(records), 0, 0)
		return header + question + b''.join(records)

	def _answer(self, packet):
		end = packet.index(b'\0', 12) + 5
		question = packet[12:end]
		if self._zone is not None:
			return self._from_zone(packet, question)
		is_a = question[-4:-2] == b'\0\1'
		header = packet[:2] + struct.pack('!HHHHH', 0x8180, 1, int(is_a), 0, 0)
		record = struct.pack('!HHHIH4s', 0xC00C, 1, 1, 60, 4, socket.inet_aton('127.0.0.1'))
		return header + question + (record if is_a else b'')
