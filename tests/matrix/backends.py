# SPDX-License-Identifier: MIT
"""The healthy servers that the rows work on. Each comes up when its first row asks, and lives until the last."""
import os
import pwd
import subprocess
import time

import daemons
import little_servers
from daemons import Daemon, find, free_port, required

LINE = 'The quick brown fox jumps over the lazy dog, {:06d} times\n'
BIG = ''.join(LINE.format(i) for i in range(20000))
PAGE = ('<html><head><title>A page</title></head><body><h1>A page</h1><p>hello from the server</p>'
	+ ''.join(f'<a href="/files/{i}.txt">file {i}</a> ' for i in range(8)) + '</body></html>\n')
CA = ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost',
	'-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']


def run_as(user, argv, **keywords):
	return subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
		**as_user(user), **keywords)


def as_user(user):
	if user is None or os.geteuid() != 0:
		return {}
	entry = pwd.getpwnam(user)
	return {'user': entry.pw_uid, 'group': entry.pw_gid, 'extra_groups': []}


class Web(daemons.Nginx):
	"""Files, over plain HTTP, TLS 1.2 and 1.3, and HTTP/2 with and without TLS."""

	def __init__(self):
		self.ports = {name: free_port() for name in ('TLS', 'TLS12', 'H2')}
		super().__init__()

	def prepare(self):
		self.write('www/index.html', PAGE)
		self.write('www/hello.txt', 'hello from the server\n')
		self.write('www/big.txt', BIG)
		for i in range(8):
			self.write(f'www/files/{i}.txt', f'file {i}\n' * 100)
		subprocess.run(CA + ['-keyout', self.path('key.pem'), '-out', self.path('ca.pem')], check=True,
			stderr=subprocess.DEVNULL)
		tls = f'ssl_certificate {self.path("ca.pem")}; ssl_certificate_key {self.path("key.pem")};'
		where = f'root {self.path("www")}; location /echo {{ return 200 "$request_method $content_length\\n"; }}'
		self.write('nginx.conf', daemons.nginx_config(self.directory, f'''
keepalive_requests 1000000;
server {{ listen 127.0.0.1:{self.port}; {where} }}
server {{ listen 127.0.0.1:{self.ports["TLS"]} ssl http2; ssl_protocols TLSv1.3; {tls} {where} }}
server {{ listen 127.0.0.1:{self.ports["TLS12"]} ssl; ssl_protocols TLSv1.2; {tls} {where} }}
server {{ listen 127.0.0.1:{self.ports["H2"]} http2; {where} }}'''))

	def variables(self):
		port = self.port
		return {
			'PORT': str(port), 'URL': f'http://127.0.0.1:{port}', 'CA': self.path('ca.pem'), 'WWW': self.path('www'),
			**{f'{name}_PORT': str(number) for name, number in self.ports.items()},
			'TLS_URL': f'https://127.0.0.1:{self.ports["TLS"]}', 'TLS12_URL': f'https://127.0.0.1:{self.ports["TLS12"]}',
			'H2_URL': f'http://127.0.0.1:{self.ports["H2"]}',
		}


class Portal:
	"""A daemon of the other tests, with the variables that a row's command finds it by."""

	def variables(self):
		return {'PORT': str(self.port)}


class Redis(Portal, daemons.Redis):
	pass


class Postgres(Portal, daemons.Postgres):
	def __init__(self):
		super().__init__()
		run_as(None, ['pgbench', '-q', '-i', '-s', '1', '-h', '127.0.0.1', '-p', str(self.port), '-U', 'postgres', 'postgres'])

	def variables(self):
		return {'PORT': str(self.port), 'PGHOST': '127.0.0.1', 'PGPORT': str(self.port), 'PGUSER': 'postgres',
			'PGDATABASE': 'postgres'}


class MariaDB(Portal, daemons.MariaDB):
	def variables(self):
		return {'PORT': str(self.port), 'SQL': f'--no-defaults --host=127.0.0.1 --port={self.port} --user=root'}


class Rsync(Portal, daemons.Rsyncd):
	def prepare(self):
		super().prepare()
		self.write('share/big.txt', BIG)


def make_repository(path, home):
	"""A bare git repository with two commits, the same on every machine."""
	env = {'PATH': os.environ['PATH'], 'HOME': home, 'GIT_CONFIG_NOSYSTEM': '1', **{f'GIT_{who}_{what}': value
		for who in ('AUTHOR', 'COMMITTER') for what, value in (('NAME', 'a'), ('EMAIL', 'a@localhost'),
		('DATE', '2000-01-01T00:00:00Z'))}}
	work = path + '.work'
	os.makedirs(work)
	script = f'''set -e
git init -q -b main .
seq 20000 >numbers; git add numbers; git commit -q -m one
seq 100 | tac >more; git add more; git commit -q -m two
git clone -q --bare . {path}
cd {path}; git update-server-info; git config http.receivepack true; touch git-daemon-export-ok'''
	subprocess.run(['bash', '-c', script], check=True, cwd=work, env=env, capture_output=True)


