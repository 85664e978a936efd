# SPDX-License-Identifier: MIT
import harness
from story import Story


class Curl(Story):
	refused = r"curl: \(7\) Failed to connect to 127.0.0.1 port \d+ after \d+ ms: Couldn't connect to server"
	silent = r'curl: \(28\) Operation timed out after \d+ milliseconds with 0 bytes received'
	backlog = r'curl: \(28\) (Failed to connect|Connection timed out|Connection timeout)'
	reset = r'curl: \(56\) Recv failure: Connection reset by peer'

	def command(self):
		return ['curl', '-sS', '-m', '2', f'http://127.0.0.1:{self.port}/']


if __name__ == '__main__':
	harness.main()
