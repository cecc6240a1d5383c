#!/usr/bin/env python3
"""Outages of the registry under load (docs/OPERATIONS.md section 7): calls go on, and what comes back is used at once."""
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
from outage_kit import (IFACE, PATH, SmallDisk, client, config, one_node_per_reference, ready,  # noqa: E402
                        states)  # pylint: disable=wrong-import-position
from registry_kit import Driver, provider_node  # noqa: E402  pylint: disable=wrong-import-position

zk = None


def start():
    return client(zk), config()


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


def killed_provider_and_its_node():
    """The node of the killed provider stays (its session lives on): calls fail fast and write nothing; used again within
    1 s of listening."""
    c, conf = start()
    a = kit.Stub()
    kit.Providers(c, IFACE).add(20880)
    g = kit.Gateway(conf)
    ready(g, 1)
    h = kit.Http()
    assert h.post(PATH, "[]")[0] == 200
    kit.wait_until(lambda: len(kit.consumers(c, IFACE)) == 1, 5, "the consumer node")
    zxid = zk.zxid()
    a.kill()
    h.post(PATH, "[]")
    begin = time.monotonic()
    seen = kit.many(500, PATH, b"[]", 1)
    assert time.monotonic() - begin < 500 * 0.005 * (1 if kit.VARIANT == "debug" else 4)
    assert set(seen) <= {"502 CONNECTION_LOST", "503 PROVIDER_UNREACHABLE", "503 NO_PROVIDER"}, seen
    assert zk.zxid() == zxid, "calls wrote into ZooKeeper"
    a = kit.Stub()
    begin = time.monotonic()
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 3, "it is used again")
    assert time.monotonic() - begin < 1
    one_node_per_reference(c, g, [IFACE])
    g.stop()
    a.kill()
    c.close()


def hung_provider_while_the_registry_is_down():
    """One of two hangs: five calls of each worker end at their deadline, then all go to the other; used again within 10 s of
    going on."""
    c, conf = start()
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    for s in stubs:
        kit.Providers(c, IFACE).add(s.port, ephemeral=False)
    g = kit.Gateway(dict(conf, defaults={"timeout": "300ms"}))
    ready(g, 2)
    load = kit.Load(PATH, "[]", 4)
    kit.wait_until(lambda: all(s.numbers()["connections"] for s in stubs), 10, "both are connected")
    zk.stop()
    stubs[0].proc.send_signal(signal.SIGSTOP)
    time.sleep(3)
    seen = load.stop()
    # a worker ejects it after five in a row, when others of its clients are on their way to it
    assert set(seen) == {"200", "504 PROVIDER_TIMEOUT"} and 5 <= seen["504 PROVIDER_TIMEOUT"] <= 18, seen
    # a worker that none of those clients was connected to may have to learn it yet
    assert kit.many(200, PATH, b"[]", 2).get("200", 0) >= 190
    stubs[0].proc.send_signal(signal.SIGCONT)
    load = kit.Load(PATH, "[]", 4)
    before = stubs[0].numbers()["calls"]
    kit.wait_until(lambda: stubs[0].numbers()["calls"] > before + 20, 10, "it is used again")
    load.stop()
    assert kit.many(200, PATH, b"[]", 2) == {"200": 200}
    g.stop()


def sessions_of_living_providers_expire():
    """The registry comes back with its data, the sessions of the providers do not: nodes vanish, providers answer.  No
    call fails; one that dies then leaves."""
    c, conf = start()
    owner = kit.Client(timeout_ms=4000)
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    for s in stubs:
        kit.Providers(owner, IFACE).add(s.port)
    g = kit.Gateway(conf)
    ready(g, 2)
    load = kit.Load(PATH, "[]", 4)
    kit.wait_until(lambda: all(s.numbers()["connections"] >= 2 for s in stubs), 10, "every worker is connected")
    zk.stop()
    zk.start()
    kit.wait_until(lambda: states(g) == ["unlisted", "unlisted"], 20, "their nodes are gone")
    c = kit.Client(timeout_ms=60000)
    assert not c.children("/dubbo/%s/providers" % IFACE)
    time.sleep(2)
    seen = load.stop()
    assert set(seen) == {"200"}, seen
    one_node_per_reference(c, g, [IFACE])
    stubs[0].kill()
    kit.many(50, PATH, b"[]", 2)
    kit.wait_until(lambda: states(g) == ["unlisted"], 5, "the dead one has left")
    assert kit.many(200, PATH, b"[]", 2) == {"200": 200}
    g.stop()
    c.close()


