# SPDX-License-Identifier: MIT
"""A bad rule harms nobody: the host cannot tell, and whoever asks is told what is wrong."""
import harness

BAD = {
	'a duration without a unit': 'one.test sleep=5',
	'an unknown setting': 'one.test slep=5s',
	'a bare ratio': 'one.test errors=50',
	'a ratio above one': 'one.test errors=150%',
	'no target': 'errors=50%',
	'nothing': '',
	'white space': '   ',
	'a port that is none': 'one.test:99999',
	'a range backwards': 'one.test:90-80',
	'a prefix that is none': '10.0.0.0/99',
	'an unclosed bracket': '[::1:80',
	'too many probes': 'one.test probes=16',
	'no volume': 'one.test volume=0',
	'an error connect cannot return': 'one.test error=EISDIR',
	'an unknown error': 'one.test ignore=ENOSUCH',
	'a number too large': 'one.test volume=99999999999999999999',
	'a value too long': 'one.test sleep=' + '9' * 5000 + 's',
	'a name too long': 'x' * 5000,
	'bytes that are no text': 'one.test sleep=\udcff\udcfe',
	'a setting twice spelt wrong': 'one.test =,=,=',
	'a sleep of two days': 'one.test sleep=48h',
	'an unknown choice': 'one.test guard=sometimes',
}

VARIABLES = {
	'SHUNT_MODE': 'sometimes',
	'SHUNT_STATE': 'relative/path',
	'SHUNT_LOG': 'nowhere',
	'SHUNT_CONF': '/does/not/exist',
	'SHUNT_TIMER': 'perhaps',
	'SHUNT_SEED': 'x',
	'SHUNT_OFF': 'maybe',
	'SHUNT_PROC': '[',
	'SHUNT_SKIP': ',,,',
	'SHUNT_BREAK_': 'one.test',
	'SHUNT_BREAK_lower case': 'one.test',
	'SHUNT_NO_SUCH_THING': '1',
}


class BadRules(harness.Case):
	def setUp(self):
		super().setUp()
		self.target = self.server()
		self.target.healthy()
		script = f'curl -sS -m 5 http://127.0.0.1:{self.target.port}/; echo to stderr >&2; cat /does/not/exist; exit 42'
		self.argv = ['sh', '-c', script]

	def assertHarmless(self):
		bare = self.run_program(self.argv, library=False)
		self.assertIn('hello from the server', bare.stdout)
		ours = self.run_program(self.argv)
		self.assertEqual((ours.returncode, ours.stdout, ours.stderr), (bare.returncode, bare.stdout, bare.stderr))

	def test_a_host_cannot_tell(self):
		for what, rule in BAD.items():
			with self.subTest(what):
				self.rules = {'BAD': rule}
				self.assertHarmless()

	def test_a_host_cannot_tell_of_a_bad_variable(self):
		for name, value in VARIABLES.items():
			with self.subTest(name):
				self.settings = {name: value}
				self.assertHarmless()

	def test_a_file_of_nonsense_harms_nobody(self):
		path = self.scratch + '/conf'
		for content in (b'', b'\0' * 4096, b'break', b'break PAY = one.test sleep=5\n' * 5000, b'\xff' * 100000):
			with self.subTest(content[:20]), open(path, 'wb') as file:
				file.write(content)
				file.flush()
				self.settings = {'SHUNT_CONF': path}
				self.assertHarmless()

	def test_a_good_rule_beside_a_bad_one_works(self):
		self.target.refuse()
		self.rules = {'BAD': 'one.test sleep=5', 'GOOD': f'127.0.0.1:{self.target.port} volume=3 sleep=60s'}
		witness = self.wire(self.target.port)
		for _ in range(5):
			self.run_program(['curl', '-sS', f'http://127.0.0.1:{self.target.port}/'])
		self.assertEqual(len(witness.attempts()), 3)
		self.assertState('open', name='GOOD')

	def test_check_names_each_one(self):
		for what, rule in BAD.items():
			with self.subTest(what):
				self.rules = {'BAD': rule}
				result = self.shunt('check')
				self.assertNotEqual(result.returncode, 0, result)
				self.assertIn('SHUNT_BREAK_BAD: ', result.text)

	def test_check_says_what_was_expected_and_what_was_meant(self):
		self.rules = {'PAY': 'pay.test sleep=5'}
		self.assertIn("SHUNT_BREAK_PAY: sleep: expected a duration such as 250ms, 5s or 1m, got '5'",
			self.shunt('check').text)
		self.rules = {'PAY': 'pay.test slep=5s'}
		self.assertIn('sleep', self.shunt('check').text)

	def test_check_is_content_with_good_rules(self):
		self.rules = {'PAY': 'pay.test:443 errors=50% volume=20 window=10s sleep=5s'}
		self.assertEqual(self.shunt('check').returncode, 0)

	def test_status_shows_the_rule_that_was_left_out(self):
		self.rules = {'PAY': 'pay.test sleep=5'}
		errors = {rule['name']: rule['error'] for rule in self.status()['rules']}
		self.assertIn('sleep: expected a duration', errors['PAY'] or '')

	def test_run_refuses_to_start(self):
		result = self.shunt('run', '--break', 'pay.test sleep=5', '--', 'echo', 'started')
		self.assertEqual(result.returncode, 125, result)
		self.assertNotIn('started', result.stdout)
		self.assertIn('expected a duration', result.stderr)

	def test_run_starts_with_a_good_rule(self):
		result = self.shunt('run', '--break', 'pay.test sleep=5s', '--', 'sh', '-c', 'echo started; exit 7')
		self.assertEqual((result.returncode, result.stdout), (7, 'started\n'), result)


if __name__ == '__main__':
	harness.main()
