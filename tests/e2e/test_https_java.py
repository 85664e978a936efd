# SPDX-License-Identifier: MIT
import harness
import java
from https import Https


class _Java(Https):
	kind = None
	# Its virtual machine is cold at first, and compiles while the clock runs.
	patience = 4

	@classmethod
	def setUpClass(cls):
		super().setUpClass()
		cls.classes = java.compile_client(cls)

	def prepare(self):
		# Each client has one patience for its life.
		self.sessions = {patience: java.client(self, self.classes, self.kind, self.url, patience * 1000)
			for patience in (self.patience, 8)}

	def calls(self, count, patience):
		return self.sessions[patience].calls(count)


class HttpURLConnection(_Java):
	kind = 'HttpURLConnection'


class HttpClient(_Java):
	kind = 'HttpClient'
	# It keeps its connections: a single short record looks like a session ticket there.
	apart = True


if __name__ == '__main__':
	harness.main()
