#!/usr/bin/env python3
"""Provider nodes as they are found in the wild, in a real ZooKeeper; the numbers are those of docs/TESTING.md."""
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"


def start(c, iface=IFACE, *urls):
    """A gateway, and a function that makes `urls` the providers of the interface."""
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    where = "/dubbo/%s/providers" % iface
    c.ensure(where)

    def put(*texts):
        for name in c.children(where):
            c.delete(where + "/" + name)
        for t in texts:
            c.create(where + "/" + urllib.parse.quote(t, safe=""), b"", True)
    put(*urls)
    g = kit.Gateway({"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181",
                                     "provider_networks": ["127.0.0.0/8", "::1/128", "fe80::/10"]}],
                     "direct": {"enabled": True, "allow": ["*"]}, "defaults": {"timeout": "3s"}})
    return g, put


def call(iface=IFACE, method="whoami"):
    return kit.Http().post("/%s/%s" % (iface, method), "[]")[:2]


def url(address, iface=IFACE, **params):
    params = {"interface": iface, "side": "provider", **params}
    return "dubbo://%s/%s?%s" % (address, iface, "&".join("%s=%s" % kv for kv in params.items()))


def case_52_ipv6():
    """Brackets are understood; a link-local address with a scope never breaks the list."""
    a = kit.Stub(20880, 20881, "-l", "::", "-n", "six")
    c = kit.Client()
    g, put = start(c, IFACE, url("[::1]:20880"))
    assert call() == (200, '"six"'), call()
    put(url("[::1]:20880"), url("[fe80::1%lo]:20880"))
    kit.wait_until(lambda: g.reference(IFACE)["providers"]["usable"] == 2, 5, "both are known")
    for _ in range(40):
        assert call() == (200, '"six"')
    assert [p["address"] for p in g.reference(IFACE)["providers"]["list"]] == ["[::1]:20880", "[fe80::1%lo]:20880"]
    g.stop()
    a.kill()
    c.close()


def case_53_dollar_in_a_name():
    a = kit.Stub(20880, 20881, "-n", "inner")
    c = kit.Client()
    name = "a.b.Login$Iface"
    g, _ = start(c, name, url("127.0.0.1:20880", name))
    assert call(name) == (200, '"inner"')
    assert call(name.replace("$", "%24")) == (200, '"inner"')
    assert len(g.admin("/references")[1]["references"]) == 1
    g.stop()
    a.kill()
    c.close()


def case_54_two_nodes_for_one_address():
    """A restart leaves two nodes for a while; they are one provider."""
    a, b = kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")
    c = kit.Client()
    g, _ = start(c, IFACE, url("127.0.0.1:20880", timestamp=1, pid=1), url("127.0.0.1:20880", timestamp=2, pid=2),
                 url("127.0.0.1:20882", timestamp=1, pid=1))
    h = kit.Http()
    seen = [h.post("/%s/whoami" % IFACE, "[]")[1] for _ in range(1000)]
    assert set(seen) == {'"a"', '"b"'} and 400 <= seen.count('"a"') <= 600, {x: seen.count(x) for x in set(seen)}
    g.stop()
    a.kill()
    b.kill()
    c.close()


def case_55_other_protocols():
    """A tri port speaks Dubbo only when its URL says so."""
    a = kit.Stub(20880, 20881, "-n", "a")
    c = kit.Client()
    tri = "tri://127.0.0.1:50051/%s?interface=%s&side=provider" % (IFACE, IFACE)
    g, put = start(c, IFACE, tri)
    h = kit.Http()
    status, text, _ = h.post("/%s/whoami" % IFACE, "[]")
    assert status == 503 and '"NO_PROVIDER"' in text, (status, text)
    put(tri, url("127.0.0.1:20880"))
    kit.wait_until(lambda: call() == (200, '"a"'), 5, "the dubbo one is used")
    for _ in range(20):
        assert call() == (200, '"a"')
    put("tri://127.0.0.1:20880/%s?interface=%s&side=provider&ext.protocol=dubbo&ext.protocol=dubbo," % (IFACE, IFACE))
    kit.wait_until(lambda: call()[0] == 200, 5, "the tri port that also speaks Dubbo is used")
    g.stop()
    a.kill()
    c.close()


def case_56_override_among_providers():
    a = kit.Stub(20880, 20881, "-n", "a")
    c = kit.Client()
    g, _ = start(c, IFACE, "override://127.0.0.1/%s?category=providers&disabled=true" % IFACE, url("127.0.0.1:20880"))
    for _ in range(20):
        assert call() == (200, '"a"')
    g.stop()
    a.kill()
    c.close()


if __name__ == "__main__":
    zk = None
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([case_52_ipv6, case_53_dollar_in_a_name, case_54_two_nodes_for_one_address, case_55_other_protocols,
                 case_56_override_among_providers])
    finally:
        if zk is not None:
            zk.close()
