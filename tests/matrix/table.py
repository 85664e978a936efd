#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The table of all rows, from what the last runs left in a directory.

table.py print DIRECTORY            for people
table.py docs DIRECTORY FILE        writes the page of the docs
table.py check FILE SETUP           is every row in the page, and its package in the script of packages? (TAP)
"""
import glob
import importlib
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
GROUPS = ('web', 'languages', 'data', 'tools', 'servers')
COLUMNS = ('program', 'version', 'what it did', 'bytes', 'exit code', 'calls', 'same?', 'compared')

HEAD = '''# Programs

Real programs at real work on a healthy server, each once bare and once through `shunt run` with a rule for that
server. Every one of them gave the same bytes on stdout and stderr and the same exit code, and its segment said
afterwards: the rule matched, calls succeeded, none failed or timed out, the circuit is closed. `./scripts/test matrix`
runs them all and prints this table; `./scripts/test matrix-docs` writes this page.

*bytes* is how many were compared on stdout and stderr, *calls* how many the library counted as a success. Where a
program prints times by its nature they are cut out, by a filter that is named in *compared*, stands beside the row in
`tests/matrix/`, and leaves everything else. For a server, the library is in the server, the calls are those to its
upstream, and the bytes are what its client prints. Rules say `abandon=20s`, so that a busy machine is no finding, and
`guard=connect` for the replica, whose reports nobody answers.

'''


def versions(packages):
	listed = subprocess.run(['dpkg-query', '-W', '-f', '${Package} ${Version}\\n', *packages], stdout=subprocess.PIPE,
		stderr=subprocess.DEVNULL, text=True, check=False).stdout
	pairs = [line.split() for line in listed.splitlines()]
	# Neither the epoch nor the distribution's own count.
	return {name: re.sub(r'^\d+:', '', version).split('+')[0].split('-')[0].split('~')[0]
		for name, version in (pair for pair in pairs if len(pair) == 2)}


def version_of(program):
	"""Of a program that came by another way."""
	try:
		said = subprocess.run([program, '--version'], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, check=False).stdout
	except OSError:
		return ''
	found = re.search(r'\d[\w.]*', said)
	return found.group() if found else ''


def read(directory):
	results = []
	for group in GROUPS:
		path = os.path.join(directory, group + '.json')
		if os.path.exists(path):
			with open(path, encoding='utf-8') as file:
				results += [dict(result, group=group) for result in json.load(file)]
	known = versions(sorted({result['package'] for result in results}))
	for result in results:
		result['version'] = known.get(result['package']) or version_of(result['program'])
	return results


def cells(result):
	return [str(result[key]) for key in ('program', 'version', 'did', 'bytes', 'code', 'calls', 'same', 'compared')]


def markdown(results):
	lines = ['| ' + ' | '.join(COLUMNS) + ' |', '|' + '---|' * len(COLUMNS)]
	return '\n'.join(lines + ['| ' + ' | '.join(cells(result)) + ' |' for result in results]) + '\n'


def text(results):
	rows = [list(COLUMNS)] + [cells(result) for result in results]
	widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
	return '\n'.join('  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows) + '\n'


def write_docs(results, path):
	missing = [result for result in results if result['same'] != 'yes']
	if missing or not results:
		print(f'{path} stays as it is: {len(missing)} of {len(results)} rows are not the same', file=sys.stderr)
		return 1
	with open(path, 'w', encoding='utf-8') as file:
		file.write(HEAD)
		for group in GROUPS:
			mine = [result for result in results if result['group'] == group]
			if mine:
				module = importlib.import_module('test_' + group)
				file.write(f'## {group.capitalize()}\n{module.__doc__.strip()}\n\n{markdown(mine)}\n')
	return 0


def check(path, setup):
	"""A row that nobody wrote into the docs, or whose program nobody installs, is a failure."""
	with open(path, encoding='utf-8') as file:
		page = file.read()
	with open(setup, encoding='utf-8') as file:
		installed = set(re.findall(r'[\w.+-]+', file.read()))
	listed = re.findall(r'^\| (\S.*?) \| [^|]* \| (.*?) \|', page, re.M)
	rows = [(group, row) for group in GROUPS for row in importlib.import_module('test_' + group).ROWS]
	problems = []
	for group, row in rows:
		if (row.program, row.did) not in listed:
			problems.append(f'{group}: {row.name} is not in {os.path.basename(path)}: ./scripts/test matrix-docs')
		if (row.package or row.program) not in installed | ESSENTIAL:
			problems.append(f'{group}: {row.package or row.program} is not in {os.path.basename(setup)}')
	known = {(row.program, row.did) for _, row in rows}
	problems += [f'{os.path.basename(path)} has a row that is gone: {": ".join(one)}'
		for one in listed if one not in known and one[0] != 'program']
	print('1..1')
	print(('not ok' if problems else 'ok') + f' 1 - the docs and the packages are those of {len(rows)} rows')
	for problem in problems:
		print('# ' + problem)
	return 1 if problems else 0


# On every Debian.
ESSENTIAL = {'bash', 'dash', 'apt'}


def main():
	command, *arguments = sys.argv[1:]
	if command == 'check':
		return check(*arguments)
	results = read(arguments[0])
	if command == 'docs':
		return write_docs(results, arguments[1])
	print(text(results), end='')
	return 0


if __name__ == '__main__':
	sys.exit(main())
