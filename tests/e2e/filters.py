# SPDX-License-Identifier: MIT
"""Seccomp filters, compiled by libseccomp: as a sandbox or a service manager would set them."""
import ctypes
import socket
import subprocess
import tempfile

ALLOW = 0x7fff0000
KILL = 0x80000000


def refuse(error):
	return 0x00050000 | error


class _Comparison(ctypes.Structure):
	_fields_ = [('argument', ctypes.c_uint), ('operator', ctypes.c_int), ('a', ctypes.c_uint64),
		('b', ctypes.c_uint64)]


NOT_EQUAL, EQUAL, GREATER, MASKED_EQUAL = 1, 4, 6, 7

PROT_WRITE, PROT_EXEC = 2, 4


def _load():
	try:
		library = ctypes.CDLL('libseccomp.so.2', use_errno=True)
	except OSError:
		return None
	library.seccomp_init.restype = ctypes.c_void_p
	library.seccomp_init.argtypes = [ctypes.c_uint32]
	library.seccomp_release.argtypes = [ctypes.c_void_p]
	library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
	library.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
		ctypes.c_void_p]
	return library


_library = _load()


def is_available():
	return _library is not None


class Filter:
	"""A filter with an action for what no rule names. `rule()` adds one; a call unknown here is left out."""

	def __init__(self, default):
		self._context = _library.seccomp_init(default)

	def rule(self, action, name, *comparisons):
		"""`comparisons` are (argument, operator, a, b)."""
		number = _library.seccomp_syscall_resolve_name(name.encode())
		if number < 0:
			return self
		array = (_Comparison * max(1, len(comparisons)))(*[_Comparison(*c) for c in comparisons])
		failed = _library.seccomp_rule_add_array(self._context, action, number, len(comparisons), array)
		if failed:
			raise OSError(-failed, f'no rule for {name}')
		return self

	def program(self):
		"""What the kernel is given: an array of struct sock_filter."""
		with tempfile.TemporaryFile() as file:
			failed = _library.seccomp_export_bpf(self._context, file.fileno())
			_library.seccomp_release(self._context)
			self._context = None
			if failed:
				raise OSError(-failed, 'no program')
			file.seek(0)
			return file.read()


def allowing(names, default=KILL):
	made = Filter(default)
	for name in sorted(set(names)):
		made.rule(ALLOW, name)
	return made.program()


def system_service():
	"""The calls of systemd's group of that name, or None where systemd cannot be asked."""
	names, waiting = set(), ['@system-service']
	while waiting:
		group = waiting.pop()
		try:
			result = subprocess.run(['systemd-analyze', 'syscall-filter', '--no-pager', group], check=False,
				capture_output=True, text=True)
		except FileNotFoundError:
			return None
		if result.returncode:
			return None
		words = [line.split('#')[0].strip() for line in result.stdout.splitlines()[1:]]
		names.update(word for word in words if word and not word.startswith('@'))
		waiting.extend(word for word in words if word.startswith('@'))
	return names


def no_writable_code(action):
	"""As MemoryDenyWriteExecute= does it."""
	both = PROT_WRITE | PROT_EXEC
	return (Filter(ALLOW)
		.rule(action, 'mmap', (2, MASKED_EQUAL, both, both))
		.rule(action, 'mprotect', (2, MASKED_EQUAL, PROT_EXEC, PROT_EXEC))
		.rule(action, 'pkey_mprotect', (2, MASKED_EQUAL, PROT_EXEC, PROT_EXEC))
		.program())


def only_families(families, action, datagrams):
	"""As RestrictAddressFamilies= does it; and another action for local datagrams, as syslog's are."""
	made = Filter(ALLOW).rule(datagrams, 'socket', (0, EQUAL, socket.AF_UNIX, 0), (1, MASKED_EQUAL, 0xf,
		socket.SOCK_DGRAM))
	last = -1
	for family in sorted(families):
		for between in range(last + 1, family):
			made.rule(action, 'socket', (0, EQUAL, between, 0))
		last = family
	return made.rule(action, 'socket', (0, GREATER, last, 0)).program()
