# SPDX-License-Identifier: MIT
import harness
import daemons
from story import Story


class Psql(Story):
	refused = r'psql: error: connection to server at "127.0.0.1", port \d+ failed: Connection refused'
	silent = r'psql: error: connection to server at "127.0.0.1", port \d+ failed: timeout expired'
	backlog = silent
	reset = r'psql: error: connection to server at "127.0.0.1", port \d+ failed: ' \
		r'server closed the connection unexpectedly'
	works = '^42$'

	@classmethod
	def setUpClass(cls):
		cls.postgres = daemons.Postgres()
		cls.addClassCleanup(cls.postgres.close)

	def backend(self):
		return ('127.0.0.1', self.postgres.port)

	def command(self):
		return ['psql', f'host=127.0.0.1 port={self.port} user=postgres dbname=postgres connect_timeout=2 '
			'sslmode=disable gssencmode=disable', '-XAtc', 'select 42']


if __name__ == '__main__':
	harness.main()
