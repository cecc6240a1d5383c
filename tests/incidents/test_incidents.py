#!/usr/bin/env python3
"""What the gateway exists for: it writes nothing into the registry on behalf of calls, keeps one consumer node,
and serves through outages.  A real ZooKeeper, the C provider; providers come and go by their znodes.
CALLS=N (default 100000) calls in the large ones; LONG=1 keeps ZooKeeper down for 60 s instead of 15."""
import json
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
CALLS = int(os.environ.get("CALLS", "100000"))
PATH = "/%s/whoami" % IFACE
zk = None


def start():
    global zk
    if zk is None:
        zk = kit.ZooKeeper(tick_ms=1000)
    if zk.proc is None:
        zk.start()
    c = kit.Client(timeout_ms=60000)  # this client sends no pings
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    return c


def config(port=2181, **more):
    c = {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:%d" % port, "session_timeout": "6s",
                         "provider_networks": ["127.0.0.0/8"]}],
         "services": [{"name": "user", "interface": IFACE}],
         "direct": {"enabled": True, "allow": ["*"]}, "defaults": {"timeout": "3s"}}
    c.update(more)
    return c


def ready(g, key=IFACE, seconds=15):
    kit.wait_until(lambda: (g.reference(key) or {}).get("state") == "ready", seconds, "%s is ready" % key)


def nodes(c, iface=IFACE):
    return kit.consumers(c, iface)


def incident_a_calls_without_provider():
    c = start()
    g = kit.Gateway(config())
    kit.wait_until(lambda: (g.reference(IFACE) or {}).get("state") == "empty", 10, "the reference is known to be empty")
    seen = kit.many(1000, PATH, b"[]", 4)
    assert seen == {"503 NO_PROVIDER": 1000}, seen
    time.sleep(0.5)
    zxid, rss, watches = zk.zxid(), g.rss_kb(), zk.watches()
    seen = kit.many(CALLS, PATH, b"[]", 4)
    assert seen == {"503 NO_PROVIDER": CALLS}, seen
    assert zk.zxid() == zxid, "calls wrote into ZooKeeper"
    assert zk.watches() == watches <= 3, (watches, zk.watches())  # the interface, its mapping, the rules
    grown = g.rss_kb() - rss
    assert grown <= 1024 or kit.VARIANT in ("asan", "tsan"), "%d KiB grown" % grown
    c.close()
    c = kit.Client()
    s = kit.Stub()
    p = kit.Providers(c, IFACE)
    p.add(20880)
    h = kit.Http()
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 1, "the first provider is used")
    kit.wait_until(lambda: len(nodes(c)) == 1, 2, "one consumer node")
    time.sleep(1)
    assert len(nodes(c)) == 1 and "timestamp" not in nodes(c)[0], nodes(c)
    print("        RSS grew %d KiB over %d calls" % (grown, CALLS))
    g.stop()
    c.close()
    s.kill()


