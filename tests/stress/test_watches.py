#!/usr/bin/env python3
"""More watched paths than one session may set again in one packet (docs/REGISTRY.md section 9): 5,000 services with four
nodes each.  LONG=1 watches the sessions for 60 s instead of 10 after they are back."""
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
from registry_kit import provider_node  # noqa: E402  pylint: disable=wrong-import-position

NAMES = ["com.example.company.department.product.api.Service%04d" % i for i in range(5000)]
BUDGET = 700000  # bytes of watched paths per session
QUIET = 60 if os.environ.get("LONG") else 10  # seconds without a reconnect
zk = None


def make_tree(c):
    c.ensure("/dubbo")
    nodes = []
    for name in NAMES:
        top = "/dubbo/" + name
        nodes += [top] + ["%s/%s" % (top, n) for n in ("providers", "configurators", "routers")]
        nodes.append("%s/providers/%s" % (top, provider_node(name, 20880)))
    c.create_many(nodes)


def sessions(g):
    return g.admin("/registries")[1][0]["sessions"]


def all_usable(g, n):
    kit.wait_until(lambda: sum(r["providers"]["usable"] for r in g.admin("/references")[1]["references"]) == n, 120,
                   "%d providers are known" % n)


def twenty_thousand_watched_paths():
    """They are spread over as many sessions as their bytes need.  After a restart of the server each comes back once, with
    its watches, and stays; no call fails."""
    c = kit.Client(timeout_ms=60000)
    make_tree(c)
    a = kit.Stub()
    with tempfile.TemporaryDirectory() as state:
        g = kit.Gateway({"process": {"workers": 2, "state_dir": state}, "limits": {"references": len(NAMES)},
                         "registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "session_timeout": "20s"}],
                         "services": [{"name": "s%d" % i, "interface": s} for i, s in enumerate(NAMES)],
                         "direct": {"enabled": True, "allow": ["*"]}, "defaults": {"timeout": "3s"}})
        begin = time.monotonic()
        all_usable(g, len(NAMES))
        print("        all known after %.1f s" % (time.monotonic() - begin))
        per_name = sum(s["watch_bytes"] for s in sessions(g)) / len(NAMES)
        expected = -(-len(NAMES) // int(BUDGET / per_name))
        kit.wait_until(lambda: [s["state"] for s in sessions(g)] == ["connected"] * expected, 5, "%d sessions" % expected)
        assert expected >= 3 and all(s["watch_bytes"] <= BUDGET for s in sessions(g)), sessions(g)
        kit.wait_until(lambda: zk.watches() >= 4 * len(NAMES), 20, "all four nodes are watched")
        watches = zk.watches()
        ids = [s["session"] for s in sessions(g)]
        reconnects = g.metric("dubbogate_registry_reconnects_total")
        load = kit.Load("/%s/whoami" % NAMES[0], "[]", 2)
        zk.stop()
        zk.start()
        begin = time.monotonic()
        kit.wait_until(lambda: [s["state"] for s in sessions(g)] == ["connected"] * expected, 20, "all are back")
        kit.wait_until(lambda: zk.watches() >= watches, 20, "with their watches")
        print("        %d sessions are back after %.1f s" % (expected, time.monotonic() - begin))
        time.sleep(QUIET)
        assert g.metric("dubbogate_registry_reconnects_total") == reconnects + expected, "they come and go"
        assert [s["session"] for s in sessions(g)] == ids, "others than before"
        c.close()
        c = kit.Client(timeout_ms=60000)
        for name in NAMES[::500] + NAMES[-1:]:  # of every session
            kit.Providers(c, name).add(20882, weight="0")
            kit.wait_until(lambda name=name: g.admin("/references/" + name)[1]["providers"]["usable"] == 2, 10,
                           "the watch works")
        assert set(load.stop()) == {"200"}, load.seen
        g.stop()
    a.kill()
    c.close()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper(tick_ms=1000, heap="256m").start()
    try:
        kit.run([twenty_thousand_watched_paths])
    finally:
        if zk is not None:
            zk.close()