def saved_list_lost_while_running():
    """Deleted, then garbage: no call notices, the next change writes it anew.  Restarts while the registry is down: with
    the list calls go on; with a damaged one or none 503 STARTING until the registry is back."""
    c, conf = start()
    a = kit.Stub()
    p = kit.Providers(c, IFACE)
    p.add(20880, ephemeral=False)
    with tempfile.TemporaryDirectory() as state:
        conf["process"] = {"state_dir": state}
        file = state + "/references.json"
        g = kit.Gateway(conf)
        ready(g, 1)
        kit.wait_until(lambda: os.path.exists(file), 10, "the list is saved")
        load = kit.Load(PATH, "[]", 2)
        os.unlink(file)
        p.add(20881, ephemeral=False, weight="0")
        kit.wait_until(lambda: os.path.exists(file), 15, "it is written anew")
        with open(file, "wb") as f:
            f.write(os.urandom(5000))
        p.remove(20881, weight="0")
        kit.wait_until(lambda: b"20880" in open(file, "rb").read(), 15, "and again")
        assert set(load.stop()) == {"200"}, load.seen
        g.kill()
        zk.stop()
        g = kit.Gateway(conf)
        assert kit.Http().post(PATH, "[]")[0] == 200
        g.kill()
        for damage in (lambda: open(file, "r+b").write(b"garbage"), lambda: os.unlink(file)):
            damage()
            g = kit.Gateway(conf)
            begin = time.monotonic()
            status, text, _ = kit.Http().post(PATH, "[]")
            assert status == 503 and "STARTING" in text and time.monotonic() - begin < 4, text
            assert g.admin("/ready")[0] == 503
            g.kill()
            open(file, "ab").close()
        g = kit.Gateway(conf)
        zk.start()
        h = kit.Http()
        kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 10, "it recovers by itself")
        kit.wait_until(lambda: g.admin("/ready")[0] == 200, 5, "it is ready")
        g.stop()
    a.kill()


def saved_list_on_a_full_disk():
    """The gateway goes on and says so.  Wherever the disk ends, the old file stands whole or the new one does."""
    c, conf = start()
    a = kit.Stub()
    p = kit.Providers(c, IFACE)
    p.add(20880, ephemeral=False)
    disk = SmallDisk(256)
    file = disk.dir + "/references.json"
    conf["process"] = {"state_dir": disk.dir}
    g = kit.Gateway(conf)
    ready(g, 1)
    kit.wait_until(lambda: os.path.exists(file), 10, "the list is saved")
    load = kit.Load(PATH, "[]", 2)
    disk.leave(0)
    p.add(20881, ephemeral=False, weight="0")
    kit.wait_until(lambda: g.metric("dubbogate_snapshot_writable") == 0, 10, "it says that it cannot save")
    os.unlink(disk.dir + "/filler")
    kit.wait_until(lambda: g.metric("dubbogate_snapshot_writable") == 1, 25, "it saves again")
    assert set(load.stop()) == {"200"}, load.seen
    g.stop()
    with open(file, "rb") as f:
        old = f.read()
    for i in range(200):
        c.create("/dubbo/%s/providers/%s" % (IFACE, provider_node(IFACE, 21000 + i)))
    olds = news = 0
    for blocks in range(0, 20):
        with open(file, "wb") as f:
            f.write(old)
        disk.leave(blocks)
        d = Driver("--state", disk.dir, services=[IFACE])
        d.wait(lambda m: m["mail"] == "directory" and len(m["providers"]) > 200)
        d.stop()
        left = sorted(n for n in os.listdir(disk.dir) if n != "filler")
        assert left == ["references.json"], left
        with open(file, "rb") as f:
            now = f.read()
        olds += now == old
        news += now.count(b"dubbo://") > 200
        os.unlink(disk.dir + "/filler")
        d = Driver("--state", disk.dir, registry="zookeeper://127.0.0.1:2199", services=[IFACE])
        m = d.wait(lambda m: m["mail"] == "directory" and m["source"] == "snapshot")
        assert len(m["providers"]) >= 2, m
        d.kill()
    assert olds + news == 20 and olds >= 5 and news >= 2, (olds, news)
    disk.close()
    a.kill()
    c.close()


