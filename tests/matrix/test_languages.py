# SPDX-License-Identifier: MIT
"""The runtimes of programming languages: each has its own way with sockets, threads and memory."""
import matrix
from named_filters import Filter
from matrix import Row

JAVA = 'java -XX:TieredStopAtLevel=1 -Xmx128m -Xshare:auto'
NPM = 'npm install --registry="$URL" --no-audit --no-fund --no-update-notifier --no-progress --cache="$PWD/cache" --loglevel=error'

ROWS = [
	Row('python3', 'http.client, urllib, threads, a pool of children, 200 connections at once',
		'/usr/bin/python3 "$PROGRAMS/fetch.py" "$URL"', calls=4 + 2 + 8 + 9 + 200),
	Row('python3', 'requests and aiohttp', '/usr/bin/python3 "$PROGRAMS/fetch_more.py" "$URL"', calls=43),
	Row('python3', 'a name rule, through getaddrinfo', '/usr/bin/python3 "$PROGRAMS/fetch.py" "http://localhost:$PORT"',
		rule='localhost:{port}', calls=4 + 2 + 8 + 9 + 200),
	Row('node', 'an agent, fetch, eight at once, a bare socket', 'node "$PROGRAMS/fetch.js" "$URL"', calls=14, package='nodejs'),
	Row('npm', 'installs a package from a registry', f'echo "{{}}" >package.json; {NPM} greeting;'
		' node -p "require(\'greeting\')"; ls node_modules', on='registry', calls=2, shows='hello from the server', compared=Filter('all but the time', r'^added 1 package in (\d+m?s)$')),
	Row('java', 'HttpURLConnection, HttpClient, channels', f'{JAVA} "$PROGRAMS/Fetch.java" "$URL"', package='default-jdk-headless',
		calls=3 + 8 + 20),
	Row('perl', 'sockets, HTTP::Tiny, children', 'perl "$PROGRAMS/fetch.pl" "$URL"', calls=9),
	Row('ruby', 'a kept connection, threads', 'ruby "$PROGRAMS/fetch.rb" "$URL"', calls=12),
	Row('php', 'streams, eight at once', 'php "$PROGRAMS/fetch.php" "$URL"', package='php-cli', calls=11),
	Row('lua', 'socket.http and a socket', 'lua5.4 "$PROGRAMS/fetch.lua" "$URL"', needs=('lua5.4',), package='lua5.4', calls=5),
	Row('tclsh', 'the http package, by events', 'tclsh "$PROGRAMS/fetch.tcl" "$URL"', package='tcl', calls=13),
	Row('gawk', 'two-way sockets', 'gawk -v PORT="$PORT" -f "$PROGRAMS/fetch.awk"', calls=4),
	Row('erlang', 'twenty processes', 'escript "$PROGRAMS/fetch.erl" "$PORT"', needs=('escript',), package='erlang-base', calls=21),
	Row('sbcl', 'its own sockets', 'sbcl --script "$PROGRAMS/fetch.lisp" "$PORT"', calls=9),
	Row('dash', 'a loop of curl and nc, exit code 7', 'dash "$PROGRAMS/fetch.dash"', needs=('dash', 'curl', 'nc'), calls=13, code=7),
	# bash writes inside libc, and its children read: the four answers of /dev/tcp are nobody's.
	Row('bash', '/dev/tcp, a coprocess, process substitution', 'bash "$PROGRAMS/fetch.bash"', needs=('bash', 'curl', 'nc'), calls=3),
]

if __name__ == '__main__':
	matrix.main(ROWS)
