# SPDX-License-Identifier: MIT
"""Where nothing fails a program behaves with the library as without: output, exit code, system calls."""
import collections
import re

import harness
import daemons

COMMANDS = [
	'true', 'false', 'exit 42', 'echo hello; echo problem >&2; exit 3',
	'ls -l /proc/self/fd | wc -l', 'cat /etc/hostname', 'cat /does/not/exist', 'kill -TERM $$', 'kill -SEGV $$',
	'sort /etc/passwd | head -n 3', 'date -u +%Y', 'env | grep -v -e SHUNT_ -e LD_PRELOAD -e ^_= | sort',
	'exec 0<&- 1>&-; echo lost; exit 5', 'sleep 0.1 & wait; echo done', '(exec bash -c "echo inner; exit 9"); echo $?',
	'curl -s URL', 'curl -si URL | grep -v -i date', 'curl -sf URL/missing; echo $?', 'curl -s URL URL URL', 'curl -sI URL | head -n 1',
	'wget -qO- URL', 'wget -qO- URL/missing; echo $?', 'exec 3<>/dev/tcp/HOST/PORT; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; tail -n 1 <&3',
	'printf "GET / HTTP/1.0\\r\\n\\r\\n" | nc -N HOST PORT | tail -n 1',
	'/usr/bin/python3 -c "import urllib.request as u; print(u.urlopen(\'URL\').read())"',
	'/usr/bin/python3 -c "import random; random.seed(1); print(random.random())"',
	'/usr/bin/python3 -c "import subprocess; print(subprocess.run([\'echo\', \'child\'], capture_output=True))"',
	'/usr/bin/python3 -c "import os; r = os.fork(); r and print(os.waitpid(r, 0)[1]); r or os._exit(4)"',
	'/usr/bin/python3 -c "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))"',
	'/usr/bin/python3 -c "import threading; print(threading.active_count(), len(__import__(\'os\').listdir(\'/proc/self/task\')))"',
	'/usr/bin/python3 -c "import socket; s = socket.socket(); print(s.fileno(), s.connect_ex((\'HOST\', 1)))"',
	'perl -e \'print "perl\\n"; exit 6\'', 'git --version', 'node -e "fetch(\'URL\').then((r) => r.text()).then(console.log)"',
	'openssl version', 'getent hosts localhost', 'bash -c "ulimit -n; exec 200>/dev/null; ls /proc/self/fd | tail -n 1"',
]

RULES = {
	'no rule': {},
	'a rule that matches nothing': {'OTHER': '192.0.2.1:9'},
	'a rule whose circuit is closed': {'TARGET': '127.0.0.1:PORT'},
}


class Parity(harness.Case):
	@classmethod
	def setUpClass(cls):
		cls.nginx = daemons.Nginx()
		cls.addClassCleanup(cls.nginx.close)

	def fill_in(self, text):
		port = str(self.nginx.port)
		return text.replace('URL', f'http://127.0.0.1:{port}').replace('HOST', '127.0.0.1').replace('PORT', port)

	def assertSame(self, what):
		self.rules = {name: self.fill_in(rule) for name, rule in RULES[what].items()}
		for command in COMMANDS:
			with self.subTest(command=command):
				argv = ['bash', '-c', self.fill_in(command)]
				bare, ours = self.run_program(argv, library=False), self.run_program(argv)
				self.assertEqual((ours.returncode, ours.stdout, ours.stderr), (bare.returncode, bare.stdout, bare.stderr))

	def test_without_a_rule(self):
		self.assertSame('no rule')

	def test_with_a_rule_that_matches_nothing(self):
		self.assertSame('a rule that matches nothing')

	def test_with_a_rule_whose_circuit_is_closed(self):
		self.assertSame('a rule whose circuit is closed')

	def system_calls(self, argv, library):
		"""How often each kind of call was made, from the program's own first step on."""
		trace = self.scratch + '/trace'
		env = [f'LD_PRELOAD={harness.LIBRARY}'] + [f'{k}={v}' for k, v in self.shunt_variables().items()] if library else []
		result = self.run_program(['strace', '-f', '-o', trace, *(x for pair in env for x in ('-E', pair)), *argv], library=False)
		self.assertEqual(result.returncode, 0, result)
		with open(trace, encoding='utf-8', errors='replace') as file:
			text = file.read()
		return collections.Counter(re.findall(r'^\d+ +(\w+)\(', text, re.M)), text

	# Loading a library and reading the rules; the rest of a run makes the calls of a bare one.
	START = {'openat', 'open', 'read', 'pread64', 'fstat', 'newfstatat', 'mmap', 'munmap', 'mprotect', 'close', 'lseek', 'access',
		'readlink', 'getpid', 'geteuid', 'prctl', 'fallocate', 'linkat', 'link', 'ftruncate', 'statx', 'getrlimit', 'prlimit64',
		'clock_getres', 'brk', 'gettid', 'fcntl', 'readlinkat', 'fchmod', 'unlink', 'pwrite64', 'write', 'rt_sigprocmask'}

	def test_curl_makes_the_same_system_calls(self):
		argv = ['curl', '-s', '-o', '/dev/null', f'http://127.0.0.1:{self.nginx.port}/']
		bare, _ = self.system_calls(argv, library=False)
		for what in RULES:
			with self.subTest(what):
				self.rules = {name: self.fill_in(rule) for name, rule in RULES[what].items()}
				ours, text = self.system_calls(argv, library=True)
				# How often curl polls hangs on the moment that bytes arrive.
				more = {name: count - bare[name] for name, count in ours.items()
					if count > bare[name] and name not in self.START and name not in ('poll', 'futex', 'recvfrom', 'sched_yield')}
				self.assertEqual(more, {}, text[-1500:])
				for name in ('socket', 'connect', 'sendto', 'getsockopt', 'setsockopt', 'clone', 'clone3', 'getpeername'):
					self.assertEqual(ours[name], bare[name], name)


if __name__ == '__main__':
	harness.main()
