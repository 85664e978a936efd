# SPDX-License-Identifier: MIT
"""Which rule is a call's: by the name that the program asked for, or by the address it connects to."""
import time

import harness
import java
import namespaces
from resolver import Resolver

HOSTS = '127.0.0.1 localhost api.pay.test db.pay.test one.test two.test\n::1 six.test\n'

MAPPED = r'''
import socket, sys
connection = socket.socket(socket.AF_INET6)
try:
	connection.connect(('::ffff:127.0.0.1', int(sys.argv[1])))
except OSError as error:
	print(error)
'''

LOOKUPS = r'''
import socket, sys, time
for line in sys.stdin:
	began = time.monotonic()
	try:
		text = 'ok ' + socket.getaddrinfo(line.strip(), 80, type=socket.SOCK_STREAM)[0][4][0]
	except OSError as error:
		text = str(error)
	print(f'{time.monotonic() - began:.3f} {text}', flush=True)
'''

BY_NAME = 'import socket, sys\ntry:\n\tprint(socket.gethostbyname(sys.argv[1]))\nexcept OSError as error:\n\tprint(error)\n'


class Names(harness.Case):
	def begin(self, **rules):
		self.dead = self.server()
		self.port = self.dead.port
		for name, target in rules.items():
			self.rules[name] = target.replace('PORT', str(self.port)) + ' volume=3 sleep=60s'
		self.witness = self.wire(self.port)

	def curl(self, host, times=1):
		for _ in range(times):
			result = self.run_program(['curl', '-sS', '-m', '5', f'http://{host}:{self.port}/'], hosts=HOSTS)
			self.assertEqual(result.returncode, 7, result)

	def assertMatched(self, target, yes, no):
		"""Calls to `yes` are the rule's, and open its circuit; calls to `no` are nobody's."""
		self.begin(RULE=target)
		for host in no:
			self.curl(host, 4)
		self.assertEqual(len(self.witness.attempts()), 4 * len(no))
		if no:
			self.assertEqual(self.cells(name='RULE'), [])
		began = time.monotonic()
		for host in yes:
			self.curl(host, 5)
		self.assertEqual(len(self.witness.attempts(began)), 3 * len(yes))
		open_hosts = {cell['host'] for cell in self.cells(name='RULE', state='open')}
		self.assertEqual(open_hosts, {host.strip('[]') for host in yes})

	def test_an_exact_name(self):
		self.assertMatched('api.pay.test:PORT', ['api.pay.test'], ['db.pay.test', 'one.test', '127.0.0.1'])

	def test_an_exact_name_in_other_letters_and_with_a_dot(self):
		self.begin(RULE='API.Pay.Test:PORT')
		self.curl('api.PAY.test', 2)
		self.curl('api.pay.test', 3)
		self.assertEqual(len(self.witness.attempts()), 3)
		self.assertTotals({'failure': 3, 'short_circuited': 2}, name='RULE')

	def test_a_suffix(self):
		self.assertMatched('.pay.test:PORT', ['api.pay.test', 'db.pay.test'], ['one.test', '127.0.0.1'])

	def test_a_glob(self):
		self.assertMatched('*.p?y.test:PORT', ['api.pay.test', 'db.pay.test'], ['two.test', '127.0.0.1'])

	def test_a_port_that_is_another(self):
		self.assertMatched('127.0.0.1:1-9', [], ['127.0.0.1'])

	def test_an_ipv4_address_and_a_numeric_host(self):
		self.assertMatched('127.0.0.1:PORT', ['127.0.0.1'], [])
		self.assertEqual(self.cells(kind='lookup'), [])

	def test_an_ipv4_prefix(self):
		self.assertMatched('127.0.0.0/24:PORT', ['127.0.0.1', '127.0.0.9'], ['127.0.9.1'])

	def test_an_ipv6_address(self):
		self.assertMatched('[::1]:PORT', ['[::1]'], ['127.0.0.1'])

	def test_an_ipv6_prefix(self):
		self.assertMatched('[fd00::/16]:PORT', ['[fd00::1]'], ['[::1]', '127.0.0.1'])

	def test_an_excluded_target(self):
		self.begin(RULE='127.0.0.0/8:PORT', KEEP='127.0.0.1:PORT')
		self.rules['KEEP'] = f'^127.0.0.1:{self.port}'
		self.curl('127.0.0.1', 4)
		self.assertEqual(len(self.witness.attempts()), 4)
		self.curl('127.0.0.2', 4)
		self.assertEqual(len(self.witness.attempts()), 7)

	def test_the_more_exact_rule_wins(self):
		self.begin(ANY='any', RANGE='127.0.0.0/8', EXACT='one.test')
		self.curl('one.test', 3)
		self.assertState('open', name='EXACT')
		self.assertEqual(self.cells(name='RANGE') + self.cells(name='ANY'), [])

	def test_two_names_on_one_address_have_two_circuits(self):
		self.begin(ONE='one.test:PORT', TWO='two.test:PORT')
		self.curl('one.test', 5)
		self.assertState('open', name='ONE')
		began = time.monotonic()
		self.curl('two.test', 2)
		self.assertEqual(len(self.witness.attempts(began)), 2)
		self.assertState('closed', name='TWO')
		self.assertTotals({'failure': 2}, name='TWO')

	def test_an_ipv4_address_mapped_into_ipv6(self):
		self.begin(RULE='127.0.0.1:PORT')
		for _ in range(5):
			result = self.run_program([harness.PYTHON, '-c', MAPPED, str(self.port)])
			self.assertEqual(result.stdout, '[Errno 111] Connection refused\n', result)
		self.assertEqual(len(self.witness.attempts()), 3)
		self.assertEqual(self.cell(name='RULE')['address'], '127.0.0.1')

	def test_java_which_maps_every_ipv4_address(self):
		classes = java.compile_client(type(self))
		self.begin(RULE='one.test:PORT')
		session = java.client(self, classes, 'HttpURLConnection', f'http://one.test:{self.port}/', hosts=HOSTS)
		for _ in range(5):
			self.assertMatches('Connection refused', session.calls()[0])
		self.assertEqual(len(self.witness.attempts()), 3)
		self.assertEqual(self.cell(name='RULE')['address'], '127.0.0.1')


