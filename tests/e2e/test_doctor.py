# SPDX-License-Identifier: MIT
"""`shunt doctor` of real programs and processes; and `shunt run` refuses exactly where the library would
do nothing. Whether it does is not taken from us: the programs look for it in their own /proc/self/maps."""
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

import harness

BUILD = os.path.dirname(os.path.dirname(os.path.abspath(harness.SHUNT)))
NOBODY = 65534
USER = 12345   # nobody has this number, so nothing else of it runs
RULE = '192.0.2.1:80'

# Says whether it has the library, and waits where it is told to.
LOOKER = r'''
#include <stdio.h>
#include <string.h>
int main(int argc, char *argv[])
{
	char line[8192];
	int found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps))
		found |= strstr(line, "libshunt.so") != NULL;
	puts(found ? "with the library" : "bare");
	fflush(stdout);
	if (argc > 1 && strcmp(argv[1], "wait") == 0)
		while (getchar() != EOF)
			;
	return 0;
}
'''
# The same of 32 bits, without libc: it has no library for sure.
SMALL = r'''
void _start(void)
{
	int result;
	__asm__ volatile("int $0x80" : "=a"(result) : "0"(4), "b"(1), "c"("bare\n"), "d"(5) : "memory");
	__asm__ volatile("int $0x80" : : "a"(1), "b"(0));
}
'''
HANDED = 'a connection that was handed to the process'
# Under a filter that forbids nothing, starts what follows.
FILTERED = '''
import ctypes, os, sys
class Filter(ctypes.Structure):
	_fields_ = [('code', ctypes.c_ushort), ('jt', ctypes.c_ubyte), ('jf', ctypes.c_ubyte), ('k', ctypes.c_uint)]
class Program(ctypes.Structure):
	_fields_ = [('count', ctypes.c_ushort), ('filters', ctypes.POINTER(Filter))]
allow = Filter(6, 0, 0, 0x7fff0000)
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.pointer(allow))), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
'''
WITH, BARE = 'with the library\n', 'bare\n'

PRELOADS = {
	'quiet.so': 'int quiet_function(void) { return 0; }',
	'loud.so': 'int connect(int a, const void *b, unsigned c) { (void)a; (void)b; (void)c; return -1; }',
}

# Connects as each line of its argument says, HOST PORT FAMILY, has one exchange on each, and waits.
CLIENT = '''
import ctypes, socket, sys, threading
lines = [line.split() for line in sys.argv[1].split(',')]
if 'filter' in sys.argv[2:]:
	class Filter(ctypes.Structure):
		_fields_ = [('code', ctypes.c_ushort), ('jt', ctypes.c_ubyte), ('jf', ctypes.c_ubyte), ('k', ctypes.c_uint)]
	class Program(ctypes.Structure):
		_fields_ = [('count', ctypes.c_ushort), ('filters', ctypes.POINTER(Filter))]
	allow = Filter(6, 0, 0, 0x7fff0000)
	libc = ctypes.CDLL(None)
	assert libc.prctl(38, 1, 0, 0, 0) == 0
	assert libc.prctl(22, 2, ctypes.byref(Program(1, ctypes.pointer(allow))), 0, 0) == 0
listener = socket.create_server(('127.0.0.1', 0))
held = []
for host, port, kind in lines:
	if kind == 'v6':
		sock = socket.socket(socket.AF_INET6)
		sock.connect((host, int(port)))
	else:
		sock = socket.create_connection((host, int(port)))
	sock.sendall(b'x')
	assert sock.recv(1) == b'x'
	held.append(sock)
print('ready', listener.getsockname()[1], *[s.fileno() for s in held], flush=True)
accepted = listener.accept()[0]
print('accepted', accepted.fileno(), flush=True)
sys.stdin.read()
'''


class _Echo:
	"""Gives back one byte on each connection, and holds it."""

	def __init__(self, address='127.0.0.1'):
		family = socket.AF_INET6 if ':' in address else socket.AF_INET
		self.listener = socket.create_server((address, 0), family=family)
		self.port = self.listener.getsockname()[1]
		self.held = []
		threading.Thread(target=self._serve, daemon=True).start()

	def _serve(self):
		while True:
			try:
				connection = self.listener.accept()[0]
				self.held.append(connection)
				connection.sendall(connection.recv(1))
			except OSError:
				return

	def close(self):
		self.listener.close()
		for connection in self.held:
			connection.close()


class _Doctor(harness.Case):
	@classmethod
	def setUpClass(cls):
		"""Programs of every kind, and a copy of the build where every user can read it."""
		cls.place = tempfile.mkdtemp(prefix='shunt-doctor-', dir='/tmp')
		cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
		os.chmod(cls.place, 0o755)
		cls.command, cls.library = cls.copy_build(cls.place)
		source = os.path.join(cls.place, 'looker.c')
		with open(source, 'w', encoding='ascii') as file:
			file.write(LOOKER)
		cls.plain = cls.build('gcc', source, '-o', 'plain')

	@staticmethod
	def copy_build(directory):
		for part, file in (('cli', harness.SHUNT), ('shim', harness.LIBRARY)):
			os.makedirs(os.path.join(directory, part))
			shutil.copy(file, os.path.join(directory, part))
		return os.path.join(directory, 'cli', 'shunt'), os.path.join(directory, 'shim', 'libshunt.so')

	@classmethod
	def build(cls, *argv):
		"""The path of what was built, or None where this machine has no such compiler."""
		if not harness.find_program(argv[0]):
			return None
		done = subprocess.run(argv, cwd=cls.place, capture_output=True, timeout=120)
		path = os.path.join(cls.place, argv[-1])
		return path if done.returncode == 0 else None

	def kind(self, *argv):
		"""A build of the looker of another kind."""
		path = self.build(argv[0], os.path.join(self.place, 'looker.c'), *argv[1:])
		if not path:
			self.skipTest(f'{argv[0]} cannot build it here: {argv}')
		return path

	def setUp(self):
		super().setUp()
		self.rules['X'] = RULE
		os.chmod(self.scratch, 0o755)

	def file(self, name, text, mode=0o755):
		path = os.path.join(self.scratch, name)
		with open(path, 'wb') as file:
			file.write(text if isinstance(text, bytes) else text.encode())
		os.chmod(path, mode)
		return path

	def copy(self, name, source=None, mode=0o755):
		path = shutil.copy(source or self.plain, os.path.join(self.scratch, name))
		os.chmod(path, mode)
		return path

	def need_root(self):
		if os.geteuid() != 0:
			self.skipTest('needs root')

	def shunt(self, verb, *argv, user=None, command=None, **keywords):
		"""As the user of that number; keywords are for run_program()."""
		words = [command or self.command, verb, *argv]
		if user:
			words = ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups', *words]
		extra = {**self.shunt_variables(), **keywords.pop('extra', {})}
		return self.run_program(words, library=False, extra=extra, **keywords)

	def doctor(self, *argv, code=0, **keywords):
		result = self.shunt('doctor', *argv, **keywords)
		if code is not None:
			self.assertEqual(result.returncode, code, result)
		return result.stdout if (code or 0) < 100 else result.stderr

	def assertWorks(self, *argv, out=WITH, **keywords):
		"""The doctor has no objection, and the program has the library when `run` starts it."""
		text = self.doctor(*argv, **keywords)
		self.assertNotRegex(text, '(?m)^no ')
		result = self.shunt('run', '--', *argv, **keywords)
		self.assertEqual((result.returncode, result.stdout, result.stderr), (0, out, ''))
		return text

	def assertRefused(self, pattern, *argv, is_true=True, **keywords):
		"""The doctor says why, with what to do; `run` says the same and starts nothing. And it is true: with
		the variable set by hand the program runs bare."""
		text = self.doctor(*argv, code=1, **keywords)
		self.assertRegex(text, f'(?m)^no    .*{pattern}.*; .*')
		result = self.shunt('run', '--', *argv, **keywords)
		self.assertEqual((result.returncode, result.stdout), (125, ''), result)
		self.assertRegex(result.stderr, rf"\Ashunt: run: expected a command that the library can work in, "
			rf"got '[^']+': .*{pattern}.*; .*\n\Z")
		if is_true:
			user = keywords.get('user')
			words = ['env', 'LD_PRELOAD=' + self.library, *argv]
			if user:
				words = ['setpriv', f'--reuid={user}', f'--regid={user}', '--clear-groups', *words]
			bare = self.run_program(words, library=False, extra=self.shunt_variables())
			self.assertNotIn('with the library', bare.stdout)
		# The kill switch runs everything.
		off = self.shunt('run', '--', *argv, **{**keywords, 'extra': {'SHUNT_OFF': '1'}})
		self.assertNotEqual(off.returncode, 125, off)
		return text


