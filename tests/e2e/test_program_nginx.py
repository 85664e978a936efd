# SPDX-License-Identifier: MIT
import os
import urllib.error
import urllib.request
import time

import harness
import daemons
from story import Story


class Nginx(Story):
	"""As a reverse proxy: the failing server is its upstream, and its own words are 502 and 504."""

	refused = '502 Bad Gateway'
	silent = '504 Gateway Time-out'
	backlog = silent
	reset = refused

	@classmethod
	def setUpClass(cls):
		cls.real = daemons.Nginx()
		cls.addClassCleanup(cls.real.close)

	def backend(self):
		return ('127.0.0.1', self.real.port)

	def prepare(self):
		self.front = daemons.free_port()
		config = os.path.join(self.scratch, 'nginx.conf')
		with open(config, 'w', encoding='ascii') as file:
			file.write(daemons.nginx_config(self.scratch, f'''server {{
	listen 127.0.0.1:{self.front};
	location / {{
		proxy_pass http://127.0.0.1:{self.port};
		proxy_connect_timeout 2s;
		proxy_read_timeout 2s;
	}}
}}'''))
		self.start(daemons.nginx_command(config), stderr=open(os.path.join(self.scratch, 'log'), 'wb'))
		harness.wait_until(lambda: daemons.answers(self.front), 10, 'nginx listens')

	def call(self):
		began = time.monotonic()
		try:
			with urllib.request.urlopen(f'http://127.0.0.1:{self.front}/', timeout=30) as answer:
				code, text = 0, answer.read().decode()
		except urllib.error.HTTPError as error:
			code, text = error.code, str(error.reason) + error.read().decode()
		return harness.Result(code, text, '', began, time.monotonic())

	def calls(self, count=1):
		return harness.side_by_side([self.call] * count)


if __name__ == '__main__':
	harness.main()
