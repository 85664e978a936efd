# SPDX-License-Identifier: MIT
import harness
import java
from story import Story


class _Java(Story):
	kind = None
	refused = None
	tries_again = True

	@classmethod
	def setUpClass(cls):
		cls.classes = java.compile_client(cls)

	def prepare(self):
		self.session = java.client(self, self.classes, self.kind, f'http://127.0.0.1:{self.port}/')

	def calls(self, count=1):
		return self.session.calls(count)


class HttpURLConnection(_Java):
	kind = 'HttpURLConnection'
	refused = r'^java.net.ConnectException: Connection refused'
	silent = r'^java.net.SocketTimeoutException: Read timed out'
	backlog = r'^java.net.SocketTimeoutException: [Cc]onnect timed out'
	# It tries a request that was reset once more, and then meets the open circuit.
	reset = r'^java.net.SocketException: Connection reset|^java.net.ConnectException: Connection refused'


class HttpClient(_Java):
	kind = 'HttpClient'
	refused = r'^java.net.ConnectException'
	silent = r'^java.net.http.HttpTimeoutException: request timed out'
	backlog = r'^java.net.http.Http(Connect)?TimeoutException'
	reset = r'^java.io.IOException: (Connection reset|HTTP/1.1 header parser received no bytes)|^java.net.ConnectException'


if __name__ == '__main__':
	harness.main()
