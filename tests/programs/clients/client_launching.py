# SPDX-License-Identifier: MIT
"""Starts programs in all the ways that python knows, in the middle of calls on a connection that is kept
alive: client_launching.py LIVE-PORT DEAD-PORT."""
import concurrent.futures
import http.client
import os
import socket
import subprocess
import sys

live = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=20)
exchanges = refused = 0


def exchange():
	global exchanges
	live.request('GET', '/')
	assert live.getresponse().read() == b'hello from the server\n'
	exchanges += 1


def is_refused():
	global refused
	with socket.socket() as connection:
		assert connection.connect_ex(('127.0.0.1', int(sys.argv[2]))) == 111
	refused += 1


def launch_all():
	assert subprocess._USE_VFORK
	said = []
	said.append(subprocess.run(['sh', '-c', 'echo vfork; exit 3'], stdout=subprocess.PIPE).args)
	said.append(subprocess.run(['sh', '-c', 'exit 4'], close_fds=False).returncode)
	said.append(subprocess.call(['sh', '-c', 'exit 5'], preexec_fn=is_refused))
	said.append(subprocess.run(['cat', '/proc/self/fd/0'], input=b'in', capture_output=True).stdout)
	said.append(subprocess.call(['/does/not/exist/either'], executable='/bin/true', start_new_session=True))
	try:
		subprocess.call(['/does/not/exist'])
	except FileNotFoundError as error:
		said.append(str(error))
	pid = os.posix_spawn('/bin/sh', ['sh', '-c', 'exit 6'], os.environ, file_actions=[(os.POSIX_SPAWN_CLOSE, 0)])
	said.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	said.append((os.system('exit 7'), os.popen('echo popen').read()))
	pid = os.fork()
	if pid == 0:
		os.closerange(3, 1000)
		os._exit(8)
	said.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
	return said


for _ in range(3):
	exchange()
	is_refused()
	print(launch_all())
with concurrent.futures.ThreadPoolExecutor(4) as pool:
	for said_by_thread in pool.map(lambda _: launch_all(), range(4)):
		print(said_by_thread)
exchange()
is_refused()
print(f'exchanges {exchanges} refused {refused}', file=sys.stderr)
