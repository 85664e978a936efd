# SPDX-License-Identifier: MIT
import harness
import daemons
from story import Story


class Mariadb(Story):
	refused = r"ERROR 2002 \(HY000\): Can't connect to server on '127.0.0.1' \(115\)"
	# A refused non-blocking connect is told as EINPROGRESS there, one refused at once by its name.
	open = r"ERROR 2002 \(HY000\): Can't connect to server on '127.0.0.1' \(111\)"
	silent = r"ERROR 2013 \(HY000\): Lost connection to server at 'handshake: reading initial communication packet'"
	backlog = r"ERROR 2002 \(HY000\): Can't connect to server on '127.0.0.1' \(110\)"
	reset = silent
	works = '^42$'

	@classmethod
	def setUpClass(cls):
		cls.mariadb = daemons.MariaDB()
		cls.addClassCleanup(cls.mariadb.close)

	def backend(self):
		return ('127.0.0.1', self.mariadb.port)

	def command(self):
		return ['mariadb', '--no-defaults', '-h', '127.0.0.1', '-P', str(self.port), '-u', 'root', '--skip-ssl',
			'--connect-timeout=2', '-NBe', 'select 42']


if __name__ == '__main__':
	harness.main()
