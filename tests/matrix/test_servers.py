# SPDX-License-Identifier: MIT
"""Servers that are clients themselves: proxies, poolers, replicas. The library is in them; who asks them runs bare."""
import matrix
from matrix import Row

FILES = 'curl -sS "$FRONT_URL/" "$FRONT_URL/big.txt" "$FRONT_URL"/files/{0,1,2,3,4,5,6,7}.txt "$FRONT_URL/missing"'
LOAD = 'ab -q -k -n 400 -c 8 "$FRONT_URL/hello.txt" 2>&1 | grep -E "^(Complete|Failed|Document)"'
PROXY_FILES = 'curl -sS -x "$FRONT_URL" "$URL/" "$URL/big.txt" "$URL"/files/{0,1,2,3,4,5,6,7}.txt "$URL/missing"'
# What a proxy writes by itself into its answers is none of the server's.
TEMPORARY = ''.join(f'{kind}_temp_path $PWD/{kind}; ' for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
NGINX = f'''cat >conf <<END
daemon off; worker_processes 2; pid $PWD/pid; error_log stderr warn; USER
events {{{{ worker_connections 512; }}}}
http {{{{ access_log off; {TEMPORARY} upstream up {{{{ server 127.0.0.1:$PORT; keepalive 8; }}}}
server {{{{ listen 127.0.0.1:$FRONT; location / {{{{ {{where}} }}}} }}}} }}}}
END
[ "$(id -u)" = 0 ] && USER="user root;"
sed -i "s/USER/$USER/" conf
exec nginx -e stderr -c "$PWD/conf"'''
HAPROXY = '''cat >conf <<END
defaults
	mode {mode}
	timeout connect 20s
	timeout client 20s
	timeout server 20s
frontend in
	bind 127.0.0.1:$FRONT
	default_backend out
backend out
	server one 127.0.0.1:$PORT
END
exec haproxy -db -f conf'''

ROWS = [
	Row('nginx', 'a proxy, a connection for each request', f'{FILES}; {LOAD}', package='nginx-light', needs=('nginx', 'ab'), calls=411,
		server=NGINX.format(where='proxy_pass http://up; proxy_http_version 1.0;')),
	Row('nginx', 'a proxy with kept connections', f'{FILES}; {LOAD}', package='nginx-light', needs=('nginx', 'ab'), calls=411,
		server=NGINX.format(where='proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection \\"\\";')),
	Row('haproxy', 'a proxy of HTTP', f'{FILES}; {LOAD}', needs=('haproxy', 'ab'), calls=411, server=HAPROXY.format(mode='http')),
	Row('haproxy', 'a proxy of TCP', f'{FILES}; {LOAD}', needs=('haproxy', 'ab'), calls=411, server=HAPROXY.format(mode='tcp')),
	Row('apache2', 'a proxy, in threads and processes', f'{FILES}; {LOAD}', package='apache2-bin', needs=('apache2', 'ab'), calls=411, user='www-data',
		server='''cat >conf <<END
ServerRoot /usr/lib/apache2
ServerName localhost
Listen 127.0.0.1:$FRONT
PidFile $PWD/pid
DefaultRuntimeDir $PWD
ErrorLog $PWD/log
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule authz_core_module modules/mod_authz_core.so
LoadModule proxy_module modules/mod_proxy.so
LoadModule proxy_http_module modules/mod_proxy_http.so
ProxyPass / http://127.0.0.1:$PORT/
END
exec apache2 -DFOREGROUND -f "$PWD/conf"'''),
	Row('lighttpd', 'a proxy', f'{FILES}; {LOAD}', needs=('lighttpd', 'ab'), calls=411, ends=False, server='''cat >conf <<END
server.modules = ("mod_proxy")
server.document-root = "$PWD"
server.bind = "127.0.0.1"
server.port = $FRONT
proxy.server = ("" => (("host" => "127.0.0.1", "port" => $PORT)))
END
exec lighttpd -D -f conf'''),
	Row('varnish', 'a cache', f'{FILES}; {LOAD}; {FILES} | md5sum', needs=('varnishd', 'ab'),
		server='exec varnishd -F -j none -a "127.0.0.1:$FRONT" -b "127.0.0.1:$PORT" -n "$PWD/v" -s malloc,16m'),
	Row('squid', 'a proxy', f'{PROXY_FILES}', user='proxy', server='''cat >conf <<END
http_port 127.0.0.1:$FRONT
http_access allow all
cache deny all
pid_filename $PWD/pid
access_log none
cache_log /dev/stderr
coredump_dir $PWD
pinger_enable off
shutdown_lifetime 0 seconds
netdb_filename none
END
exec squid -N -f conf'''),
	Row('tinyproxy', 'a proxy', PROXY_FILES, calls=11, server='''printf "Port $FRONT\\nListen 127.0.0.1\\nAllow 127.0.0.1\\nLogLevel Error\\n" >conf
exec tinyproxy -d -c conf'''),
	Row('stunnel', 'TLS for a program without it', FILES, port='TLS_PORT', package='stunnel4', server='''cat >conf <<END
foreground = yes
pid =
debug = err
[up]
client = yes
accept = 127.0.0.1:$FRONT
connect = 127.0.0.1:$TLS_PORT
CAfile = $CA
verifyChain = yes
END
exec stunnel conf'''),
	Row('socat', 'a relay, a child for each connection', f'{FILES}; ab -q -n 40 -c 4 "$FRONT_URL/hello.txt" 2>&1 | grep -E "^(Complete|Failed)"',
		needs=('socat', 'ab'), server='exec socat "TCP-LISTEN:$FRONT,bind=127.0.0.1,fork,reuseaddr,backlog=64" "TCP:127.0.0.1:$PORT"'),
	Row('ncat', 'a listener that runs a program for each connection', 'for i in {0..7}; do printf "GET /files/$i.txt HTTP/1.0\\r\\n\\r\\n" |'
		' nc 127.0.0.1 "$FRONT" | tail -n 1; done', needs=('ncat', 'nc', 'socat'),
		server='exec ncat -l -k 127.0.0.1 "$FRONT" --sh-exec "exec socat - TCP:127.0.0.1:$PORT"'),
	Row('node', 'a proxy', f'{FILES}; {LOAD}', package='nodejs', needs=('node', 'ab'), calls=411, server='exec node "$PROGRAMS/front.js"'),
	Row('gunicorn', 'two processes of python in threads', FILES, calls=11, server='cd "$PROGRAMS"; exec gunicorn --log-level critical --graceful-timeout 2 -w 2 --threads 4'
		' -b "127.0.0.1:$FRONT" front:application'),
	Row('php-fpm', 'scripts that ask a server', 'for i in 1 2 3; do SCRIPT_FILENAME="$PROGRAMS/fetch.php" REQUEST_METHOD=GET QUERY_STRING="base=$URL" cgi-fcgi -bind -connect'
		' "127.0.0.1:$FRONT"; done', needs=('php-fpm8.2', 'cgi-fcgi'), calls=33, server='''cat >conf <<END
[global]
error_log = /dev/stderr
[www]
listen = 127.0.0.1:$FRONT
pm = static
pm.max_children = 2
END
[ "$(id -u)" = 0 ] && printf "user = root\\ngroup = root\\n" >>conf
exec php-fpm8.2 -F -R -y "$PWD/conf"'''),
	Row('pgbouncer', 'a pool of connections', 'for i in {1..20}; do psql -XAt -p "$FRONT" -c "select $i * $i"; done; pgbench -n -S -c 4 -t 50 -p "$FRONT" 2>&1 |'
		' grep processed', on='postgres', user='postgres', needs=('pgbouncer', 'psql'), server='''cat >conf <<END
[databases]
postgres = host=127.0.0.1 port=$PORT user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $FRONT
unix_socket_dir =
auth_type = any
pool_mode = transaction
END
exec pgbouncer -q conf'''),
	Row('postgres', 'foreign tables of another server', '''export PGPORT="$FRONT"; psql -XAtq <<END
CREATE EXTENSION postgres_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '$PORT', dbname 'postgres');
CREATE USER MAPPING FOR postgres SERVER other OPTIONS (user 'postgres', password_required 'false');
IMPORT FOREIGN SCHEMA public LIMIT TO (pgbench_accounts) FROM SERVER other INTO public;
SELECT count(*), sum(aid) FROM pgbench_accounts WHERE aid < 5000;
SELECT count(*) FROM pgbench_accounts a JOIN pgbench_accounts b USING (bid) WHERE a.aid < 50 AND b.aid < 50;
END''', on='postgres', user='postgres', needs=('psql',), package='postgresql', server='''PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
initdb -D data -A trust -U postgres -N --no-locale -E UTF8 >&2
exec postgres -D data -p "$FRONT" -h 127.0.0.1 -k "" -c fsync=off -c shared_buffers=16MB'''),
	# A replica goes on reporting without being answered: no requests, so the rule looks at its connecting alone.
	Row('redis-server', 'a replica', 'redis-cli -p "$PORT" set greeting hello; until [ "$(redis-cli -p "$FRONT" get greeting)" = hello ]; do :; done;'
		' seq -f "SET key%.0f value" 2000 | redis-cli -p "$PORT" --pipe | tail -n 1; until [ "$(redis-cli -p "$FRONT" dbsize)" = 2001 ]; do :; done; redis-cli -p "$FRONT" get key2000',
		on='redis', needs=('redis-server', 'redis-cli'), rule='127.0.0.1:{port} guard=connect', before='redis-cli -p "$PORT" flushall', calls=1,
		server='exec redis-server --port "$FRONT" --bind 127.0.0.1 --save "" --replicaof 127.0.0.1 "$PORT" --dir "$PWD"'),
	Row('mosquitto', 'a bridge to another', 'mosquitto_pub -p "$PORT" -t news -m hello -r -q 1; mosquitto_sub -p "$FRONT" -t news -C 1 -W 30',
		on='mosquitto', needs=('mosquitto', 'mosquitto_pub'), server='''printf "listener $FRONT 127.0.0.1\\nallow_anonymous true\\npersistence false
connection up\\naddress 127.0.0.1:$PORT\\ntopic # both 1\\nrestart_timeout 1\\n" >conf
[ "$(id -u)" = 0 ] && echo "user root" >>conf
exec mosquitto -c conf'''),
	Row('sshd', 'forwards to a server behind it', 'ssh $SSH_OPTIONS -o "ProxyCommand=ssh $SSH_OPTIONS -p $FRONT -W %h:%p 127.0.0.1" -p "$PORT" 127.0.0.1 "cat'
		' $DIRECTORY/big.txt; exit 9"', on='ssh', code=9, calls=1, package='openssh-server', server='''sed "s/^Port .*/Port $FRONT/" "$DIRECTORY/config" >conf
exec /usr/sbin/sshd -D -e -f "$PWD/conf"'''),
	Row('ssh', 'forwards a port', 'for i in 1 2 3; do nc 127.0.0.1 "$FRONT" </dev/null | head -c 7; done', on='ssh', needs=('ssh', 'nc'), calls=1,
		package='openssh-client', shows='SSH-2.0SSH-2.0', server='exec ssh $SSH_OPTIONS -p "$PORT" -N -L "$FRONT:127.0.0.1:$PORT" 127.0.0.1'),
]

if __name__ == '__main__':
	matrix.main(ROWS)