class Ssh(Portal, daemons.Sshd):
	def prepare(self):
		super().prepare()
		with open(self.path('config'), 'a', encoding='ascii') as file:
			file.write('Subsystem sftp internal-sftp\n')
		make_repository(self.path('repository.git'), self.directory)
		self.write('hello.txt', 'hello from the server\n')
		self.write('big.txt', BIG)

	def variables(self):
		options = f'-F none -i {self.path("client_key")} -o BatchMode=yes -o StrictHostKeyChecking=no' \
			' -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
		return {'PORT': str(self.port), 'SSH_OPTIONS': options, 'DIRECTORY': self.directory,
			'SSH': f'ssh {options} -p {self.port}'}


class Git(Daemon):
	"""git's own protocol."""

	def prepare(self):
		make_repository(self.path('repository.git'), self.directory)

	def command(self):
		return [required(find('git'), 'git'), 'daemon', '--reuseaddr', '--listen=127.0.0.1', f'--port={self.port}',
			f'--base-path={self.directory}', '--export-all', '--enable=receive-pack', self.directory]

	def variables(self):
		return {'PORT': str(self.port), 'DIRECTORY': self.directory}


class GitHttp(Git):
	"""git over HTTP, answered by git's own CGI program."""

	def command(self):
		self.write('lighttpd.conf', f'''server.document-root = "{self.directory}"
server.bind = "127.0.0.1"
server.port = {self.port}
server.modules = ("mod_alias", "mod_setenv", "mod_cgi")
alias.url = ("/git" => "/usr/lib/git-core/git-http-backend")
setenv.set-environment = ("GIT_PROJECT_ROOT" => "{self.directory}", "GIT_HTTP_EXPORT_ALL" => "1", "REMOTE_USER" => "a",
	"HOME" => "{self.directory}", "GIT_CONFIG_COUNT" => "1", "GIT_CONFIG_KEY_0" => "safe.directory",
	"GIT_CONFIG_VALUE_0" => "*")
$HTTP["url"] =~ "^/git" {{ cgi.assign = ("" => "") }}
''')
		return [required(find('lighttpd'), 'lighttpd'), '-D', '-f', self.path('lighttpd.conf')]


class Subversion(Daemon):
	def prepare(self):
		self.write('tree/hello.txt', 'hello from the server\n')
		self.write('tree/big.txt', BIG)
		run_as(None, [required(find('svnadmin'), 'svnadmin'), 'create', self.path('repository')])
		self.write('repository/conf/svnserve.conf', '[general]\nanon-access = write\n')
		run_as(None, ['svn', 'import', '-q', '-m', 'one', self.path('tree'), f'file://{self.path("repository")}',
			'--config-dir', self.path('config')])

	def command(self):
		return ['svnserve', '-d', '--foreground', '--listen-host', '127.0.0.1', '--listen-port', str(self.port), '-r',
			self.directory]

	def variables(self):
		return {'PORT': str(self.port), 'DIRECTORY': self.directory}


class Mercurial(Portal, Daemon):
	def prepare(self):
		self.write('work/hello.txt', 'hello from the server\n')
		self.write('work/big.txt', BIG)
		hg = required(find('hg'), 'hg')
		for command in (['init'], ['commit', '-q', '-A', '-m', 'one', '-u', 'a', '-d', '0 0']):
			run_as(None, [hg, *command], cwd=self.path('work'), env=dict(os.environ, HGRCPATH=''))

	def command(self):
		return ['hg', '-R', self.path('work'), 'serve', '--address', '127.0.0.1', '--port', str(self.port),
			'--config', 'ui.detailed-exit-code=no']


class Memcached(Portal, Daemon):
	def command(self):
		user = ['-u', 'root'] if os.geteuid() == 0 else []
		return [required(find('memcached'), 'memcached'), '-l', '127.0.0.1', '-p', str(self.port), '-U', '0', *user]


class Mosquitto(Portal, Daemon):
	def prepare(self):
		user = 'user root\n' if os.geteuid() == 0 else ''
		self.write('config', f'{user}listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence false\n')

	def command(self):
		return [required(find('mosquitto'), 'mosquitto'), '-c', self.path('config')]


