# SPDX-License-Identifier: MIT
"""Real servers on loopback ports, each from a directory of its own that goes away with it."""
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SBIN = ':/usr/local/sbin:/usr/sbin:/sbin'


def find(name, *more):
	"""Path of a program, looking where daemons live, too; or None."""
	path = os.environ.get('PATH', '') + SBIN + ''.join(':' + directory for directory in more)
	return shutil.which(name, path=path)


def free_port():
	"""Below those that the kernel gives to connections: one of them could take it before the server does."""
	with open('/proc/sys/net/ipv4/ip_local_port_range', encoding='ascii') as file:
		lowest = int(file.read().split()[0])
	while True:
		port = random.randrange(10000, lowest) if lowest > 11000 else 0
		with socket.socket() as probe:
			try:
				probe.bind(('127.0.0.1', port))
				return probe.getsockname()[1]
			except OSError:
				continue


def answers(port):
	try:
		socket.create_connection(('127.0.0.1', port), 1).close()
		return True
	except OSError:
		return False


class Daemon:
	"""Starts `argv` and waits for its port. A missing program raises FileNotFoundError."""

	stop_signal = signal.SIGTERM
	user = None

	def __init__(self):
		self.port = free_port()
		self.directory = tempfile.mkdtemp(prefix='shunt-daemon-')
		os.chmod(self.directory, 0o755)
		self.process = None
		try:
			self.prepare()
			self._start()
		except BaseException:
			self.close()
			raise

	def prepare(self):
		"""Writes what the server needs into its directory."""

	def command(self):
		raise NotImplementedError

	def path(self, name):
		return os.path.join(self.directory, name)

	def write(self, name, text):
		os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
		with open(self.path(name), 'w', encoding='utf-8') as file:
			file.write(text)
		return self.path(name)

	def as_user(self):
		"""What Popen needs to run as the daemon's user: some refuse to run as root."""
		if self.user is None or os.geteuid() != 0:
			return {}
		entry = pwd.getpwnam(self.user)
		return {'user': entry.pw_uid, 'group': entry.pw_gid, 'extra_groups': []}

	def give_away(self):
		if self.user is not None and os.geteuid() == 0:
			entry = pwd.getpwnam(self.user)
			os.chown(self.directory, entry.pw_uid, entry.pw_gid)

	def _start(self):
		with open(self.path('log'), 'wb') as log:
			self.process = subprocess.Popen(self.command(), cwd=self.directory, stdin=subprocess.DEVNULL,
				stdout=log, stderr=log, start_new_session=True, **self.as_user())
		deadline = time.monotonic() + 60
		while not answers(self.port):
			if self.process.poll() is not None or time.monotonic() > deadline:
				with open(self.path('log'), encoding='utf-8', errors='replace') as log:
					raise RuntimeError(f'{self.command()[0]} does not come up: {log.read()[-2000:]}')
			time.sleep(0.05)

	def close(self):
		if self.process is not None and self.process.poll() is None:
			self.process.send_signal(self.stop_signal)
			try:
				self.process.wait(10)
			except subprocess.TimeoutExpired:
				os.killpg(self.process.pid, signal.SIGKILL)
				self.process.wait(10)
		shutil.rmtree(self.directory, ignore_errors=True)


def required(path, name):
	if path is None:
		raise FileNotFoundError(name)
	return path


class Nginx(Daemon):
	"""Serves its `www` directory; `files` maps names in it to texts."""

	def __init__(self, files=None, directory=None):
		self.files = files or {'index.html': 'hello from the server\n'}
		self.root = directory
		super().__init__()

	def prepare(self):
		for name, text in self.files.items():
			self.write('www/' + name, text)
		self.write('nginx.conf', nginx_config(self.directory,
			f'server {{ listen 127.0.0.1:{self.port}; root {self.root or self.path("www")}; }}'))

	def command(self):
		return nginx_command(self.path('nginx.conf'))


