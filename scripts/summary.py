#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Counts every test case in meson's logs: one line per part, each failure by name, and the sum.

summary.py [--broken 'DIRECTORY...'] [--tap PART=FILE] PART=LOG.json ...
"""
import argparse
import json
import re
import sys

TAP = re.compile(r'^(ok|not ok)\b(?: \d+)?(?: -)? ?(.*)$', re.M)
SKIP = re.compile(r'# *skip', re.I)
COUNTS = re.compile(r'^(\d+) passed, (\d+) failed, (\d+) skipped', re.M)
LINES_OF_A_FAILURE = 25


class Tally:
	def __init__(self):
		self.passed = self.failed = self.skipped = 0
		self.problems = []
		self.outputs = []
		self.skips = []

	def add_tap(self, name, text):
		for verdict, what in TAP.findall(text):
			if SKIP.search(what):
				self.skipped += 1
				self.skips.append(f'{name}: {what}')
			elif verdict == 'ok':
				self.passed += 1
			else:
				self.fail(f'{name}: {what}')

	def add_counts(self, name, text):
		for passed, failed, skipped in COUNTS.findall(text):
			self.passed += int(passed)
			self.skipped += int(skipped)
			self.failed += int(failed)
			if int(failed):
				self.problems.append(f'{name}: {failed} failed')

	def fail(self, what):
		self.failed += 1
		self.problems.append(what)

	def add_test(self, test):
		"""One program: its own cases where it names or counts them, otherwise it is one case."""
		name, result, text = test['name'].split(' / ')[-1], test['result'], test.get('stdout', '')
		before, failed_before = (self.passed + self.failed + self.skipped), self.failed
		if TAP.search(text):
			self.add_tap(name, text)
		elif COUNTS.search(text):
			self.add_counts(name, text)
		elif result == 'OK':
			self.passed += 1
		elif result == 'SKIP':
			self.skipped += 1
			self.skips.append(name)
		nothing_ran = before == self.passed + self.failed + self.skipped
		if result not in ('OK', 'SKIP', 'EXPECTEDFAIL') and (nothing_ran or failed_before == self.failed):
			self.fail(f'{name}: {result}')
		if self.failed > failed_before:
			self.outputs.append(f'== {name} ({result}) said last:\n' + last_words(test))


def last_words(test):
	"""What a program that failed wrote at the end, lines of success left out."""
	lines = (test.get('stdout', '') + test.get('stderr', '')).splitlines()
	lines = [line for line in lines if not line.startswith('ok ')]
	return '\n'.join(lines[-LINES_OF_A_FAILURE:])


def read_tests(path):
	with open(path, encoding='utf-8') as file:
		return [json.loads(line) for line in file if line.strip()]


def main():
	parser = argparse.ArgumentParser()
	parser.add_argument('--broken', default='')
	parser.add_argument('--tap', action='append', default=[])
	parser.add_argument('logs', nargs='*')
	options = parser.parse_args()
	tallies = {}
	for item in options.tap:
		part, path = item.split('=', 1)
		with open(path, encoding='utf-8') as file:
			text = file.read()
		if text:
			tallies[part] = Tally()
			tallies[part].add_tap(part, text)
	for item in options.logs:
		part, path = item.split('=', 1)
		tally = tallies[part] = Tally()
		try:
			tests = read_tests(path)
		except OSError as error:
			tally.fail(f'{part}: nothing ran: {error}')
			continue
		for test in tests:
			tally.add_test(test)
	for directory in options.broken.split():
		tallies.setdefault('build', Tally()).fail(f'{directory} does not build')
	return report(tallies)


def report(tallies):
	for tally in tallies.values():
		for output in tally.outputs:
			print(output)
	for part, tally in tallies.items():
		print(f'{part:10} {tally.passed:5} passed {tally.failed:3} failed {tally.skipped:3} skipped')
	for tally in tallies.values():
		for skip in tally.skips:
			print('skipped: ' + skip)
	for tally in tallies.values():
		for problem in tally.problems:
			print('FAILED: ' + problem)
	passed, failed, skipped = (sum(getattr(t, what) for t in tallies.values())
		for what in ('passed', 'failed', 'skipped'))
	print(f'{passed} passed, {failed} failed, {skipped} skipped')
	return 1 if failed or not passed else 0


if __name__ == '__main__':
	sys.exit(main())
