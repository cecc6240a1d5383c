#!/usr/bin/env python3
"""Real providers that stop (SIGTERM) and die (SIGKILL) while 200 calls are in flight at two of them.  LINE=2.6 chooses one.

A provider that stops says so (readonly), finishes what it has and closes; no call may fail, as long as calls are
shorter than the 10 s that it waits.  One that dies takes those calls along that it had, and no other."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

LINES = [x for x in ("2.6", "2.7", "3.2", "3.3") if os.environ.get("LINE") in (None, "", x)]
IN_FLIGHT = 200


def start(line):
    c = kit.Client()
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    c.close()
    java = [kit.JavaProvider(line, 20880 + 2 * i, "zookeeper://127.0.0.1:2181", "name=%s" % "ab"[i], "threads=400")
            for i in range(2)]
    for j in java:
        j.wait_ready()
    g = kit.Gateway({"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}],
                     "services": [{"name": "rich", "interface": kit.RICH, "methods": [{"name": "slow", "types": ["long"]}]}],
                     "direct": {"enabled": True, "allow": [kit.RICH]}, "defaults": {"timeout": "8s"}})
    kit.wait_until(lambda: len((g.reference(kit.RICH) or {}).get("providers", {}).get("list", [])) == 2, 20, "both are known")
    load = kit.Load("/%s/slow" % kit.RICH, "[1000]", IN_FLIGHT)
    kit.wait_until(lambda: load.count() > IN_FLIGHT, 20, "the load runs")
    return java, g, load


def end(java, g, load):
    load.stop()
    g.stop()
    for j in java:
        j.kill()


def stopped(line):
    java, g, load = start(line)
    begin = time.monotonic()
    java[0].proc.send_signal(signal.SIGTERM)
    java[0].proc.wait(30)
    took = time.monotonic() - begin
    n = load.count()
    kit.wait_until(lambda: load.count() > n + 2 * IN_FLIGHT, 20, "the load goes on")
    end(java, g, load)
    assert set(load.seen) == {"200"}, (line, load.seen)
    print("        Dubbo %s stopped in %.1f s, %d calls" % (line, took, load.count()))


def killed(line):
    java, g, load = start(line)
    java[0].kill(signal.SIGKILL)
    n = load.count()
    kit.wait_until(lambda: load.count() > n + 2 * IN_FLIGHT, 20, "the load goes on")
    end(java, g, load)
    lost = load.seen.get("502 CONNECTION_LOST", 0)
    assert set(load.seen) <= {"200", "502 CONNECTION_LOST"} and 0 < lost <= IN_FLIGHT, (line, load.seen)
    print("        Dubbo %s: %d of %d calls were lost with it" % (line, lost, load.count()))


def make(what, line):
    def f():
        what(line)
    f.__name__ = "%s_%s" % (what.__name__, line.replace(".", "_"))
    return f


if __name__ == "__main__":
    zk = None
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([make(what, line) for line in LINES for what in (stopped, killed)])
    finally:
        if zk is not None:
            zk.close()
