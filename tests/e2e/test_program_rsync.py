# SPDX-License-Identifier: MIT
import harness
import daemons
from story import Story


class Rsync(Story):
	refused = r'rsync: \[Receiver\] failed to connect to 127.0.0.1 \(127.0.0.1\): Connection refused \(111\)'
	silent = r'rsync error: timeout (in data send/receive|waiting for daemon connection)'
	backlog = r'rsync error: timeout waiting for daemon connection \(code 35\)'
	reset = r'rsync: .*(read error|failed to read \d+ bytes): Connection reset by peer'
	works = 'hello.txt'

	@classmethod
	def setUpClass(cls):
		cls.rsyncd = daemons.Rsyncd()
		cls.addClassCleanup(cls.rsyncd.close)

	def backend(self):
		return ('127.0.0.1', self.rsyncd.port)

	def command(self):
		return ['rsync', '--contimeout=2', '--timeout=2', f'rsync://127.0.0.1:{self.port}/share/']


if __name__ == '__main__':
	harness.main()
