# SPDX-License-Identifier: MIT
import os
import shutil
import subprocess
import tempfile

import harness
import daemons
from story import Story


class Git(Story):
	"""Over the dumb HTTP protocol, which is one connection for one answer. Connecting has no limit."""

	refused = r"fatal: unable to access 'http://127.0.0.1:\d+/repository.git/': " \
		r"Failed to connect to 127.0.0.1 port \d+ after \d+ ms: Couldn't connect to server"
	silent = r'fatal: unable to access .*: Operation too slow\. Less than 1000 bytes/sec transferred the last 2 seconds'
	reset = r'fatal: unable to access .*: Recv failure: Connection reset by peer'
	works = 'refs/heads/main'

	@classmethod
	def setUpClass(cls):
		directory = tempfile.mkdtemp(prefix='shunt-git-')
		cls.addClassCleanup(shutil.rmtree, directory)
		os.chmod(directory, 0o755)
		repository = os.path.join(directory, 'repository.git')
		env = dict(os.environ, HOME=directory, GIT_CONFIG_NOSYSTEM='1', GIT_AUTHOR_NAME='a', GIT_AUTHOR_EMAIL='a@localhost',
			GIT_COMMITTER_NAME='a', GIT_COMMITTER_EMAIL='a@localhost')

		def git(*arguments):
			return subprocess.run(['git', '-C', repository, *arguments], check=True, env=env,
				stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.strip()
		subprocess.run(['git', 'init', '-q', '--bare', '-b', 'main', repository], check=True, env=env)
		git('update-ref', 'refs/heads/main', git('commit-tree', '-m', 'empty', git('hash-object', '-w', '-t', 'tree', '/dev/null')))
		git('update-server-info')
		cls.nginx = daemons.Nginx(directory=directory)
		cls.addClassCleanup(cls.nginx.close)

	def backend(self):
		return ('127.0.0.1', self.nginx.port)

	def command(self):
		return ['git', '-c', 'http.lowSpeedLimit=1000', '-c', 'http.lowSpeedTime=2', 'ls-remote',
			f'http://127.0.0.1:{self.port}/repository.git']


if __name__ == '__main__':
	harness.main()
