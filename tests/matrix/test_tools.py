# SPDX-License-Identifier: MIT
"""Version control, remote shells, mail, names, relays and other tools of the trade."""
import matrix
from named_filters import Filter
from matrix import UNTOUCHED, Row

IPERF = Filter('all but counts and timings', r'^\[(?: *\d+|SUM)\](.*)', r'port (\d+) connected')
TLS = Filter('all but keys and times', r'^ +(?:Session-ID|Session-ID-ctx|Resumption PSK|TLS session ticket[^:]*|Start Time|Master-Key): ?(.*)',
	r'^ +([0-9a-f]{4} - [0-9a-f -]{10,}.*)', r'^Date: (.*)$')
GNUTLS = Filter('all but keys and times', r'Session ID: (.*)', r'(?:signed using|activated|expires|pin-sha256)[^`]*(`[^\n]*)',
	r'^(?:\t|- )*(?:sha1|sha256|pin-sha256)[^\n]*?([0-9a-f]{20,}|:\S+)$', r'^- Ephemeral (.*)', r'^\*\*\*.*?(Fetching.*)')
DIG = Filter('all but the time', r'^;; Query time: (.*)', r'^;; WHEN: (.*)', r'id: (\d+)', r'MSG SIZE  (.*)', r'COOKIE: (.*)')
GIT = 'git -c protocol.version=2 -c gc.auto=0 -c user.name=a -c user.email=a@localhost'
STAMP = 'export GIT_AUTHOR_DATE=2001-01-01T00:00:00Z GIT_COMMITTER_DATE=2001-01-01T00:00:00Z'
CLONE = f'{GIT} clone -q {{0}} copy 2>&1; cd copy; {STAMP}; seq 7 >new; {GIT} add new; {GIT} commit -q -m three;' \
	f' {GIT} push -q origin HEAD:refs/heads/new 2>&1; {GIT} fetch -q 2>&1; {GIT} log --oneline --all; {GIT} ls-remote; md5sum numbers more'
FORGET = 'git -C "$DIRECTORY/repository.git" update-ref -d refs/heads/new'