class Programs(_Doctor):
	def test_a_plain_program(self):
		text = self.assertWorks(self.plain)
		self.assertIn('ok    dynamically linked against libc.so.6\n', text)
		self.assertIn(f'ok    the library is {self.library}\n', text)
		self.assertIn(f'ok    the program is {self.plain}\n', text)

	def test_a_program_on_path(self):
		for name in ('curl', 'bash', 'env', 'perl'):
			if harness.find_program(name):
				self.assertIn(f'/{name}\n', self.doctor(name))
				self.assertEqual(self.shunt('run', name, '--version').returncode, 0)

	def test_statically_linked(self):
		for options in (('-static',), ('-static-pie',)):
			with self.subTest(options=options):
				self.assertRefused('statically linked: no preloaded library is loaded',
					self.kind('gcc', *options, '-o', 'static' + options[0]))

	def test_of_another_libc(self):
		path = self.kind('musl-gcc', '-o', 'musl')
		text = self.doctor(path, code=1)
		self.assertNotIn('statically', text)
		self.assertRefused('another libc, by its loader /lib/ld-musl', path)
		self.assertRefused('statically linked', self.kind('musl-gcc', '-static', '-o', 'musl-static'))

	def test_written_in_go(self):
		"""Without a Go compiler: what it leaves in a file, on other programs."""
		self.file('table', b'\xff Go buildinf:' + b'\0' * 18)
		self.file('id', struct.pack('<III', 4, 4, 4) + b'Go\0\0abcd')
		table = f'.go.buildinfo={self.scratch}/table'
		note = f'.note.go.buildid={self.scratch}/id'
		static = self.kind('gcc', '-static', '-o', 'static')
		for section in (table, note):
			for source in (self.plain, static):
				path = self.copy('go', source)
				self.build('objcopy', '--add-section', section, path)
				text = self.doctor(path, code=1)
				self.assertRegex(text, '(?m)^no    written in Go: .* proxy')
				self.assertEqual('statically linked' in text, source == static)
				refused = self.shunt('run', path)
				self.assertEqual((refused.returncode, refused.stdout), (125, ''))

	def test_written_in_go_without_sections_that_say_so(self):
		"""The build id, by what the kernel maps."""
		note = self.file('note.s', '.section .note.x, "a", @note\n.long 3, 4, 4\n.asciz "Go"\n.byte 0\n'
			'.ascii "abcd"\n.section .note.GNU-stack, "", @progbits\n')
		path = self.build('gcc', 'looker.c', note, '-o', 'noted')
		self.assertIn('written in Go', self.doctor(path, code=1))
		self.assertEqual(self.shunt('run', path).returncode, 125)

	def test_written_in_go_with_parts_in_c(self):
		"""They may connect through libc: that is for the user to know, and nothing to refuse."""
		self.file('table', b'\xff Go buildinf:' + b'\0' * 18)
		source = self.file('c.c', '#include <sys/socket.h>\n#include "%s/looker.c"\n'
			'int (*used)(int, const struct sockaddr *, socklen_t) = connect;\n' % self.place)
		for number, options in enumerate(((source,), ('looker.c', '-Wl,--no-as-needed', '-lm'))):
			path = self.build('gcc', *options, '-o', f'cgo{number}')
			self.build('objcopy', '--add-section', f'.go.buildinfo={self.scratch}/table', path)
			self.assertRegex(self.doctor(path), '(?m)^warn  written in Go, with parts in C')
			result = self.shunt('run', path)
			self.assertEqual((result.stdout, result.stderr), (WITH, ''))

	def test_of_another_word_size_or_machine(self):
		with open(self.plain, 'rb') as file:
			header = file.read()
		for name, at, value, words in (('bits', 4, b'\1', '32 bit: this library is for .*, 64 bit, '),
				('order', 5, b'\2', 'this library is for '), ('machine', 18, b'\xb7\0', 'AArch64, 64 bit: ')):
			if header[at:at + len(value)] == value:
				continue
			path = self.file(name, header[:at] + value + header[at + len(value):])
			with self.subTest(name=name):
				text = self.doctor(path, code=1)
				self.assertRegex(text, f'(?m)^no    built for .*{words}')
				self.assertEqual(text.count('\nno '), 1)
				self.assertEqual(self.shunt('run', path).returncode, 125)

	def test_a_real_program_of_32_bits(self):
		"""One that needs no library of 32 bits."""
		if os.uname().machine != 'x86_64':
			self.skipTest('not on this machine')
		source = self.file('small.c', SMALL)
		path = self.build('gcc', '-m32', '-nostdlib', '-ffreestanding', '-fno-pie', '-no-pie', '-static',
			'-fno-stack-protector', source, '-o', 'small')
		self.assertIsNotNone(path)
		self.assertRefused('built for i386, 32 bit: this library is for x86-64, 64 bit', path)

	def test_damaged_files_are_no_programs(self):
		with open(self.plain, 'rb') as file:
			whole = file.read()
		for size in (16, 40, 64, 100, 600):
			path = self.file('cut', whole[:size])
			result = self.shunt('doctor', path)
			self.assertIn(result.returncode, (1, 126), result)
		self.assertIn('damaged', self.doctor(self.file('cut', whole[:64]), code=126))

	def test_with_the_sanitizer_of_addresses(self):
		path = self.kind('gcc', '-fsanitize=address', '-o', 'asan')
		self.assertRefused('AddressSanitizer.*', path)
		bare = self.run_program(['env', f'LD_PRELOAD={self.library}', path], library=False)
		self.assertIn('does not come first', bare.stderr)
		self.assertWorks(path, extra={'ASAN_OPTIONS': 'verify_asan_link_order=0'})

	def test_with_the_sanitizer_and_options_inside(self):
		"""What a program brings itself may allow it: that cannot be read, and is no reason to refuse."""
		source = self.file('options.c', 'const char *__asan_default_options(void);\n'
			'const char *__asan_default_options(void) { return "verify_asan_link_order=0"; }\n')
		path = self.kind('gcc', source, '-fsanitize=address', '-o', 'asan-options')
		self.assertRegex(self.doctor(path), '(?m)^warn  .*AddressSanitizer.* options that it has inside.*; set')
		result = self.shunt('run', path)
		self.assertEqual((result.returncode, result.stdout, result.stderr), (0, WITH, ''))

	def test_the_loader_as_a_program(self):
		loader = subprocess.run(['readelf', '-lW', self.plain], capture_output=True, text=True, check=True)
		loader = loader.stdout.split('interpreter: ')[1].split(']')[0]
		self.assertWorks(loader, self.plain)
		self.assertWorks(loader, '--argv0', 'x', self.plain)
		self.assertEqual(self.shunt('run', loader, '--version').returncode, 0)
		self.assertIn('ok    a loader', self.doctor(loader))
		self.assertNotIn('shunt: run', self.shunt('run', loader).stderr)
		self.assertRefused('statically linked', loader, self.kind('gcc', '-static', '-o', 'static'))

	def test_a_loader_of_its_own(self):
		"""Such a program may have a libc that is good enough: nothing to refuse."""
		loader = subprocess.run(['readelf', '-lW', self.plain], capture_output=True, text=True, check=True)
		loader = loader.stdout.split('interpreter: ')[1].split(']')[0]
		own = self.copy('ld-own.so', loader)
		path = self.build('gcc', 'looker.c', f'-Wl,--dynamic-linker={own}', '-o', 'own')
		self.assertRegex(self.doctor(path), f'(?m)^warn  a loader of its own, {own}')
		self.assertEqual(self.shunt('run', path).stdout, WITH)
		link = os.path.join(self.scratch, 'ld-linux-own.so')
		os.symlink(loader, link)
		path = self.build('gcc', 'looker.c', f'-Wl,--dynamic-linker={link}', '-o', 'linked')
		self.assertNotIn('warn', self.assertWorks(path))
		os.unlink(link)
		self.assertIn(f"the loader that the program names, got '{link}': not found", self.doctor(path, code=127))
		self.assertEqual(self.shunt('run', path).returncode, 127)

	def test_packed_programs_are_not_judged(self):
		"""UPX and AppImage are static stubs whose contents may well be dynamic."""
		with open(self.kind('gcc', '-static', '-o', 'static'), 'rb') as file:
			static = file.read()
		offset, = struct.unpack_from('<Q', static, 32)
		size, count = struct.unpack_from('<HH', static, 54)
		end = offset + size * count
		for path in (self.file('appimage', static[:8] + b'AI\2' + static[11:]),
				self.file('upx', static[:end + 4] + b'UPX!' + static[end + 8:])):
			self.assertRegex(self.doctor(path), '(?m)^warn  packed: ')
			result = self.shunt('run', path)
			self.assertEqual((result.stdout, result.stderr), (BARE, ''))


