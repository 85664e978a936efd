# SPDX-License-Identifier: MIT
"""What really went over the loopback wire to one port: connection attempts and payload.

A witness that needs no server: it sees the SYN to a refusing port and to a full backlog, too.
Needs CAP_NET_RAW.
"""
import ctypes
import select
import socket
import struct
import threading
import time

ETH_P_ALL = 3
PACKET_OUTGOING = 4
SO_ATTACH_FILTER = 26
SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
SYN, ACK = 0x02, 0x10


def _port_filter(port):
	"""Classic BPF: IPv4 or IPv6 with this destination port, TCP or UDP alike."""
	program = [
		(0x28, 0, 0, 12),        # ldh ethertype
		(0x15, 4, 0, 0x86DD),    # IPv6: jump to its port
		(0x15, 0, 5, 0x0800),    # not IPv4: drop
		(0xB1, 0, 0, 14),        # x = length of the IPv4 header
		(0x48, 0, 0, 16),        # ldh [x + 16]
		(0x05, 0, 0, 1),         # skip the IPv6 load
		(0x28, 0, 0, 56),        # ldh [56]
		(0x15, 0, 1, port),
		(0x06, 0, 0, 0x40000),
		(0x06, 0, 0, 0),
	]
	code = b''.join(struct.pack('HBBI', *line) for line in program)
	buffer = ctypes.create_string_buffer(code)
	return buffer, struct.pack('HL', len(program), ctypes.addressof(buffer))


def _ahead():
	"""How far time.time() is ahead of time.monotonic(). Who is interrupted between the two asks again."""
	reads = [(time.monotonic(), time.time(), time.monotonic()) for _ in range(3)]
	before, now, after = min(reads, key=lambda read: read[2] - read[0])
	return now - (before + after) / 2


class Attempt:
	"""One connection attempt; a repeated SYN of the same one is not another."""

	def __init__(self, when, address, source_port):
		self.when = when
		self.address = address
		self.source_port = source_port

	def __repr__(self):
		return f'SYN to {self.address} at {self.when:.3f}'


class Wire:
	def __init__(self, port):
		self.port = port
		self._attempts = []
		self._seen = set()
		self._payload = []
		self._marks = set()
		self._lock = threading.Lock()
		# Of no protocol until it is bound: it would take in what comes before the filter.
		self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
		self._filter, header = _port_filter(port)
		self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, header)
		self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
		self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
		self._socket.bind(('lo', ETH_P_ALL))
		self._running = True
		self._thread = threading.Thread(target=self._listen, daemon=True)
		self._thread.start()

	def close(self):
		self._running = False
		self._thread.join()
		self._socket.close()

	def attempts(self, since=0.0, address=None):
		"""Connection attempts that began after `since` (time.monotonic())."""
		self._settle()
		with self._lock:
			return [a for a in self._attempts
				if a.when >= since and address in (None, a.address)]

	def payload_bytes(self, since=0.0, address=None):
		"""How many bytes of payload clients sent after `since`."""
		self._settle()
		with self._lock:
			return sum(n for when, to, n in self._payload if when >= since and address in (None, to))

	def quiet(self, since):
		return not self.attempts(since) and not self.payload_bytes(since)

	def _settle(self):
		"""Returns once everything sent before the call was read: a datagram closes the line."""
		mark = struct.pack('d', time.monotonic())
		with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
			sender.sendto(mark, ('127.0.0.1', self.port))
		deadline = time.monotonic() + 10
		while time.monotonic() < deadline:
			with self._lock:
				if mark in self._marks:
					return
			time.sleep(0.002)
		raise RuntimeError('the wire does not answer')

	def _listen(self):
		while self._running:
			if not select.select([self._socket], [], [], 0.1)[0]:
				continue
			frame, control, _, source = self._socket.recvmsg(512, 256)
			if source[2] == PACKET_OUTGOING:
				continue
			with self._lock:
				self._take(frame, self._time_of(control))

	@staticmethod
	def _time_of(control):
		for level, kind, data in control:
			if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
				seconds, nanoseconds = struct.unpack('qq', data[:16])
				return seconds + nanoseconds / 1e9 - _ahead()
		return time.monotonic()

	def _take(self, frame, when):
		if frame[12:14] == b'\x08\x00':
			header = 4 * (frame[14] & 0x0F)
			protocol, start = frame[23], 14 + header
			size = struct.unpack('!H', frame[16:18])[0] - header
			address = socket.inet_ntop(socket.AF_INET, frame[30:34])
		else:
			protocol, start = frame[20], 54
			size = struct.unpack('!H', frame[18:20])[0]
			address = socket.inet_ntop(socket.AF_INET6, frame[38:54])
		segment = frame[start:]
		if protocol == socket.IPPROTO_UDP:
			self._marks.add(segment[8:16])
		elif protocol == socket.IPPROTO_TCP:
			self._take_segment(segment, size, address, when)

	def _take_segment(self, segment, size, address, when):
		source_port, _, sequence = struct.unpack('!HHI', segment[:8])
		flags = segment[13]
		if flags & SYN and not flags & ACK:
			if (source_port, sequence) not in self._seen:
				self._seen.add((source_port, sequence))
				self._attempts.append(Attempt(when, address, source_port))
			return
		payload = size - 4 * (segment[12] >> 4)
		if payload > 0:
			self._payload.append((when, address, payload))
