# SPDX-License-Identifier: MIT
"""The command shunt, against segments that tests/support/make_segment.c makes. No program runs under
the library here but `env`, `sh` and the like."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import harness

BUILD = os.environ.get('SHUNT_BUILD') or os.path.dirname(os.path.dirname(os.path.abspath(harness.SHUNT)))
SHUNT = os.path.join(BUILD, 'cli', 'shunt')
LIBRARY = os.path.join(BUILD, 'shim', 'libshunt.so')
MAKER = os.path.join(BUILD, 'tests', 'support', 'make_segment')
MANUAL = os.path.join(harness.ROOT, 'docs', 'shunt.7')

PAY = 'cell:PAY,pay.internal,10.1.2.3,443'

# The shape of DESIGN: names in order, and what each holds.
CELL_FIELDS = ['name', 'target', 'host', 'address', 'port', 'kind', 'state', 'forced', 'requests',
	'errors', 'error_percent', 'retry_in_ms', 'in_flight', 'concurrency', 'totals', 'latency_ms']
TOTALS = ['success', 'failure', 'timeout', 'rejected', 'short_circuited', 'cancelled', 'ignored',
	'fallback', 'cached', 'unused', 'late', 'injected', 'trips', 'rejected_connections', 'rejected_queue', 'rejected_pool']
COMMANDS = ['run', 'status', 'events', 'trip', 'reset', 'set', 'force', 'check', 'fault', 'explain', 'doctor', 'help']
STATUS_FIELDS = ['version', 'segment', 'cells', 'rules', 'faults', 'overflow', 'notes']
LATENCIES = ['mean', 'p50', 'p90', 'p99', 'p99_5', 'max']


class _Command(unittest.TestCase):
	maxDiff = None

	def setUp(self):
		self.scratch = tempfile.mkdtemp(prefix='shunt-cli-', dir='/dev/shm')
		self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
		self.state = os.path.join(self.scratch, 'segment')
		self.env = {'PATH': '/usr/bin:/bin', 'LC_ALL': 'C', 'TZ': 'UTC', 'SHUNT_STATE': self.state}

	def make(self, *words):
		subprocess.run([MAKER, self.state, *words], check=True, timeout=30)

	def start(self, *argv, **keywords):
		process = subprocess.Popen(argv, env=self.env, text=True, **keywords)
		self.addCleanup(self.end, process)
		return process

	@staticmethod
	def end(process):
		if process.poll() is None:
			process.kill()
			process.wait(30)
		for pipe in (process.stdin, process.stdout, process.stderr):
			if pipe:
				pipe.close()

	def shunt(self, *argv, **keywords):
		return subprocess.run([SHUNT, *argv], env=self.env, text=True, stdin=subprocess.DEVNULL,
			stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, **keywords)

	def good(self, *argv, **keywords):
		done = self.shunt(*argv, **keywords)
		self.assertEqual((done.returncode, done.stderr), (0, ''), argv)
		return done.stdout

	def refused(self, *argv, code=125):
		"""One complaint, nothing on standard output; the complaint."""
		done = self.shunt(*argv)
		self.assertEqual(done.returncode, code, done.stderr)
		self.assertEqual(done.stdout, '')
		self.assertRegex(done.stderr, r'\Ashunt: .*\n\Z')
		return done.stderr

	def status(self):
		return json.loads(self.good('status', '--json'))

	def cells(self):
		return {(c['name'], c['address'] or c['kind']): c for c in self.status()['cells']}


class Usage(_Command):
	def test_help_lists_what_there_is_and_nothing_else(self):
		text = self.good('--help')
		self.assertEqual(text, self.good('help'))
		self.assertEqual(re.findall(r'^  shunt (\S+)', text, re.M),
			COMMANDS)
		for later in (' serve', 'metrics'):
			self.assertNotIn(later, text)

	def test_help_of_each_command(self):
		for command in COMMANDS:
			text = self.good('help', command)
			self.assertTrue(text.startswith(f'usage: shunt {command} '))
			self.assertEqual(self.good(command, '--help'), text)

	def test_version(self):
		self.assertRegex(self.good('--version'), r'\Ashunt \d+\.\d+\.\d+\n\Z')

	def test_no_command_is_a_failure_that_shows_the_usage(self):
		done = self.shunt()
		self.assertEqual((done.returncode, done.stdout), (125, ''))
		self.assertIn('usage: shunt COMMAND', done.stderr)

	def test_commands_of_later_versions_are_refused_by_name(self):
		for command in ('top', 'env', 'metrics', 'serve'):
			self.assertIn(f'{command}: not in this version', self.refused(command, 'x'))

	def test_misspelt_words_get_the_nearest_one(self):
		self.assertIn("such as status, got 'statsu'", self.refused('statsu'))
		self.assertIn("such as --json, got '--jsno'", self.refused('status', '--jsno'))
		self.assertIn("got 'qqqqqq'", self.refused('qqqqqq'))

	def test_operands_are_counted(self):
		self.assertIn("got 'x'", self.refused('status', 'x'))
		self.assertIn("got 'b'", self.refused('check', 'a', 'b'))
		self.assertIn('got nothing;', self.refused('trip'))
		self.assertIn('got nothing more', self.refused('force', 'PAY'))
		self.assertIn('expected a command', self.refused('run', '--observe'))
		self.assertIn('expected a value after --break', self.refused('run', '--break'))
		self.assertIn('--json without a value', self.refused('status', '--json=1'))

	def test_output_that_cannot_be_written_is_a_failure(self):
		with open('/dev/full', 'w', encoding='ascii') as full:
			done = subprocess.run([SHUNT, 'help'], env=self.env, stdout=full, stderr=subprocess.PIPE,
				text=True, timeout=30)
		self.assertEqual(done.returncode, 125)
		self.assertIn('No space left', done.stderr)


class Manual(_Command):
	def test_settings_are_those_of_the_program(self):
		with open(MANUAL, encoding='ascii') as file:
			text = file.read()
		table = text.split('.\\" SETTINGS BEGIN\n')[1].split('.\\" SETTINGS END')[0]
		manual = re.findall(r'^\.It Cm (\S+) Pq (.+)\n(.+)$', table, re.M)
		program = [re.fullmatch(r'(\S+) +(= \S+|\S+) +(.+)', line).groups()
			for line in self.good('help', 'settings').splitlines()]
		self.assertGreater(len(program), 20)
		self.assertEqual(manual, program)


class Status(_Command):
	def test_json_has_the_agreed_shape(self):
		self.make('rule:PAY', PAY, 'success:15', 'failure:5')
		status = self.status()
		self.assertEqual(list(status), STATUS_FIELDS)
		self.assertEqual((status['version'], status['segment']), (1, self.state))
		self.assertEqual((status['overflow'], status['notes']), (0, []))
		self.assertEqual(status['rules'], [{'name': 'PAY', 'matched': 0, 'error': None}])
		[cell] = status['cells']
		self.assertEqual(list(cell), CELL_FIELDS)
		self.assertEqual(list(cell['totals']), TOTALS)
		self.assertEqual(list(cell['latency_ms']), LATENCIES)
		self.assertEqual([cell[f] for f in CELL_FIELDS[:-2]], ['PAY', 'pay.internal:443',
			'pay.internal', '10.1.2.3', 443, 'connection', 'closed', 'none', 20, 5, 25, None, 0,
			{'by_hand': False, 'limit': None}])
		self.assertEqual((cell['totals']['success'], cell['totals']['failure']), (15, 5))
		for value in cell['latency_ms'].values():
			self.assertAlmostEqual(value, 1, delta=0.2)

	def test_an_open_circuit_says_when_it_tries_again(self):
		self.make(PAY, 'failure:25')
		cell = self.cells()['PAY', '10.1.2.3']
		self.assertEqual((cell['state'], cell['forced']), ('open', 'none'))
		self.assertEqual((cell['requests'], cell['errors'], cell['error_percent']), (20, 20, 100))
		self.assertEqual((cell['totals']['trips'], cell['totals']['short_circuited']), (1, 5))
		self.assertTrue(0 <= cell['retry_in_ms'] <= 5000)

	def test_a_sleep_that_is_over_shows_as_zero(self):
		self.make('ago:6', PAY, 'trip')
		cell = self.cells()['PAY', '10.1.2.3']
		self.assertEqual((cell['state'], cell['retry_in_ms']), ('open', 0))
		self.assertRegex(self.good('status'), r'PAY .* open .* now +0\n')

	def test_a_force_shows_as_the_state_it_makes(self):
		self.make(PAY, 'force:open')
		cell = self.cells()['PAY', '10.1.2.3']
		self.assertEqual((cell['state'], cell['forced']), ('open', 'open'))
		self.assertRegex(self.good('status'), r'PAY .* open, forced ')

	def test_lookups_and_addresses_of_every_kind(self):
		self.make('lookup:PAY,pay.internal', 'cell:PAY,pay.internal,2001:db8::1,443',
			'cell:NET,10.0.0.9,10.0.0.9,5432', 'cell:HOST,h.internal,,80')
		cells = self.cells()
		lookup = cells['PAY', 'lookup']
		self.assertEqual((lookup['kind'], lookup['address'], lookup['port'], lookup['target']),
			('lookup', '', 0, 'pay.internal'))
		self.assertEqual(cells['PAY', '2001:db8::1']['target'], 'pay.internal:443')
		self.assertEqual(cells['NET', '10.0.0.9']['host'], '10.0.0.9')
		self.assertEqual(cells['HOST', 'connection']['address'], '')

	def test_cells_come_in_order(self):
		self.make('cell:B,h,10.0.0.2,1', 'cell:B,h,10.0.0.1,2', 'cell:A,h,10.0.0.1,1', 'lookup:B,h',
			'cell:B,h,10.0.0.1,1')
		self.assertEqual([(c['name'], c['kind'], c['address'], c['port']) for c in self.status()['cells']],
			[('A', 'connection', '10.0.0.1', 1), ('B', 'lookup', '', 0),
			('B', 'connection', '10.0.0.1', 1), ('B', 'connection', '10.0.0.1', 2),
			('B', 'connection', '10.0.0.2', 1)])

	def test_the_table_hides_idle_circuits_and_says_so(self):
		self.make(PAY, 'success:3', 'cell:DB,db.internal,10.0.0.1,5432')
		text = self.good('status')
		self.assertRegex(text, r'NAME +TARGET +ADDRESS +KIND +STATE +REQUESTS +ERRORS +ERR% +RETRY +IN FLIGHT\n')
		self.assertRegex(text, r'PAY +pay.internal:443 +10.1.2.3 +connection +closed +3 +0 +0 +- +0\n')
		self.assertNotIn('db.internal', text)
		self.assertIn('1 idle circuit not shown', text)
		self.assertIn('totals: 3 success\n', text)
		every = self.good('status', '--all')
		self.assertIn('db.internal:5432', every)
		self.assertNotIn('not shown', every)

	def test_rules_show_matches_silence_and_errors(self):
		self.make('rule:PAY', 'match:PAY=7', 'rule:DB', 'rule:BAD=BAD: no good')
		self.env['SHUNT_BREAK_OWN'] = 'own.internal'
		self.env['SHUNT_BREAK_WORSE'] = 'x.internal sleep=5'
		rules = {r['name']: r for r in self.status()['rules']}
		self.assertEqual(list(rules), ['BAD', 'DB', 'OWN', 'PAY', 'WORSE'])
		self.assertEqual(rules['PAY'], {'name': 'PAY', 'matched': 7, 'error': None})
		self.assertEqual((rules['OWN']['matched'], rules['OWN']['error']), (0, None))
		self.assertEqual(rules['BAD']['error'], 'BAD: no good')
		self.assertIn("got '5'", rules['WORSE']['error'])
		text = self.good('status')
		self.assertRegex(text, r'\nDB +0  never matched\n')
		self.assertRegex(text, r'\nPAY +7')
		self.assertRegex(text, r'\nBAD +0  BAD: no good\n')

	def test_faults_of_the_past_are_counted_alone(self):
		self.make('ago:300', 'fault:OLD=old.internal refuse', 'added:ENDED=ended.internal refuse', 'ago:200',
			'fault:LAST=last.internal refuse', 'fault:LAST2=last2.internal refuse')
		self.assertEqual([f['name'] for f in self.status()['faults']], ['ENDED', 'LAST', 'LAST2', 'OLD'])
		shown = lambda *words: re.findall(r'(?m)^([A-Z]+\d?) +\S+\.internal ', self.good(*words))
		for words in (('status',), ('fault', 'list')):
			self.assertEqual(shown(*words), ['LAST', 'LAST2'])
			self.assertIn('2 older fault rules not shown (--all shows them)\n', self.good(*words))
			self.assertEqual(shown(*words, '--all'), ['ENDED', 'LAST', 'LAST2', 'OLD'])
			self.assertNotIn('not shown', self.good(*words, '--all'))
		self.make('ago:30', 'fault:USED=used.internal refuse', 'added:GONE=gone.internal refuse', 'ago:0',
			'added:NOW=now.internal refuse')
		self.assertEqual(shown('fault', 'list'), ['GONE', 'NOW', 'USED'])

	def test_what_finds_no_cell_is_counted(self):
		self.make('fill')
		status = self.status()
		self.assertGreater(status['overflow'], 0)
		self.assertEqual(len(status['cells']), 400)
		self.assertIn('passed without a breaker', self.good('status'))

	def test_no_segment_yet_is_no_failure(self):
		[note] = self.status()['notes']
		self.assertIn('no process has run under shunt', note)
		self.assertIn(note, self.good('status'))
		self.assertFalse(os.path.exists(self.state))

	def test_a_segment_that_cannot_be_made_is_said(self):
		self.env['SHUNT_STATE'] = os.path.join(self.scratch, 'none', 'segment')
		[note] = self.status()['notes']
		self.assertIn('its directory is not there', note)

	def test_processes_that_found_no_seat_are_said(self):
		self.make(PAY)
		with open(self.state, 'r+b') as file:
			# Behind magic, four numbers, and two counters.
			file.seek(8 + 4 * 4 + 2 * 8)
			file.write((3).to_bytes(8, 'little'))
		[note] = self.status()['notes']
		self.assertRegex(note, '^3 of the processes so far came when 512 others held calls: ')

	def test_private_state_is_said(self):
		self.env['SHUNT_STATE'] = 'private'
		status = self.status()
		self.assertEqual(status['segment'], 'private')
		self.assertIn('SHUNT_STATE=private', status['notes'][0])

	def test_a_file_that_is_no_segment_is_refused_and_left_alone(self):
		with open(self.state, 'w', encoding='ascii') as file:
			file.write('mine')
		os.chmod(self.state, 0o600)
		[note] = self.status()['notes']
		self.assertIn(f'{self.state} is not used: ', note)
		with open(self.state, encoding='ascii') as file:
			self.assertEqual(file.read(), 'mine')

	def test_a_mode_that_others_can_use_is_refused(self):
		self.make(PAY)
		os.chmod(self.state, 0o644)
		status = self.status()
		self.assertEqual(status['cells'], [])
		self.assertIn('mode', status['notes'][0])

	def test_random_bytes_in_a_segment_neither_crash_nor_hang(self):
		self.make(PAY, 'trip')
		size = os.path.getsize(self.state)
		for seed in range(8):
			with open(self.state, 'r+b') as file:
				file.seek(256)
				file.write(random.Random(seed).randbytes(size - 256))
			self.assertEqual(list(self.status()), STATUS_FIELDS)
			self.assertTrue(self.good('status', '--all').replace('\n', '').isprintable())
			for line in self.good('events', '--json').splitlines():
				json.loads(line)
			self.assertTrue(self.good('fault', 'list').replace('\n', '').isprintable())
			self.assertTrue(self.good('explain', '10.1.2.3:443').replace('\n', '').isprintable())
			self.assertIn(self.shunt('trip', 'PAY').returncode, (0, 125))
			self.assertIn(self.shunt('fault', 'add', 'A', 'a.internal refuse').returncode, (0, 125))
			self.good('fault', 'clear')

	def test_the_kill_switch_does_not_blind_the_command(self):
		self.make(PAY)
		self.env['SHUNT_OFF'] = '1'
		self.assertEqual(len(self.status()['cells']), 1)

	def test_a_segment_removed_under_a_process_is_noticed(self):
		for first in (False, True):
			# The process that made the segment knows it by another name than later ones.
			with self.subTest(made_it=first):
				if not first:
					self.make(PAY)
				holder = self.start(MAKER, self.state, PAY, 'hold', stdin=subprocess.PIPE,
					stdout=subprocess.PIPE)
				self.assertEqual(holder.stdout.readline(), 'ready\n')
				self.assertEqual(self.status()['notes'], [])
				os.unlink(self.state)
				notes = ' '.join(self.status()['notes'])
				self.assertIn(f'removed under 1 running process ({holder.pid})', notes)
				self.make(PAY)
				[note] = self.status()['notes']
				self.assertIn(f'({holder.pid})', note)
				holder.stdin.close()
				holder.wait(30)
				self.assertEqual(self.status()['notes'], [])
				os.unlink(self.state)

	def test_a_segment_in_use_under_another_name_was_not_removed(self):
		self.make(PAY)
		other = self.state + '-other'
		holder = self.start(MAKER, other, PAY, 'hold', stdin=subprocess.PIPE, stdout=subprocess.PIPE)
		self.addCleanup(lambda: os.path.exists(other) and os.unlink(other))
		self.assertEqual(holder.stdout.readline(), 'ready\n')
		self.assertNotIn(str(holder.pid), ' '.join(self.status()['notes']))
		holder.stdin.close()
		holder.wait(30)

	def test_watch_goes_on_until_interrupted(self):
		watch = self.start(SHUNT, 'status', '--watch', '--json', stdout=subprocess.PIPE)
		self.assertEqual(json.loads(watch.stdout.readline())['cells'], [])
		self.make(PAY)
		while not json.loads(watch.stdout.readline())['cells']:
			pass
		watch.send_signal(signal.SIGINT)
		self.assertEqual(watch.wait(30), -signal.SIGINT)

	def test_watch_ends_when_nobody_reads(self):
		watch = self.start(SHUNT, 'status', '--watch', stdout=subprocess.PIPE)
		watch.stdout.readline()
		watch.stdout.close()
		self.assertIn(watch.wait(30), (0, -signal.SIGPIPE))


class Events(_Command):
	def test_lines_for_people(self):
		self.make(PAY, 'failure:20', 'force:closed')
		first, second = self.good('events').splitlines()
		self.assertRegex(first, r'\A\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  PAY  \S.* tripped'
			r'  20 of 20 failed  \(process 4242\)\Z')
		self.assertIn('10.1.2.3', first)
		self.assertIn('forced closed', second)

	def test_lines_for_machines(self):
		self.make('lookup:PAY,pay.internal', 'trip')
		[event] = [json.loads(line) for line in self.good('events', '--json').splitlines()]
		self.assertEqual((event['event'], event['name'], event['kind'], event['pid']),
			('tripped_by_hand', 'PAY', 'lookup', 4242))
		self.assertRegex(event['time'], r'\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z')

	def test_none_is_no_failure(self):
		done = self.shunt('events')
		self.assertEqual((done.returncode, done.stdout), (0, ''))
		self.assertIn('no segment yet', done.stderr)
		self.make(PAY)
		self.assertEqual(self.good('events'), '')

	def test_follow_waits_for_the_segment_and_sees_it_replaced(self):
		follow = self.start(SHUNT, 'events', '--follow', '--json', stdout=subprocess.PIPE,
			stderr=subprocess.DEVNULL)
		for name in ('A', 'B'):
			self.make(f'cell:{name},h,10.0.0.1,1', 'trip')
			event = json.loads(follow.stdout.readline())
			self.assertEqual((event['name'], event['event']), (name, 'tripped_by_hand'))
			self.make(f'cell:{name},h,10.0.0.1,1', 'force:open')
			self.assertEqual(json.loads(follow.stdout.readline())['forced'], 'open')
			os.unlink(self.state)

	def test_follow_ends_when_nobody_reads(self):
		self.make(PAY)
		follow = self.start(SHUNT, 'events', '--follow', stdout=subprocess.PIPE)
		follow.stdout.close()
		self.assertIn(follow.wait(30), (0, -signal.SIGPIPE))


class Control(_Command):
	def setUp(self):
		super().setUp()
		self.make('rule:PAY', PAY, 'cell:PAY,pay.internal,2001:db8::1,443', 'lookup:PAY,pay.internal',
			'cell:DB,db.internal,10.0.0.1,5432', 'rule:IDLE')

	def states(self, field='state'):
		return {' '.join(key): cell[field] for key, cell in self.cells().items()}

	def test_a_name_means_all_circuits_of_the_rule(self):
		text = self.good('trip', 'PAY')
		self.assertEqual(len(text.splitlines()), 3)
		self.assertIn('PAY pay.internal:443 (10.1.2.3): open\n', text)
		self.assertIn('PAY pay.internal (lookup): open\n', text)
		self.assertEqual(self.states(), {'PAY 10.1.2.3': 'open', 'PAY 2001:db8::1': 'open',
			'PAY lookup': 'open', 'DB 10.0.0.1': 'closed'})
		self.good('reset', 'PAY')
		self.assertEqual(set(self.states().values()), {'closed'})

	def test_one_circuit_by_address_or_lookup(self):
		for place, key in (('10.1.2.3', 'PAY 10.1.2.3'), ('2001:DB8:0::1', 'PAY 2001:db8::1'),
				('[2001:db8::1]', 'PAY 2001:db8::1'), ('lookup', 'PAY lookup')):
			with self.subTest(place=place):
				self.good('trip', f'PAY@{place}')
				self.assertEqual([k for k, v in self.states().items() if v == 'open'], [key])
				self.good('reset', 'PAY')

	def test_force_holds_and_lets_go(self):
		self.good('trip', 'PAY@10.1.2.3')
		self.good('force', 'PAY', 'closed')
		self.assertEqual(self.states()['PAY 10.1.2.3'], 'closed')
		self.assertEqual(self.states('forced')['PAY lookup'], 'closed')
		self.assertIn('open, forced', self.good('force', 'PAY', 'open'))
		self.good('force', 'PAY', 'none')
		self.assertEqual(self.states()['PAY 10.1.2.3'], 'open')
		self.assertEqual(self.states()['PAY lookup'], 'closed')
		self.assertEqual(set(self.states('forced').values()), {'none'})

	def test_a_limit_by_hand_is_shown(self):
		self.assertEqual(self.good('set', 'DB', 'concurrency=7'),
			'DB db.internal:5432 (10.0.0.1): closed, concurrency 7 by hand\n')
		self.assertEqual(self.states('concurrency')['DB 10.0.0.1'], {'by_hand': True, 'limit': 7})
		self.assertRegex(self.good('status'), r'(?m)^DB .* 0 of 7 by hand$')
		self.env['SHUNT_BREAK_DB'] = '10.0.0.1'
		self.assertIn('10.0.0.1): closed, concurrency 7 by hand\n', self.good('explain', '10.0.0.1:5432'))
		self.assertIn('concurrency 7 by hand', self.good('trip', 'DB'))
		self.assertIn('concurrency off by hand', self.good('set', 'DB', 'concurrency=off'))
		self.assertEqual(self.states('concurrency')['DB 10.0.0.1'], {'by_hand': True, 'limit': None})
		self.assertIn('concurrency as rules say', self.good('set', 'DB', 'concurrency=rule'))
		self.assertEqual(self.states('concurrency')['DB 10.0.0.1'], {'by_hand': False, 'limit': None})

	def test_what_was_done_is_an_event(self):
		self.good('trip', 'DB')
		self.good('force', 'DB', 'closed')
		self.good('reset', 'DB')
		events = [json.loads(line) for line in self.good('events', '--json').splitlines()]
		self.assertEqual([e['event'] for e in events], ['tripped_by_hand', 'forced', 'reset'])
		self.assertEqual(events[1]['forced'], 'closed')

	def test_names_that_are_not_there(self):
		self.assertIn('did you mean PAY?', self.refused('trip', 'PAI'))
		self.assertIn('no call has been made under it', self.refused('force', 'IDLE', 'open'))
		self.assertIn("(lookup, 10.1.2.3, 2001:db8::1), got '10.9.9.9'",
			self.refused('trip', 'PAY@10.9.9.9'))
		self.assertIn("got 'nonsense'", self.refused('reset', 'PAY@nonsense'))
		self.assertIn("got '@lookup'", self.refused('reset', '@lookup'))
		self.assertIn("expected open, closed or none, got 'on'", self.refused('force', 'PAY', 'on'))
		self.assertEqual(set(self.states().values()), {'closed'})

	def test_without_a_segment_there_is_nothing_to_change(self):
		os.unlink(self.state)
		self.assertIn('no segment yet', self.refused('trip', 'PAY'))
		self.assertFalse(os.path.exists(self.state))


class Check(_Command):
	def test_good_rules_are_shown_with_what_they_change(self):
		self.env['SHUNT_BREAK_PAY'] = 'pay.internal:443 errors=25% sleep=1500ms volume=20'
		self.env['SHUNT_BREAK_DB'] = '10.0.0.0/8:5432,consecutive=5'
		self.assertEqual(sorted(self.good('check').splitlines()),
			['DB: ok 10.0.0.0/8:5432 consecutive=5', 'PAY: ok pay.internal:443 errors=25% sleep=1500ms'])

	def test_every_setting_can_be_read_back(self):
		values = {'errors': '12.5%', 'volume': '7', 'window': '2m', 'buckets': '6', 'sleep': '250ms',
			'probes': '3', 'half-open': 'rate', 'lease': '1h', 'consecutive': '4', 'slow': '750us',
			'slow-rate': '1/3', 'backoff': '2.5..1m', 'neutral': 'release', 'rejects': 'ignore',
			'force': 'open', 'enabled': 'no', 'abandon': '3s', 'timeout': '800ms', 'concurrency': '20', 'queue': '5',
			'queue-wait': '300ms', 'connections': '40', 'fallback': '127.0.0.1:8080', 'fallback-concurrency': '3',
			'resolve-timeout': '2s', 'resolve-pool': '4', 'resolve-pool-max': '12', 'resolve-queue': '16',
			'resolve-queue-reject': '9', 'resolve-cache': '30s', 'resolve-stale': '1h', 'guard': 'connect', 'per': 'host',
			'error': 'ETIMEDOUT', 'ignore': 'ECONNRESET+EAI_AGAIN', 'fail': 'ENETUNREACH+EAI_NONAME'}
		settings = [line.split()[0] for line in self.good('help', 'settings').splitlines()]
		self.assertEqual(settings, list(values) + ['preset'])
		for name, value in values.items():
			self.env['SHUNT_BREAK_X'] = f'h.internal {name}={value}'
			self.assertEqual(self.good('check').splitlines()[0], f'X: ok h.internal {name}={value}')
		text = ' '.join(f'{name}={value}' for name, value in values.items())
		self.env['SHUNT_BREAK_X'] = f'h.internal {text}'
		self.assertEqual(self.good('check'), f'X: ok h.internal {text}\n')
		for text in ('window=100calls', 'probes=20%'):
			self.env['SHUNT_BREAK_X'] = f'h.internal {text}'
			self.assertEqual(self.good('check'), f'X: ok h.internal {text}\n')

	def test_every_problem_is_shown(self):
		self.env['SHUNT_BREAK_PAY'] = 'pay.internal sleep=5'
		self.env['SHUNT_BREAK_DB'] = 'db.internal slep=5s'
		self.env['SHUNT_BREAK_OK'] = 'ok.internal'
		done = self.shunt('check')
		self.assertEqual((done.returncode, done.stdout), (1, 'OK: ok ok.internal\n'))
		self.assertEqual(len(done.stderr.splitlines()), 2)
		self.assertRegex(done.stderr, r"(?m)^SHUNT_BREAK_PAY: sleep: expected a duration such as .*, got '5'$")
		self.assertRegex(done.stderr, r'(?m)^SHUNT_BREAK_DB: .*slep.*sleep')

	def test_a_file(self):
		path = os.path.join(self.scratch, 'rules')
		with open(path, 'w', encoding='ascii') as file:
			file.write('# rules\nbreak PAY = pay.internal:443 volume=5\n')
		self.assertEqual(self.good('check', path), 'PAY: ok pay.internal:443 volume=5\n')
		with open(path, 'a', encoding='ascii') as file:
			file.write('break DB = db.internal volume=0.5\n')
		done = self.shunt('check', path)
		self.assertEqual(done.returncode, 1)
		self.assertIn(path, done.stderr)
		self.assertIn("'0.5'", done.stderr)

	def test_a_log_that_cannot_be_written(self):
		self.env['SHUNT_BREAK_PAY'] = 'pay.internal:443'
		self.env['SHUNT_LOG'] = '/no/such/directory/log'
		problem = "SHUNT_LOG: expected a file that can be written, got '/no/such/directory/log'"
		done = self.shunt('check')
		self.assertEqual((done.returncode, done.stderr), (1, problem + '\n'))
		self.assertIn(problem, self.refused('run', '--', 'true'))
		self.assertIn(problem, self.status()['notes'])
		self.env['SHUNT_LOG'] = os.path.join(self.scratch, 'log')
		self.good('check')

	def test_a_file_that_cannot_be_read(self):
		self.assertIn('No such file', self.refused('check', '/no/such/file'))
		self.assertIn('directory', self.refused('check', self.scratch))
		self.assertIn('at most 1MiB', self.refused('check', '/dev/zero'))

	def test_no_rule_is_no_problem(self):
		self.assertIn('no rule: set SHUNT_BREAK_NAME', self.good('check'))
		path = os.path.join(self.scratch, 'rules')
		for text in ('', '# nothing\n'):
			with open(path, 'w', encoding='ascii') as file:
				file.write(text)
			self.assertIn(f"no rule in {path}: write a line such as 'break NAME = HOST:PORT'", self.good('check', path))

	def test_settings_that_do_nothing_are_noted(self):
		def notes(rule):
			self.env['SHUNT_BREAK_X'] = rule
			return [line.split(': note: ')[1] for line in self.good('check').splitlines()[1:]]
		for setting, needed in (('queue=5', 'concurrency or connections'), ('fallback-concurrency=3', 'fallback'),
				('resolve-pool=3', 'resolve-timeout'), ('resolve-queue=3', 'resolve-timeout'),
				('resolve-queue-reject=3', 'resolve-timeout'), ('resolve-pool-max=20', 'resolve-timeout'),
				('queue-wait=2s', 'queue'), ('slow-rate=20%', 'slow')):
			self.assertEqual(notes(f'h.internal {setting}'), [f"{setting.split('=')[0]} does nothing without {needed}"])
		for rule in ('h.internal concurrency=2 queue=5 queue-wait=2s', 'h.internal connections=2 queue=5',
				'h.internal fallback=127.0.0.1:1 fallback-concurrency=3', 'h.internal resolve-timeout=1s resolve-pool=3',
				'any resolve-cache=1s', 'h.internal resolve-stale=1s', 'h.internal preset=hystrix', '10.0.0.1'):
			self.assertEqual(notes(rule), [])
		self.assertEqual(notes('10.0.0.0/8 resolve-cache=1s'),
			['resolve-cache does nothing for 10.0.0.0/8, as lookups go by names'])

	def test_rules_are_read_though_switched_off(self):
		self.env['SHUNT_OFF'] = '1'
		self.env['SHUNT_BREAK_PAY'] = 'pay.internal sleep=5'
		done = self.shunt('check')
		self.assertEqual(done.returncode, 1)
		self.assertIn('SHUNT_OFF is set', done.stderr)

	def test_a_switch_that_is_not_thrown_is_no_matter(self):
		self.env['SHUNT_BREAK_PAY'] = 'pay.internal'
		for value in ('', '0'):
			self.env['SHUNT_OFF'] = value
			done = self.shunt('check')
			self.assertEqual((done.returncode, done.stderr), (0, ''))
		self.env['SHUNT_OFF'] = 'yes'
		done = self.shunt('check')
		self.assertEqual(done.returncode, 1)
		self.assertIn("SHUNT_OFF: expected 0 or 1, got 'yes'", done.stderr)
		self.assertIn('pay.internal', done.stdout)


class Run(_Command):
	def environment(self, *options):
		lines = self.good('run', *options, '--', 'env').splitlines()
		return dict(line.split('=', 1) for line in lines)

	def test_the_rule_and_the_library_reach_the_command(self):
		env = self.environment('--break', 'a.internal', '--break=b.internal volume=3', '--seed', '7',
			'--observe', '--backtrace')
		self.assertEqual(env['LD_PRELOAD'], os.path.realpath(LIBRARY))
		self.assertEqual((env['SHUNT_BREAK_RUN1'], env['SHUNT_BREAK_RUN2']),
			('a.internal', 'b.internal volume=3'))
		self.assertEqual((env['SHUNT_SEED'], env['SHUNT_MODE'], env['SHUNT_BACKTRACE']),
			('7', 'observe', '1'))

	def test_other_preloads_stay_behind_ours(self):
		self.env['LD_PRELOAD'] = 'libm.so.6'
		env = self.environment('--break', 'a.internal')
		self.assertEqual(env['LD_PRELOAD'], os.path.realpath(LIBRARY) + ':libm.so.6')

	def test_an_option_beats_the_environment_and_the_file(self):
		path = os.path.join(self.scratch, 'rules')
		with open(path, 'w', encoding='ascii') as file:
			file.write('break DB = db.internal:1-5 volume=5\n')
		self.env.update(SHUNT_CONF=path, SHUNT_BREAK_PAY='Pay.internal. volume=5', SHUNT_BREAK='any',
			SHUNT_BREAK_RUN1='run.internal')
		env = self.environment('--break', 'pay.internal,volume=6', '--break', ' db.internal:1-5 volume=6',
			'--break', 'any volume=6', '--break', 'other.internal')
		self.assertEqual(env['SHUNT_BREAK_PAY'], 'pay.internal,volume=6')
		self.assertEqual(env['SHUNT_BREAK_DB'], ' db.internal:1-5 volume=6')
		self.assertEqual(env['SHUNT_BREAK'], 'any volume=6')
		self.assertEqual((env['SHUNT_BREAK_RUN1'], env['SHUNT_BREAK_RUN2']),
			('run.internal', 'other.internal'))

	def test_every_problem_stops_the_start(self):
		self.env['SHUNT_BREAK_PAY'] = 'pay.internal sleep=5'
		done = self.shunt('run', '--break', 'a.internal volume=x', '--seed', 'blue', '--', 'echo', 'ran')
		self.assertEqual((done.returncode, done.stdout), (125, ''))
		self.assertEqual(len(done.stderr.splitlines()), 3)
		self.assertRegex(done.stderr, r"(?m)^shunt: run: --break 'a.internal volume=x': volume: .*, got 'x'")
		self.assertRegex(done.stderr, r"(?m)^shunt: run: SHUNT_BREAK_PAY: sleep: .*, got '5'")
		self.assertRegex(done.stderr, r"(?m)^shunt: run: SHUNT_SEED: .*'blue'")

	def test_nothing_to_guard_is_refused(self):
		self.assertIn('expected a rule, got none', self.refused('run', '--', 'true'))
		self.assertIn('expected a rule, got exclusions', self.refused('run', '--break', '^a.internal', 'true'))

	def test_the_kill_switch_runs_the_command_bare(self):
		self.env.update(SHUNT_OFF='1', SHUNT_BREAK_PAY='pay.internal sleep=5')
		for value, said in (('1', []), ('yes', ["shunt: run: SHUNT_OFF: expected 0 or 1, got 'yes'"])):
			self.env['SHUNT_OFF'] = value
			done = self.shunt('run', '--break', 'a.internal', '--', 'env')
			self.assertEqual(done.returncode, 0, done)
			self.assertNotIn('LD_PRELOAD', done.stdout)
			self.assertEqual(done.stderr.splitlines(), said + [
				'shunt: run: SHUNT_OFF is set: nothing is guarded, nothing injected'])

	def test_an_option_takes_no_option_for_its_value(self):
		for options, got in ((('--break', '--seed', '7'), '--seed'), (('--seed', '--', 'true'), '--'),
				(('--fault', '--report=x'), '--report=x')):
			self.assertIn(f"run: expected a value after {options[0]}, got '{got}'", self.refused('run', *options, '--', 'true'))
		self.assertEqual(self.environment('--break=--x')['SHUNT_BREAK_RUN1'], '--x')
		self.assertIn("--seed: expected a whole number, got ''", self.refused('run', '--break', 'a', '--seed', '', 'true'))
		self.assertIn('expected --seed once, got it again',
			self.refused('run', '--break', 'a', '--seed', '1', '--seed=2', 'true'))

	def test_exit_statuses(self):
		self.env['SHUNT_BREAK'] = 'a.internal'
		for code in (0, 1, 42, 255):
			self.assertEqual(self.shunt('run', 'sh', '-c', f'exit {code}').returncode, code)
		self.assertEqual(self.shunt('run', '--', 'sh', '-c', 'kill -TERM $$').returncode, -signal.SIGTERM)
		self.assertIn("got '/no/such': not found", self.refused('run', '/no/such', code=127))
		self.assertIn("got 'no-such-command'", self.refused('run', 'no-such-command', code=127))
		self.assertIn('denied', self.refused('run', '--', self.scratch, code=126))

	def test_the_command_is_the_same_process(self):
		self.env['SHUNT_BREAK'] = 'a.internal'
		process = self.start(SHUNT, 'run', 'sh', '-c', 'echo $$', stdout=subprocess.PIPE)
		self.assertEqual(int(process.communicate(timeout=30)[0]), process.pid)

	def test_options_of_the_command_are_its_own(self):
		self.env['SHUNT_BREAK'] = 'a.internal'
		self.assertEqual(self.good('run', 'printf', '%s\n', '--help', '--'), '--help\n--\n')
		self.assertEqual(self.good('run', '--', 'printf', '%s\n', '--seed'), '--seed\n')

	def test_verbose_says_what_is_used(self):
		done = self.shunt('run', '--verbose', '--break', 'a.internal volume=3', 'true')
		self.assertEqual((done.returncode, done.stdout), (0, ''))
		self.assertIn(f'preloading {os.path.realpath(LIBRARY)}\n', done.stderr)
		self.assertIn(f'shared in {self.state}\n', done.stderr)
		self.assertIn('rule RUN1: a.internal volume=3\n', done.stderr)

	def test_verbose_says_what_cannot_be_shared(self):
		for path, word in ((self.scratch, 'is not used: '), (self.scratch + '/none/x', 'its directory'),
				('private', 'circuits of its own')):
			self.env['SHUNT_STATE'] = path
			done = self.shunt('run', '--verbose', '--break', 'a.internal', 'true')
			self.assertEqual(done.returncode, 0)
			self.assertIn(word, done.stderr)
			self.assertNotIn('are shared', done.stderr)

	def _copy(self, name):
		"""The command alone in build/cli of a directory of that name."""
		directory = os.path.join(self.scratch, name, 'cli')
		os.makedirs(directory)
		shutil.copy(SHUNT, directory)
		return os.path.join(directory, 'shunt')

	def test_a_path_that_the_preload_cannot_carry_is_refused(self):
		for name in ('a b', 'a:b'):
			command = self._copy(name)
			os.makedirs(os.path.join(self.scratch, name, 'shim'))
			shutil.copy(LIBRARY, os.path.join(self.scratch, name, 'shim'))
			done = subprocess.run([command, 'run', '--break', 'a.internal', 'true'], env=self.env,
				text=True, stderr=subprocess.PIPE, timeout=30)
			self.assertEqual(done.returncode, 125)
			self.assertIn('without space and colon', done.stderr)

	def test_an_installed_layout_is_found(self):
		os.makedirs(os.path.join(self.scratch, 'bin'))
		command = shutil.copy(SHUNT, os.path.join(self.scratch, 'bin'))
		with open(SHUNT, 'rb') as file:
			binary = file.read()
		directory = re.search(rb'lib(?:/[\w-]+-linux-\w+|64)?\0', binary).group()[:-1].decode()
		os.makedirs(os.path.join(self.scratch, directory))
		library = shutil.copy(LIBRARY, os.path.join(self.scratch, directory))
		done = subprocess.run([command, 'run', '--break', 'a.internal', 'sh', '-c', 'echo $LD_PRELOAD'],
			env=self.env, text=True, stdout=subprocess.PIPE, timeout=30)
		self.assertEqual(done.stdout, library + '\n')


if __name__ == '__main__':
	harness.main()
