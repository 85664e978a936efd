# SPDX-License-Identifier: MIT
"""What a process holds while it runs: memory, descriptors, threads; and how large its segment is."""
import os
import statistics
import threading
import time
import typing

WARM_UP = 0.25      # this share of the samples, the first ones, is a program that still grows
EVERY = 0.25


class Sample(typing.NamedTuple):
	memory_kib: int
	descriptors: int
	threads: int
	segment_kib: int


def sample(pid, segment):
	"""None once it is gone."""
	try:
		with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as file:
			fields = dict(line.split(':', 1) for line in file.read().splitlines())
		if 'VmRSS' not in fields:
			return None
		descriptors = len(os.listdir(f'/proc/{pid}/fd'))
		size = os.stat(segment)
	except OSError:
		return None
	return Sample(int(fields['VmRSS'].split()[0]), descriptors, int(fields['Threads']),
		max(size.st_size, size.st_blocks * 512) // 1024)


class Sampler:
	"""Samples a process until it ends or close() is called."""

	def __init__(self, pid, segment):
		self.samples = []
		self._pid, self._segment = pid, segment
		self._ends = threading.Event()
		self._thread = threading.Thread(target=self._run, daemon=True)
		self._thread.start()

	def _run(self):
		began = time.monotonic()
		while not self._ends.wait(EVERY):
			taken = sample(self._pid, self._segment)
			if taken:
				self.samples.append(taken)
			elif self.samples or time.monotonic() > began + 60:
				return

	def close(self):
		self._ends.set()
		self._thread.join()

	def thirds(self):
		"""The first third after the warm-up, and the last: of each value the median, of descriptors and
		threads, which load makes come and go, the highest."""
		steady = self.samples[int(len(self.samples) * WARM_UP):]
		third = len(steady) // 3
		return _summary(steady[:third]), _summary(steady[-third:])


def _summary(samples):
	def of(name, summarise):
		return int(summarise([getattr(one, name) for one in samples]))
	return Sample(of('memory_kib', statistics.median), of('descriptors', max), of('threads', max), of('segment_kib', max))
