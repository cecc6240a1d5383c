#!/usr/bin/env python3
"""Providers that hang, stop or vanish behind a cut network, with the registry up, down or empty (docs/OPERATIONS.md
section 7)."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
from outage_kit import (IFACE, PATH, Before, Host, client, config, endpoints, ready, states,  # noqa: E402
                        timed)  # pylint: disable=wrong-import-position

zk = None
SLOW = 1 if kit.VARIANT in ("debug", "release") else 4  # what limits are multiplied by


def providers(c, *ports, ephemeral=False):
    for port in ports:
        kit.Providers(c, IFACE).add(port, ephemeral=ephemeral)


def hung_provider_of_two(registry_down):
    """Five calls to it end at their deadline, all others go to the other one; continued, it has got each call once, and
    is used again."""
    c = client(zk)
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    providers(c, 20880, 20882)
    g = kit.Gateway(config(defaults={"timeout": "300ms"}, process={"workers": 1}))
    ready(g, 2)
    h = kit.Http()
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200 and all(s.numbers()["connections"] for s in stubs), 5,
                   "both are connected")
    before = Before(g)
    if registry_down:
        zk.stop()
    stubs[0].proc.send_signal(signal.SIGSTOP)
    seen = [timed(h) for _ in range(60)]
    late = [i for i, x in enumerate(seen) if x[0] != 200]
    assert [seen[i][:2] for i in late] == [(504, "PROVIDER_TIMEOUT")] * 5, [seen[i] for i in late]
    took = sorted(seen[i][2] for i in late)
    assert 0.29 < took[0] and took[2] < 0.32 and took[4] < 0.5 * SLOW, took  # whoever else is busy here, not all of them
    assert kit.many(1000, PATH, b"[]", 4) == {"200": 1000}
    time.sleep(1.2)  # the heartbeat that it was given is not answered: its connection is closed
    kit.wait_until(lambda: endpoints(g)["127.0.0.1:20880"]["state"] == "ejected", 2, "it is given up")
    assert kit.many(1000, PATH, b"[]", 4) == {"200": 1000}
    sent = endpoints(g)["127.0.0.1:20880"]["calls"]
    stubs[0].proc.send_signal(signal.SIGCONT)
    begin = time.monotonic()
    kit.wait_until(lambda: stubs[0].numbers()["calls"] >= sent, 5, "it has read what was sent")
    assert stubs[0].numbers()["calls"] == sent, "a call was sent twice: %s" % stubs[0].numbers()
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200 and stubs[0].numbers()["calls"] > sent, 10, "it is used again")
    assert time.monotonic() - begin < 10
    assert kit.many(200, PATH, b"[]", 2) == {"200": 200}
    if registry_down:
        zk.start()
    c = kit.Client(timeout_ms=60000)
    before.check(c)
    g.stop()
    c.close()


def hung_provider():
    hung_provider_of_two(False)


def hung_provider_and_no_registry():
    hung_provider_of_two(True)


def only_provider_hangs_and_no_registry():
    """504 until five have timed out and a heartbeat has, then 503 at once, as good as no call reaches it; used again as soon
    as it goes on."""
    c = client(zk)
    a = kit.Stub()
    providers(c, 20880)
    g = kit.Gateway(config(defaults={"timeout": "300ms"}, process={"workers": 1}))
    ready(g, 1)
    h = kit.Http()
    assert h.post(PATH, "[]")[0] == 200
    before = Before(g)
    zk.stop()
    a.proc.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    seen = []
    while not seen or seen[-1][0] != 503:
        seen.append(timed(h))
        assert time.monotonic() - begin < 5, seen
    print("        fast after %.2f s, %d calls" % (time.monotonic() - begin, len(seen)))
    # the last one is under way when its time is over
    late = [x[:2] for x in seen if x[:2] != (502, "CONNECTION_LOST")]
    assert set(late[:-1]) == {(504, "PROVIDER_TIMEOUT")} and len(seen) <= 5 + 4 + 1 and len(seen) - len(late) <= 1, seen
    begin, fast, n = time.monotonic(), [], 0
    while time.monotonic() - begin < 3:
        fast.append(timed(h))
        time.sleep(0.005)
    assert {x[:2] for x in fast} == {(503, "PROVIDER_UNREACHABLE")}, {x[:2] for x in fast}
    assert sorted(x[2] for x in fast)[len(fast) * 99 // 100] < 0.02 * SLOW, max(x[2] for x in fast)
    assert h.post(PATH, "[]")[2]["Retry-After"] == "1"
    dialled = g.metric("dubbogate_provider_connects_total")
    assert dialled <= 1 + 2 + 1, "connections that pile up at a hung process: %d" % dialled
    sent = endpoints(g)["127.0.0.1:20880"]["calls"]
    a.proc.send_signal(signal.SIGCONT)
    begin = time.monotonic()
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 3, "it is used again")
    assert time.monotonic() - begin < 1, time.monotonic() - begin
    n = a.numbers()["calls"]
    assert n <= sent + 1 and kit.many(200, PATH, b"[]", 2) == {"200": 200}, (n, sent)
    zk.start()
    c = kit.Client(timeout_ms=60000)
    before.check(c)
    g.stop()
    c.close()


def stopped_providers():
    """SIGTERM: their nodes go, they say goodbye and close.  No call goes over a connection that said so, and 503 at most
    1 s after the last one has closed, without a word to the dead addresses."""
    c = client(zk)
    owner = kit.Client(timeout_ms=4000)
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    for s in stubs:
        kit.Providers(owner, IFACE).add(s.port)
        s.script('{"goodbye": [[{"readonly": true}, {"value": "bye"}]]}')
    g = kit.Gateway(config(process={"workers": 1}))
    ready(g, 2)
    before = Before(g)
    h = kit.Http()
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200 and all(s.numbers()["connections"] for s in stubs), 5,
                   "both are connected")
    load = kit.Load(PATH, "[]", 4)
    for s in stubs:
        kit.Providers(owner, IFACE).remove(s.port)
    def both_said_it():
        h.post("/%s/goodbye" % IFACE, "[]")
        return all(x["state"] == "readonly" for x in endpoints(g).values())

    def nothing_comes():
        told = [s.numbers()["calls"] for s in stubs]
        time.sleep(0.3)
        return [s.numbers()["calls"] for s in stubs] == told

    kit.wait_until(both_said_it, 5, "both have said goodbye")
    kit.wait_until(nothing_comes, 3, "what was on its way has come, and nothing else though clients go on")
    for s in stubs:
        s.kill(signal.SIGTERM)
    begin = time.monotonic()
    kit.wait_until(lambda: timed(h)[:2] == (503, "NO_PROVIDER"), 3, "nobody is left")
    assert time.monotonic() - begin < 1, time.monotonic() - begin
    seen = load.stop()
    assert all(k == "200" or k.startswith("503 ") for k in seen), seen
    kit.wait_until(lambda: not endpoints(g), 3, "the list is empty")
    dialled = g.metric("dubbogate_provider_connects_total")
    assert set(kit.many(200, PATH, b"[]", 2)) == {"503 NO_PROVIDER"}
    time.sleep(1)
    assert g.metric("dubbogate_provider_connects_total") == dialled, "dead addresses are tried"
    before.check()
    owner.close()
    g.stop()
    c.close()


def restarted_under_another_registry(called_meanwhile):
    """All registry servers are down, the provider dies and comes back on its port under another registry: used within 1 s
    of listening.  Then the first registry returns with its data: without its node it stays as long as its connection lives."""
    c = client(zk)
    other = kit.ZooKeeper(2191).start()
    there = kit.Client(2191)
    a = kit.Stub()
    owner = kit.Client(timeout_ms=4000)
    kit.Providers(owner, IFACE).add(20880)
    g = kit.Gateway(config())
    ready(g, 1)
    h = kit.Http()
    both = lambda: kit.many(20, PATH, b"[]", 4) == {"200": 20} and a.numbers()["connections"] == 2
    kit.wait_until(both, 5, "both workers are connected")
    before = Before(g)
    zk.stop()
    a.kill()
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        if called_meanwhile:
            assert h.post(PATH, "[]")[0] in (502, 503)
        time.sleep(0.02)
    a = kit.Stub()
    begin = time.monotonic()
    kit.Providers(there, IFACE).add(20880)
    kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 3, "it is used again")
    assert time.monotonic() - begin < 1, time.monotonic() - begin
    kit.wait_until(both, 5, "both workers are connected again")
    load = kit.Load(PATH, "[]", 4)
    zk.start()
    kit.wait_until(lambda: states(g) == ["unlisted"], 20, "its node is gone from the first registry")
    time.sleep(1)
    assert set(load.stop()) == {"200"}, load.seen
    c = kit.Client(timeout_ms=60000)
    before.check(c)
    a.kill()
    h.post(PATH, "[]")
    kit.wait_until(lambda: not states(g), 5, "it refuses, so it is dropped")
    assert timed(h)[:2] == (503, "NO_PROVIDER")
    g.stop()
    c.close()
    there.close()
    other.close()


def restarted_under_another_registry_called_meanwhile():
    restarted_under_another_registry(True)


def restarted_under_another_registry_not_called():
    restarted_under_another_registry(False)


def cut_network_and_no_registry():
    """Packets to and from the only provider vanish, again and again, with the registry down: no call outlives its deadline,
    most are refused at once; within 1 s of healing, whenever in a connection attempt that is, it is used, and no connection is
    left over."""
    c = client(zk)
    host = Host()
    a = kit.Stub(20880, 20881, "-l", "0.0.0.0", inside=host)
    kit.Providers(c, IFACE).add(20880, host=host.THERE, ephemeral=False)
    g = kit.Gateway(config(defaults={"timeout": "100ms"}, process={"workers": 1}))
    ready(g, 1)
    h = kit.Http()
    assert h.post(PATH, "[]")[0] == 200
    before = Before(g)
    zk.stop()
    took_to_heal = {}
    begun = lambda: g.metric("dubbogate_provider_connects_total")

    def refused():
        """One call, meanwhile: was it refused at once?"""
        status, what, took = timed(h)
        assert took < 0.5 * SLOW and (status, what) in (
            (504, "PROVIDER_TIMEOUT"), (503, "PROVIDER_UNREACHABLE"), (502, "CONNECTION_LOST")), (status, what, took)
        lost.extend(x for x in [what] if x == "CONNECTION_LOST")  # the one under way when it is given up
        assert len(lost) <= 1
        time.sleep(0.01)
        return status == 503 and took < 0.05 * SLOW

    for late in 0, 0.1, 0.4, 0.9, 1:
        host.cut()
        lost, fast, begin = [], 0, time.monotonic()
        while time.monotonic() - begin < 6 and fast < 10:
            fast = fast + 1 if refused() else 0
        assert fast >= 10, "calls still wait for it"
        n = begun()
        kit.wait_until(lambda: (refused() or True) and begun() > n, 4, "it is dialled again")
        begin = time.monotonic()
        while time.monotonic() - begin < late:
            refused()
        host.heal()
        begin = time.monotonic()
        kit.wait_until(lambda: h.post(PATH, "[]")[0] == 200, 5, "it is used again")
        took_to_heal[late] = round(time.monotonic() - begin, 2)
    print("        used again after", took_to_heal)
    assert max(took_to_heal.values()) < 1, took_to_heal
    assert kit.many(200, PATH, b"[]", 2) == {"200": 200}
    zk.start()
    c = kit.Client(timeout_ms=60000)
    before.check(c)
    kit.wait_until(lambda: len(g.admin("/connections")[1]["connections"]) == 1, 5, "one connection")
    g.stop()
    a.kill()
    host.close()
    c.close()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([hung_provider, hung_provider_and_no_registry, only_provider_hangs_and_no_registry, stopped_providers,
                 restarted_under_another_registry_called_meanwhile, restarted_under_another_registry_not_called,
                 cut_network_and_no_registry])
    finally:
        if zk is not None:
            zk.close()