ROWS = [
	Row('git', 'clones, commits, pushes, fetches over its own protocol', CLONE.format('"git://127.0.0.1:$PORT/repository.git"'), on='git', before=FORGET,
		shows='refs/heads/new'),
	Row('git', 'the same over HTTP', CLONE.format('"http://127.0.0.1:$PORT/git/repository.git"'), on='git_http', before=FORGET,
		shows='refs/heads/new'),
	Row('git', 'the same over ssh', 'export GIT_SSH_COMMAND="ssh $SSH_OPTIONS"; ' + CLONE.format('"ssh://127.0.0.1:$PORT$DIRECTORY/repository.git"'),
		on='ssh', before=FORGET, needs=('git', 'ssh'), shows='refs/heads/new', calls=4),
	Row('svn', 'checks out, commits, updates', 'svn co -q "svn://127.0.0.1:$PORT/repository" copy; cd copy; date +%s%N >now; svn add -q now;'
		' svn ci -q -m x; svn rm -q now; svn ci -q -m y; svn up -q; svn ls; svn cat big.txt', on='subversion', package='subversion'),
	Row('hg', 'clones and pulls', 'export HGRCPATH=; hg clone "http://127.0.0.1:$PORT" copy; cd copy; hg pull; hg log; cat big.txt hello.txt',
		on='mercurial', package='mercurial'),
	Row('ssh', 'a command, its exit code, a megabyte through cat', '$SSH 127.0.0.1 "echo hello; echo problem >&2"; seq 200000 | $SSH 127.0.0.1 cat;'
		' $SSH 127.0.0.1 "exit 9"', on='ssh', calls=3, code=9, package='openssh-client'),
	Row('ssh', 'a terminal, one connection for two sessions', '$SSH -tt 127.0.0.1 tty \\; echo "terminal"; O="-o ControlPath=$PWD/c"; $SSH $O -o'
		' ControlMaster=yes -o ControlPersist=60 127.0.0.1 echo one; $SSH $O 127.0.0.1 echo two; $SSH $O -O exit 127.0.0.1', on='ssh',
		calls=2, package='openssh-client', compared=Filter('all but the number of the terminal', r'^/dev/pts/(\d+)')),
	Row('ssh', 'forwards a port to a server', '$SSH -W 127.0.0.1:$PORT 127.0.0.1 </dev/null | head -c 7', on='ssh', calls=1,
		package='openssh-client', shows='SSH-2.0'),
	Row('scp', 'both ways', 'scp -q $SSH_OPTIONS -P "$PORT" "127.0.0.1:$DIRECTORY/big.txt" a; scp -q -O $SSH_OPTIONS -P "$PORT" "127.0.0.1:$DIRECTORY/big.txt" b;'
		' scp -q $SSH_OPTIONS -P "$PORT" a "127.0.0.1:$DIRECTORY/c"; cmp a b; cmp a "$DIRECTORY/c"; tail -n 1 a', on='ssh', calls=3, package='openssh-client'),
	Row('sftp', 'a batch', 'printf "cd $DIRECTORY\\nget hello.txt\\nls -1 hello.txt\\nput hello.txt again\\nrm again\\n" | sftp -q $SSH_OPTIONS -P "$PORT" -b -'
		' 127.0.0.1; cat hello.txt', on='ssh', calls=1, package='openssh-client', shows='hello from'),
	Row('rsync', 'a daemon: list, copy, copy again', 'U="rsync://127.0.0.1:$PORT/share/"; rsync "$U" | cut -c1-26; rsync -a "$U" out; touch -d 2000-01-01 out/*;'
		' rsync -ac --itemize-changes "$U" out; cat out/*', on='rsync', calls=3),
	Row('rsync', 'over ssh, both ways', 'rsync -a -e "ssh $SSH_OPTIONS -p $PORT" "127.0.0.1:$DIRECTORY/big.txt" a; rsync -a -e "ssh $SSH_OPTIONS -p $PORT" a'
		' "127.0.0.1:$DIRECTORY/b"; cmp a "$DIRECTORY/b" && tail -n 1 a', on='ssh', calls=2),
	Row('swaks', 'a mail', 'swaks --server 127.0.0.1 --port "$PORT" --from a@localhost --to b@localhost --helo localhost --hide-all && echo done', on='smtp', calls=7),
	Row('msmtp', 'a mail', 'printf "Subject: a\\n\\nhello\\n" | msmtp -C /dev/null --host=127.0.0.1 --port="$PORT" --from=a@localhost b@localhost && echo done',
		on='smtp'),
	Row('s-nail', 'a mail', 'echo hello | s-nail -:/ -S v15-compat -S sendwait -S mta="smtp://127.0.0.1:$PORT" -S smtp-auth=none -S from=a@localhost -s a b@localhost &&'
		' echo done', on='smtp'),
	Row('python3', 'smtplib', '/usr/bin/python3 -c "import smtplib, os; s = smtplib.SMTP(\'127.0.0.1\', int(os.environ[\'PORT\'])); '
		'print(s.sendmail(\'a@localhost\', [\'b@localhost\'], \'Subject: a\\n\\nhello\'), s.quit())"', on='smtp', calls=7),
	Row('fetchmail', 'a mail', 'echo "poll 127.0.0.1 protocol pop3 port $PORT auth password user a password b is root sslproto \'\'" >rc; chmod 600 rc;'
		' fetchmail -f rc --keep --fetchall --norewrite --mda "cat >mail" --pidfile "$PWD/pid" 2>&1 | grep -v "sleeping"; grep hello mail', on='pop3', shows='hello from'),
	Row('whois', 'one question', 'whois -h 127.0.0.1 -p "$PORT" a.name', on='whois', calls=1),
	Row('telnet', 'one question', 'mkfifo in; exec 3<>in; echo a.name >&3; telnet 127.0.0.1 "$PORT" <in', on='whois', calls=1),
	Row('nc', 'OpenBSD\'s', 'printf "GET /big.txt HTTP/1.0\\r\\n\\r\\n" | nc -N 127.0.0.1 "$PORT" | tail -n 3; nc -zv 127.0.0.1 "$PORT"',
		package='netcat-openbsd', calls=1),
	Row('ncat', 'plain', 'printf "GET /big.txt HTTP/1.0\\r\\n\\r\\n" | ncat 127.0.0.1 "$PORT" | tail -n 3', calls=1),
	Row('ncat', 'TLS', 'printf "GET /big.txt HTTP/1.0\\r\\n\\r\\n" | ncat --ssl 127.0.0.1 "$TLS12_PORT" | tail -n 3', port='TLS12_PORT', calls=1),
	Row('socat', 'a pipe into a socket', 'printf "GET /big.txt HTTP/1.0\\r\\n\\r\\n" | socat -t5 - "TCP:127.0.0.1:$PORT" | tail -n 3', calls=1),
	Row('socat', 'TLS', 'printf "GET /big.txt HTTP/1.0\\r\\n\\r\\n" | socat -,ignoreeof "OPENSSL:127.0.0.1:$TLS_PORT,cafile=$CA" | tail -n 3', port='TLS_PORT', calls=1),
	Row('openssl', 's_client, TLS 1.2 and 1.3', 'for p in "$TLS_PORT" "$TLS12_PORT"; do printf "GET /hello.txt HTTP/1.0\\r\\n\\r\\n" | openssl s_client -quiet'
		' -CAfile "$CA" -connect "127.0.0.1:$p" 2>&1 | tail -n 2; done', rule='127.0.0.1', calls=2, shows='hello from'),
	Row('openssl', 's_client with all that it prints', 'printf "GET /hello.txt HTTP/1.0\\r\\n\\r\\n" | openssl s_client -ign_eof -CAfile "$CA" -connect'
		' "127.0.0.1:$TLS12_PORT"', port='TLS12_PORT', calls=1, shows='hello from', compared=TLS),
	Row('gnutls-cli', 'TLS 1.3', 'printf "GET /hello.txt HTTP/1.0\\r\\n\\r\\n" | gnutls-cli --logfile=/dev/null --x509cafile="$CA" -p "$TLS_PORT" 127.0.0.1 | tail -n 1',
		port='TLS_PORT', package='gnutls-bin', shows='hello from'),
	Row('gnutls-cli', 'a handshake and a farewell', 'gnutls-cli --logfile=/dev/null --x509cafile="$CA" -p "$TLS12_PORT" 127.0.0.1 </dev/null; printf'
		' "GET /hello.txt HTTP/1.0\\r\\n\\r\\n" | gnutls-cli --logfile=/dev/null --x509cafile="$CA" -p "$TLS12_PORT" 127.0.0.1 | tail -n 1',
		port='TLS12_PORT', package='gnutls-bin', shows='hello from', calls=1),
	Row('dig', 'over TCP, two questions', 'dig @127.0.0.1 -p "$PORT" +tcp +keepopen +noedns a.name b.name', on='dns', package='bind9-dnsutils', compared=DIG,
		calls=2),
	Row('dig', 'over UDP, which stays untouched', 'dig @127.0.0.1 -p "$PORT" +noedns a.name', on='dns', package='bind9-dnsutils', compared=DIG, calls=UNTOUCHED,
		shows='192.0.2.1'),
	Row('iperf3', 'four megabytes each way, two streams', 'iperf3 -c 127.0.0.1 -p "$PORT" -n 4M -P 2 --bidir', on='iperf', compared=IPERF,
		before='until iperf3 -c 127.0.0.1 -p "$PORT" -n 1K; do :; done'),
	Row('nbdcopy', 'a disk there and back', 'U="nbd://127.0.0.1:$PORT"; seq 1000000 | head -c 4M >disk; nbdcopy disk "$U"; nbdcopy "$U" - | head -c 4M |'
		' cmp - disk; nbdinfo --size "$U"', on='nbd', package='libnbd-bin', shows='8388608'),
]

if __name__ == '__main__':
	matrix.main(ROWS)
