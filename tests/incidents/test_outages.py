#!/usr/bin/env python3
"""Outages of the registry under load (docs/OPERATIONS.md section 7): calls go on, and what comes back is used at once."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
PATH = "/%s/whoami" % IFACE
zk = None


def start(**more):
    if zk.proc is None:
        zk.start()
    c = kit.Client(timeout_ms=60000)
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    conf = {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "session_timeout": "4s"}],
            "services": [{"name": "user", "interface": IFACE}], "defaults": {"timeout": "3s"},
            "direct": {"enabled": True, "allow": ["*"]}, **more}
    return c, conf


def ready(g, n):
    kit.wait_until(lambda: (g.reference(IFACE) or {"providers": {"usable": 0}})["providers"]["usable"] == n, 10,
                   "%d are known" % n)


def restarted_provider_while_the_registry_is_down():
    """The only provider dies and comes back on its port; the registry cannot tell, and calls go on failing meanwhile, so
    the address is tried all the time: used within 1 s of listening."""
    c, conf = start()
    a = kit.Stub()
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    g = kit.Gateway(conf)
    ready(g, 1)
    assert kit.Http().post(PATH, "[]")[0] == 200
    zk.stop()
    for down in 0.3, 3:
        a.kill()
        end = time.monotonic() + down
        h = kit.Http()
        while time.monotonic() < end:
            assert h.post(PATH, "[]")[0] in (502, 503)
            time.sleep(0.02)
        a = kit.Stub()
        begin = time.monotonic()
        kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 3, "it is used again")
        took = time.monotonic() - begin
        assert took < 1, took
    g.stop()
    a.kill()


def wiped_registry_under_load():
    """Data removed, server started anew: no call fails, a new handle within two session timeouts, the providers that
    register again are listed, and the consumer node stands once."""
    c, conf = start()
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    for s in stubs:
        kit.Providers(c, IFACE).add(s.port)
    g = kit.Gateway(conf)
    ready(g, 2)
    for i in range(20):
        c.create("/x%d" % i)  # the new server's zxid must be behind ours
    load = kit.Load(PATH, "[]", 4)
    kit.wait_until(lambda: load.count() > 200 and all(s.numbers()["connections"] for s in stubs), 10, "the load runs")
    zk.stop()
    zk.wipe()
    zk.start()
    begin = time.monotonic()
    states = lambda: sorted(x["state"] for x in g.reference(IFACE)["providers"]["list"])
    kit.wait_until(lambda: states() == ["unlisted", "unlisted"], 20, "the new tree is seen")
    assert time.monotonic() - begin < 2 * 4 + 2, "two session timeouts, and the read"
    c = kit.Client(timeout_ms=60000)
    for s in stubs:
        kit.Providers(c, IFACE).add(s.port)
    kit.wait_until(lambda: states() == ["listed", "listed"], 3, "they are listed again")
    kit.wait_until(lambda: len(kit.consumers(c, IFACE)) == 1, 5, "the consumer node")
    assert "timestamp" not in kit.consumers(c, IFACE)[0]
    seen = load.stop()
    assert set(seen) == {"200"}, seen
    g.stop()
    c.close()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([restarted_provider_while_the_registry_is_down, wiped_registry_under_load])
    finally:
        if zk is not None:
            zk.close()