class Slapd(Portal, Daemon):
	def prepare(self):
		required(find('slapd'), 'slapd')
		os.makedirs(self.path('data'))
		self.write('config', f'''include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {self.path('pid')}
database mdb
maxsize 10485760
suffix "dc=here"
rootdn "cn=admin,dc=here"
rootpw secret
directory {self.path('data')}
''')
		people = '\n'.join(f'dn: cn=person {i},dc=here\nobjectClass: person\ncn: person {i}\nsn: {i}\n' for i in range(50))
		self.write('tree', f'dn: dc=here\nobjectClass: dcObject\nobjectClass: organization\no: here\ndc: here\n\n{people}\n')
		run_as(None, [find('slapadd'), '-q', '-f', self.path('config'), '-l', self.path('tree')])

	def command(self):
		return [find('slapd'), '-d', '0', '-f', self.path('config'), '-h', f'ldap://127.0.0.1:{self.port}/']


class Iperf(Portal, Daemon):
	def command(self):
		return [required(find('iperf3'), 'iperf3'), '-s', '-B', '127.0.0.1', '-p', str(self.port), '--forceflush']


class Nbd(Portal, Daemon):
	def command(self):
		return [required(find('nbdkit'), 'nbdkit'), '-f', '-i', '127.0.0.1', '-p', str(self.port), 'memory', '8M']


class Ftp(Daemon):
	def prepare(self):
		self.write('share/hello.txt', 'hello from the server\n')
		self.write('share/big.txt', BIG)
		self.write('share/files/1.txt', 'one\n')
		for path in ('share/hello.txt', 'share/big.txt', 'share/files/1.txt', 'share/files', 'share'):
			os.utime(self.path(path), (0, 0))

	def command(self):
		return ['/usr/bin/python3', os.path.join(os.path.dirname(__file__), 'ftp_server.py'), str(self.port), self.path('share')]

	def variables(self):
		return {'PORT': str(self.port), 'URL': f'ftp://127.0.0.1:{self.port}', 'SHARE': self.path('share')}


class Packages(daemons.Nginx):
	"""A Debian repository with one package in it."""

	def prepare(self):
		required(find('dpkg-deb'), 'dpkg-deb')
		self.write('tree/usr/share/doc/greeting/hello', 'hello from the server\n')
		self.write('tree/DEBIAN/control', 'Package: greeting\nVersion: 1\nArchitecture: all\n'
			'Maintainer: a <a@localhost>\nDescription: a greeting\n')
		os.makedirs(self.path('www'))
		deb = self.path('www/greeting_1_all.deb')
		run_as(None, ['dpkg-deb', '--root-owner-group', '-b', self.path('tree'), deb])
		fields = run_as(None, ['dpkg-deb', '-f', deb]).stdout.decode()
		digest = run_as(None, ['sha256sum', deb]).stdout.decode().split()[0]
		self.write('www/Packages', f'{fields}Filename: ./greeting_1_all.deb\nSize: {os.path.getsize(deb)}\n'
			f'SHA256: {digest}\n')
		super().prepare()

	def variables(self):
		return {'PORT': str(self.port), 'URL': f'http://127.0.0.1:{self.port}'}


KINDS = {
	'web': Web, 'redis': Redis, 'postgres': Postgres, 'mariadb': MariaDB, 'rsync': Rsync, 'ssh': Ssh, 'git': Git,
	'git_http': GitHttp, 'subversion': Subversion, 'mercurial': Mercurial, 'memcached': Memcached,
	'mosquitto': Mosquitto, 'slapd': Slapd, 'iperf': Iperf, 'nbd': Nbd, 'ftp': Ftp, 'packages': Packages,
	'echo': little_servers.Echo, 'registry': little_servers.Registry, 'smtp': little_servers.Smtp,
	'pop3': little_servers.Pop3, 'whois': little_servers.Whois, 'dns': little_servers.Dns,
}


class Backends:
	"""The servers that run, by name."""

	def __init__(self):
		self._running = {}

	def get(self, name):
		if name not in self._running:
			self._running[name] = KINDS[name]()
		return self._running[name]

	def close(self):
		for backend in self._running.values():
			backend.close()
		self._running = {}

	free_port = staticmethod(free_port)
	as_user = staticmethod(as_user)

	@staticmethod
	def wait_for(port, process, log):
		deadline = time.monotonic() + 60
		while not daemons.answers(port):
			if process.poll() is not None or time.monotonic() > deadline:
				with open(log, encoding='utf-8', errors='replace') as file:
					raise AssertionError(f'the server does not come up: {file.read()[-2000:]}')
			time.sleep(0.05)
