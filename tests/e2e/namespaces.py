# SPDX-License-Identifier: MIT
"""A test file that wants a network of its own: nothing of the machine is seen or changed."""
import os
import subprocess
import sys

INSIDE = 'E2E_OWN_NETWORK'


def enter(*addresses):
	"""Starts the test file again with network and mount namespaces of its own, loopback up, and
	`addresses` on it. Where the machine does not allow that, says so and ends."""
	if os.environ.get(INSIDE) != '1':
		if subprocess.run(['unshare', '-n', '-m', 'true'], check=False, stderr=subprocess.DEVNULL).returncode:
			print('1..0 # SKIP needs the right to make a network namespace')
			sys.exit(0)
		os.environ[INSIDE] = '1'
		os.execvp('unshare', ['unshare', '-n', '-m', sys.executable, *sys.argv])
	subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
	for address in addresses:
		subprocess.run(['ip', 'address', 'add', address, 'dev', 'lo'], check=True)
