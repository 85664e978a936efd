# SPDX-License-Identifier: MIT
import harness
import daemons
from story import Story


class Wget(Story):
	refused = r'failed: Connection refused\.'
	silent = r'Read error \(Connection timed out\) in headers\.'
	backlog = r'failed: Connection timed out\.'
	reset = r'Read error \(Connection reset by peer\) in headers\.'

	@classmethod
	def setUpClass(cls):
		cls.nginx = daemons.Nginx()
		cls.addClassCleanup(cls.nginx.close)

	def backend(self):
		return ('127.0.0.1', self.nginx.port)

	def command(self):
		return ['wget', '-O', '-', '-T', '2', '-t', '1', f'http://127.0.0.1:{self.port}/']


if __name__ == '__main__':
	harness.main()
