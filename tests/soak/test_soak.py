# SPDX-License-Identifier: MIT
"""A minute of load each (SOAK_SECONDS) through the library, on a healthy server: no failure is counted, every
request is, and neither memory nor descriptors nor threads nor the segment grow."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))

import harness  # noqa: E402
import daemons  # noqa: E402
from sampler import Sampler  # noqa: E402

SECONDS = float(os.environ.get('SOAK_SECONDS', '60'))
CONNECTIONS = 32
# An allocator's own arenas and a histogram's pages; a leak of eight bytes per request would be far more.
GROWTH_KIB = 256
FILES = {'hello.txt': 'hello from the server\n'}
NEVER = ('failure', 'timeout', 'rejected', 'short_circuited', 'ignored', 'late', 'trips')


class Soak(harness.Case):
	@classmethod
	def setUpClass(cls):
		cls.nginx = daemons.Nginx(FILES)
		cls.addClassCleanup(cls.nginx.close)
		cls.redis = daemons.Redis()
		cls.addClassCleanup(cls.redis.close)

	def need(self, name):
		if harness.find_program(name) is None:
			self.skipTest(f'no {name} on this machine')

	def soak(self, argv, port, counted, keeps=0, own_kib=0):
		"""Runs a client under its rule. `counted` finds in its output how many requests it made; of each it
		keeps so many bytes by itself, and grows by `own_kib` besides."""
		self.need(argv[0])
		self.rules['TARGET'] = f'127.0.0.1:{port} abandon=20s'
		process = self.start([harness.SHUNT, 'run', '--', *argv], library=False, extra=self.shunt_variables(),
			stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
		sampler = Sampler(process.pid, self.state)
		try:
			out, _ = process.communicate(timeout=10 * SECONDS + 120)
		finally:
			sampler.close()
		self.assertEqual(process.returncode, 0, out)
		requests = int(re.search(counted, out)[1])
		self.judge(sampler, requests, 2 * CONNECTIONS, own_kib + requests * keeps // 1024)

	def judge(self, sampler, requests, spare, own_kib=0):
		cells = self.cells(name='TARGET')
		totals = {key: sum(cell['totals'][key] for cell in cells) for key in harness.TOTALS}
		before, after = sampler.thirds()
		print(f'# {self.id().split(".")[-1]}: {requests} requests; counted {totals["success"]}, cancelled'
			f' {totals["cancelled"]}, unused {totals["unused"]}; first third {tuple(before)}, last third {tuple(after)}'
			' (memory KiB, descriptors, threads, segment KiB)', flush=True)
		self.assertEqual({key: totals[key] for key in NEVER if totals[key]}, {}, totals)
		self.assertEqual({cell['state'] for cell in cells}, {'closed'})
		self.assertEqual(sum(cell['in_flight'] for cell in cells), 0)
		self.assertGreater(requests, 100)
		self.assertIn(totals['success'], range(requests, requests + spare + 1))
		self.assertLessEqual(totals['cancelled'] + totals['unused'], spare)
		self.assertGreater(len(sampler.samples), SECONDS, 'too few samples')
		self.assertLessEqual(after.memory_kib, before.memory_kib + GROWTH_KIB + own_kib)
		self.assertLessEqual(after.descriptors, before.descriptors + 2)
		self.assertLessEqual(after.threads, before.threads)
		self.assertLessEqual(after.segment_kib, before.segment_kib)

	def url(self, port):
		return f'http://127.0.0.1:{port}/hello.txt'

	def requests_for(self, argv):
		"""How many make about SECONDS: by the rate of a short run."""
		self.need(argv[0])
		result = self.run_program(argv, library=False)
		rate = re.search(r'Requests per second: +([\d.]+)|^"[^"]*","([\d.]+)"', result.stdout, re.M)
		self.assertIsNotNone(rate, result)
		return str(int(float(rate[1] or rate[2]) * SECONDS))

	def redis_benchmark(self, *options):
		argv = ['redis-benchmark', '-p', str(self.redis.port), '-c', str(CONNECTIONS), '-t', 'ping_mbulk', *options]
		count = self.requests_for([*argv, '--csv', '-n', '5000'])
		# One more asks for the server's configuration.
		self.soak([*argv, '-n', count], self.redis.port, r'(\d+) requests completed')

	def test_redis_benchmark_with_kept_connections(self):
		self.redis_benchmark()

	def test_redis_benchmark_with_a_connection_each(self):
		self.redis_benchmark('-k', '0')

	def wrk(self, *options):
		# It has a counter for every microsecond that a request can take, whose pages a busy machine touches.
		self.soak(['wrk', '-t2', f'-c{CONNECTIONS}', f'-d{int(SECONDS)}s', *options, self.url(self.nginx.port)],
			self.nginx.port, r'(\d+) requests in', own_kib=1024)

	def test_wrk_with_kept_connections(self):
		self.wrk()

	def test_wrk_with_a_connection_each(self):
		self.wrk('-H', 'Connection: close')

	def test_ab_with_a_connection_each(self):
		argv = ['ab', '-q', '-c', str(CONNECTIONS)]
		count = self.requests_for([*argv, '-n', '3000', self.url(self.nginx.port)])
		self.soak([*argv, '-n', count, self.url(self.nginx.port)], self.nginx.port, r'Complete requests: +(\d+)', keeps=32)

	def test_python_that_opens_and_closes(self):
		opener = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'opener.py')
		self.soak([harness.PYTHON, opener, str(self.nginx.port), str(SECONDS)], self.nginx.port, r'(\d+) requests')

	def proxy(self, how):
		"""nginx with the library in it, under wrk."""
		self.need('wrk')
		self.rules['TARGET'] = f'127.0.0.1:{self.nginx.port} abandon=20s'
		front = daemons.free_port()
		path = os.path.join(self.scratch, 'nginx.conf')
		with open(path, 'w', encoding='ascii') as file:
			file.write(daemons.nginx_config(self.scratch, f'''upstream up {{ server 127.0.0.1:{self.nginx.port}; keepalive 64; }}
server {{ listen 127.0.0.1:{front}; keepalive_requests 1000000000; location / {{ proxy_pass http://up; {how} }} }}'''))
		with open(os.path.join(self.scratch, 'log'), 'wb') as log:
			server = self.start(daemons.nginx_command(path), stderr=log)
		harness.wait_until(lambda: daemons.answers(front), 30, 'nginx listens')
		with open(f'/proc/{server.pid}/task/{server.pid}/children', encoding='ascii') as file:
			worker = int(file.read().split()[0])
		sampler = Sampler(worker, self.state)
		client = self.run_program(['wrk', '-t2', f'-c{CONNECTIONS}', f'-d{int(SECONDS)}s', self.url(front)], library=False,
			timeout=2 * SECONDS + 120)
		sampler.close()
		self.assertNotIn('Non-2xx', client.stdout)
		self.stop(server, harness.signal.SIGTERM)
		self.judge(sampler, int(re.search(r'(\d+) requests in', client.stdout)[1]), 4 * CONNECTIONS)

	def test_nginx_as_a_proxy_with_kept_connections(self):
		self.proxy('proxy_http_version 1.1; proxy_set_header Connection "";')

	def test_nginx_as_a_proxy_with_a_connection_each(self):
		self.proxy('')


if __name__ == '__main__':
	harness.main()
