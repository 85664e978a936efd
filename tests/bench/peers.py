# SPDX-License-Identifier: MIT
"""What other preloads add to connect, send and recv, beside ours: for `scripts/bench peers`.

All run before the same stub libc, so that only their own cost shows. A socket is `handled` where the
peer does its work on it, and otherwise one that it looks at and lets pass. No system call may be made
while the clock runs, every call must succeed, and what is called handled must show."""
import collections
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile

LIBRARIES = os.path.join("/usr/lib", sysconfig.get_config_var("MULTIARCH"))
ROWS = [
    ("connect", "connect"),
    ("send", "send, after the first of a request"),
    ("recv", "recv, after the first of an answer"),
    # Whole operations. A peer does the same at each call; we do our work at the first of each.
    ("exchange", "first send and first recv together"),
    ("connection", "socket, connect and close together"),
]
WHOLE = ("exchange", "connection")
# `made` by socket(), or `foreign`: a number whose making the peer never saw.
Way = collections.namedtuple("Way", "rows sockets address env")
Peer = collections.namedtuple("Peer", "name package preload files handled not_handled proof")
ALL = ("connect", "send", "recv", "exchange", "connection")

PROXYCHAINS_CONF = """strict_chain
quiet_mode
localnet 127.0.0.0/255.0.0.0
[ProxyList]
socks5 127.0.0.1 1080
"""
# Loopback is where torsocks stays out of the way, if it is allowed to.
TORSOCKS_CONF = "TorAddress 127.0.0.1\nTorPort 9050\nAllowOutboundLocalhost 1\n"
# So high that it never has to wait: KB/s.
TRICKLE = {"TRICKLE_SOCKNAME": "", "TRICKLE_ARGV": "bench", "TRICKLE_VERBOSE": "0",
           "TRICKLE_WINDOW_SIZE": "512", "TRICKLE_TSMOOTH": "3.0", "TRICKLE_LSMOOTH": "20",
           "TRICKLE_DOWNLOAD_LIMIT": "1000000000", "TRICKLE_UPLOAD_LIMIT": "1000000000"}


def fault_points(probability):
    return {"FIU_ENABLE": "\n".join(
        f"enable_random name=posix/io/net/{name},probability={probability}"
        for name in ("connect", "send", "recv"))}


def peers(library):
    ours = {"SHUNT_STATE": "{directory}/segment", "SHUNT_BREAK_BENCH": "192.0.2.1:9"}
    # The one directory whose real path takes no system call to find; nothing is made in it.
    swrap = {"SOCKET_WRAPPER_DIR": "/"}
    return [
        # A rule that matches, circuit closed; an address that no rule matches. Proof: forced open it
        # refuses.
        Peer("shunt", None, [library], {},
             Way(ALL, "made", "192.0.2.1", ours), Way(ALL, "made", "127.0.0.1", ours),
             {**ours, "SHUNT_BREAK_BENCH": "192.0.2.1:9 force=open"}),
        # A connection through its chain of one SOCKS proxy, which the stub plays; an excluded address.
        # Proof: the stub was asked to. It hooks neither send nor recv.
        Peer("proxychains", "libproxychains4", [f"{LIBRARIES}/libproxychains.so.4"],
             {"proxychains.conf": PROXYCHAINS_CONF},
             Way(("connect", "connection"), "made", "192.0.2.1",
                 {"PROXYCHAINS_CONF_FILE": "{directory}/proxychains.conf"}),
             Way(("connect", "connection"), "made", "127.0.0.1",
                 {"PROXYCHAINS_CONF_FILE": "{directory}/proxychains.conf"}), "handshakes"),
        # The same: Tor's SOCKS port is the stub.
        Peer("torsocks", "torsocks", [f"{LIBRARIES}/torsocks/libtorsocks.so"],
             {"torsocks.conf": TORSOCKS_CONF},
             Way(("connect", "connection"), "made", "192.0.2.1",
                 {"TORSOCKS_CONF_FILE": "{directory}/torsocks.conf"}),
             Way(("connect", "connection"), "made", "127.0.0.1",
                 {"TORSOCKS_CONF_FILE": "{directory}/torsocks.conf"}), "handshakes"),
        # Fault points that are enabled and never strike; none enabled. It does not tell sockets apart.
        # Proof: at probability 1 they strike.
        Peer("fiu", "libfiu0", ["/usr/lib/fiu/fiu_run_preload.so", "/usr/lib/fiu/fiu_posix_preload.so"],
             {}, Way(ALL, "made", "192.0.2.1", fault_points(0)), Way(ALL, "made", "192.0.2.1", {}),
             fault_points(1)),
        # A socket that it turned into a unix one, bound before it is connected; one not made through it.
        # What it does at socket and bind takes system calls: no row for a whole connection.
        Peer("socket_wrapper", "libsocket-wrapper", [f"{LIBRARIES}/libsocket_wrapper.so"], {},
             Way(ALL[:4], "made", "127.0.0.1", swrap), Way(ALL[:4], "foreign", "127.0.0.1", swrap), None),
        # A stream socket that it smooths, at a rate that needs no delay; one not made through it. It
        # does not hook connect.
        Peer("trickle", "trickle", [f"{LIBRARIES}/trickle/trickle-overload.so"], {},
             Way(ALL[1:4], "made", "127.0.0.1", TRICKLE), Way(ALL[1:4], "foreign", "127.0.0.1", TRICKLE),
             None),
    ]


