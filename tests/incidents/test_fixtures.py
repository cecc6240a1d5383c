#!/usr/bin/env python3
"""The parts that the other tests trust: the real ZooKeeper, the client of its protocol, the relay, and the look at
what a process leaves behind."""
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

zk = None


def start():
    global zk
    if zk is None:
        zk = kit.ZooKeeper()
    if zk.proc is None:
        zk.start()
    c = kit.Client()
    if c.exists("/fixture"):
        c.delete_tree("/fixture")
    c.create("/fixture", b"one")
    return c


def client_reads_what_it_wrote():
    c = start()
    assert c.get("/fixture") == b"one"
    c.set("/fixture", b"three")
    c.create("/fixture/child")
    s = c.exists("/fixture")
    assert c.get("/fixture") == b"three" and c.children("/fixture") == ["child"]
    assert (s["version"], s["cversion"], s["owner"], s["length"], s["count"]) == (1, 1, 0, 5, 1), s
    assert s["czxid"] < s["mzxid"] < s["pzxid"] == zk.zxid(), s
    c.delete_tree("/fixture")
    assert c.exists("/fixture") is None
    try:
        c.get("/fixture")
        raise SystemError("no error for a node that is not there")
    except kit.ZkError as e:
        assert e.code == -101, e
    c.close()


def killed_server_keeps_its_data():
    c = start()
    c.set("/fixture", b"kept")
    before = zk.zxid()
    zk.stop()
    try:
        kit.Client()
        raise SystemError("a server that was killed takes a client")
    except OSError:
        pass
    zk.start()
    c = kit.Client()
    assert c.get("/fixture") == b"kept" and zk.zxid() >= before
    c.close()


def ephemeral_node_outlives_the_connection_not_the_session():
    c = start()
    b = kit.Client(timeout_ms=2000)
    assert b.timeout == 2000, b.timeout
    b.create("/fixture/e", ephemeral=True)
    assert c.exists("/fixture/e")["owner"] == b.id
    b.sock.close()
    time.sleep(0.5)
    assert c.exists("/fixture/e")
    kit.wait_until(lambda: not c.exists("/fixture/e"), 4, "the session of 2 s ends")
    c.close()


def session_is_closed_behind_its_owners_back():
    c = start()
    relay = kit.Relay(2182, 2181)
    b = kit.Client(2182)  # 30 s: it does not end by itself
    b.create("/fixture/e", ephemeral=True)
    relay.expire()
    kit.wait_until(lambda: not c.exists("/fixture/e"), 1, "the node of the closed session is gone")
    try:
        b.exists("/fixture")
        raise SystemError("the owner still has its connection")
    except OSError:
        pass
    try:
        kit.Client(2182, session=(b.id, b.password))
        raise SystemError("the session was taken back")
    except kit.ZkError as e:
        assert e.code == -112, e
    relay.close()
    c.close()


def relay_swallows_delays_cuts_and_refuses():
    start().close()
    relay = kit.Relay(2182, 2181)
    c = kit.Client(2182)
    c.sock.settimeout(0.5)
    relay.delay = 0.1
    begin = time.monotonic()
    assert c.exists("/fixture") and time.monotonic() - begin >= 0.2
    relay.delay = 0
    relay.swallow = True
    try:
        c.exists("/fixture")
        raise SystemError("an answer came through")
    except socket.timeout:
        pass
    relay.swallow = False
    assert c.exists("/fixture"), "the connection is still good"
    relay.cut()
    try:
        c.exists("/fixture")
        raise SystemError("the connection was not cut")
    except OSError:
        pass
    relay.close()
    try:
        kit.Client(2182)
        raise SystemError("the relay takes a connection")
    except ConnectionRefusedError:
        pass
    relay.listen()
    kit.Client(2182).close()
    relay.close()


def command(pid):
    """Empty for a process that has ended, reaped or not."""
    try:
        with open("/proc/%d/cmdline" % pid, encoding="ascii") as f:
            return f.read()
    except OSError:
        return ""


class Shell(kit.Process):
    def __init__(self, script):
        self._start(["sh", "-c", script])
        self.proc.wait(5)


def crash_or_report_is_not_overlooked():
    for script, bad in (("echo fine >&2", False), ("exit 1", False), ("kill -SEGV $$", True),
                        ("echo '==1==ERROR: AddressSanitizer: heap-use-after-free' >&2", True),
                        ("echo '==1==ERROR: LeakSanitizer: detected memory leaks' >&2", True),
                        ("echo 'WARNING: ThreadSanitizer: data race (pid=1)' >&2", True),
                        ("echo 'a.c:1:2: runtime error: signed integer overflow' >&2; exit 0", True)):
        Shell(script)
        assert bool(kit.end_all()) == bad, script


def servers_end_with_the_test_program():
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        p = kit.Process()
        p._start(["sleep", "60"])  # pylint: disable=protected-access
        try:
            kit.wait_until(lambda: command(p.proc.pid).startswith("sleep"), 2, "it runs")
            os.write(w, struct.pack(">i", p.proc.pid))
        finally:
            os.kill(os.getpid(), 9)
    os.close(w)
    os.waitpid(pid, 0)
    child = struct.unpack(">i", os.read(r, 4))[0]
    os.close(r)
    kit.wait_until(lambda: command(child) == "", 2, "the server of a killed test is gone")


if __name__ == "__main__":
    try:
        kit.run([client_reads_what_it_wrote, killed_server_keeps_its_data,
                 ephemeral_node_outlives_the_connection_not_the_session, session_is_closed_behind_its_owners_back,
                 relay_swallows_delays_cuts_and_refuses, crash_or_report_is_not_overlooked,
                 servers_end_with_the_test_program])
    finally:
        if zk is not None:
            zk.close()
