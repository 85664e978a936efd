# SPDX-License-Identifier: MIT
import harness
from story import Story

SCRIPT = r'''
exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
printf 'GET / HTTP/1.0\r\n\r\n' >&3
while :; do
	read -r -t 2 -u 3 line
	status=$?
	((status > 128)) && echo 'timed out' >&2
	((status > 0)) && exit 1
	[[ $line == hello* ]] && echo "$line" && exit 0
done
'''


class Bash(Story):
	"""/dev/tcp. A connect has no limit; `read -t` has."""

	refused = r'connect: Connection refused'
	silent = r'^timed out$'
	reset = r'read error: 3: Connection reset by peer'

	def command(self):
		return ['bash', '-c', SCRIPT, 'bash', str(self.port)]


if __name__ == '__main__':
	harness.main()