class Runner:
    def __init__(self, program, stub, directory):
        self.program, self.stub, self.directory = program, stub, directory

    def command(self, row, way):
        return [self.program, row, way.sockets, way.address]

    def environment(self, preload, env):
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("SHUNT_", "FIU_", "TRICKLE_", "LD_"))}
        for key, value in env.items():
            clean[key] = value.replace("{directory}", self.directory)
        return {**clean, "LD_PRELOAD": ":".join([*preload, self.stub])}

    def measure(self, row, way, preload, env):
        done = subprocess.run(self.command(row, way), env=self.environment(preload, env),
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(preload)}: {row}: {done.stderr.strip()}")
        low, middle, handshakes = done.stdout.split()
        return float(low), float(middle), int(handshakes)

    def calls_between_marks(self, row, way, preload):
        """The system calls of the measured stretches; RuntimeError where there were none such."""
        env = self.environment(preload, way.env)
        with tempfile.NamedTemporaryFile("r") as log:
            subprocess.run(["strace", "-f", "-qq", "-o", log.name, "-E", "LD_PRELOAD=" + env["LD_PRELOAD"],
                            *self.command(row, way), "check"],
                           env={k: v for k, v in env.items() if k != "LD_PRELOAD"},
                           stdout=subprocess.DEVNULL, check=True)
            parts = log.read().split("getppid()")
        if len(parts) < 3:
            raise RuntimeError(f"{row}: expected marks in the trace")
        inside = "\n".join(part.split("\n", 1)[1] for part in parts[1::2])
        return [line for line in inside.splitlines() if line.strip() and not line.strip().isdigit()]


def check_peer(runner, peer):
    """The peer does not go round the stub, and handles what is called handled."""
    for way in (peer.handled, peer.not_handled):
        for row in way.rows:
            calls = runner.calls_between_marks(row, way, peer.preload)
            if calls:
                raise RuntimeError(f"{peer.name}: {row}: goes round the stub: {calls[0]}")
            asked = runner.measure(row, way, peer.preload, way.env)[2]
            if (asked > 0) != (peer.proof == "handshakes" and way is peer.handled):
                raise RuntimeError(f"{peer.name}: {row}: expected a handshake where it is handled only")
    if isinstance(peer.proof, dict):
        try:
            runner.measure("connect", peer.handled, peer.preload, peer.proof)
        except RuntimeError:
            return
        raise RuntimeError(f"{peer.name}: expected connect to be handled")


def measure_all(runner, those, rounds):
    """(peer, way, row) -> (minimum, median) in nanoseconds added to the bare call."""
    bare, found = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(rounds):
        for row, _title in ROWS:
            for sockets in ("made", "foreign"):
                way = Way(ALL, sockets, "192.0.2.1", {})
                bare[row, sockets].append(runner.measure(row, way, [], {}))
            for peer in those:
                for way_name in ("handled", "not_handled"):
                    way = getattr(peer, way_name)
                    if row in way.rows:
                        found[peer.name, way_name, row].append(
                            (way.sockets, runner.measure(row, way, peer.preload, way.env)))
    added = {}
    for key, all_runs in found.items():
        base = bare[key[2], all_runs[0][0]]
        added[key] = (min(run[0] for _, run in all_runs) - min(run[0] for run in base),
                      statistics.median(run[1] for _, run in all_runs) -
                      statistics.median(run[1] for run in base))
    return added


def print_table(those, added):
    print(f"{'':36}" + "".join(f"{peer.name:>16}" for peer in those))
    behind = {False: [], True: []}
    for way_name, heading in (("handled", "a socket that it handles"),
                              ("not_handled", "a socket that it does not handle")):
        print(heading)
        for row, title in ROWS:
            ours = added["shunt", way_name, row]
            line = f"  {title:34}"
            for peer in those:
                cell = added.get((peer.name, way_name, row))
                line += f"{cell[0]:9.1f}{cell[1]:7.1f}" if cell else f"{'-':>16}"
                if cell and peer.name != "shunt" and cell[0] <= ours[0]:
                    behind[row in WHOLE].append(f"{peer.name} ({heading}: {title})")
            print(line)
    for is_whole, title in ((False, "each call"), (True, "whole operations")):
        print(f"{title}: " + ("ahead of all of them" if not behind[is_whole] else
                              "not ahead of " + ", ".join(behind[is_whole])))


def bench(build, rounds):
    rows = os.path.join(build, "tests", "bench", "bench_peer_rows")
    stub = os.path.join(build, "tests", "bench", "libbenchstub.so")
    those = peers(os.path.join(build, "shim", "libshunt.so"))
    with tempfile.TemporaryDirectory(prefix="shunt-bench-") as directory:
        runner = Runner(rows, stub, directory)
        for peer in those:
            for name, text in peer.files.items():
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write(text)
            try:
                check_peer(runner, peer)
            except RuntimeError as problem:
                sys.exit(f"bench: {problem}")
        print(f"ns added to a stub libc that returns at once: minimum, median; {rounds} rounds", flush=True)
        print_table(those, measure_all(runner, those, rounds))
