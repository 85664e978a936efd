# SPDX-License-Identifier: MIT
"""While the target would refuse, connects go to the fallback; what comes of that is nobody's outcome."""
import harness

PEER = r'''
import socket, sys
s = socket.socket(socket.AF_INET6 if sys.argv[2] == '6' else socket.AF_INET)
s.connect(('::ffff:127.0.0.1' if sys.argv[2] == '6' else '127.0.0.1', int(sys.argv[1])))
print(s.getpeername()[:2])
'''

ASYNC = '''
import asyncio, sys
async def main():
	reader, writer = await asyncio.open_connection('127.0.0.1', int(sys.argv[1]))
	writer.write(b'GET / HTTP/1.0\\r\\n\\r\\n')
	print((await reader.readuntil(b'sorry\\n')).splitlines()[-1].decode())
asyncio.run(main())
'''

HOLDS = r'''
import socket, sys
open_ones = []
for _ in range(3):
	s = socket.socket()
	print(s.connect_ex(('127.0.0.1', int(sys.argv[1]))))
	open_ones.append(s)
open_ones[0].close()
print(socket.socket().connect_ex(('127.0.0.1', int(sys.argv[1]))))
'''


class Fallback(harness.Case):
	def setUp(self):
		super().setUp()
		self.target = self.server(body=b'the real page\n')
		self.page = self.server(body=b'we are sorry\n')
		self.page.healthy()
		self.url = f'http://127.0.0.1:{self.target.port}/'

	def rule(self, text):
		self.rules['TARGET'] = f'127.0.0.1:{self.target.port} fallback=127.0.0.1:{self.page.port} {text}'

	def curl(self):
		return self.run_program(['curl', '-sS', '-m', '10', self.url]).stdout

	def test_a_shell_loop_shows_the_page_while_the_target_is_down_and_the_real_one_after(self):
		self.rule('volume=3 sleep=1s')
		# curl does not block: that its connect fails shows after the call.
		seen = [self.curl() for _ in range(6)]
		self.assertEqual(seen, [''] * 3 + ['we are sorry\n'] * 3)
		self.assertState('open', name='TARGET')
		self.assertTotals({'failure': 3, 'short_circuited': 3, 'fallback': 3, 'success': 0, 'trips': 1}, name='TARGET')
		self.target.healthy()
		self.wait_for_probe(name='TARGET')
		self.assertEqual([self.curl() for _ in range(2)], ['the real page\n'] * 2)
		self.assertState('closed', name='TARGET')

	def test_a_connect_that_blocks_goes_there_when_it_fails(self):
		self.rule('volume=100')
		result = self.run_program([harness.PYTHON, '-c', PEER, str(self.target.port), '4'])
		self.assertEqual(result.stdout, f"('127.0.0.1', {self.page.port})\n", result)
		self.assertTotals({'failure': 1, 'fallback': 1, 'success': 0}, name='TARGET')

	def test_getpeername_tells_the_truth_in_either_family(self):
		self.rule('force=open')
		for family, host in (('4', '127.0.0.1'), ('6', '::ffff:127.0.0.1')):
			with self.subTest(family):
				result = self.run_program([harness.PYTHON, '-c', PEER, str(self.target.port), family])
				self.assertEqual(result.stdout, f"('{host}', {self.page.port})\n", result)

	def test_a_program_that_never_blocks_gets_there_too(self):
		self.rule('force=open')
		result = self.run_program([harness.PYTHON, '-c', ASYNC, str(self.target.port)])
		self.assertEqual(result.stdout, 'we are sorry\n', result)

	def test_a_full_bulkhead_leads_there(self):
		self.target.silent()
		self.rule('concurrency=1 volume=1000')
		result = self.run_program([harness.PYTHON, '-c', HOLDS, str(self.target.port)])
		self.assertEqual(result.stdout, '0\n' * 4, result)
		self.assertTotals({'rejected': 2}, name='TARGET')
		self.assertEqual(self.cell(name='TARGET')['totals']['fallback'], 2)

	def test_it_has_a_limit_of_its_own(self):
		self.rule('force=open fallback-concurrency=2')
		result = self.run_program([harness.PYTHON, '-c', HOLDS, str(self.target.port)])
		self.assertEqual(result.stdout, '0\n0\n111\n0\n', result)

	def test_a_fallback_that_is_down_is_the_program_s_usual_error(self):
		self.page.refuse()
		self.rule('force=open')
		result = self.run_program(['curl', '-sS', '-m', '10', self.url])
		self.assertEqual(result.returncode, 7, result)
		result = self.run_program([harness.PYTHON, '-c', ASYNC, str(self.target.port)])
		self.assertIn('ConnectionRefusedError', result.stderr)
		self.assertTotals({'failure': 0, 'success': 0}, name='TARGET')

	def test_one_that_hangs_is_an_error_in_time(self):
		self.page.full_backlog()
		self.rule('force=open timeout=200ms')
		# Linux itself gives up after two minutes.
		result = self.run_program([harness.PYTHON, '-c', PEER, str(self.target.port), '4'])
		self.assertIn('TimeoutError: [Errno 110]', result.stderr)
		self.assertTotals({'timeout': 0}, name='TARGET')
		self.assertEqual(self.cell(name='TARGET')['totals']['fallback'], 1)

	def test_one_that_the_socket_cannot_reach_is_no_fallback(self):
		self.rules['TARGET'] = f'127.0.0.1:{self.target.port} force=open fallback=[::1]:{self.page.port}'
		result = self.run_program(['curl', '-sS', '-m', '10', self.url])
		self.assertEqual(result.returncode, 7, result)


if __name__ == '__main__':
	harness.main()
