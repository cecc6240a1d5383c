#!/usr/bin/env python3
"""Providers that register as instances of an application, alone and beside others (docs/REGISTRY.md section 6)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

ONLY = os.environ.get("LINE")
LINES = [line for line in ("3.2", "3.3") if not ONLY or line == ONLY]
CLIENTS = 24  # as good as certain to meet both workers
zk = None


def start():
    c = kit.Client()
    for path in "/dubbo", "/services", "/grp":
        if c.exists(path):
            c.delete_tree(path)
    return c


def gateway(**more):
    conf = {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}],
            "direct": {"enabled": True, "allow": ["*"]}, "defaults": {"timeout": "3s"}}
    conf.update(more)
    return kit.Gateway(conf)


def instance(line, port, name, *options):
    return kit.JavaProvider(line, port, "zookeeper://127.0.0.1:2181", "register.mode=instance", "name=" + name,
                            "app=app-" + name, *options)


def ready(p):
    kit.wait_until(lambda: p.proc.poll() is None and "READY " in p.output() + p.log(), 60, "the Java provider is ready")


def names(n=40, iface=kit.RICH):
    h = kit.Http()
    return [h.post("/%s/whoami" % iface, "[]") for _ in range(n)]


def used(n=40):
    return sorted({body.strip('"') for status, body, _ in names(n) if status == 200})


def instances_alone():
    """Storage local and remote; the interface has no node of its own."""
    for line in LINES:
        c = start()
        ps = [instance(line, 20880, "local", "metadata.type=local"), instance(line, 20881, "remote", "metadata.type=remote")]
        for p in ps:
            ready(p)
        assert not c.exists("/dubbo/" + kit.RICH), c.children("/dubbo")
        g = gateway()
        kit.wait_until(lambda: used() == ["local", "remote"], 15, "both are called")
        assert not c.exists("/dubbo/" + kit.RICH), "the directory of an interface is not ours to make"
        ps[0].kill()
        kit.wait_until(lambda: used() == ["remote"], 15, "the one that is left")
        ps[1].kill()
        g.stop()
        c.close()


def both_places():
    """A provider that is in both places is one; beside it one that is an instance only (docs/TESTING.md, case 66)."""
    c = start()
    line = LINES[0]
    a = kit.JavaProvider(line, 20880, "zookeeper://127.0.0.1:2181", "name=a")
    b = instance(line, 20881, "b", "metadata.type=remote")
    ready(a)
    ready(b)
    g = gateway()
    kit.wait_until(lambda: used() == ["a", "b"], 15, "both are called")
    listed = [x["address"] for x in g.reference(kit.RICH)["providers"]["list"]]
    assert sorted(listed) == ["127.0.0.1:20880", "127.0.0.1:20881"], listed
    n = [body.strip('"') for _, body, _ in names(400)].count("a")
    assert 120 < n < 280, n
    g.stop()
    g = gateway(registries=[{"name": "main", "address": "zookeeper://127.0.0.1:2181", "discovery": "interface"}])
    kit.wait_until(lambda: used() == ["a"], 15, "interface-level discovery knows one")
    g.stop()
    a.kill()
    b.kill()
    c.close()


def connected_to(g):
    """{provider's port: connections of the gateway}"""
    out = {}
    with open("/proc/%d/net/tcp" % g.proc.pid, encoding="ascii") as f:
        for line in f.readlines()[1:]:
            to, state = line.split()[2:4]
            port = int(to.rsplit(":", 1)[1], 16)
            if port in (20880, 20881) and state == "01":
                out[port] = out.get(port, 0) + 1
    return out


def thousand(conf):
    """How often each provider had its turn in 1,000 calls, and the connections that stand afterwards."""
    g = gateway(**conf)
    kit.wait_until(lambda: len(used()) == 2, 15, "both are called")
    hs = [kit.Http() for _ in range(CLIENTS)]
    turns = {}
    for i in range(1000):
        status, body, _ = hs[i % CLIENTS].post("/%s/whoami" % kit.RICH, "[]")
        assert status == 200, body
        turns[body] = turns.get(body, 0) + 1
    conns = connected_to(g)
    listed = [x["address"] for x in g.reference(kit.RICH)["providers"]["list"]]
    assert sorted(listed) == ["127.0.0.1:20880", "127.0.0.1:20881"], listed
    g.stop()
    return turns, conns


def case_66_one_provider_in_both_places():
    """A provider of 3.x that is registered both ways, beside one of 2.7 at the interface: each gets its half, and every
    worker has one connection to each; whether instances are looked for or not."""
    for line in LINES:
        c = start()
        ps = [kit.JavaProvider(line, 20880, "zookeeper://127.0.0.1:2181", "name=both"),
              kit.JavaProvider("2.7", 20881, "zookeeper://127.0.0.1:2181", "name=old")]
        for p in ps:
            ready(p)
        assert c.exists("/dubbo/" + kit.RICH) and c.children("/services"), "it is not in both places"
        for registries in [], [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}]:
            turns, conns = thousand({"process": {"workers": 2}, **({"registries": registries} if registries else {})})
            assert sorted(turns) == ['"both"', '"old"'] and all(400 <= n <= 600 for n in turns.values()), turns
            assert conns == {20880: 2, 20881: 2}, conns
        for p in ps:
            p.kill()
        c.close()


def old_and_instance_only():
    """One service of 2.7, that knows only interfaces, and of 3.x, that is an instance only: both are used.  Dubbo's own
    consumers use one of them."""
    for line in LINES:
        c = start()
        ps = [instance(line, 20880, "new", "metadata.type=remote"),
              kit.JavaProvider("2.7", 20881, "zookeeper://127.0.0.1:2181", "name=old")]
        for p in ps:
            ready(p)
        assert len(c.children("/dubbo/%s/providers" % kit.RICH)) == 1
        turns, conns = thousand({"process": {"workers": 2}})
        assert sorted(turns) == ['"new"', '"old"'] and all(400 <= n <= 600 for n in turns.values()), turns
        assert conns == {20880: 2, 20881: 2}, conns
        for p in ps:
            p.kill()
        c.close()


def main():
    global zk
    zk = kit.ZooKeeper().start()
    try:
        kit.run([instances_alone, both_places, case_66_one_provider_in_both_places, old_and_instance_only])
    finally:
        zk.close()


if __name__ == "__main__":
    main()
