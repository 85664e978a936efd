# SPDX-License-Identifier: MIT
"""What real clients pay for a request: redis-benchmark and wrk against real servers, bare, through us
(a rule that matches, its circuit closed) and through haproxy as a TCP proxy: for `scripts/bench peers`.

The processor time of the client process by request is what tells: it does not depend on how the server
is scheduled. Runs are paired and interleaved, half of the pairs in the other order, and as many pairs
of two bare runs say what the machine itself makes of it."""
import contextlib
import json
import math
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

NEEDED = ("redis-server", "redis-benchmark", "nginx", "wrk", "haproxy", "taskset")
REQUESTS = int(os.environ.get("REQUESTS", "60000"))
SECONDS = int(os.environ.get("SECONDS_OF_WRK", "1"))
LIMIT = 1.02


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, server):
    """Until it accepts; it is given up when it ends, or after half a minute."""
    for _ in range(600):
        if server.poll() is not None:
            sys.exit(f"bench: {server.args[0]} ended with {server.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    sys.exit(f"bench: {server.args[0]} does not accept")


def pinned(core, command):
    return ["taskset", "-c", str(core), *command]


class Servers:
    """redis, nginx, and haproxy before both, on one core; the clients have another."""

    def __init__(self, directory, core):
        self.directory, self.core, self.running = directory, core, []
        self.redis, self.nginx, self.redis_proxy, self.nginx_proxy = (free_port() for _ in range(4))

    def start(self, port, command):
        server = subprocess.Popen(pinned(self.core, command), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.running.append(server)
        wait_for(port, server)

    def file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def __enter__(self):
        self.start(self.redis, ["redis-server", "--port", str(self.redis), "--bind", "127.0.0.1",
                                "--save", "", "--appendonly", "no", "--dir", self.directory])
        nginx = self.file("nginx.conf", f"""
daemon off; master_process off; pid {self.directory}/nginx.pid; error_log /dev/null;
events {{ worker_connections 256; }}
http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {self.directory};
proxy_temp_path {self.directory}; fastcgi_temp_path {self.directory}; uwsgi_temp_path {self.directory};
scgi_temp_path {self.directory};
server {{ listen 127.0.0.1:{self.nginx}; location / {{ return 200 "ok"; }} }} }}
""")
        self.start(self.nginx, ["nginx", "-c", nginx])
        haproxy = self.file("haproxy.cfg", f"""
global
    maxconn 1000
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 30s
    timeout server 30s
listen redis
    bind 127.0.0.1:{self.redis_proxy}
    server redis 127.0.0.1:{self.redis}
listen nginx
    bind 127.0.0.1:{self.nginx_proxy}
    server nginx 127.0.0.1:{self.nginx}
""")
        self.start(self.redis_proxy, ["haproxy", "-db", "-f", haproxy])
        return self

    def __exit__(self, *_):
        for server in reversed(self.running):
            server.terminate()
        for server in self.running:
            server.wait()


def redis_benchmark(port):
    return ["redis-benchmark", "-p", str(port), "-n", str(REQUESTS), "-c", "50", "-t", "get", "--csv"]


def redis_requests(_text):
    return REQUESTS


def wrk(port):
    return ["wrk", "-t", "1", "-c", "50", "-d", f"{SECONDS}s", f"http://127.0.0.1:{port}/"]


def wrk_requests(text):
    return int(re.search(r"(\d+) requests in", text).group(1))


class Client:
    def __init__(self, name, command, requests, port, proxy_port):
        self.name, self.command, self.requests = name, command, requests
        self.port, self.proxy_port = port, proxy_port

    def run(self, how, core, preload_env):
        """(requests a second, microseconds of processor time a request), of the client alone."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SHUNT_", "LD_"))}
        if how == "ours":
            env.update(preload_env)
        command = pinned(core, self.command(self.proxy_port if how == "haproxy" else self.port))
        with tempfile.TemporaryFile("w+") as output:
            began = time.monotonic()
            client = subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT)
            _, status, usage = os.wait4(client.pid, 0)
            seconds = time.monotonic() - began
            client.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            text = output.read()
        if client.returncode or re.search(r"Socket errors|Non-2xx|ERR|Error", text):
            sys.exit(f"bench: {self.name} {how}: {text}")
        count = self.requests(text)
        return count / seconds, (usage.ru_utime + usage.ru_stime) / count * 1e6, count


def median_interval(values):
    """A 95 % interval of the median by order statistics: no shape of the noise is assumed."""
    ordered, count = sorted(values), len(values)
    rank, tail = 0, 0.0
    while rank < count // 2:
        tail += math.comb(count, rank) / 2 ** count
        if tail > 0.025:
            break
        rank += 1
    return ordered[max(rank - 1, 0)], ordered[min(count - rank, count - 1)]


def report_ratio(name, title, pairs):
    ratios = [second / first for first, second in pairs]
    low, high = median_interval(ratios)
    print(f"  {title:14} {statistics.median(ratios):6.3f}  [{low:.3f}, {high:.3f}]", end="")
    return low


def bench_client(client, core, preload_env, pairs_wanted):
    rates, costs = {}, {}
    pairs = {"ours/bare": [], "bare/bare": []}
    done = 0
    for turn in range(pairs_wanted):
        for title, second in (("ours/bare", "ours"), ("bare/bare", "bare")):
            order = ("bare", second) if turn % 2 == 0 else (second, "bare")
            results = [client.run(how, core, preload_env) for how in order]
            done += sum(result[2] for how, result in zip(order, results) if how == "ours")
            for how, result in zip(order, results):
                rates.setdefault(how, []).append(result[0])
                costs.setdefault(how, []).append(result[1])
            first, last = results if turn % 2 == 0 else reversed(results)
            pairs[title].append((first[1], last[1]))
        rate, cost, _ = client.run("haproxy", core, preload_env)
        rates.setdefault("haproxy", []).append(rate)
        costs.setdefault("haproxy", []).append(cost)
    print(f"\n{client.name:36} {'requests/s':>12} {'us of client processor/request':>32}   medians")
    for how, title in (("bare", "bare"), ("ours", "through shunt, circuit closed"),
                       ("haproxy", "through haproxy, TCP proxy")):
        print(f"  {title:34} {statistics.median(rates[how]):12.0f} {statistics.median(costs[how]):32.2f}")
    print(f"  processor time a request, {pairs_wanted} pairs each: median ratio, its 95 % interval")
    for title, those in pairs.items():
        low = report_ratio(client.name, title, those)
        verdict = "" if title != "ours/bare" else \
            f"  reaches below {LIMIT}" if low < LIMIT else f"  expected to reach below {LIMIT}"
        print(verdict, flush=True)
    return done


def calls_counted(build, state):
    """How many calls the circuits of the segment have counted as successes, and as errors."""
    done = subprocess.run([os.path.join(build, "cli", "shunt"), "status", "--json"], check=True,
                          env={**os.environ, "SHUNT_STATE": state}, capture_output=True, text=True)
    totals = [cell["totals"] for cell in json.loads(done.stdout)["cells"]]
    return (sum(total["success"] for total in totals),
            sum(total["failure"] + total["timeout"] + total["short_circuited"] for total in totals))


def bench(build, pairs_wanted):
    missing = [program for program in NEEDED if not shutil.which(program)]
    if missing:
        sys.exit(f"bench: expected {' '.join(missing)}: run scripts/setup peers first")
    cores = sorted(os.sched_getaffinity(0))
    client_core, server_core = cores[-1], cores[0]
    with tempfile.TemporaryDirectory(prefix="shunt-bench-", dir="/dev/shm") as directory:
        state = os.path.join(directory, "segment")
        with Servers(directory, server_core) as servers:
            print(f"\nclients on core {client_core}, servers and haproxy on core {server_core}")
            preload_env = {"LD_PRELOAD": os.path.join(build, "shim", "libshunt.so"), "SHUNT_STATE": state,
                           "SHUNT_BREAK_BENCH": f"127.0.0.1:{servers.redis} volume=1000000",
                           "SHUNT_BREAK_BENCH2": f"127.0.0.1:{servers.nginx} volume=1000000"}
            done = 0
            for client in (Client(f"redis-benchmark GET, {REQUESTS} requests", redis_benchmark, redis_requests,
                                  servers.redis, servers.redis_proxy),
                           Client(f"wrk, {SECONDS} s", wrk, wrk_requests,
                                  servers.nginx, servers.nginx_proxy)):
                done += bench_client(client, client_core, preload_env, pairs_wanted)
        counted, wrong = calls_counted(build, state)
    print(f"{counted} calls counted as successes, {wrong} as errors, of {done} requests through shunt")
    if counted < done or wrong:
        sys.exit("bench: expected every request to be counted, and none as an error")
