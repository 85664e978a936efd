# SPDX-License-Identifier: MIT
"""Programs that fetch, send and measure over HTTP."""
import matrix
from named_filters import Filter
from matrix import Row

AB = Filter('all but timings', r'^(?:Time|Requests) (?:taken for tests|per second|per request):( +[\d.]+)',
	r'^Transfer rate:( +[\d.]+)', r'^(?:Connect|Processing|Waiting|Total):( +[\d. ]+)')
SIEGE = Filter('all but timings', r'^(?:Elapsed time|Response time|Transaction rate|Throughput|Concurrency|'
	r'Longest transaction|Shortest transaction):(.*)', r'"(?:elapsed_time|response_time|transaction_rate|throughput|concurrency|'
	r'longest_transaction|shortest_transaction)":(.*)')
WRK = Filter('all but counts and timings', r'^ *(?:Latency|Req/Sec)(.*)', r'^ +(\d+) requests in ([\d.]+s), ([\d.]+[KMG]?B) read',
	r'^(?:Requests|Transfer)/sec:(.*)')
H2LOAD = Filter('all but timings', r'^finished in (.*)', r'^(?:time for|time to|req/s)(.*)', r'^(Application protocol.*)',
	r'^traffic: .*?(\([^)]*\) total).*')

EVERY_FILE = '"$URL"/files/{0,1,2,3,4,5,6,7}.txt'

