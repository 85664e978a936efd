#!/bin/bash
# SPDX-License-Identifier: MIT
# bash: its own sockets, coprocesses, process substitution.
for i in 0 1 2 3; do
	exec {socket}<>"/dev/tcp/127.0.0.1/$PORT"
	printf 'GET /files/%s.txt HTTP/1.0\r\n\r\n' "$i" >&"$socket"
	tail -n 1 <&"$socket"
	exec {socket}>&-
done
coproc relay { nc -N 127.0.0.1 "$PORT"; }
# bash closes its own two as soon as the coprocess ends.
exec {input}<&"${relay[0]}" {output}>&"${relay[1]}" {relay[1]}>&-
printf 'GET /hello.txt HTTP/1.0\r\n\r\n' >&"$output"
exec {output}>&-
tail -n 1 <&"$input"
diff <(curl -sS "$URL/files/1.txt") <(curl -sS "$URL/files/2.txt") | head -n 3