def incident_b_one_consumer_node():
    c = start()
    s = kit.Stub()
    p = kit.Providers(c, IFACE)
    p.add(20880)
    g = kit.Gateway(config())
    ready(g)
    kit.wait_until(lambda: len(nodes(c)) == 1, 5, "a consumer node")
    before = nodes(c)
    assert "timestamp" not in before[0]
    for _ in range(20):
        seen = kit.many(CALLS // 20, PATH, b"[]", 4)
        assert set(seen) <= {"200", "503 NO_PROVIDER"}, seen
        p.remove(20880)
        time.sleep(0.05)
        p.add(20880)
    time.sleep(1)
    assert nodes(c) == before, nodes(c)
    r = g.reference(IFACE)
    assert r["subscribes"] == 1, r
    ready(g)
    g.stop()
    c.close()
    s.kill()


def names_from_outside_are_bounded():
    c = start()
    s = kit.Stub()
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    g = kit.Gateway(config(limits={"references": 64}))
    ready(g)
    kit.many(2000, lambda i: "/com.example.N%d/m" % i, b"[]", 4)
    rss = g.rss_kb()
    top = set(c.children("/dubbo"))
    seen = kit.many(CALLS, lambda i: "/com.example.M%d/m" % i, b"[]", 4)
    assert all(k.startswith("503") or k.startswith("429") for k in seen), seen
    c.close()
    c = kit.Client()
    assert set(c.children("/dubbo")) == top, "a node was created"
    refs = g.admin("/references")[1]["references"]
    assert len(refs) <= 64 + 1, len(refs)
    grown = g.rss_kb() - rss
    assert grown <= 4096 or kit.VARIANT in ("asan", "tsan"), "%d KiB grown" % grown
    seen2 = kit.many(1000, PATH, b"[]", 4)
    assert seen2 == {"200": 1000}, seen2
    print("        %s; RSS grew %d KiB" % (seen, grown))
    g.stop()
    c.close()
    s.kill()


def session_expired_again_and_again():
    c = start()
    s = kit.Stub()
    kit.Providers(c, IFACE).add(20880)
    relay = kit.Relay(2182, 2181)
    g = kit.Gateway(config(2182))
    ready(g)
    kit.wait_until(lambda: len(nodes(c)) == 1, 5, "a consumer node")
    before = nodes(c)
    load = kit.Load(PATH, "[]", 2)
    times = int(os.environ.get("EXPIRIES", "100"))
    for i in range(times):
        n = len(relay.sessions)
        relay.expire()
        kit.wait_until(lambda: len(relay.sessions) > n, 20, "a new session (%d)" % i)
        kit.wait_until(lambda: nodes(c) == before, 20, "the same node again (%d): %s" % (i, nodes(c)))
    seen = load.stop()
    assert set(seen) == {"200"}, seen
    g.stop()
    relay.close()
    c.close()
    s.kill()


def zookeeper_killed_under_load():
    c = start()
    s = kit.Stub()
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    state = tempfile.mkdtemp(prefix="state-")
    conf = config(process={"state_dir": state})
    g = kit.Gateway(conf)
    ready(g)
    kit.wait_until(lambda: len(nodes(c)) == 1, 5, "a consumer node")
    before = nodes(c)
    kit.wait_until(lambda: os.listdir(state), 10, "the saved list")
    time.sleep(1)
    load = kit.Load(PATH, "[]", 4)
    zk.stop()
    time.sleep(60 if os.environ.get("LONG") else 15)
    seen = load.stop()
    assert set(seen) == {"200"}, seen
    g.stop()
    g = kit.Gateway(conf)
    h = kit.Http()
    status, text, _ = h.post(PATH, "[]")
    assert status == 200, (status, text)
    status, body = g.admin("/ready")
    assert status == 200 and body["degraded"], body
    load = kit.Load(PATH, "[]", 4)
    zk.start()
    c = kit.Client()
    kit.wait_until(lambda: nodes(c) == before, 40, "the node stands again")
    ready(g)
    seen = load.stop()
    assert set(seen) == {"200"}, seen
    kit.wait_until(lambda: g.admin("/ready")[1]["degraded"] == [], 10, "no longer degraded")
    g.stop()
    c.close()
    s.kill()


def provider_killed_under_load():
    c = start()
    a, b = kit.Stub(20880, 20881), kit.Stub(20882, 20883)
    p = kit.Providers(c, IFACE)
    p.add(20880)
    p.add(20882)
    g = kit.Gateway(config())
    kit.wait_until(lambda: len((g.reference(IFACE) or {}).get("providers", {}).get("list", [])) == 2, 10, "both are known")
    load = kit.Load("/%s/slow" % IFACE, "[20]", 50)
    kit.wait_until(lambda: load.count() > 500, 20, "the load runs")
    a.kill(signal.SIGKILL)
    time.sleep(2)
    n = load.count()
    kit.wait_until(lambda: load.count() > n + 200, 20, "it goes on")
    seen = load.stop()
    assert set(seen) <= {"200", "502 CONNECTION_LOST"} and seen.get("502 CONNECTION_LOST", 0) <= 50, seen
    g.stop()
    c.close()
    b.kill()


def service_that_is_configured_no_more():
    """After the reload its reference is one like any other: given up when idle, and asked for anew by the next call."""
    c = start()
    p = kit.Providers(c, IFACE)
    a = kit.Stub()
    p.add(20880)
    conf = config(limits={"reference_idle": "10s"})
    g = kit.Gateway(conf)
    ready(g)
    assert kit.Http().post(PATH, "[]")[0] == 200
    g.write(dict(conf, services=[]))
    g.proc.send_signal(signal.SIGHUP)
    kit.wait_until(lambda: g.reference(IFACE) is None, 30, "the idle reference is given up")
    p.remove(20880)
    a.kill()
    b = kit.Stub(20882, 20883)
    p.add(20882)
    time.sleep(0.5)
    status, text, _ = kit.Http().post(PATH, "[]")
    assert status == 200, text
    g.stop()
    c.close()
    b.kill()


def connection_of_a_removed_provider_is_closed():
    """Also when a call was in flight on it while it left the list."""
    c = start()
    stubs = [kit.Stub(20880 + 2 * i, 20881 + 2 * i) for i in range(3)]
    p = kit.Providers(c, IFACE)
    for s in stubs:
        s.script(json.dumps({"m": [[{"delay_ms": 1500}, {"value": s.port}]]}))
        p.add(s.port)
    g = kit.Gateway(config(process={"workers": 1, "state_dir": ""}))
    kit.wait_until(lambda: len((g.reference(IFACE) or {}).get("providers", {}).get("list", [])) == 3, 10, "all are known")
    load = kit.Load("/%s/m" % IFACE, "[]", 12)
    kit.wait_until(lambda: all(s.numbers()["calls"] for s in stubs), 5, "a call at every provider")
    p.remove(stubs[0].port)
    kit.wait_until(lambda: len(g.reference(IFACE)["providers"]["list"]) == 2, 5, "one is gone")
    seen = load.stop()
    assert set(seen) == {"200"}, seen
    kit.wait_until(lambda: stubs[0].numbers()["connections"] == 0, 5, "its connection is closed")
    assert stubs[1].numbers()["connections"] == 1
    g.stop()
    c.close()


def unlisted_as_long_as_connected():
    """All nodes vanish at once while the providers live: no call fails, for any time.  One that dies leaves the
    list, and nobody knocks at its address any more."""
    c = start()
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    owner = kit.Client(timeout_ms=60000)
    for s in stubs:
        kit.Providers(owner, IFACE).add(s.port)
    g = kit.Gateway(config())
    kit.wait_until(lambda: len((g.reference(IFACE) or {}).get("providers", {}).get("list", [])) == 2, 10, "both are known")
    listed = lambda: sorted(x["state"] for x in g.reference(IFACE)["providers"]["list"])
    load = kit.Load(PATH, "[]", 8)
    workers = 2
    kit.wait_until(lambda: all(s.numbers()["connections"] == workers for s in stubs), 20, "every worker is connected")
    owner.close()
    kit.wait_until(lambda: listed() == ["unlisted", "unlisted"], 5, "both are unlisted")
    time.sleep(3)
    assert listed() == ["unlisted", "unlisted"], g.reference(IFACE)
    stubs[0].kill()
    kit.wait_until(lambda: listed() == ["unlisted"], 5, "the dead one has left")
    seen = load.stop()
    assert set(seen) <= {"200", "502 CONNECTION_LOST"} and seen.get("502 CONNECTION_LOST", 0) <= 8, seen
    stubs[1].kill()
    kit.wait_until(lambda: kit.Http().post(PATH, "[]")[1].find("NO_PROVIDER") > 0, 1, "none is left")
    kit.wait_until(lambda: g.reference(IFACE)["state"] == "empty", 5, "the list is empty")
    connects = g.metric("dubbogate_provider_connects_total")
    assert kit.many(100, PATH, b"[]", 2) == {"503 NO_PROVIDER": 100}
    assert g.metric("dubbogate_provider_connects_total") == connects
    g.stop()
    c.close()


def paused_providers_are_used_again():
    """Sessions of paused providers (stopped virtual machine, long garbage collection) expire.  When they go on they are
    used long before they have registered again; also one that this worker had never called."""
    c = start()
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    owner = kit.Client(timeout_ms=60000)
    for s in stubs:
        kit.Providers(owner, IFACE).add(s.port)
    kit.Providers(owner, "demo.Idle").add(20882)
    conf = config(process={"workers": 1, "state_dir": ""}, defaults={"timeout": "300ms"})
    conf["services"].append({"name": "idle", "interface": "demo.Idle"})
    g = kit.Gateway(conf)
    ready(g)
    kit.wait_until(lambda: kit.Http().post(PATH, "[]")[0] and all(s.numbers()["connections"] for s in stubs), 10,
                   "both are connected")
    for s in stubs:
        s.proc.send_signal(signal.SIGSTOP)
    owner.close()
    load = kit.Load(PATH, "[]", 8)
    time.sleep(4)  # given up as half open, and silent when they are tried again
    for s in stubs:
        s.proc.send_signal(signal.SIGCONT)
    load.stop()
    h = kit.Http()
    kit.wait_until(lambda: [h.post(PATH, "[]")[0] for _ in range(20)] == [200] * 20, 3, "they are used again")
    assert kit.many(500, PATH, b"[]", 4) == {"200": 500}
    assert [x["state"] for x in g.reference(IFACE)["providers"]["list"]] == ["unlisted", "unlisted"], g.reference(IFACE)
    assert h.post("/demo.Idle/whoami", "[]")[0] == 200
    assert g.reference("demo.Idle")["providers"]["list"][0]["state"] == "unlisted"
    g.stop()
    c.close()


if __name__ == "__main__":
    try:
        kit.run([incident_a_calls_without_provider, incident_b_one_consumer_node, names_from_outside_are_bounded,
                 session_expired_again_and_again, zookeeper_killed_under_load, provider_killed_under_load,
                 unlisted_as_long_as_connected, paused_providers_are_used_again,
                 connection_of_a_removed_provider_is_closed, service_that_is_configured_no_more])
    finally:
        if zk is not None:
            zk.close()
