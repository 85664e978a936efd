# SPDX-License-Identifier: MIT
import harness
import daemons
from story import Story


class Ssh(Story):
	refused = r'ssh: connect to host 127.0.0.1 port \d+: Connection refused'
	silent = r'Connection timed out during banner exchange'
	backlog = r'ssh: connect to host 127.0.0.1 port \d+: Connection timed out'
	reset = r'kex_exchange_identification: read: Connection reset by peer'

	@classmethod
	def setUpClass(cls):
		cls.sshd = daemons.Sshd()
		cls.addClassCleanup(cls.sshd.close)

	def backend(self):
		return ('127.0.0.1', self.sshd.port)

	def command(self):
		return ['ssh', '-F', 'none', '-i', self.sshd.path('client_key'), '-o', 'ConnectTimeout=2', '-o', 'BatchMode=yes',
			'-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-p', str(self.port),
			'127.0.0.1', 'echo hello from the server']


if __name__ == '__main__':
	harness.main()
