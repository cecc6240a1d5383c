"""What the tests of the registry thread share: a real ZooKeeper, a small client of its protocol that can do
what no library lets one do (close somebody else's session), a relay that cuts, and the driver
(tests/zk/registry_driver.c).

Everything runs inside a private network namespace; run() takes care of that.
"""
import json
import os
import queue
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VARIANT = os.environ.get("VARIANT", "debug")
DRIVER = os.environ.get("REGISTRY_DRIVER", os.path.join(TOP, "build", VARIANT, "registry-driver"))
SUPPRESSIONS = os.path.join(TOP, "tests", "lib", "lsan.supp")
JARS = ["zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "netty-all", "netty-common", "netty-buffer",
        "netty-handler", "netty-transport", "metrics-core", "commons-cli", "snappy-java", "log4j-1.2"]
CLASSPATH = ":".join("/usr/share/java/%s.jar" % j for j in JARS)


def wait_until(f, seconds, what):
    """The first true value of f(), or an AssertionError that names `what`."""
    end = time.monotonic() + seconds
    while True:
        v = f()
        if v:
            return v
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (seconds, what))
        time.sleep(0.02)


def tied(args):
    """The command, ended by the kernel when the test program ends, however that happens.  Start it from the main
    thread: for the kernel the parent is the thread."""
    return (["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []) + args


# ---------------------------------------------------------------- server

class ZooKeeper:
    def __init__(self, port=2181, tick_ms=500, data=None, ensemble=None, heap="128m"):
        """`ensemble`: ({number: client port}, own number)"""
        self.port = port
        self.heap = heap
        self.dir = data or tempfile.mkdtemp(prefix="zk-")
        self.own = data is None
        self.proc = None
        with open(os.path.join(self.dir, "zoo.cfg"), "w", encoding="ascii") as f:
            f.write("tickTime=%d\ndataDir=%s/data\nclientPort=%d\nclientPortAddress=127.0.0.1\n"
                    "admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n"
                    "minSessionTimeout=2000\nmaxSessionTimeout=60000\n" % (tick_ms, self.dir, port))
            if ensemble:
                f.write("initLimit=20\nsyncLimit=10\n")
                for n, p in ensemble[0].items():
                    f.write("server.%d=127.0.0.1:%d:%d\n" % (n, p + 1000, p + 2000))
                os.mkdir(os.path.join(self.dir, "data"))
                with open(os.path.join(self.dir, "data", "myid"), "w", encoding="ascii") as m:
                    m.write("%d" % ensemble[1])
        self.main = "quorum.QuorumPeerMain" if ensemble else "ZooKeeperServerMain"

    def start(self, wait=True):
        log = open(os.path.join(self.dir, "log"), "ab")
        self.proc = subprocess.Popen(
            tied(["java", "-Xmx" + self.heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", CLASSPATH,
                  "org.apache.zookeeper.server." + self.main, os.path.join(self.dir, "zoo.cfg")]),
            stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        return self.wait_ready() if wait else self

    def wait_ready(self):
        wait_until(lambda: "Zxid:" in self.word("srvr"), 60, "ZooKeeper answers on port %d" % self.port)
        return self

    def word(self, w):
        out = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as s:
                s.sendall(w.encode())
                while True:
                    part = s.recv(65536)
                    if not part:
                        break
                    out += part
        except OSError:
            pass
        return out.decode()

    def zxid(self):
        for line in self.word("srvr").splitlines():
            if line.startswith("Zxid:"):
                return int(line.split()[1], 16)
        raise AssertionError("no zxid")

    def watches(self):
        """Of all clients, on data and on children (wchp shows only the former)."""
        for line in self.word("mntr").splitlines():
            if line.startswith("zk_watch_count"):
                return int(line.split()[1])
        raise AssertionError("no watch count")

    def stop(self, sig=signal.SIGKILL):
        if self.proc is None:
            return
        self.proc.send_signal(signal.SIGCONT)
        self.proc.send_signal(sig)
        self.proc.wait()
        self.proc = None

    def pause(self):
        self.proc.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.proc.send_signal(signal.SIGCONT)

    def wipe(self):
        shutil.rmtree(os.path.join(self.dir, "data"), ignore_errors=True)

    def close(self):
        self.stop()
        if self.own:
            shutil.rmtree(self.dir, ignore_errors=True)


# ---------------------------------------------------------------- client

def acl_of_all(permissions):
    return struct.pack(">iii", 1, permissions, 5) + b"world" + struct.pack(">i", 6) + b"anyone"


READ_ONLY_ACL = acl_of_all(1)
OPEN_ACL = acl_of_all(31)
# of whoever makes the node: what Dubbo 3.x gives to all its nodes when it has credentials
CREATOR_ALL_ACL = struct.pack(">iii", 1, 31, 4) + b"auth" + struct.pack(">i", 0)


def text(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack(">i", len(b)) + b


# owner: the session of an ephemeral node, else 0
STAT = ("czxid", "mzxid", "ctime", "mtime", "version", "cversion", "aversion", "owner", "length", "count", "pzxid")


class ZkError(Exception):
    def __init__(self, code):
        super().__init__("ZooKeeper error %d" % code)
        self.code = code


class Client:
    """The blocking protocol client; with `session` (id, password) it joins that session.  `acl` is what its nodes get."""

    acl = OPEN_ACL

    def __init__(self, port=2181, session=(0, b"\0" * 16), timeout_ms=30000):
        self.sock = socket.create_connection(("127.0.0.1", port), 10)
        self.sock.settimeout(10)
        self.xid = 0
        self._send(struct.pack(">iqiq", 0, 0, timeout_ms, session[0]) + text(session[1]))
        a = self._receive()
        self.timeout, self.id = struct.unpack(">iq", a[4:16])
        n = struct.unpack(">i", a[16:20])[0]
        self.password = a[20:20 + n]
        if self.timeout == 0:
            raise ZkError(-112)

    def _send(self, b):
        self.sock.sendall(struct.pack(">i", len(b)) + b)

    def _exactly(self, n):
        out = b""
        while len(out) < n:
            part = self.sock.recv(n - len(out))
            if not part:
                raise ConnectionError("ZooKeeper closed the connection")
            out += part
        return out

    def _receive(self):
        return self._exactly(struct.unpack(">i", self._exactly(4))[0])

    def call(self, op, body=b"", xid=None):
        self.xid += 1
        xid = self.xid if xid is None else xid
        self._send(struct.pack(">ii", xid, op) + body)
        while True:
            a = self._receive()
            got, _, code = struct.unpack(">iqi", a[:16])
            if got != xid:
                continue  # a watch event or a ping
            if code != 0:
                raise ZkError(code)
            return a[16:]

    def login(self, user, password):
        """Digest credentials, for the rest of the connection."""
        self.call(100, struct.pack(">i", 0) + text("digest") + text("%s:%s" % (user, password)), xid=-4)

    def create(self, path, data=b"", ephemeral=False, acl=None):
        self.call(1, text(path) + text(data) + (acl or self.acl) + struct.pack(">i", 1 if ephemeral else 0))

    def create_many(self, paths, at_once=1000):
        """Persistent nodes without data, none of which may be there; parents first."""
        for i in range(0, len(paths), at_once):
            self.call(14, b"".join(struct.pack(">i?i", 1, False, -1) + text(p) + text(b"") + self.acl + struct.pack(">i", 0)
                                   for p in paths[i:i + at_once]) + struct.pack(">i?i", -1, True, -1))

    def acl_of(self, path):
        """[(permissions, scheme, id)]"""
        a = self.call(6, text(path))
        n, at, out = struct.unpack(">i", a[:4])[0], 4, []
        for _ in range(n):
            entry = [struct.unpack(">i", a[at:at + 4])[0]]
            at += 4
            for _ in range(2):
                m = struct.unpack(">i", a[at:at + 4])[0]
                entry.append(a[at + 4:at + 4 + m].decode())
                at += 4 + m
            out.append(tuple(entry))
        return out

    def set_acl(self, path, entries):
        self.call(7, text(path) + struct.pack(">i", len(entries)) +
                  b"".join(struct.pack(">i", p) + text(s) + text(i) for p, s, i in entries) + struct.pack(">i", -1))

    def ensure(self, path):
        at = ""
        for part in path.strip("/").split("/"):
            at += "/" + part
            try:
                self.create(at)
            except ZkError as e:
                if e.code != -110:
                    raise

    def get(self, path):
        """The data; ZkError -101 when there is no such node."""
        a = self.call(4, text(path) + b"\0")
        n = struct.unpack(">i", a[:4])[0]
        return a[4:4 + n] if n > 0 else b""

    def set(self, path, data):
        self.call(5, text(path) + text(data) + struct.pack(">i", -1))

    def delete(self, path):
        self.call(2, text(path) + struct.pack(">i", -1))

    def delete_tree(self, path):
        for c in self.children(path):
            self.delete_tree(path + "/" + c)
        self.delete(path)

    def exists(self, path):
        """{czxid, owner, …} or None"""
        try:
            a = self.call(3, text(path) + b"\0")
        except ZkError as e:
            if e.code == -101:
                return None
            raise
        v = struct.unpack(">qqqqiiiqiiq", a[:68])
        return dict(zip(STAT, v))

    def children(self, path):
        try:
            a = self.call(8, text(path) + b"\0")
        except ZkError as e:
            if e.code == -101:
                return []
            raise
        n = struct.unpack(">i", a[:4])[0]
        out = []
        at = 4
        for _ in range(n):
            m = struct.unpack(">i", a[at:at + 4])[0]
            out.append(a[at + 4:at + 4 + m].decode())
            at += 4 + m
        return out

    def close(self):
        try:
            self.call(-11)
        except (OSError, ConnectionError, ZkError):
            pass
        self.sock.close()


def provider_node(iface, port, host="127.0.0.1", **params):
    params = {"application": "test", "dubbo": "2.0.2", "interface": iface, "methods": "a,b", **params}
    url = "dubbo://%s:%d/%s?%s" % (host, port, iface, "&".join("%s=%s" % kv for kv in sorted(params.items())))
    return urllib.parse.quote_plus(url, safe="*")


class Providers:
    """Provider nodes; ephemeral in the client's session."""

    def __init__(self, client, iface, root="/dubbo"):
        self.c = client
        self.iface = iface
        self.dir = "%s/%s/providers" % (root, iface)

    def add(self, port, ephemeral=True, **params):
        self.c.ensure(self.dir)
        self.c.create(self.dir + "/" + provider_node(self.iface, port, **params), ephemeral=ephemeral)

    def remove(self, port, **params):
        self.c.delete(self.dir + "/" + provider_node(self.iface, port, **params))


def consumers(client, iface, root="/dubbo"):
    return client.children("%s/%s/consumers" % (root, iface))


# ---------------------------------------------------------------- relay

class Relay:
    """Between a client and a server; knows the sessions that were opened through it.
    Switches: `blocked` ends every new connection at once, `swallow` keeps connections and drops their bytes, `mute`
    drops only what the client says, `delay` (seconds) holds every piece back, cut(), and close() (refuses) until listen()."""

    def __init__(self, port, to):
        self.port = port
        self.to = to
        self.sessions = []  # (id, password), newest last
        self.pairs = []
        self.lock = threading.Lock()
        self.sock = None
        self.accepted = 0
        self.blocked = self.swallow = self.mute = False
        self.delay = 0
        self.listen()

    def listen(self):
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(("127.0.0.1", self.port))
        self.sock.listen(50)
        threading.Thread(target=self._accept, args=(self.sock,), daemon=True).start()

    def _accept(self, sock):
        while True:
            try:
                a, _ = sock.accept()
            except OSError:
                return
            self.accepted += 1
            if self.blocked:
                a.close()
                continue
            try:
                b = socket.create_connection(("127.0.0.1", self.to), 2)
                b.settimeout(None)
            except OSError:
                a.close()
                continue
            with self.lock:
                self.pairs.append((a, b))
            threading.Thread(target=self._copy, args=(a, b, False), daemon=True).start()
            threading.Thread(target=self._copy, args=(b, a, True), daemon=True).start()

    def _copy(self, src, dst, first):
        head, from_client = b"", not first
        try:
            while True:
                part = src.recv(65536)
                if not part:
                    break
                if first:
                    head += part
                    if len(head) >= 4 + 16 + 4 + 16:
                        timeout, sid = struct.unpack(">iq", head[8:20])
                        n = struct.unpack(">i", head[20:24])[0]
                        if timeout > 0:
                            self.sessions.append((sid, head[24:24 + n]))
                        first = False
                if self.delay:
                    time.sleep(self.delay)
                if not (self.swallow or (self.mute and from_client)):
                    dst.sendall(part)
        except OSError:
            pass
        for s in (src, dst):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        """All connections end now."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for a, b in pairs:
            for s in (a, b):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()

    def close(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        self.cut()

    def expire(self):
        """Closes the newest session behind its owner's back; it learns that when it comes back."""
        wait_until(lambda: self.sessions, 10, "a session through the relay")
        self.blocked = True  # the server drops its connection at once, and it must not take the session back
        c = Client(self.to, session=self.sessions[-1])
        c.call(-11)
        c.sock.close()
        self.cut()
        self.blocked = False


# ---------------------------------------------------------------- driver

class Driver:
    def __init__(self, *options, registry="zookeeper://127.0.0.1:2181", services=(), env=None):
        args = [DRIVER] + (["--registry", registry] if registry else []) + [str(o) for o in options]
        for s in services:
            args += ["--service", s]
        self.err = tempfile.TemporaryFile()
        # a server that does not answer: the library itself forgets the calls that it drops (ROBUSTNESS 0.4)
        env = dict(env or {}, TSAN_OPTIONS="suppressions=" + SUPPRESSIONS.replace("lsan", "tsan"),
                   LSAN_OPTIONS="suppressions=%s:print_suppressions=0" % SUPPRESSIONS)
        self.proc = subprocess.Popen(tied(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err,
                                     env=dict(os.environ, **env))
        self.lines = queue.Queue()
        self.directories = {}  # key -> last directory mail of worker 0
        self.seen = []         # all mails
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.proc.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def next(self, seconds=10):
        try:
            m = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError("no mail within %g s; log:\n%s" % (seconds, self.log()[-1500:])) from None
        if m is None:
            raise AssertionError("the driver ended: %s\n%s" % (self.proc.wait(), self.log()[-4000:]))
        self.seen.append(m)
        if m["mail"] == "directory" and m["worker"] == 0:
            self.directories[m["key"]] = m
        return m

    def wait(self, match, seconds=10, what="a mail"):
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError("not within %g s: %s; last mails: %s\nlog:\n%s" % (
                    seconds, what, json.dumps(self.seen[-5:]), self.log()[-1500:]))
            try:
                m = self.next(left)
            except AssertionError:
                if self.proc.poll() is not None:
                    raise
                continue
            if match(m):
                return m

    def say(self, line):
        self.proc.stdin.write(line.encode() + b"\n")
        self.proc.stdin.flush()

    def ask(self, line, mail, seconds=10):
        self.say(line)
        return self.wait(lambda m: m["mail"] == mail, seconds, "answer to " + line)

    def numbers(self):
        return self.ask("numbers", "numbers")

    def references(self):
        return self.ask("references", "report")["report"]

    def reference(self, key):
        for r in self.references()["references"]:
            if r["key"] == key:
                return r
        return None

    def registries(self):
        return self.ask("registries", "report")["report"]

    def sync(self):
        self.ask("sync", "sync")

    def wait_providers(self, key, providers, seconds=10, source=None):
        def good(m):
            return m["mail"] == "directory" and m["key"] == key and m["providers"] == providers and (
                source is None or m["source"] == source)
        d = self.directories.get(key)
        if d is not None and good(d):
            return d
        return self.wait(good, seconds, "%s has %s" % (key, providers))

    def wait_connected(self, seconds=10):
        wait_until(lambda: self.numbers()["connected"] == 1, seconds, "the driver is connected")

    def log(self):
        self.err.seek(0)
        return self.err.read().decode(errors="replace")

    def kill(self):
        self.proc.kill()
        self.proc.wait()

    def stop(self):
        if self.proc.poll() is None:
            try:
                self.say("stop")
                self.proc.stdin.close()
            except OSError:
                pass
        try:
            rc = self.proc.wait(15)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            raise AssertionError("the driver does not end\n" + self.log()[-1500:]) from None
        assert rc == 0, "the driver ended with %s\n%s" % (rc, self.log()[-4000:])


# ---------------------------------------------------------------- running

def enter_namespace(count):
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        return
    script = 'hostname localhost; ip link set lo up; exec "$@"'
    env = dict(os.environ, REGISTRY_KIT_INSIDE="1")
    args = ["bash", "-c", script, "bash", sys.executable] + sys.argv
    for unshare in (["unshare", "-n", "-u"], ["unshare", "-r", "-n", "-u"]):
        if subprocess.run(unshare + ["true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            os.execvpe(unshare[0], unshare + args, env)
    print("no network namespace can be made here: neither as root nor with unshare -r (user namespaces)")
    print("0 passed, 0 failed, %d skipped" % count)
    sys.exit(0)


def run(tests):
    """Runs the functions one after another; arguments choose by name.  LIST_TESTS=1 only prints the names."""
    if os.environ.get("LIST_TESTS"):
        print("\n".join(t.__name__ for t in tests))
        sys.exit(0)
    wanted = sys.argv[1:]
    tests = [t for t in tests if not wanted or any(w in t.__name__ for w in wanted)]
    enter_namespace(len(tests))
    good = bad = 0
    for t in tests:
        start = time.monotonic()
        try:
            t()
            good += 1
            print("ok      %-45s %5.1f s" % (t.__name__, time.monotonic() - start), flush=True)
        except Exception:  # pylint: disable=broad-except
            bad += 1
            print("FAIL    %s" % t.__name__)
            traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
    print("%d passed, %d failed" % (good, bad))
    sys.exit(1 if bad else 0)