ROWS = [
	Row('curl', 'twelve files on one connection', f'curl -sS "$URL/" "$URL/big.txt" {EVERY_FILE} "$URL/missing" "$URL/"', calls=12),
	Row('curl', 'eight files at once', f'curl -sS -Z --no-progress-meter --create-dirs --output-dir out --remote-name-all {EVERY_FILE};'
		' cat out/*', calls=8),
	Row('curl', 'HTTP/1.0, headers of a HEAD, a range', 'curl -sS0 "$URL/" && curl -sSI -w "%{http_code} %{num_connects}" -o /dev/null'
		' "$URL/" && curl -sS -r 100-199 "$URL/big.txt"', calls=3),
	Row('curl', 'an error page as exit code 22', 'curl -sSf "$URL/missing"', calls=1, code=22),
	Row('curl', 'uploads: a form, a megabyte, a stream', 'curl -sS -d a=1 -d b=2 "$URL/form" && seq 200000 | curl -sS --data-binary @-'
		' "$URL/body" && seq 200000 | curl -sS -T - "$URL/stream"', on='echo', calls=3),
	Row('curl', 'redirects and chunks', 'curl -sSL "$URL/redirect" "$URL/chunked"', on='echo', calls=3),
	Row('curl', 'an answer before the upload is over', 'seq 200000 | curl -sS --data-binary @- "$URL/echo" -w "%{http_code}"'),
	Row('curl', 'TLS 1.3', 'curl -sS --http1.1 --cacert "$CA" "$TLS_URL/big.txt" "$TLS_URL/" "$TLS_URL/"', port='TLS_PORT', calls=3),
	Row('curl', 'TLS 1.2', 'curl -sS --cacert "$CA" "$TLS12_URL/" "$TLS12_URL/big.txt" "$TLS12_URL/"', port='TLS12_PORT', calls=3),
	Row('curl', 'HTTP/2 inside TLS, in parallel', 'curl -sS --http2 -Z --no-progress-meter --cacert "$CA" --create-dirs --output-dir out --remote-name-all'
		' "$TLS_URL"/files/{0,1,2,3,4,5,6,7}.txt "$TLS_URL/big.txt"; cat out/*', port='TLS_PORT'),
	Row('curl', 'HTTP/2 in the clear', 'curl -sS --http2-prior-knowledge "$H2_URL/big.txt" && curl -sS --http2-prior-knowledge "$H2_URL/"', port='H2_PORT', calls=2),
	Row('curl', 'FTP, down and up', 'curl -sS "$URL/" "$URL/big.txt" && curl -sS -T "$PROGRAMS/fetch.rb" "$URL/sent" && cat "$SHARE/sent"',
		on='ftp', rule='127.0.0.1', before='rm -f "$SHARE/sent"'),
	Row('curl', 'SMTP', 'printf "Subject: a\\r\\n\\r\\nhello\\r\\n" | curl -sSv --no-progress-meter --mail-from a@localhost'
		' --mail-rcpt b@localhost -T - "smtp://127.0.0.1:$PORT" 2>&1 | grep -a "^[<>]"', on='smtp', calls=7),
	Row('curl', 'POP3', 'curl -sS -u a:b "pop3://127.0.0.1:$PORT/1"', on='pop3'),
	Row('curl', 'MQTT', 'curl -sS -d hello "mqtt://127.0.0.1:$PORT/topic" && echo sent', on='mosquitto', shows='sent'),
	Row('curl', 'LDAP', 'curl -sS "ldap://127.0.0.1:$PORT/dc=here?cn?sub?(sn=1*)"', on='slapd'),
	Row('curl', 'a terminal on its stdout', 'script -qec "curl -sS $URL/ $URL/files/1.txt" /dev/null', calls=2, needs=('curl', 'script')),
	Row('wget', 'a site with all its pages', 'wget -q -r -nH -P out "$URL/"; cd out; find . -type f | sort; cat index.html files/*', calls=10, code=0),
	Row('wget', 'a file to stdout, and one that is missing', 'wget -qO- "$URL/big.txt"; wget -O- "$URL/missing" 2>&1 | grep -o "ERROR.*";'
		' wget -q --spider "$URL/missing"', calls=3, code=8),
	Row('wget', 'TLS', 'wget -qO- --ca-certificate="$CA" "$TLS_URL/big.txt" "$TLS_URL/"', port='TLS_PORT', calls=2),
	Row('wget', 'FTP', 'wget -qO- "$URL/big.txt"', on='ftp', rule='127.0.0.1'),
	Row('wget2', 'a site, in threads', 'wget2 -q -r -nH -P out "$URL/"; cat out/index.html out/files/*'),
	Row('aria2c', 'one file in four pieces', 'aria2c -q -x4 -s4 -k1M --file-allocation=none -d out "$URL/big.txt"; cat out/big.txt',
		package='aria2'),
	Row('axel', 'one file in three pieces', 'axel -q -n 3 -o out "$URL/big.txt"; cat out'),
	Row('lftp', 'mirrors a site over HTTP', 'lftp -c "set net:max-retries 1; open $URL; mget files/0.txt files/1.txt; cat hello.txt"; cat ?.txt'),
	Row('lftp', 'mirrors a tree over FTP, four at once', 'lftp -c "set net:max-retries 1; open $URL; mirror --parallel=4 . out"; cat out/*.txt out/*/*',
		on='ftp', rule='127.0.0.1'),
	Row('tnftp', 'gets and puts', 'printf "get hello.txt\\nput hello.txt again\\nls\\nquit\\n" | tnftp -p -V -a 127.0.0.1 "$PORT";'
		' cat hello.txt "$SHARE/again"', on='ftp', rule='127.0.0.1', before='rm -f "$SHARE/again"'),
	Row('http', 'posts a form', 'http --ignore-stdin --pretty=none -f POST "$URL/form" a=1 b=2', on='echo', package='httpie', calls=1),
	Row('lynx', 'a page as text', 'lynx -dump "$URL/"', calls=1),
	Row('w3m', 'a page as text', 'w3m -dump "$URL/"', calls=1),
	Row('links', 'a page as text', 'links -dump "$URL/"', calls=1),
	Row('GET', 'perl\'s LWP', 'GET "$URL/" "$URL/missing"; HEAD -d "$URL/"; echo a=1 | POST "$URL/echo"', package='libwww-perl'),
	Row('busybox', 'wget and nc', 'busybox wget -qO- "$URL/big.txt"; printf "GET / HTTP/1.0\\r\\n\\r\\n" | busybox nc 127.0.0.1 "$PORT"'
		' | tail -n 1', calls=2),
	Row('apt-get', 'updates from a repository and downloads', 'mkdir -p lists/partial cache/archives/partial; echo'
		' "deb [trusted=yes] $URL ./" >sources; apt-get -qq -o Dir::Etc::SourceList="$PWD/sources" -o Dir::Etc::SourceParts=- -o'
		' Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache" -o APT::Sandbox::User= -o Acquire::http::Proxy=DIRECT update &&'
		' apt-get -q -o Dir::Etc::SourceList="$PWD/sources" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/lists" -o'
		' Dir::Cache="$PWD/cache" -o APT::Sandbox::User= download greeting; dpkg-deb -x greeting*.deb out; cat out/usr/share/doc/greeting/*',
		on='packages', package='apt', needs=('apt-get', 'dpkg-deb'), compared=Filter('all but the rate', r'^Fetched (.*)')),
	Row('ab', 'a new connection for each request', 'ab -q -S -d -n 300 -c 4 "$URL/hello.txt"', package='apache2-utils', compared=AB, calls=300),
	Row('ab', 'keep-alive', 'ab -q -S -d -k -n 2000 -c 4 "$URL/hello.txt"', package='apache2-utils', compared=AB, calls=2000),
	Row('wrk', 'a second in two threads', 'wrk -t2 -c8 -d1s "$URL/hello.txt"', compared=WRK, shows='requests in'),
	Row('siege', 'four users', 'siege -q -b -c 4 -r 20 "$URL/hello.txt"', compared=SIEGE, calls=80),
	Row('h2load', 'HTTP/2 in the clear', 'h2load -n 400 -c 4 -m 10 "$H2_URL/hello.txt"', port='H2_PORT', package='nghttp2-client',
		compared=H2LOAD, calls=4),
	Row('nghttp', 'HTTP/2 with its pictures', 'nghttp --no-dep "$H2_URL/" "$H2_URL/big.txt"', port='H2_PORT', package='nghttp2-client', calls=1),
]

if __name__ == '__main__':
	matrix.main(ROWS)