def paused_gateway():
    """Longer than its session: no call fails afterwards, and its node is written once."""
    c, conf = start()
    a = kit.Stub()
    kit.Providers(c, IFACE).add(20880)
    conf["defaults"]["timeout"] = "20s"  # a call under way during the pause is not over its time
    g = kit.Gateway(conf)
    ready(g, 1)
    dir_ = "/dubbo/%s/consumers" % IFACE
    before = kit.wait_until(lambda: kit.consumers(c, IFACE), 5, "the consumer node")
    stat = c.exists(dir_)
    load = kit.Load(PATH, "[]", 4)
    kit.wait_until(lambda: load.count() > 100, 5, "the load runs")
    g.proc.send_signal(signal.SIGSTOP)
    kit.wait_until(lambda: not kit.consumers(c, IFACE), 10, "its session is over")
    g.proc.send_signal(signal.SIGCONT)
    kit.wait_until(lambda: kit.consumers(c, IFACE) == before, 6, "the same node again")
    time.sleep(1)
    assert set(load.stop()) == {"200"}, load.seen
    assert c.exists(dir_)["cversion"] == stat["cversion"] + 2, "gone once, written once"
    assert g.reference(IFACE)["subscribes"] == 1
    one_node_per_reference(c, g, [IFACE])
    g.stop()
    a.kill()
    c.close()


def flood_of_names():
    """20,000 names that are no services: nothing is written, and the service in use keeps its reference."""
    c, conf = start()
    a = kit.Stub()
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    g = kit.Gateway(dict(conf, limits={"references": 64}))
    ready(g, 1)
    kit.wait_until(lambda: len(kit.consumers(c, IFACE)) == 1, 5, "the consumer node")
    zxid = zk.zxid()
    load = kit.Load(PATH, "[]", 1)
    seen = kit.many(20000, lambda i: "/no.such.N%d/m" % i, b"[]", 4)
    assert all(k[:3] in ("503", "404", "429") for k in seen), seen
    assert set(load.stop()) == {"200"}, load.seen
    assert zk.zxid() == zxid, "written into ZooKeeper"
    assert zk.watches() <= 2 * 64 + 8, zk.watches()
    assert g.reference(IFACE)["subscribes"] == 1
    one_node_per_reference(c, g, [IFACE])
    g.stop()
    a.kill()


def slow_registry():
    """Every piece takes 2 s each way: the known service does not feel it; a new name is answered at its deadline, and used
    when it is known."""
    c, conf = start()
    a = kit.Stub()
    other = "demo.Other"
    for i in (IFACE, other):
        kit.Providers(c, i).add(20880)
    relay = kit.Relay(2182, 2181)
    conf["registries"][0].update(address="zookeeper://127.0.0.1:2182", session_timeout="30s")
    g = kit.Gateway(conf)
    ready(g, 1)
    relay.delay = 2
    load = kit.Load(PATH, "[]", 2)
    begin = time.monotonic()
    status, text, _ = kit.Http().post("/%s/whoami" % other, "[]")
    took = time.monotonic() - begin
    assert status == 503 and "STARTING" in text and took < 3.5, (status, text, took)
    n = load.count()
    time.sleep(0.5)
    assert load.count() > n + 50, "others do not wait"
    relay.delay = 0
    h = kit.Http()
    kit.wait_until(lambda: h.post("/%s/whoami" % other, "[]")[0] == 200, 15, "it is known")
    assert set(load.stop()) == {"200"}, load.seen
    g.stop()
    relay.close()
    a.kill()
    c.close()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([restarted_provider_while_the_registry_is_down, wiped_registry_under_load, killed_provider_and_its_node,
                 hung_provider_while_the_registry_is_down, sessions_of_living_providers_expire,
                 saved_list_lost_while_running, saved_list_on_a_full_disk, paused_gateway, flood_of_names, slow_registry])
    finally:
        if zk is not None:
            zk.close()
