#!/usr/bin/env python3
"""All providers of a service are stopped for longer than their sessions (a host that was suspended, a long garbage
collection) and go on.  Dubbo's consumers say `No provider` until the providers have registered again, seconds later.
LINE=2.7 chooses one line."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
from outage_kit import client, ready, states  # noqa: E402  pylint: disable=wrong-import-position

LINES = [x for x in ("2.7", "3.2") if os.environ.get("LINE") in (None, "", x)]
PATH = "/%s/whoami" % kit.RICH
# the name that the provider's client knows: 2.7 and 3.x
REGISTRY = "zookeeper://127.0.0.1:2181?zk.session.expire=6000&session=6000"
zk = None


def start(line):
    c = client(zk)
    java = [kit.JavaProvider(line, 20880 + 2 * i, REGISTRY, "name=%s" % "ab"[i]) for i in range(2)]
    for j in java:
        j.wait_ready()
    assert zk.word("cons").count("to=6000,") >= 2, "not the session timeout that was asked for: " + zk.word("cons")
    g = kit.Gateway({"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}],
                     "services": [{"name": "rich", "interface": kit.RICH}], "defaults": {"timeout": "3s"},
                     "direct": {"enabled": True, "allow": [kit.RICH]}})
    ready(g, 2, kit.RICH)
    assert kit.many(200, PATH, b"[]", 4) == {"200": 200}
    return c, java, g


def stop_for_10_s(c, java):
    for j in java:
        j.proc.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    kit.wait_until(lambda: not nodes(c), 15, "their sessions are over")
    time.sleep(max(0, begin + 10 - time.monotonic()))
    for j in java:
        j.proc.send_signal(signal.SIGCONT)
    return time.monotonic()


def nodes(c):
    return c.children("/dubbo/%s/providers" % kit.RICH)


def until_listed(c, g, begin):
    """No call fails until both have registered again, and some time more."""
    load = kit.Load(PATH, "[]", 4)
    kit.wait_until(lambda: len(nodes(c)) == 2 and states(g, kit.RICH) == ["listed", "listed"], 90, "both have registered again")
    took = time.monotonic() - begin
    time.sleep(1)
    assert set(load.stop()) == {"200"}, load.seen
    return took, load.count()


def end(c, java, g):
    g.stop()
    for j in java:
        j.kill()
    c.close()


def not_called_meanwhile(line):
    """Not one call fails from the moment when they go on."""
    c, java, g = start(line)
    begin = stop_for_10_s(c, java)
    # the one whose session ended seconds before the other's is taken for one that was stopped in order; those of 3.x are
    # instances of an application too, in a session of their own that may last longer
    assert states(g, kit.RICH) in [["unlisted"], ["unlisted"] * 2] + [["listed"] * 2] * (line[0] == "3"), states(g, kit.RICH)
    took, n = until_listed(c, g, begin)
    print("        Dubbo %s: %d calls until 1 s after both had registered again, %.1f s after they went on" % (line, n, took))
    end(c, java, g)


def called_meanwhile(line):
    """Their connections were given up, as nothing answered; used again within 2 s, and from then on no call fails."""
    c, java, g = start(line)
    load = kit.Load(PATH, "[]", 4)
    kit.wait_until(lambda: load.count() > 200, 10, "the load runs")
    begin = stop_for_10_s(c, java)
    seen = load.stop()
    assert "200" in seen and set(seen) <= {"200", "504 PROVIDER_TIMEOUT", "502 CONNECTION_LOST", "503 PROVIDER_UNREACHABLE"}, seen
    kit.wait_until(lambda: kit.many(40, PATH, b"[]", 8) == {"200": 40}, 5, "they are used again")
    again = time.monotonic() - begin
    assert again < 2, again
    time.sleep(2 - again)
    took, n = until_listed(c, g, begin)
    print("        Dubbo %s: used after %.1f s, %d calls until 1 s after both had registered again, %.1f s after they went on" % (
        line, again, n, took))
    end(c, java, g)


def make(what, line):
    def f():
        what(line)
    f.__name__ = "%s_%s" % (what.__name__, line.replace(".", "_"))
    return f


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([make(what, line) for line in LINES for what in (not_called_meanwhile, called_meanwhile)])
    finally:
        if zk is not None:
            zk.close()
