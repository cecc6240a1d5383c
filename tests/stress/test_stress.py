#!/usr/bin/env python3
"""Everything that makes threads meet, at once: built with the thread sanitizer (make check-stress) a race ends the
gateway, and the test with it.  STRESS=seconds for each test (default 5)."""
import json
import os
import random
import selectors
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = float(os.environ.get("STRESS", "5"))
SERVICES = ["demo.S%d" % i for i in range(6)]
# What a client may see while providers come and go; anything else is a defect.
EXPECTED = ("200", "502 CONNECTION_LOST", "503 NO_PROVIDER", "503 PROVIDER_UNREACHABLE", "503 STARTING")
zk = None


def start():
    global zk
    if zk is None:
        zk = kit.ZooKeeper(tick_ms=1000)
        zk.start()
    c = kit.Client(timeout_ms=60000)
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    return c


def config(n_services, port=2181, **more):
    c = {"process": {"workers": 4, "state_dir": ""},
         "registries": [{"name": "main", "address": "zookeeper://127.0.0.1:%d" % port, "session_timeout": "4s",
                         "provider_networks": ["127.0.0.0/8"]}],
         "services": [{"name": s[5:].lower(), "interface": s} for s in SERVICES[:n_services]],
         "routes": [{"name": "r%d" % i, "method": "POST", "path": "/r/%d" % i, "call": "s%d.whoami" % i}
                    for i in range(n_services)],
         "direct": {"enabled": True, "allow": ["*"]}, "defaults": {"timeout": "3s"}}
    c.update(more)
    return c


class Beside:
    """Repeats `what` in a thread until stop(), which raises what it raised."""

    def __init__(self, what):
        self.what, self.on, self.error, self.count = what, True, None, 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while self.on:
                self.what()
                self.count += 1
        except Exception as e:  # pylint: disable=broad-except
            self.error = e

    def stop(self):
        self.on = False
        self.thread.join(30)
        if self.error:
            raise self.error
        assert self.count, "it never ran"


def check(seen):
    assert set(seen) <= set(EXPECTED) and seen.get("200", 0) > sum(seen.values()) / 2, seen


def reloads_and_lists_under_load():
    """Routes, direct calls, reloads, providers that come and go and die, admin pages, four workers."""
    c = start()
    stubs = [kit.Stub(20880 + 2 * i, 20881 + 2 * i) for i in range(3)]
    stay = kit.Client(timeout_ms=60000)
    for s in SERVICES:
        kit.Providers(stay, s).add(20880)
    g = kit.Gateway(config(6))
    kit.wait_until(lambda: g.admin("/ready")[0] == 200, 15, "ready")
    loads = [kit.Load("/r/0", "[]", 4), kit.Load("/demo.S1/whoami", "[]", 4), kit.Load("/demo.S5/whoami", "[]", 2)]

    def lists():
        p = kit.Providers(c, random.choice(SERVICES))
        port = random.choice((20882, 20884))
        p.add(port)
        time.sleep(0.02)
        p.remove(port)

    def reloads():
        g.write(config(random.choice((2, 3, 6))))
        g.proc.send_signal(signal.SIGHUP)
        time.sleep(0.15)

    def pages():
        for path in ("/references", "/providers", "/ready", "/connections"):
            assert g.admin(path)[0] in (200, 503)
        g.metric("dubbogate_references")

    beside = [Beside(lists), Beside(reloads), Beside(pages)]
    time.sleep(SECONDS / 2)
    stubs[2].kill()
    time.sleep(SECONDS / 2)
    for b in beside:
        b.stop()
    for load in loads:
        load.on = False
    for load in loads:
        check(load.stop())
    g.stop()
    for x in (c, stay):
        x.close()


