"""The gateway, its providers (C and Java) and an HTTP client, for tests inside a namespace (registry_kit.run)."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from registry_kit import run as run_plain
from registry_kit import (Client, Providers, Relay, TOP, ZkError, ZooKeeper, consumers, tied, wait_until)  # noqa: F401

VARIANT = os.environ.get("VARIANT", "debug")
BIN = os.path.join(TOP, "build", VARIANT)
LINES = ["2.6", "2.7", "3.2", "3.3"]
RICH = "demo.sample.api.RichService"


def listening(port, seconds=30, proc=None, log=None):
    def f():
        if proc is not None and proc.poll() is not None:
            raise AssertionError("it ended with %s:\n%s" % (proc.returncode, log() if log else ""))
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False
    wait_until(f, seconds, "somebody listens on port %d" % port)


running = []  # what a test has started
REPORT = re.compile(r"ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|: runtime error: ")
CRASHED = {-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGILL, -signal.SIGFPE}


def end_all():
    """Ends what the test started; the complaint about a process that crashed or that a sanitizer spoke of."""
    bad = []
    for p in running:
        if p.proc.poll() is None:
            p.kill()
        found = REPORT.search(p.log())
        if found or p.proc.returncode in CRASHED:
            bad.append("%s ended with %d\n%s" % (p.name, p.proc.returncode,
                                                p.log()[found.start() if found else -6000:][:6000]))
    running.clear()
    return "\n".join(bad)


def run(tests):
    """registry_kit.run(); whatever a test started is gone before the next one begins, and a crash or a report of a
    sanitizer fails the test that did not look for it."""
    def wrap(t):
        def f():
            try:
                t()
            except Exception:
                for p in running:
                    print("---- %s\n%s" % (p.name, "".join(p.log().splitlines(True)[-15:])))
                print(end_all(), end="\n----\n")
                raise
            bad = end_all()
            assert not bad, bad
        f.__name__ = t.__name__
        return f
    run_plain([wrap(t) for t in tests])


class Process:
    def _start(self, args, env=None):
        self.name = " ".join([os.path.basename(args[0])] + args[1:])[:200]
        self.out = tempfile.NamedTemporaryFile(prefix="out-")
        self.err = tempfile.NamedTemporaryFile(prefix="err-")
        self.proc = subprocess.Popen(tied(args), stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err, env=env)
        running.append(self)

    def log(self):
        with open(self.err.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def output(self):
        with open(self.out.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def kill(self, sig=signal.SIGKILL):
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
        return self.proc.wait(60)

    def rss_kb(self):
        with open("/proc/%d/status" % self.proc.pid, encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def program(*args):
    """What a command of the program prints."""
    out = subprocess.run([os.path.join(BIN, "dubbogate")] + list(args), capture_output=True, text=True, check=False)
    assert out.returncode == 0, out
    return out.stdout


class Stub(Process):
    def __init__(self, port=20880, control=20881, *args, inside=None):
        """`inside`: an outage_kit.Host, whose network it runs in."""
        self.port, self.control = port, control
        self._start((inside.inside() if inside else []) + [os.path.join(BIN, "stub-provider"), "-p", str(port), "-c",
                                                           str(control)] + [str(a) for a in args])
        self.probes = 0 if inside else 1
        if not inside:
            for p in port, control:
                listening(p, 10, self.proc, self.log)

    def connects(self):
        return self.numbers()["connects"] - self.probes

    def numbers(self):
        c = http.client.HTTPConnection("127.0.0.1", self.control, timeout=5)
        c.request("GET", "/")
        return json.loads(c.getresponse().read())

    def script(self, text):
        c = http.client.HTTPConnection("127.0.0.1", self.control, timeout=5)
        c.request("POST", "/script", text)
        r = c.getresponse()
        body = r.read()
        assert r.status == 200, (r.status, body)


class JavaProvider(Process):
    """A real Dubbo provider (tests/interop/provider) of one line."""

    def __init__(self, line, port=20880, registry="zookeeper://127.0.0.1:2181", *options, heap="128m"):
        # under any other name Dubbo takes the address that /etc/hosts gives it, without a word
        assert socket.gethostname() == "localhost", "not in a namespace of the tests: " + socket.gethostname()
        jar = os.path.join(TOP, "build/interop", line, "sample-provider.jar")
        self.port, self.registry = port, registry
        self._start(["java", "-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", jar,
                     "port=%d" % port, "registry=%s" % registry] + list(options))

    def wait_ready(self, seconds=60):
        def f():
            assert self.proc.poll() is None, self.log() + self.output()
            return "READY " in self.output() or "READY " in self.log()
        wait_until(f, seconds, "the Java provider is ready")
        if self.registry.startswith("zookeeper://"):
            self._check_address(urllib.parse.urlsplit(self.registry).port)
        return self

    def _check_address(self, zk_port):
        c = Client(zk_port)
        nodes = [urllib.parse.unquote_plus(n) for n in c.children("/dubbo/%s/providers" % RICH)]
        c.close()
        foreign = [n for n in nodes if not re.match(r"[a-z]+://127\.0\.0\.1:", n)]
        assert not foreign, "not on loopback: %s" % foreign
        assert any(":%d/" % self.port in n for n in nodes), "port %d is not in the registry: %s" % (self.port, nodes)


class Gateway(Process):
    def __init__(self, config, wait=True):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="gateway-")
        config.setdefault("listen", [{"address": "127.0.0.1:8080"}])
        config.setdefault("admin", {"listen": ["127.0.0.1:9901"]})
        config.setdefault("process", {}).setdefault("state_dir", "")
        self.write(config)
        self._start([os.path.join(BIN, "dubbogate"), "-c", self.file.name])
        if wait:
            listening(9901, 15, self.proc, self.log)
            listening(8080, 15, self.proc, self.log)

    def write(self, config):
        self.file.seek(0)
        self.file.truncate()
        json.dump(config, self.file)  # JSON is YAML
        self.file.flush()

    def admin(self, path):
        return get(9901, path)

    def reference(self, key):
        for r in self.admin("/references")[1]["references"]:
            if r["key"] == key:
                return r
        return None

    def metric(self, name):
        c = http.client.HTTPConnection("127.0.0.1", 9901, timeout=5)
        c.request("GET", "/metrics")
        total = 0.0
        for line in c.getresponse().read().decode().splitlines():
            if re.match(re.escape(name) + r"[ {]", line):
                total += float(line.split()[-1])
        return total

    def stop(self):
        rc = self.kill(signal.SIGTERM)
        assert rc == 0, "the gateway ended with %s\n%s" % (rc, self.log()[-6000:])


def get(port, path):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    c.request("GET", path)
    r = c.getresponse()
    return r.status, json.loads(r.read())


class Http:
    """One keep-alive connection; answers are (status, body as Python with exact numbers, headers)."""

    def __init__(self, port=8080, timeout=30):
        self.c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def call(self, method, path, body=None, headers=None):
        h = {"Content-Type": "application/json"} if body is not None else {}
        h.update(headers or {})
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        try:
            self.c.request(method, path, body.encode() if isinstance(body, str) else body, h)
            r = self.c.getresponse()
            data = r.read()
        except (OSError, http.client.HTTPException):
            self.c.close()
            raise
        return r.status, data.decode(), dict(r.getheaders())

    def post(self, path, body, headers=None):
        return self.call("POST", path, body, headers)


class Load:
    """Threads that call one path until stop(); counts answers by status and code."""

    def __init__(self, path, body, threads=8, port=8080, timeout=20):
        self.path, self.body, self.port, self.timeout = path, body, port, timeout
        self.seen, self.lock, self.on = {}, threading.Lock(), True
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        for t in self.threads:
            t.start()

    def _run(self):
        h = Http(self.port, self.timeout)
        while self.on:
            try:
                status, text, _ = h.post(self.path, self.body)
                what = str(status)
                if status != 200:
                    try:
                        what += " " + json.loads(text)["code"]
                    except (ValueError, KeyError):
                        what += " ?"
            except socket.timeout:
                what = "hang"
            except (OSError, http.client.HTTPException) as e:
                what = "refused" if isinstance(e, ConnectionRefusedError) else "broken " + type(e).__name__
                time.sleep(0.01)
            with self.lock:
                self.seen[what] = self.seen.get(what, 0) + 1

    def count(self):
        with self.lock:
            return sum(self.seen.values())

    def stop(self):
        self.on = False
        for t in self.threads:
            t.join(self.timeout + 5)
        return dict(self.seen)


def many(n, path, body, threads=4):
    """n calls as fast as it goes; counts by (status, code)."""
    seen, lock = {}, threading.Lock()

    def work(k):
        raw = RawClient()
        mine = {}
        for i in range(k):
            what = raw.call(path(i) if callable(path) else path, body)
            mine[what] = mine.get(what, 0) + 1
        with lock:
            for w, c in mine.items():
                seen[w] = seen.get(w, 0) + c
    ts = [threading.Thread(target=work, args=(n // threads,)) for _ in range(threads)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    return seen


class RawClient:
    """Faster than http.client: one request, one answer with Content-Length, status and code only."""

    def __init__(self, port=8080):
        self.s = socket.create_connection(("127.0.0.1", port), 20)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""

    def call(self, path, body):
        self.s.sendall(b"POST %s HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                       % (path.encode(), len(body), body))
        while b"\r\n\r\n" not in self.buf:
            part = self.s.recv(65536)
            if not part:
                raise ConnectionError("closed")
            self.buf += part
        head, rest = self.buf.split(b"\r\n\r\n", 1)
        m = re.search(rb"(?i)content-length: *(\d+)", head)
        n = int(m.group(1)) if m else 0
        while len(rest) < n:
            rest += self.s.recv(65536)
        self.buf = rest[n:]
        code = re.search(rb'"code":"([A-Z_]+)"', rest[:n])
        return head[9:12].decode() + (" " + code.group(1).decode() if code and head[9:12] != b"200" else "")