class Scripts(_Doctor):
	def test_a_script_is_its_interpreter(self):
		path = self.file('script', f'#!{self.plain}\n')
		text = self.assertWorks(path)
		self.assertIn(f'ok    {path} is a script: {self.plain} runs it\n', text)
		self.assertIn(f'ok    the program is {self.plain}\n', text)

	def test_the_interpreter_is_what_is_judged(self):
		static = self.kind('gcc', '-static', '-o', 'static')
		self.assertRefused('statically linked', self.file('script', f'#! {static} wait-not\n'))
		self.file('static', open(static, 'rb').read())
		path = self.file('env-script', '#!/usr/bin/env static\n')
		where = {'PATH': self.scratch + ':/usr/bin:/bin'}
		self.assertIn('ok    /usr/bin/env starts static\n', self.doctor(path, code=1, extra=where))
		self.assertEqual(self.shunt('run', path, extra=where).returncode, 125)

	def test_env_in_the_first_line(self):
		self.copy('looker')
		where = {'PATH': self.scratch + ':/usr/bin:/bin'}
		for line in ('looker', '-S looker', '-S looker -x "a b"', '-S A=b looker', '-vS -u HOME looker',
				"-S 'looker'"):
			path = self.file('script', f'#!/usr/bin/env {line}\n')
			with self.subTest(line=line):
				text = self.doctor(path, extra=where)
				self.assertIn(f'ok    the program is {self.scratch}/looker\n', text)
				self.assertEqual(self.shunt('run', path, extra=where).stdout, WITH)
		for line in ('-S -i', '-S -u LD_PRELOAD', '-S --ignore-environment', '-ivS'):
			path = self.file('script', f'#!/usr/bin/env {line} {self.plain}\n')
			with self.subTest(line=line):
				result = self.shunt('run', path)
				self.assertEqual((result.returncode, result.stdout), (125, ''), result)
				self.assertIn('env drops LD_PRELOAD', self.doctor(path, code=1))
		# One argument, "-i looker": env itself refuses it, and that is not for us to say.
		result = self.shunt('run', self.file('script', '#!/usr/bin/env -i looker\n'), extra=where)
		self.assertNotIn('shunt: run', result.stderr)
		# Without PATH it looks in other places.
		self.doctor(self.file('script', '#!/usr/bin/env -S -i looker\n'), extra=where, code=127)

	def test_chains(self):
		"""Five interpreters that are scripts themselves, and no more: as the kernel has it."""
		previous = self.plain
		for depth in range(1, 8):
			previous = self.file(f'level{depth}', f'#!{previous}\n')
			with self.subTest(depth=depth):
				result = self.shunt('run', previous)
				if depth <= 5:
					self.assertEqual((result.returncode, result.stdout), (0, WITH), result)
					self.doctor(previous)
				else:
					self.assertEqual(result.returncode, 126, result)
					self.doctor(previous, code=126)

	def test_a_script_without_a_first_line(self):
		path = self.file('bare', f'{self.plain}\n')
		self.assertIn(f'ok    {path} is a script without #!: /bin/sh runs it\n', self.assertWorks(path))
		self.assertWorks(self.file('empty', ''), out='')
		self.assertWorks(self.file('blank', '#!\n' + self.plain + '\n'))

	def test_lines_that_end_as_on_windows(self):
		path = self.file('crlf', '#!/bin/sh\r\necho\r\n')
		for verb in ('doctor', 'run'):
			result = self.shunt(verb, path)
			self.assertEqual(result.returncode, 127, result)
			self.assertIn(r"got '/bin/sh\x0d': not found; the lines of the script end in CR LF", result.stderr)
		path = self.file('crlf', '#!/usr/bin/env python3\r\nprint()\r\n')
		self.assertIn(r"got 'python3\x0d': not found; the lines", self.doctor(path, code=127))
		self.assertEqual(self.shunt('run', path).returncode, 127)

	def test_an_interpreter_that_is_not_there(self):
		path = self.file('script', '#!/no/such/interpreter -x\n')
		for verb in ('doctor', 'run'):
			result = self.shunt(verb, path)
			self.assertEqual(result.returncode, 127, result)
			self.assertIn("first line of the script, got '/no/such/interpreter': not found", result.stderr)
		path = self.file('script', f'#!{self.file("data", "x", 0o644)}\n')
		self.assertIn('Permission denied', self.doctor(path, code=126))
		self.assertEqual(self.shunt('run', path).returncode, 126)

	def test_such_a_script_does_not_end_the_search(self):
		first, second = (os.path.join(self.scratch, name) for name in ('first', 'second'))
		os.mkdir(first)
		os.mkdir(second)
		self.file('first/it', '#!/no/such/interpreter\n')
		self.file('second/it', f'#!{self.plain}\n')
		text = self.assertWorks('it', extra={'PATH': f'{first}:{second}:/usr/bin:/bin'})
		self.assertIn(f'ok    {second}/it is a script', text)

	def test_first_lines_of_every_length(self):
		"""What the kernel cuts off it does not execute, and /bin/sh gets the file."""
		for length in (200, 250, 252, 253, 254, 255, 256, 300):
			directory = os.path.join(self.scratch, 'd' * 60)
			os.makedirs(directory, exist_ok=True)
			name = directory + '/' * (length - len('#!') - len(directory) - len('looker')) + 'looker'
			self.copy(os.path.join('d' * 60, 'looker'))
			for end in ('\n', '', ' x\n'):
				path = self.file('script', f'#!{name}{end}')
				with self.subTest(length=length, end=end):
					real = self.run_program(['env', path], library=False)
					result = self.shunt('doctor', path)
					self.assertEqual(result.returncode, real.returncode)
					self.assertEqual('looker runs it' in result.stdout, real.stdout == BARE, (result, real))
					self.assertEqual('script without #!' in result.stdout, real.stdout == '', (result, real))


