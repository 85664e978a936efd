# SPDX-License-Identifier: MIT
"""Clients of databases, caches, directories and queues."""
import matrix
from named_filters import Filter
from matrix import UNTOUCHED, Row

PGBENCH = Filter('all but timings', r'^latency average = (.*)', r'^initial connection time = (.*)', r'^average connection time = (.*)',
	r'^tps = (.*?) \(')
REDIS_BENCHMARK = Filter('all but timings', r'"([^"]*)"(?=.*,)', r'^"[^"]*"(,.*)')
DUMP = Filter('all but the time', r'^-- (?:Dump completed|Started|Completed) on (.*)', r'^\\(?:un)?restrict (\w+)')
WORK = """
CREATE TEMP TABLE t (i int primary key, s text);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) i;
SELECT count(*), md5(string_agg(s, ',' ORDER BY i)) FROM t;
BEGIN; UPDATE t SET s = upper(s) WHERE i % 2 = 0; ROLLBACK;
SELECT 1 / 0;
\\\\copy t to 'copied'
SELECT * FROM generate_series(1, 300);
"""
MYSQL = """
SELECT 1 + 1; SELECT REPEAT('x', 100000);
CREATE OR REPLACE DATABASE d; USE d; CREATE TABLE t (i INT PRIMARY KEY, s VARCHAR(40));
INSERT INTO t SELECT seq, MD5(seq) FROM seq_1_to_2000; SELECT COUNT(*), MD5(GROUP_CONCAT(s ORDER BY i)) FROM t;
UPDATE t SET s = UPPER(s); DROP DATABASE d; SELECT nothing FROM nowhere;
"""