def evictions_and_sessions_under_load():
    """More names than references may be, sessions that expire and connections that break meanwhile, and a stop in the
    middle of all of it."""
    c = start()
    kit.Stub(20880, 20881)
    for s in SERVICES:
        kit.Providers(c, s).add(20880)
    relay = kit.Relay(2182, 2181)
    try:
        g = kit.Gateway(config(1, 2182, limits={"references": 4}))
        kit.wait_until(lambda: g.admin("/ready")[0] == 200, 15, "ready")
        load = kit.Load("/r/0", "[]", 4)
        others, lock = {}, threading.Lock()

        def names():
            path = "/%s/whoami" % random.choice(SERVICES[1:] + ["demo.None%d" % random.randrange(1000)])
            status, body, _ = kit.Http().post(path, "[]")
            what = str(status) if status == 200 else "%d %s" % (status, json.loads(body)["code"])
            with lock:
                others[what] = others.get(what, 0) + 1

        def registry():
            random.choice((relay.expire, relay.cut))()
            time.sleep(0.5)

        beside = [Beside(names) for _ in range(4)] + [Beside(registry)]
        time.sleep(SECONDS)
        for b in beside:
            b.stop()
        g.proc.send_signal(signal.SIGTERM)  # the load goes on
        seen = load.stop()
        g.stop()
        assert all(w in ("200", "503 DRAINING", "refused") or w.startswith("broken") for w in seen), seen
        assert others.get("200", 0) and set(others) <= {"200", "503 NO_PROVIDER", "503 REFERENCE_LIMIT", "503 STARTING"}, others
    finally:
        relay.close()
    c.close()


class Crowd:
    """Connections that ask again as soon as they are answered, all in one thread: requests come in bursts, as from many
    clients (gateway/linger.h).  Counts answers, other answers and connections that were closed."""

    def __init__(self, path, n):
        self.head = b"POST %s HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\n[]" % path.encode()
        self.good = self.other = self.closed = 0
        self.on = True
        self.sel = selectors.DefaultSelector()
        for _ in range(n):
            self._connect()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _connect(self):
        s = socket.create_connection(("127.0.0.1", 8080), 20)
        s.sendall(self.head)
        self.sel.register(s, selectors.EVENT_READ)

    def _run(self):
        while self.on:
            for key, _ in self.sel.select(0.2):
                self._answer(key.fileobj)

    def _answer(self, s):
        try:
            data = s.recv(65536)
            if data:
                if data.startswith(b"HTTP/1.1 200 "):
                    self.good += 1
                else:
                    self.other += 1
                s.sendall(self.head)
                return
        except OSError:
            pass
        self.closed += 1
        self.sel.unregister(s)
        s.close()
        self._connect()

    def stop(self):
        self.on = False
        self.thread.join(30)
        for key in list(self.sel.get_map().values()):
            key.fileobj.close()


def paused_longer_than_its_timeouts():
    """Stopped under load for longer than its HTTP timeouts (a suspended machine): every timer is overdue at once when it
    goes on.  It loses clients at most, serves the next ones and ends in order."""
    a = kit.Stub()
    g = kit.Gateway({"process": {"workers": 1, "state_dir": ""}, "direct": {"enabled": True, "allow": ["*"]},
                     "services": [{"name": "s", "interface": "demo.S", "providers": ["dubbo://127.0.0.1:20880"]}],
                     "limits": {k + "_timeout": "1s" for k in ("header", "body", "write", "keepalive")},
                     "defaults": {"timeout": "1s"}})
    crowd = Crowd("/demo.S/whoami", 64)
    half = [socket.create_connection(("127.0.0.1", 8080)) for _ in range(8)]
    for i, s in enumerate(half):  # in the middle of their headers and bodies
        s.sendall(b"POST /demo.S/whoami HTTP/1.1\r\nHost: t\r\n" + (b"Content-Length: 9\r\n\r\n[" if i % 2 else b""))
    kit.wait_until(lambda: crowd.good > 3000, 20, "the load runs")
    g.proc.send_signal(signal.SIGSTOP)
    time.sleep(7)  # the library's own timeout is 5 s longer than ours, and ends connections in another way
    g.proc.send_signal(signal.SIGCONT)
    n = crowd.good
    kit.wait_until(lambda: crowd.good > n + 3000, 20, "it goes on")
    crowd.stop()
    # each client once; twice when it was stopped in the middle of a turn, whose clock stood while it served the next ones
    assert crowd.other + crowd.closed <= 128, (crowd.other, crowd.closed)
    assert kit.many(200, "/demo.S/whoami", b"[]", 4) == {"200": 200}
    for s in half:
        s.close()
    g.stop()
    a.kill()


if __name__ == "__main__":
    try:
        kit.run([reloads_and_lists_under_load, evictions_and_sessions_under_load, paused_longer_than_its_timeouts])
    finally:
        if zk is not None:
            zk.close()