class Privileges(_Doctor):
	def setUp(self):
		super().setUp()
		self.need_root()
		if os.statvfs(self.scratch).f_flag & os.ST_NOSUID:
			self.skipTest('the directory is mounted with nosuid')

	def test_set_user_id(self):
		path = self.copy('suid', mode=0o4755)
		self.assertRefused('set-user-ID root: the loader ignores LD_PRELOAD', path, user=USER)
		self.assertWorks(path)
		os.chown(path, USER, USER)
		os.chmod(path, 0o4755)
		self.assertWorks(path, user=USER)
		self.assertRefused(f'set-user-ID {USER}', path)

	def test_set_group_id(self):
		path = self.copy('sgid', mode=0o2755)
		self.assertRefused('set-group-ID 0: the loader', path, user=USER)
		self.assertWorks(path)
		os.chmod(path, 0o2745)
		self.assertWorks(path, user=USER)

	def test_of_nobody(self):
		"""Whose number also stands for users that a namespace does not know."""
		path = self.copy('suid')
		for owner, mode, words in ((NOBODY, 0o4755, f'set-user-ID (nobody|{NOBODY})'), (0, 0o2755, f'set-group-ID {NOBODY}')):
			os.chown(path, owner, NOBODY)
			os.chmod(path, mode)
			with self.subTest(words=words):
				self.assertRefused(words + ': the loader ignores', path)
				self.assertRefused(words, path, user=USER)

	def test_of_owners_that_a_namespace_does_not_know(self):
		"""There the bits mean nothing."""
		path = self.copy('suid')
		where = ['unshare', '--user', '--map-root-user']
		if self.run_program([*where, 'true'], library=False).returncode != 0:
			self.skipTest('no user namespace here')
		for owner, group, mode in ((USER, 0, 0o4755), (0, USER, 0o2755), (0, USER, 0o4755)):
			os.chown(path, owner, group)
			os.chmod(path, mode)
			with self.subTest(owner=owner, group=group):
				for verb, out in (('doctor', 'ok '), ('run', WITH)):
					result = self.run_program([*where, self.command, verb, path], library=False,
						extra=self.shunt_variables())
					self.assertEqual(result.returncode, 0, result)
					self.assertIn(out, result.stdout)

	def test_file_capabilities(self):
		for flags, permitted, is_refused in ((1, 1 << 10, True), (0, 1 << 10, True), (0, 0, False)):
			path = self.copy('capable')
			os.setxattr(path, 'security.capability',
				struct.pack('<IIIII', 0x02000000 | flags, permitted, 0, 0, 0))
			with self.subTest(flags=flags, permitted=permitted):
				if is_refused:
					self.assertRefused('it has file capabilities', path, user=USER)
				else:
					self.assertWorks(path, user=USER)
				self.assertWorks(path)

	def test_without_new_privileges_the_bits_mean_nothing(self):
		path = self.copy('suid', mode=0o4755)
		words = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', '--no-new-privs',
			self.command, 'run', path]
		result = self.run_program(words, library=False, extra=self.shunt_variables())
		self.assertEqual((result.returncode, result.stdout), (0, WITH), result)

	def test_a_script_has_the_rights_of_its_interpreter(self):
		self.assertWorks(self.file('script', f'#!{self.plain}\n', 0o4755), user=USER)
		path = self.copy('suid', mode=0o4755)
		self.assertRefused('set-user-ID root', self.file('script', f'#!{path}\n'), user=USER)

	def test_a_program_that_cannot_be_read(self):
		path = self.copy('closed', mode=0o711)
		self.assertRegex(self.doctor(path, user=USER), '(?m)^warn  .*closed cannot be read by this user')
		self.assertEqual(self.shunt('run', path, user=USER).stdout, WITH)
		os.chmod(path, 0o4711)
		self.assertIn('set-user-ID root', self.doctor(path, user=USER, code=1))
		self.assertEqual(self.shunt('run', path, user=USER).returncode, 125)


class Starters(_Doctor):
	"""Programs that start others."""

	def test_they_are_followed(self):
		static = self.kind('gcc', '-static', '-o', 'static')
		for words in (['env'], ['env', '-u', 'HOME', 'A=b'], ['nice', '-n', '1'], ['nice', '-1'], ['nohup'],
				['setsid', '-w'], ['timeout', '-k', '5', '60'], ['timeout', '--signal=INT', '60'],
				['stdbuf', '-o0'], ['env', 'nice', 'timeout', '60', 'env', '-C', '/']):
			with self.subTest(words=words):
				text = self.doctor(*words, self.plain)
				self.assertIn(f'starts {self.plain}\n', text)
				self.assertEqual(self.shunt('run', '--', *words, self.plain).stdout, WITH)
				self.doctor(*words, static, code=1)
				self.assertEqual(self.shunt('run', '--', *words, static).returncode, 125)

	FOLLOWED = (['chrt', '-o', '0'], ['chrt', '-bv', '0'], ['taskset', '1'], ['taskset', '-c', '0'], ['ionice', '-c3'],
		['ionice', '-c', '2', '-n', '7', '-t'], ['flock', '-w', '5', '/dev/null'], ['flock', '--shared', '/'],
		['setarch', '-R'], ['setarch', os.uname().machine, '--addr-no-randomize'], ['linux64', '-R'],
		['xargs', '-n', '1', '-0'], ['xargs', '--max-procs=1', '-r'], ['busybox', 'env'], ['busybox', 'timeout', '60'],
		['ionice', '-t', 'busybox', 'timeout', '60', 'taskset', '1'])

	def test_more_that_are_followed(self):
		static = self.kind('gcc', '-static', '-o', 'static')
		for words in self.FOLLOWED:
			if not harness.find_program(words[0]):
				continue
			with self.subTest(words=words):
				self.assertIn(f'starts {self.plain}\n', self.doctor(*words, self.plain))
				self.assertEqual(self.shunt('run', '--', *words, self.plain, stdin=b'x').stdout, WITH)
				self.assertEqual(self.run_program([*words, self.plain], library=False, stdin=b'x').stdout, BARE)
				self.doctor(*words, static, code=1)
				for end in (static,), ('env', '-i', self.plain), ('busybox', 'env', '-i', self.plain):
					result = self.shunt('run', '--', *words, *end)
					self.assertEqual((result.returncode, result.stdout), (125, ''), (end, result))

	def test_that_start_nothing(self):
		"""They are meant themselves."""
		for words in (['busybox'], ['busybox', 'true'], ['xargs'], ['taskset', '1'], ['setarch', '--list'], ['docker', 'ps']):
			program = harness.find_program(words[0])
			if program and words[0] != 'docker':
				with self.subTest(words=words):
					self.assertIn(f'the program is {program}\n', self.doctor(*words, code=None))
		self.copy('docker')
		self.assertWorks('docker', 'ps', extra={'PATH': self.scratch + ':/usr/bin:/bin'})

	def test_what_they_start_may_be_hidden(self):
		"""With their options, or in a language of their own: that is said, and is no reason to refuse."""
		static = self.kind('gcc', '-static', '-o', 'static')
		other_root = 'with|where it has a root of its own, the library must be there'
		names = ('strace', 'ltrace', 'watch', 'dbus-run-session', 'parallel', 'gdb', 'valgrind', 'numactl', 'prlimit')
		rooted = ('bwrap', 'chroot', 'unshare', 'nsenter', 'firejail')
		for name in names + rooted:
			path = self.copy(name)
			with self.subTest(name=name):
				text = self.doctor(path, '-x', static)
				self.assertRegex(text, f"(?m)^warn  {path} starts another program, .*; ask 'shunt doctor'")
				self.assertEqual(bool(re.search(other_root, text)), name in rooted)
				self.assertEqual(self.shunt('run', path, '-x', static).stdout, WITH)
		for words in (['flock', '/dev/null', '-c', static], ['taskset', '-p', '1'], ['busybox', 'chroot', '/', static]):
			if harness.find_program(words[0]):
				self.assertRegex(self.doctor(*words), '(?m)^warn  .* starts another program')
		script = self.file('parallel', f'#!{self.plain}\n')
		self.assertRegex(self.doctor(script, static), f'(?m)^warn  {script} starts another program')

	def test_a_sandbox_that_clears_the_environment(self):
		"""Bubblewrap takes from it what it is told to."""
		bwrap = ['bwrap', '--bind', '/', '/', '--dev-bind', '/dev', '/dev']
		if not harness.find_program('bwrap'):
			self.skipTest('no bwrap')
		if self.run_program([*bwrap, 'true'], library=False).returncode != 0:
			self.skipTest('bwrap cannot work here')
		for words in (['--clearenv'], ['--unsetenv', 'LD_PRELOAD']):
			with self.subTest(words=words):
				self.assertRefused('bwrap drops LD_PRELOAD', *bwrap, *words, self.plain)
		text = self.doctor(*bwrap, self.plain)
		self.assertRegex(text, '(?m)^warn  .*bwrap starts another program')
		for words in ([], ['--unsetenv', 'HOME'], ['--clearenv', '--setenv', 'LD_PRELOAD', self.library]):
			self.assertEqual(self.shunt('run', '--', *bwrap, *words, self.plain).stdout, WITH)

	def test_containers(self):
		"""Only what they are told to keep comes in: that is said, and no reason to refuse."""
		for name in ('docker', 'podman'):
			self.copy(name)
			where = {'PATH': self.scratch + ':/usr/bin:/bin'}
			for verb in ('run', 'exec'):
				text = self.doctor(name, verb, '--rm', 'image', extra=where)
				self.assertRegex(text, f"(?m)^warn  {name} drops LD_PRELOAD and the rules, unless .*; put 'shunt run --'")
				result = self.shunt('run', name, verb, 'image', extra=where)
				self.assertEqual((result.returncode, result.stdout), (0, WITH))
				self.assertRegex(result.stderr, rf'\Ashunt: run: {name} drops .*\n\Z')

	def test_options_that_are_not_known_are_no_reason_to_refuse(self):
		static = self.kind('gcc', '-static', '-o', 'static')
		for words in (['env', '--no-such-option'], ['timeout', '--no-such', '5'], ['env', '-S', r'x\_y']):
			with self.subTest(words=words):
				self.assertRegex(self.doctor(*words, static), '(?m)^warn .* cannot be told from here')
				self.assertNotIn('shunt: run', self.shunt('run', '--', *words, static).stderr)

	def test_what_takes_the_environment_away(self):
		for words in (['env', '-i'], ['env', '-'], ['env', '-u', 'LD_PRELOAD'], ['env', '--unset=LD_PRELOAD'],
				['env', '-iu', 'HOME', 'A=b'], ['env', '--ignore-environment'], ['env', 'LD_PRELOAD='],
				['env', '-S', '-i'], ['nice', 'env', '-i']):
			with self.subTest(words=words):
				text = self.assertRefused("env drops LD_PRELOAD: what it starts", *words, self.plain)
				self.assertIn('1 rule', text)

	def test_what_takes_the_rules_away(self):
		words = ['env', '-i', f'LD_PRELOAD={self.library}', self.plain]
		self.assertIn('no rule is left in the environment', self.doctor(*words, code=1))
		self.assertEqual(self.shunt('run', *words).returncode, 125)
		words = ['env', '-u', 'SHUNT_BREAK_X', self.plain]
		self.assertEqual(self.shunt('run', *words).returncode, 125)

	def test_what_keeps_them(self):
		state = f'SHUNT_STATE={self.state}'
		self.assertWorks('env', '-i', state, f'LD_PRELOAD={self.library}', f'SHUNT_BREAK={RULE}', self.plain)
		self.assertWorks('env', '-u', 'LD_PRELOAD', self.command, 'run', '--', self.plain)
		self.assertWorks('env', '-i', state, self.command, 'run', '--break', RULE, '--', self.plain)
		self.assertEqual(self.shunt('run', 'env', '-i').stdout, '')
		self.assertEqual(self.shunt('run', 'sh', '-c', f'env -i {self.plain}').stdout, BARE)

	def test_a_setting_of_the_starter_counts(self):
		text = self.doctor('env', 'SHUNT_OFF=1', self.plain, code=1)
		self.assertIn('SHUNT_OFF is set', text)
		self.assertEqual(self.shunt('run', 'env', 'SHUNT_OFF=1', self.plain).returncode, 0)
		self.assertIn("got 'x y'", self.doctor('env', 'SHUNT_BREAK_Y=x y', self.plain, code=1).replace(
			"got 'y'", "got 'x y'"))

	def test_sudo(self):
		"""As root it may be configured to keep the variables: that is said, and no reason to refuse."""
		self.copy('sudo', shutil.which('env'))
		where = {'PATH': self.scratch + ':/usr/bin:/bin'}
		self.assertRegex(self.doctor('sudo', self.plain, extra=where), '(?m)^warn  sudo drops LD_PRELOAD')
		result = self.shunt('run', 'sudo', self.plain, extra=where)
		self.assertEqual((result.returncode, result.stdout), (0, WITH))
		self.assertRegex(result.stderr, r"\Ashunt: run: sudo drops .*; put 'shunt run --' behind it.*\n\Z")
		for words in (['sudo', f'LD_PRELOAD={self.library}', self.plain],
				['sudo', self.command, 'run', '--', self.plain]):
			self.assertNotRegex(self.doctor(*words, extra=where), '(?m)^(warn|no) ')
			self.assertEqual(self.shunt('run', *words, extra=where).stderr, '')

	def test_sudo_of_a_user_loses_the_library(self):
		self.need_root()
		self.copy('sudo', shutil.which('env'), 0o4755)
		where = {'PATH': self.scratch + ':/usr/bin:/bin'}
		text = self.doctor('sudo', '-u', 'x', self.plain, user=USER, extra=where, code=1)
		self.assertRegex(text, "(?m)^no    .*sudo: set-user-ID root: .*; put 'shunt run --' behind it")
		self.assertEqual(self.shunt('run', 'sudo', self.plain, user=USER, extra=where).returncode, 125)

	def test_what_sudo_itself_gives_the_program_counts(self):
		self.need_root()
		self.copy('sudo', shutil.which('env'), 0o4755)
		where = {'PATH': self.scratch + ':/usr/bin:/bin'}
		words = ['sudo', f'LD_PRELOAD={self.library}', self.plain]
		self.doctor(*words, user=USER, extra=where)
		self.assertEqual(self.shunt('run', *words, user=USER, extra=where).returncode, 0)

	def test_a_login(self):
		if not harness.find_program('su') or not harness.find_program('runuser'):
			self.skipTest('no su')
		for words in (['su', '-'], ['su', '-l', 'root'], ['runuser', '--login', 'root']):
			self.assertRegex(self.doctor(*words, '-c', 'true', code=1),
				'(?m)^no    .*(drops LD_PRELOAD|set-user-ID root): what it starts runs without the library')
			self.assertEqual(self.shunt('run', '--', *words, '-c', 'true').returncode, 125)
		if os.geteuid() == 0:
			self.doctor('su', 'root', '-c', self.plain)
			self.assertEqual(self.shunt('run', 'su', 'root', '-c', self.plain).stdout, WITH)

	def test_what_starts_containers_may_be_static(self):
		static = self.kind('gcc', '-static', '-o', 'static')
		self.copy('tini', static)
		where = {'PATH': self.scratch + ':/usr/bin:/bin'}
		self.assertIn('starts', self.doctor('tini', '-g', '--', self.plain, extra=where))
		self.assertEqual(self.shunt('run', 'tini', '-g', '--', self.plain, extra=where).stdout, BARE)
		self.doctor('tini', '--', static, extra=where, code=1)


