# SPDX-License-Identifier: MIT
"""What may differ between two runs of one program by its nature, and nothing else."""
import re


class Filter:
	"""Takes the part of `data` that a pattern's groups match out of the comparison."""

	def __init__(self, name, *patterns):
		self.name = name
		self.patterns = [re.compile(p.encode(), re.M) for p in patterns]

	def __call__(self, data):
		for pattern in self.patterns:
			data = pattern.sub(self._blank, data)
		return data

	@staticmethod
	def _blank(match):
		text, start = match.group(0), match.start(0)
		for number in range(match.re.groups, 0, -1):
			if match.group(number) is not None:
				begin, end = match.start(number) - start, match.end(number) - start
				text = text[:begin] + b'*' + text[end:]
		return text
