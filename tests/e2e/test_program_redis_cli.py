# SPDX-License-Identifier: MIT
import harness
import daemons
from story import Story


class RedisCli(Story):
	"""It has no timeout of its own: only a server that refuses or resets makes it give up."""

	refused = r'Could not connect to Redis at 127.0.0.1:\d+: Connection refused'
	reset = r'Error: Connection reset by peer'
	works = 'PONG'
	tries_again = True

	@classmethod
	def setUpClass(cls):
		cls.redis = daemons.Redis()
		cls.addClassCleanup(cls.redis.close)

	def backend(self):
		return ('127.0.0.1', self.redis.port)

	def command(self):
		return ['redis-cli', '-h', '127.0.0.1', '-p', str(self.port), 'ping']


if __name__ == '__main__':
	harness.main()