class Surroundings(_Doctor):
	"""The library, what else is preloaded, the rules, the segment."""

	def test_commands_that_are_not_there(self):
		for words, code in ((['no-such-command'], 127), (['/no/such'], 127), ([self.scratch], 126),
				([''], 127), ([self.file('data', 'x', 0o644)], 126), (['env', 'no-such-command'], 127)):
			with self.subTest(words=words):
				self.assertRegex(self.doctor(*words, code=code), r'\Ashunt: doctor: expected .*, got .*\n\Z')
				self.assertEqual(self.shunt('run', '--', *words).returncode, code)

	def test_how_it_is_called(self):
		self.assertIn('got nothing;', self.doctor(code=125))
		self.assertIn("got '--json'", self.doctor('--json', code=125))
		self.doctor('--', self.plain, '--json')

	def test_a_path_that_the_preload_cannot_carry(self):
		for name in ('a b', 'a:b'):
			command, library = self.copy_build(os.path.join(self.scratch, name))
			text = self.doctor(self.plain, command=command, code=1)
			self.assertRegex(text, f"(?m)^no    .*without space and colon.*got '{library}'; build or install")

	def test_a_library_that_is_not_there(self):
		command, library = self.copy_build(os.path.join(self.scratch, 'copy'))
		os.unlink(library)
		result = self.shunt('doctor', self.plain, command=command)
		if result.returncode == 0:
			self.skipTest('there is one installed')
		self.assertRegex(result.stdout, r'(?m)^no    expected libshunt.so in .*found none; build or install')

	def test_a_library_that_the_user_cannot_read(self):
		self.need_root()
		command, library = self.copy_build(os.path.join(self.scratch, 'copy'))
		os.chmod(library, 0o600)
		self.assertRegex(self.doctor(self.plain, command=command, user=USER, code=1),
			'(?m)^no    expected a library that this user can read')
		self.assertEqual(self.shunt('run', self.plain, command=command, user=USER).returncode, 125)

	def test_a_library_that_cannot_be_mapped(self):
		self.need_root()
		command, library = self.copy_build(os.path.join(self.scratch, 'copy'))
		shim = os.path.dirname(library)
		script = f'mount -t tmpfs -o noexec none {shim} && cp {harness.LIBRARY} {shim} && exec "$@"'
		for verb, code in (('doctor', 1), ('run', 125)):
			result = self.run_program(['unshare', '-m', 'sh', '-c', script, 'sh', command, verb, self.plain],
				library=False, extra=self.shunt_variables())
			self.assertEqual(result.returncode, code, result)
			self.assertIn('noexec', result.text)

	def test_other_preloads(self):
		paths = {}
		for name, text in PRELOADS.items():
			source = self.file(name + '.c', text)
			paths[name] = self.build('gcc', '-shared', '-fPIC', source, '-o', name)
		paths['data.so'] = self.file('data.so', 'no library')
		paths['missing.so'] = os.path.join(self.scratch, 'missing.so')
		paths['libshunt.so'] = self.copy('libshunt.so', self.library)
		for name, line in (('quiet.so', 'ok    {} is preloaded too'),
				('loud.so', 'warn  {} is preloaded too and stands in for connect'),
				('data.so', 'warn  LD_PRELOAD names {}, which is no library'),
				('missing.so', 'warn  LD_PRELOAD names {}: No such file'),
				('libshunt.so', 'warn  LD_PRELOAD names another copy of the library, {}')):
			with self.subTest(name=name):
				text = self.doctor(self.plain, extra={'LD_PRELOAD': paths[name]})
				self.assertIn('\n' + line.format(paths[name]), text)
		text = self.doctor(self.plain, extra={'LD_PRELOAD': f'libm.so.6 {self.library}:{paths["quiet.so"]}'})
		self.assertIn('ok    libm.so.6 is preloaded too', text)
		self.assertIn('ok    LD_PRELOAD has the library already', text)
		self.assertIn('ok    ' + paths['quiet.so'], text)

	def test_rules(self):
		self.rules = {}
		self.assertRegex(self.doctor(self.plain, code=1), '(?m)^no    no rule in the environment, so .*; set SHUNT_BREAK')
		self.assertEqual(self.shunt('run', self.plain).returncode, 125)
		# The one behind brings rules of its own, or says that it has none.
		self.doctor('nice', self.command, 'run', '--break', RULE, self.plain)
		self.rules = {'A': '^a.internal'}
		self.assertRegex(self.doctor(self.plain, code=1), '(?m)^no    no rule in the environment but exclusions')
		self.assertEqual(self.shunt('run', self.plain).returncode, 125)
		self.rules = {'A': 'a.internal', 'B': 'b.internal'}
		self.assertIn("ok    2 rules: 'shunt check' shows them\n", self.doctor(self.plain))
		self.rules['B'] = 'b.internal sleep=5'
		self.assertRegex(self.doctor(self.plain, code=1), r"(?m)^no    SHUNT_BREAK_B: sleep: .*got '5'")

	def test_switches(self):
		self.settings['SHUNT_OFF'] = '1'
		self.assertRegex(self.doctor(self.plain, code=1), '(?m)^no    SHUNT_OFF is set.*; unset it')
		self.settings = {'SHUNT_MODE': 'observe'}
		self.assertRegex(self.doctor(self.plain), '(?m)^warn  SHUNT_MODE=observe')
		self.settings = {'SHUNT_LOG': '/no/such/directory/log'}
		self.assertRegex(self.doctor(self.plain, code=1), '(?m)^no    SHUNT_LOG: ')

	def filtered(self, *argv):
		return self.run_program([harness.PYTHON, '-c', FILTERED, self.command, *argv], library=False,
			extra=self.shunt_variables())

	def test_under_a_seccomp_filter(self):
		"""No log there; the circuits, and the events, are."""
		log = os.path.join(self.scratch, 'log')
		refusing = socket.socket()
		self.addCleanup(refusing.close)
		refusing.bind(('127.0.0.1', 0))
		port = refusing.getsockname()[1]
		self.rules = {'X': f'127.0.0.1:{port} volume=1 sleep=1h'}
		words = 'seccomp filter is in force here: no log and no timer thread'
		self.assertNotIn('seccomp', self.doctor(self.plain))
		for settings, more in (({}, 'under it; '), ({'SHUNT_LOG': log}, 'so SHUNT_LOG stays without effect; ')):
			self.settings = settings
			result = self.filtered('doctor', self.plain)
			self.assertEqual(result.returncode, 0, result)
			self.assertRegex(result.stdout, f"(?m)^warn  a {words} .*{more}.*'shunt events' shows")
			self.assertRegex(self.filtered('run', '--verbose', self.plain).stderr, f'(?m)^shunt: run: a {words} .*{more}')
			self.assertEqual(self.filtered('run', self.plain).stderr, '')
		self.assertNotIn('seccomp', self.shunt('run', '--verbose', self.plain).stderr)
		self.filtered('run', harness.PYTHON, '-c',
			f'import socket; socket.socket().connect_ex(("127.0.0.1", {port}))')
		self.assertIn('tripped', self.shunt('events', '--json').stdout)
		self.assertFalse(os.path.exists(log) and os.path.getsize(log))

	def test_programs_that_are_not_meant(self):
		script = self.file('script', f'#!{self.plain}\n')
		for settings, path, is_meant in (({'SHUNT_SKIP': 'pla*'}, self.plain, False),
				({'SHUNT_PROC': 'other,plain'}, self.plain, True), ({'SHUNT_PROC': 'script'}, script, False),
				({'SHUNT_PROC': 'plain'}, script, True), ({'SHUNT_SKIP': 'script'}, script, True)):
			self.settings = settings
			with self.subTest(settings=settings, path=path):
				text = self.doctor(path, code=0 if is_meant else 1)
				self.assertEqual("keeps the library out of programs that are called 'plain'" in text, not is_meant)
				# It may start others that are meant.
				self.assertEqual(self.shunt('run', path).returncode, 0)

	def test_a_segment_that_cannot_be_used(self):
		self.assertIn(f'ok    circuits will be shared in {self.state}', self.doctor(self.plain))
		self.shunt('run', self.plain)
		self.assertIn(f'ok    circuits are shared in {self.state}', self.doctor(self.plain))
		os.chmod(self.state, 0o644)
		self.assertRegex(self.doctor(self.plain), f'(?m)^warn  {self.state} is not used: its mode .*; ')
		os.unlink(self.state)
		os.symlink(os.path.join(self.scratch, 'moved'), self.state)
		self.assertRegex(self.doctor(self.plain), f'(?m)^warn  {self.state} is not used: the file is a symbolic')
		self.assertEqual(self.shunt('run', self.plain).stdout, WITH)
		self.settings['SHUNT_STATE'] = 'private'
		self.assertRegex(self.doctor(self.plain), '(?m)^warn  SHUNT_STATE=private: ')
		self.settings['SHUNT_STATE'] = '/no/such/directory/segment'
		self.assertRegex(self.doctor(self.plain), '(?m)^warn  .*its directory is not there; ')

	def test_a_segment_in_a_directory_of_others(self):
		self.need_root()
		self.settings['SHUNT_STATE'] = os.path.join(self.scratch, 'segment')
		self.assertRegex(self.doctor(self.plain, user=USER), '(?m)^warn  .*this user cannot write its directory')


