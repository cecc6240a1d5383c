#!/usr/bin/env python3
"""Cases 63 to 65 and 82 of docs/TESTING.md: a provider that restarts, one that dies in silence, a registry that refuses our node,
more services than references.
LONG=1 keeps the network cut for 120 s instead of 10."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position
from outage_kit import (IFACE, PATH, Before, Host, client, config, endpoints, ready, timed,  # noqa: E402
                        one_node_per_reference)  # pylint: disable=wrong-import-position

CUT = 120 if os.environ.get("LONG") else 10
RESTARTS = 10
zk = None


def clients_50_per_second():
    """Four clients, whose calls take 80 ms."""
    return kit.Load("/%s/slow" % IFACE, "[80]", 4)


def case_63_restart_of_one_of_two():
    """No more calls fail than were in flight at the one that was killed, and it is used again."""
    c = client(zk)
    start = lambda: kit.Stub(20880, 20881)
    a, b = start(), kit.Stub(20882, 20883)
    for port in 20880, 20882:
        kit.Providers(c, IFACE).add(port, ephemeral=False)
    g = kit.Gateway(config())
    ready(g, 2)
    load = clients_50_per_second()
    kit.wait_until(lambda: load.count() > 20, 10, "the load runs")
    for i in range(RESTARTS):
        kit.wait_until(lambda: a.numbers()["calls"] > 3, 5, "it is used")
        lost = load.seen.get("502 CONNECTION_LOST", 0)
        a.kill()
        time.sleep(0.3)
        lost = load.seen.get("502 CONNECTION_LOST", 0) - lost
        assert lost <= 4, "restart %d: %d calls, of 4 clients" % (i, lost)
        a = start()
    kit.wait_until(lambda: a.numbers()["calls"] > 3, 5, "it is used")
    seen = load.stop()
    assert set(seen) <= {"200", "502 CONNECTION_LOST"}, seen
    print("        %s" % seen)
    g.stop()
    a.kill()
    b.kill()
    c.close()


def case_63_restart_of_the_only_one():
    """503 while it is down, 200 within 1 s of listening."""
    c = client(zk)
    start = lambda: kit.Stub(20880, 20881)
    a = start()
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    g = kit.Gateway(config())
    ready(g, 1)
    load = clients_50_per_second()
    h = kit.Http()
    worst = 0
    for i in range(RESTARTS):
        kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 5, "it is used")
        a.kill()
        h.post(PATH, "[]")
        time.sleep(0.1)
        for _ in range(20):
            assert timed(h)[:2] == (503, "PROVIDER_UNREACHABLE")
            time.sleep(0.02 * (1 + i % 3))  # down for as long as the dialling waits, and longer
        a = start()
        begin = time.monotonic()
        kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 3, "it is used again")
        worst = max(worst, time.monotonic() - begin)
    print("        used again after at most %.2f s" % worst)
    assert worst < 1, worst
    seen = load.stop()
    assert set(seen) <= {"200", "502 CONNECTION_LOST", "503 PROVIDER_UNREACHABLE"} and (
        seen.get("502 CONNECTION_LOST", 0) <= 4 * RESTARTS), seen
    g.stop()
    a.kill()
    c.close()


def case_64_silent_death():
    """Packets to one of two vanish: calls under way end at their deadline, then none fails; its connection is given up
    because heartbeats are not answered, and within 10 s of healing it is used again."""
    c = client(zk)
    host = Host()
    a, b = kit.Stub(20880, 20881, "-l", "0.0.0.0", inside=host), kit.Stub(20882, 20883)
    kit.Providers(c, IFACE).add(20880, host=host.THERE, ephemeral=False)
    kit.Providers(c, IFACE).add(20882, ephemeral=False)
    far = "%s:20880" % host.THERE
    g = kit.Gateway(config(defaults={"timeout": "300ms", "loadbalance": "roundrobin"}, process={"workers": 1}))
    ready(g, 2)
    h = kit.Http()
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200 and len(g.admin("/connections")[1]["connections"]) == 2, 5,
                   "both are connected")
    before = Before(g)
    host.cut()
    begin = time.monotonic()
    seen = [timed(h) for _ in range(60)]
    late = [x for x in seen if x[0] != 200]
    assert [x[:2] for x in late] == [(504, "PROVIDER_TIMEOUT")] * 5, late
    assert all(0.29 < x[2] < 0.5 for x in late), late
    load = kit.Load(PATH, "[]", 4)
    kit.wait_until(lambda: endpoints(g)[far]["state"] == "ejected" and far not in str(g.admin("/connections")), 10,
                   "its connection is given up")
    time.sleep(max(0, begin + CUT - time.monotonic()))
    assert set(load.stop()) == {"200"}, load.seen
    calls = endpoints(g)[far]["calls"]
    host.heal()
    begin = time.monotonic()
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200 and endpoints(g)[far]["calls"] > calls + 3, 10, "it is used again")
    print("        used again after %.2f s" % (time.monotonic() - begin))
    assert kit.many(200, PATH, b"[]", 2) == {"200": 200}
    before.check(c)
    kit.wait_until(lambda: len(g.admin("/connections")[1]["connections"]) == 2, 5, "two connections")
    g.stop()
    for s in a, b:
        s.kill()
    host.close()
    c.close()


def case_65_refused_consumer_nodes():
    """No permission to create below `consumers`, of twenty services: calls go on, one line says so, nothing is tried again
    soon, and the lists go on changing.  With the permission the next session has all nodes."""
    c = client(zk)
    services = ["demo.S%d" % i for i in range(20)]
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    for s in services:
        kit.Providers(c, s).add(20880, ephemeral=False)
        c.create("/dubbo/%s/consumers" % s, acl=registry_kit.READ_ONLY_ACL)
    relay = kit.Relay(2182, 2181)
    conf = config(services=[{"name": s[5:].lower(), "interface": s} for s in services])
    conf["registries"][0]["address"] = "zookeeper://127.0.0.1:2182"
    g = kit.Gateway(conf)
    for s in services:
        ready(g, 1, s)
    refused = lambda: sum("consumer node: not authenticated" in str(g.reference(s)["events"]) for s in services)
    kit.wait_until(lambda: refused() == 20, 5, "all are refused")
    zxid = zk.zxid()
    for s in services:
        assert kit.many(200, "/%s/whoami" % s, b"[]", 4) == {"200": 200}
    time.sleep(3)
    assert zk.zxid() == zxid, "written into ZooKeeper"
    kit.Providers(c, services[0]).add(20882)
    ready(g, 2, services[0])
    assert g.metric("dubbogate_registry_writes_total") == 20, "one attempt each"
    assert g.log().count("consumer node cannot be written") == 1, g.log()
    assert not any(kit.consumers(c, s) for s in services)
    for s in services:
        c.delete("/dubbo/%s/consumers" % s)  # the gateway makes an open one
    relay.expire()
    kit.wait_until(lambda: all(g.reference(s)["consumer_node"] for s in services), 10, "all nodes stand")
    one_node_per_reference(c, g, services)
    assert g.log().count("consumer node cannot be written") == 1, g.log()
    g.stop()
    relay.close()
    for s in stubs:
        s.kill()
    c.close()


def case_82_more_services_than_references():
    """120 services are called in turn with room for 40: each call is answered, no more lists than that, the nodes of those that
    went are gone, and memory does not grow."""
    c = client(zk)
    a = kit.Stub()
    names = ["demo.Service%d" % i for i in range(120)]
    for n in names:
        kit.Providers(c, n).add(20880)
    g = kit.Gateway(config(services=[], limits={"references": 40}))
    h = kit.Http()
    rss = []
    for _ in range(3):
        for n in names:
            assert h.post("/%s/whoami" % n, "[]")[0] == 200, n
            time.sleep(0.06)  # one that was used in the last second is not given up: 40 of them are older than that
        rss.append(g.rss_kb())
        live = [r["key"] for r in g.admin("/references")[1]["references"]]
        assert len(live) <= 40, live
        kit.wait_until(lambda live=live: not [n for n in names if n not in live and kit.consumers(c, n)], 5, "nodes of others are gone")
        one_node_per_reference(c, g, names)
    assert g.metric("dubbogate_reference_evictions_total") == 320
    assert rss[-1] - rss[1] <= 256 or kit.VARIANT in ("asan", "tsan"), rss
    g.stop()
    a.kill()
    c.close()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([case_63_restart_of_one_of_two, case_63_restart_of_the_only_one, case_64_silent_death,
                 case_65_refused_consumer_nodes, case_82_more_services_than_references])
    finally:
        if zk is not None:
            zk.close()