def nginx_config(directory, servers, http=''):
	"""A configuration that keeps every file of nginx inside `directory`."""
	temporary = '\n'.join(f'{kind}_temp_path {directory}/{kind};'
		for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
	user = 'user root;\n' if os.geteuid() == 0 else ''
	return f'''{user}daemon off;
worker_processes 1;
pid {directory}/pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
access_log off;
{temporary}
{http}
{servers}
}}
'''


def nginx_command(config):
	return [required(find('nginx'), 'nginx'), '-e', 'stderr', '-c', config]


class Redis(Daemon):
	def command(self):
		return [required(find('redis-server'), 'redis-server'), '--port', str(self.port), '--bind', '127.0.0.1',
			'--save', '', '--appendonly', 'no', '--dir', self.directory]


class Postgres(Daemon):
	user = 'postgres'
	# Fast shutdown: it would wait for open sessions otherwise.
	stop_signal = signal.SIGINT

	@staticmethod
	def _bin(name):
		versions = '/usr/lib/postgresql'
		places = [f'{versions}/{v}/bin' for v in sorted(os.listdir(versions))] if os.path.isdir(versions) else []
		return required(find(name, *places), name)

	def prepare(self):
		self.give_away()
		subprocess.run([self._bin('initdb'), '-D', self.path('data'), '-A', 'trust', '-U', 'postgres', '-N',
			'--no-locale', '-E', 'UTF8'], check=True, stdout=subprocess.DEVNULL, cwd=self.directory, **self.as_user())

	def command(self):
		return [self._bin('postgres'), '-D', self.path('data'), '-p', str(self.port), '-h', '127.0.0.1',
			'-k', self.directory, '-c', 'fsync=off', '-c', 'shared_buffers=16MB']


class MariaDB(Daemon):
	user = 'mysql'

	def prepare(self):
		self.give_away()
		# A socket path is at most 107 bytes: the directory is short.
		subprocess.run([required(find('mariadb-install-db'), 'mariadb-install-db'), '--no-defaults',
			f'--datadir={self.path("data")}', '--auth-root-authentication-method=normal', '--skip-test-db'],
			check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.directory, **self.as_user())

	def command(self):
		return [required(find('mariadbd'), 'mariadbd'), '--no-defaults', f'--datadir={self.path("data")}',
			f'--port={self.port}', '--bind-address=127.0.0.1', f'--socket={self.path("socket")}',
			f'--pid-file={self.path("pid")}', '--skip-log-bin', '--skip-name-resolve',
			'--innodb-flush-log-at-trx-commit=0', '--innodb-buffer-pool-size=16M', '--performance-schema=OFF']


class Sshd(Daemon):
	"""Lets the key in `client_key` in, as the user who runs the tests."""

	def prepare(self):
		for name in ('host_key', 'client_key'):
			subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', self.path(name)], check=True)
		shutil.copy(self.path('client_key.pub'), self.path('authorized_keys'))
		self.write('config', f'''Port {self.port}
ListenAddress 127.0.0.1
HostKey {self.path('host_key')}
AuthorizedKeysFile {self.path('authorized_keys')}
PidFile none
PermitRootLogin yes
StrictModes no
UsePAM no
MaxStartups 100
''')
		if os.geteuid() == 0:
			os.makedirs('/run/sshd', exist_ok=True)

	def command(self):
		return [required(find('sshd'), 'sshd'), '-D', '-e', '-f', self.path('config')]


class Rsyncd(Daemon):
	def prepare(self):
		self.write('share/hello.txt', 'hello from the server\n')
		root = 'uid = 0\ngid = 0\n' if os.geteuid() == 0 else ''
		self.write('config', f'''port = {self.port}
address = 127.0.0.1
use chroot = no
{root}[share]
path = {self.path('share')}
read only = yes
''')

	def command(self):
		return [required(find('rsync'), 'rsync'), '--daemon', '--no-detach', '--config', self.path('config')]