class DeadResolver(harness.Case):
	def setUp(self):
		super().setUp()
		self.resolver = Resolver()
		self.addCleanup(self.resolver.close)
		self.rules['NAMES'] = '.example.test volume=2 sleep=5s'

	def lookups(self, names):
		"""One program asks for one name after the other: [(seconds, text)]."""
		text = ''.join(name + '\n' for name in names)
		result = self.run_program([harness.PYTHON, '-c', LOOKUPS], stdin=text.encode(), resolv=Resolver.config)
		answers = [line.split(' ', 1) for line in result.stdout.splitlines()]
		self.assertEqual(len(answers), len(names), result)
		return [(float(seconds), text) for seconds, text in answers]

	def test_lookups_fail_fast_once_the_circuit_is_open(self):
		answers = self.lookups(['a.example.test'] * 6)
		for _, text in answers:
			self.assertEqual(text, '[Errno -3] Temporary failure in name resolution')
		self.assertGreater(min(seconds for seconds, _ in answers[:2]), 1.5)
		self.assertLess(max(seconds for seconds, _ in answers[2:]), harness.AT_ONCE)
		cell = self.cell(name='NAMES', kind='lookup')
		self.assertEqual((cell['state'], cell['host']), ('open', 'a.example.test'))
		self.assertTotals({'failure': 2, 'short_circuited': 4}, name='NAMES', kind='lookup')

	def test_curl_says_that_it_could_not_resolve_and_asks_nobody(self):
		self.lookups(['b.example.test'] * 2)
		asked = self.resolver.questions
		result = self.run_program(['curl', '-sS', '-m', '20', 'http://b.example.test/'], resolv=Resolver.config)
		self.assertEqual(result.returncode, 6, result)
		self.assertIn('Could not resolve host', result.stderr)
		self.assertLess(result.seconds, harness.AT_ONCE)
		self.assertEqual(self.resolver.questions, asked)

	def test_gethostbyname_fails_fast_as_well(self):
		self.lookups(['c.example.test'] * 2)
		result = self.run_program([harness.PYTHON, '-c', BY_NAME, 'c.example.test'], resolv=Resolver.config)
		self.assertIn('[Errno -3]', result.stdout, result)
		self.assertLess(result.seconds, harness.AT_ONCE)

	def test_other_names_are_still_asked_for(self):
		self.lookups(['d.example.test'] * 2)
		self.resolver.answering = True
		self.assertEqual(self.lookups(['e.example.test'])[0][1], 'ok 127.0.0.1')
		self.assertState('open', name='NAMES', kind='lookup', host='d.example.test')

	def test_lookups_work_again_when_the_resolver_does(self):
		self.lookups(['f.example.test'] * 2)
		self.resolver.answering = True
		self.wait_for_probe(name='NAMES', kind='lookup')
		self.assertEqual([text for _, text in self.lookups(['f.example.test'] * 2)], ['ok 127.0.0.1'] * 2)
		self.assertState('closed', name='NAMES', kind='lookup')

	def test_a_numeric_host_is_not_looked_up(self):
		self.rules['NAMES'] = 'any volume=1'
		answers = self.lookups(['127.0.0.1', '::1'])
		self.assertEqual([text for _, text in answers], ['ok 127.0.0.1', 'ok ::1'])
		self.assertEqual(self.cells(kind='lookup'), [])


if __name__ == '__main__':
	# With AI_ADDRCONFIG libc gives addresses only of families that have one beside loopback.
	namespaces.enter('fd00::1/128', '10.255.255.1/32')
	harness.main()