class Processes(_Doctor):
	def waiting(self, *words, verb=None, command=None, **keywords):
		"""A running looker, and what it said of itself."""
		argv = [command or self.command, 'run', '--', *words] if verb == 'run' else list(words)
		extra = {**self.shunt_variables(), **keywords.pop('extra', {})}
		process = self.start(argv, library=False, extra=extra, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
			text=True, **keywords)
		return process, process.stdout.readline()

	def client(self, *connections, words=(), prefix=()):
		"""A python that holds the connections; its descriptors, and the port that it listens on."""
		lines = ','.join(' '.join(map(str, connection)) for connection in connections)
		process, line = self.waiting(*prefix, harness.PYTHON, '-c', CLIENT, lines, *words, verb='run')
		self.assertTrue(line.startswith('ready '), line)
		port, *descriptors = map(int, line.split()[1:])
		return process, port, descriptors

	def echo(self, address='127.0.0.1'):
		server = _Echo(address)
		self.addCleanup(server.close)
		return server

	def test_one_with_the_library(self):
		process, said = self.waiting(self.plain, 'wait', verb='run')
		self.assertEqual(said, WITH)
		text = self.doctor(str(process.pid))
		self.assertIn(f'ok    process {process.pid} is {self.plain}, of user ', text)
		self.assertIn(f'ok    the library is loaded: {self.library}\n', text)
		self.assertIn(f'ok    its circuits are shared in {self.state}\n', text)
		self.assertIn('ok    1 rule\n', text)
		self.assertIn('no connection now', text)
		self.assertNotRegex(text, '(?m)^(warn|no  ) ')

	def test_one_without(self):
		process, said = self.waiting(self.plain, 'wait')
		self.assertEqual(said, BARE)
		self.assertRegex(self.doctor(str(process.pid), code=1),
			"(?m)^no    the library is not loaded: it was started without it; start it with 'shunt run'")

	def test_one_that_lost_it(self):
		static = self.kind('gcc', '-static', '-o', 'static')
		process, said = self.waiting('sh', '-c', f'exec {static} wait', verb='run')
		self.assertEqual(said, BARE)
		text = self.doctor(str(process.pid), code=1)
		self.assertRegex(text, f'(?m)^no    the library is not loaded, although .* LD_PRELOAD={self.library}')
		self.assertRegex(text, '(?m)^no    statically linked')

	def test_one_with_rights_of_another_user(self):
		self.need_root()
		path = self.copy('suid', mode=0o4755)
		prefix = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', 'env',
			f'LD_PRELOAD={self.library}']
		process, said = self.waiting(*prefix, path, 'wait')
		self.assertEqual(said, BARE)
		self.assertRegex(self.doctor(str(process.pid), code=1), '(?m)^no    it was started with the rights of another')

	def test_one_whose_library_does_nothing(self):
		for settings, rules, words in (({'SHUNT_OFF': '1'}, {'X': RULE}, 'SHUNT_OFF was set'),
				({}, {}, 'no rule in its environment'),
				({'SHUNT_SKIP': 'plain'}, {'X': RULE}, "SHUNT_PROC or SHUNT_SKIP keeps it out .* 'plain'")):
			self.settings, self.rules = settings, rules
			process, said = self.waiting('env', f'LD_PRELOAD={self.library}', self.plain, 'wait')
			self.assertEqual(said, WITH)
			with self.subTest(settings=settings):
				self.assertRegex(self.doctor(str(process.pid), code=1), f'(?m)^no    it does nothing: .*{words}')

	def test_one_with_bad_rules(self):
		self.rules = {'A': 'a.internal sleep=5'}
		process, _ = self.waiting('env', f'LD_PRELOAD={self.library}', self.plain, 'wait')
		text = self.doctor(str(process.pid), code=1)
		self.assertRegex(text, r"(?m)^warn  left out: SHUNT_BREAK_A: sleep: .*got '5'")
		self.assertRegex(text, '(?m)^no    no rule is left')
		self.rules['B'] = RULE
		process, _ = self.waiting('env', f'LD_PRELOAD={self.library}', self.plain, 'wait')
		self.assertRegex(self.doctor(str(process.pid)), '(?m)^warn  left out: SHUNT_BREAK_A: ')

	def test_one_with_another_preload_in_front(self):
		loud = self.build('gcc', '-shared', '-fPIC', self.file('loud.c', PRELOADS['loud.so']), '-o', 'loud.so')
		for preload, is_before in ((f'{loud}:{self.library}', True), (f'{self.library}:{loud}', False)):
			process, _ = self.waiting('env', f'LD_PRELOAD={preload}', self.plain, 'wait')
			text = self.doctor(str(process.pid))
			self.assertEqual(f'warn  {loud} comes before the library' in text, is_before, text)

	def test_a_library_that_was_replaced(self):
		command, library = self.copy_build(os.path.join(self.scratch, 'copy'))
		process, _ = self.waiting(self.plain, 'wait', verb='run', command=command)
		self.assertIn(f'ok    the library is loaded: {library}', self.doctor(str(process.pid), command=command))
		self.assertRegex(self.doctor(str(process.pid)), f'(?m)^warn  another build of the library is loaded, {library}')
		os.replace(self.copy('new.so', self.library), library)
		self.assertRegex(self.doctor(str(process.pid), command=command),
			f'(?m)^warn  the library {library} was replaced or removed')

	def test_a_segment_that_was_removed(self):
		process, _ = self.waiting(self.plain, 'wait', verb='run')
		os.unlink(self.state)
		self.assertRegex(self.doctor(str(process.pid)), '(?m)^warn  its segment was removed')
		self.shunt('run', self.plain)
		self.assertRegex(self.doctor(str(process.pid)), '(?m)^warn  its segment was removed')

	def test_one_at_a_time(self):
		process, _ = self.waiting(self.plain, 'wait', verb='run')
		self.assertIn("expected one process, got 'more'", self.doctor(str(process.pid), 'more', code=125))

	def test_processes_that_are_none(self):
		ended = subprocess.Popen(['true'])
		ended.wait(30)
		for number in (str(ended.pid), '0', '99999999999999999999'):
			self.assertIn(f"expected a process or a command, got '{number}'", self.doctor(number, code=127))
		process, _ = self.waiting(self.plain, 'wait')
		process.kill()
		os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
		self.assertIn(f"got '{process.pid}': it has ended", self.doctor(str(process.pid), code=125))

	def test_a_number_is_a_process_before_a_command(self):
		process, _ = self.waiting(self.plain, 'wait')
		os.symlink(self.plain, os.path.join(self.scratch, str(process.pid)))
		where = {'PATH': self.scratch + ':/usr/bin:/bin'}
		self.assertIn(f'process {process.pid} is', self.doctor(str(process.pid), extra=where, code=1))
		text = self.doctor(f'./{process.pid}', extra=where)
		self.assertIn(f'the program is ./{process.pid}', text)
		process.kill()
		process.wait(30)
		self.assertIn(f'{self.scratch}/{process.pid}\n', self.doctor(str(process.pid), extra=where))

	def test_one_of_another_user(self):
		self.need_root()
		process, _ = self.waiting(self.plain, 'wait', verb='run')
		self.assertIn('this user may not look into it; ask as root', self.doctor(str(process.pid), user=USER, code=125))
		state = os.path.join(self.scratch, 'theirs')
		os.mkdir(state, 0o777)
		os.chmod(state, 0o777)
		self.settings['SHUNT_STATE'] = state + '/segment'
		process, said = self.waiting('setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups',
			self.command, 'run', self.plain, 'wait')
		self.assertEqual(said, WITH)
		text = self.doctor(str(process.pid))
		self.assertRegex(text, f"(?m)^warn  it belongs to user {USER}: 'shunt status' of root does not")
		self.assertIn(f'ok    its circuits are shared in {state}/segment', text)
		self.assertNotIn('belongs', self.doctor(str(process.pid), user=USER))

	def test_the_default_segment(self):
		"""Of its own user and pid namespace."""
		self.need_root()
		def variables():
			return {'SHUNT_BREAK_X': RULE}
		self.shunt_variables = variables
		namespace = os.stat('/proc/self/ns/pid').st_ino
		path = f'/dev/shm/shunt-{USER}-{namespace}-v3'
		self.addCleanup(lambda: os.path.lexists(path) and os.unlink(path))
		process, said = self.waiting('setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups',
			self.command, 'run', self.plain, 'wait')
		self.assertEqual(said, WITH)
		self.assertIn(f'ok    its circuits are shared in {path}\n', self.doctor(str(process.pid)))

	def test_one_in_other_namespaces(self):
		self.need_root()
		own = f'mount -t tmpfs none {os.path.dirname(self.state)} && exec "$@"'
		for prefix, is_shared in (([], True), (['sh', '-c', own, 'sh'], False)):
			process, said = self.waiting('unshare', '-m', *prefix, self.command, 'run', self.plain, 'wait')
			self.assertEqual(said, WITH)
			text = self.doctor(str(process.pid))
			self.assertIn(f'ok    its circuits are shared in {self.state}\n', text)
			self.assertEqual(bool(re.search('(?m)^warn  .*another mount namespace', text)), not is_shared, text)
		process, said = self.waiting('unshare', '-pf', self.command, 'run', self.plain, 'wait')
		self.assertEqual(said, WITH)
		with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='ascii') as file:
			child = file.read().strip()
		# Both sides have one path, and see the same circuits.
		text = self.doctor(child)
		self.assertIn(f'ok    its circuits are shared in {self.state}\n', text)
		self.assertNotIn('namespace', text)
		self.assertNotIn('namespace', self.doctor(child, extra={'SHUNT_STATE': 'private'}))

	def test_the_default_segment_of_another_pid_namespace(self):
		self.need_root()
		def variables():
			return {'SHUNT_BREAK_X': RULE}
		self.shunt_variables = variables
		words = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', self.command, 'run', self.plain]
		process, said = self.waiting('unshare', '-pf', *words, 'wait')
		self.assertEqual(said, WITH)
		with open(f'/proc/{process.pid}/task/{process.pid}/children', encoding='ascii') as file:
			child = file.read().strip()
		path = f'/dev/shm/shunt-{USER}-{os.stat(f"/proc/{child}/ns/pid").st_ino}-v3'
		self.addCleanup(lambda: os.path.lexists(path) and os.unlink(path))
		text = self.doctor(child)
		self.assertIn(f'ok    its circuits are shared in {path}\n', text)
		self.assertRegex(text, '(?m)^warn  .*another pid namespace.*a segment of its own; .*SHUNT_STATE')

	def test_rules_in_a_file_of_its_own_file_system(self):
		self.need_root()
		self.rules = {}
		os.mkdir(os.path.join(self.scratch, 'conf'))
		self.settings['SHUNT_CONF'] = f'{self.scratch}/conf/rules'
		script = (f'mount -t tmpfs none {self.scratch}/conf && '
			f'echo "break A = {RULE}" >$SHUNT_CONF && echo "break B = 192.0.2.2" >>$SHUNT_CONF && exec "$@"')
		process, said = self.waiting('unshare', '-m', 'sh', '-c', script, 'sh', self.command, 'run', self.plain,
			'wait')
		self.assertEqual(said, WITH)
		self.assertIn('ok    2 rules\n', self.doctor(str(process.pid)))

	def guards(self, process, **keywords):
		"""{descriptor: (remote, what is said of it)}"""
		text = self.doctor(str(process.pid), **keywords)
		table, _, note = text.split('DESCRIPTOR')[1].partition('\n\n')
		rows = [line.split(maxsplit=2) for line in table.splitlines()[1:]]
		self.assertEqual(HANDED in note, any(re.search(' (perhaps )?under ', rest) for _, _, rest in rows), text)
		return {int(fd): (remote, ' '.join(rest.split())) for fd, remote, rest in rows}

	def test_which_connections_are_guarded(self):
		guarded, other, out = self.echo(), self.echo(), self.echo()
		self.rules = {'PAY': f'127.0.0.0/8:{guarded.port}', 'OUT': f'^127.0.0.1:{out.port}'}
		process, port, (first, second, third, fourth) = self.client(('127.0.0.1', guarded.port, 'v4'),
			('127.0.0.1', other.port, 'v4'), ('::ffff:127.0.0.1', guarded.port, 'v6'), ('127.0.0.1', out.port, 'v4'))
		with socket.create_connection(('127.0.0.1', port)) as ours:
			accepted = int(process.stdout.readline().split()[1])
			rows = self.guards(process)
			name, number = ours.getsockname()
		at = f'127.0.0.1:{guarded.port}'
		self.assertEqual(rows, {
			first: (at, f'established under PAY ({at}): closed'),
			second: (f'127.0.0.1:{other.port}', 'established not guarded: no rule matches'),
			third: (at, f'established under PAY ({at}): closed'),
			fourth: (f'127.0.0.1:{out.port}', f'established not guarded: OUT (^127.0.0.1:{out.port}) keeps it out'),
			accepted: (f'{name}:{number}', 'established not guarded: accepted, not made, by this host'),
		})
		self.shunt('trip', 'PAY')
		self.assertEqual(self.guards(process)[first][1], f'established under PAY ({at}): open')

	def test_a_connection_that_was_inherited(self):
		"""Two to one circuit, of which the library judges one: from outside they look the same, and nothing
		says that both are guarded."""
		server = self.echo()
		self.rules = {'PAY': f'127.0.0.1:{server.port}'}
		with socket.create_connection(('127.0.0.1', server.port)) as ours:
			ours.sendall(b'x')
			process, line = self.waiting(harness.PYTHON, '-c', CLIENT, f'127.0.0.1 {server.port} v4', verb='run',
				pass_fds=(ours.fileno(),))
			made = int(line.split()[2])
			rows = self.guards(process)
			self.assertEqual(rows[ours.fileno()], rows[made])
			self.assertNotIn('guarded', rows[made][1])
			self.assertIn('\n\n' + HANDED, self.doctor(str(process.pid)))

	def test_circuits_of_rules_that_others_have(self):
		"""Each process is under its own, though both share the segment."""
		server = self.echo()
		for name in ('ONE', 'TWO'):
			self.rules = {name: f'127.0.0.1:{server.port}'}
			process, _, (fd,) = self.client(('127.0.0.1', server.port, 'v4'))
			setattr(self, name, (process, fd))
		for name in ('ONE', 'TWO'):
			process, fd = getattr(self, name)
			self.assertIn(f'under {name} (', self.guards(process)[fd][1])

	def test_rules_by_name(self):
		server = self.echo()
		for setting, words in (('', f'established under PAY (localhost:{server.port}): closed'),
				(' per=host', f'perhaps under PAY (localhost'), (' per=rule', 'perhaps under PAY (')):
			self.rules = {'PAY': f'localhost:{server.port}{setting}'}
			process, _, (fd,) = self.client(('localhost', server.port, 'name'))
			with self.subTest(setting=setting):
				self.assertIn(words, self.guards(process)[fd][1])
			self.stop(process)
			os.unlink(self.state)

	def test_one_circuit_for_a_host_or_a_rule_by_address(self):
		server = self.echo()
		for per in ('host', 'rule'):
			self.rules = {'PAY': f'127.0.0.1:{server.port} per={per}'}
			process, _, (fd,) = self.client(('127.0.0.1', server.port, 'v4'))
			self.assertRegex(self.guards(process)[fd][1], r'\Aestablished under PAY \(.*\): closed\Z')
			self.stop(process)
			os.unlink(self.state)

	def test_a_connection_over_the_newer_protocol(self):
		try:
			server = self.echo('::1')
		except OSError as error:
			self.skipTest(f'no IPv6: {error}')
		self.rules = {'SIX': f'[::1]:{server.port}'}
		process, _, (fd,) = self.client(('::1', server.port, 'v6'))
		self.assertEqual(self.guards(process)[fd], (f'[::1]:{server.port}',
			f'established under SIX ([::1]:{server.port}): closed'))

	def test_circuits_that_are_its_own(self):
		"""Nobody else has them mapped; they are read from its memory."""
		server = self.echo()
		self.rules = {'PAY': f'127.0.0.1:{server.port}'}
		self.settings['SHUNT_STATE'] = 'private'
		process, _, (fd,) = self.client(('127.0.0.1', server.port, 'v4'))
		self.assertRegex(self.doctor(str(process.pid)), '(?m)^warn  its circuits are its own, as SHUNT_STATE=private')
		self.assertRegex(self.guards(process)[fd][1], r'\Aestablished under PAY \(.*\): closed\Z')
		self.settings['SHUNT_STATE'] = self.scratch
		process, _, (fd,) = self.client(('127.0.0.1', server.port, 'v4'))
		self.assertRegex(self.doctor(str(process.pid)), '(?m)^warn  its circuits are its own: it could not use .* regular file')

	def test_a_connection_that_came_from_elsewhere(self):
		"""Connected before the library was there: the rule matches, and nothing guards it."""
		server = self.echo()
		self.rules = {'PAY': f'127.0.0.1:{server.port}'}
		with socket.create_connection(('127.0.0.1', server.port)) as ours:
			process, said = self.waiting(self.plain, 'wait', verb='run', pass_fds=(ours.fileno(),))
			self.assertEqual(said, WITH)
			self.assertIn('not guarded: PAY matches, but the library did not see it begin',
				self.guards(process)[ours.fileno()][1])

	def test_a_seccomp_filter(self):
		server = self.echo()
		process, _, _ = self.client(('127.0.0.1', server.port, 'v4'), words=('filter',))
		self.assertRegex(self.doctor(str(process.pid)), '(?m)^warn  it has a seccomp filter: ')

	def test_many_descriptors_are_no_matter(self):
		soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
		if hard < 2100:
			self.skipTest('no descriptors')
		resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2100), hard))
		self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
		server = self.echo()
		self.rules = {'PAY': f'127.0.0.1:{server.port}'}
		copies = []
		try:
			with open('/dev/null', 'rb') as null:
				copies = [os.dup(null.fileno()) for _ in range(1500)]
			process, _, (fd,) = self.client(('127.0.0.1', server.port, 'v4'))
			self.assertIn('established under PAY ', self.guards(process)[fd][1])
		finally:
			for copy in copies:
				os.close(copy)


if __name__ == '__main__':
	harness.main()
