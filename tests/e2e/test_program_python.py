# SPDX-License-Identifier: MIT
import os

import harness
from story import Story


class _Python(Story):
	client = None
	silent = None
	backlog = None

	def prepare(self):
		path = os.path.join(harness.PROGRAMS, 'clients', self.client)
		self.session = harness.LongLived(self, [harness.PYTHON, path, str(self.port)])

	def calls(self, count=1):
		return self.session.calls(count)


class Urllib(_Python):
	client = 'client_urllib.py'
	refused = r'^URLError <urlopen error \[Errno 111\] Connection refused>'
	silent = r'^TimeoutError timed out'
	backlog = r'^URLError <urlopen error timed out>'
	reset = r'^ConnectionResetError \[Errno 104\] Connection reset by peer'


class HttpClient(_Python):
	client = 'client_keepalive.py'
	refused = r'^ConnectionRefusedError \[Errno 111\] Connection refused'
	silent = r'^TimeoutError timed out'
	backlog = r'^TimeoutError timed out'
	reset = r'^ConnectionResetError \[Errno 104\] Connection reset by peer'


class Asyncio(_Python):
	client = 'client_asyncio.py'
	refused = r'^ConnectionRefusedError \[Errno 111\] Connect call failed'
	open = r'^ConnectionRefusedError \[Errno 111\] Connection refused'
	silent = r'^TimeoutError'
	backlog = r'^TimeoutError'
	reset = r'^ConnectionResetError \[Errno 104\] Connection reset by peer'


if __name__ == '__main__':
	harness.main()
