# SPDX-License-Identifier: MIT
import os

import harness
from story import Story


class Node(Story):
	refused = r'^ECONNREFUSED connect ECONNREFUSED 127.0.0.1:\d+'
	silent = r'^timed out'
	backlog = silent
	reset = r'^ECONNRESET read ECONNRESET'

	def prepare(self):
		path = os.path.join(harness.PROGRAMS, 'clients', 'client_http.js')
		self.session = harness.LongLived(self, ['node', path, str(self.port)])

	def calls(self, count=1):
		return self.session.calls(count)


if __name__ == '__main__':
	harness.main()