ROWS = [
	Row('psql', 'tables, a copy, an error', f"psql -X -a <<'END' 2>&1; sort copied | md5sum{WORK}END\nsort copied | md5sum", on='postgres',
		package='postgresql-client'),
	Row('psql', 'twenty statements, a connection each', 'for i in {1..20}; do psql -XAtc "select $i * $i"; done', on='postgres',
		package='postgresql-client', calls=60),
	Row('pgbench', 'four clients in two threads, prepared', 'pgbench -n -S -M prepared -c 4 -j 2 -t 200 --random-seed=1', on='postgres',
		package='postgresql', compared=PGBENCH),
	Row('pgbench', 'a new connection for each transaction', 'pgbench -n -C -c 2 -t 40 --random-seed=1', on='postgres', package='postgresql',
		compared=PGBENCH),
	Row('pg_dump', 'a database, two jobs', 'pg_dump -t pgbench_branches; pg_dump -j 2 -F d -f out && pg_restore -l out | grep -c TABLE', on='postgres',
		package='postgresql-client', compared=DUMP),
	Row('python3', 'psycopg2', '/usr/bin/python3 -c "import psycopg2; c = psycopg2.connect(\'\').cursor(); c.execute(\'select sum(abalance),'
		' count(*) from pgbench_accounts where aid < 1000\'); print(c.fetchall())"', on='postgres', package='python3-psycopg2', shows='999'),
	Row('ruby', 'pg', 'ruby -rpg -e "c = PG.connect; 20.times { |i| puts c.exec_params(%q(select \\$1::int * 2), [i]).getvalue(0, 0) }"',
		on='postgres', package='ruby-pg', shows='38'),
	# PHP loads its extensions with RTLD_DEEPBIND, and libpq with them: no preload sees those calls.
	Row('php', 'PDO on PostgreSQL, which RTLD_DEEPBIND hides', 'php -r \'$p = new PDO("pgsql:"); for ($i = 0; $i < 20; $i++)'
		' { $s = $p->prepare("select ?::int * 2"); $s->execute([$i]); echo $s->fetchColumn(), "\\n"; }\'', on='postgres',
		package='php-pgsql', shows='38', calls=UNTOUCHED),
	Row('mariadb', 'tables, a large answer, an error', f'mariadb $SQL --comments -v --force <<"END" 2>&1 | fold -w 200 | uniq -c{MYSQL}END',
		on='mariadb', package='mariadb-client'),
	Row('mariadb-dump', 'the system tables', 'mariadb-dump $SQL --skip-dump-date --no-data mysql 2>&1 | md5sum; mariadb-admin $SQL ping;'
		' mariadb-show $SQL mysql | head -n 20', on='mariadb', package='mariadb-client'),
	Row('mariadb-slap', 'four clients', 'mariadb-slap $SQL --concurrency=4 --iterations=2 --number-of-queries=400 --auto-generate-sql'
		' --csv | cut -d, -f1,2,6-', on='mariadb', package='mariadb-client'),
	Row('php', 'mysqli', 'php -r \'$m = new mysqli("127.0.0.1", "root", "", "mysql", (int) getenv("PORT")); foreach ($m->query("select seq * 2 from'
		' seq_1_to_20") as $r) echo current($r), "\\n";\'', on='mariadb', package='php-mysql', shows='40'),
	Row('redis-cli', 'commands, a pipe of 5000, a scan', 'redis-cli -p "$PORT" flushall; for i in {1..20}; do redis-cli -p "$PORT" incr n; done;'
		' seq -f "SET key%.0f value" 5000 | redis-cli -p "$PORT" --pipe; redis-cli -p "$PORT" --scan --pattern "key1*" | sort | md5sum;'
		' redis-cli -p "$PORT" -r 5 -i 0.01 ping; redis-cli -p "$PORT" nonsense', on='redis', package='redis-tools', shows='errors: 0'),
	Row('redis-cli', 'subscribes', '(redis-cli -p "$PORT" subscribe news | head -n 6) & until [ "$(redis-cli -p "$PORT" publish news hello)" = 1 ];'
		' do :; done; redis-cli -p "$PORT" publish news again >/dev/null; wait', on='redis', package='redis-tools', shows='hello'),
	Row('redis-benchmark', 'set and get, fifty clients', 'redis-benchmark -p "$PORT" -n 5000 -c 50 -t set,get --csv', on='redis',
		package='redis-tools', compared=REDIS_BENCHMARK),
	Row('redis-benchmark', 'a new connection for each request', 'redis-benchmark -p "$PORT" -k 0 -n 500 -c 10 -t ping_mbulk --csv', on='redis',
		package='redis-tools', compared=REDIS_BENCHMARK),
	Row('php', 'redis', 'php -r \'$r = new Redis(); $r->connect("127.0.0.1", (int) getenv("PORT")); for ($i = 0; $i < 20; $i++)'
		' { $r->set("k", $i); echo $r->get("k"), "\\n"; }\'', on='redis', package='php-redis', shows='19', calls=40),
	Row('memcached tools', 'copy, cat, exists, rm', 'echo hello >key; S="--servers=127.0.0.1:$PORT"; memcping $S; memccp $S key; memccat $S key;'
		' memcexist $S key && memcrm $S key; memcexist $S key', on='memcached', needs=('memccp', 'memccat', 'memcping'),
		package='libmemcached-tools', code=1),
	Row('mosquitto_sub', 'twenty messages of mosquitto_pub', 'mosquitto_pub -p "$PORT" -t news -m ready -r -q 1; exec 5< <(mosquitto_sub -p'
		' "$PORT" -t news -q 1 -C 21); read -r line <&5; echo "$line"; seq 20 | mosquitto_pub -p "$PORT" -t news -l -q 1;'
		' cat <&5', on='mosquitto', package='mosquitto-clients', shows='20'),
	Row('ldapsearch', 'fifty people, one added and removed', 'W="-x -H ldap://127.0.0.1:$PORT -D cn=admin,dc=here -w secret"; ldapsearch -x -LLL -H'
		' ldap://127.0.0.1:$PORT -b dc=here "(sn=*)" cn; printf "dn: cn=x,dc=here\\nobjectClass: person\\ncn: x\\nsn: x\\n" | ldapadd $W;'
		' ldapdelete $W cn=x,dc=here; ldapwhoami $W', on='slapd', package='ldap-utils', shows='person 49'),
]

if __name__ == '__main__':
	matrix.main(ROWS)
