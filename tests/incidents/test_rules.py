#!/usr/bin/env python3
"""Rules that operators publish in a real ZooKeeper (docs/REGISTRY.md section 5)."""
import os
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
WHERE = "/dubbo/%s/configurators" % IFACE
zk = None


def start(**more):
    """Two providers, a and b, and a gateway that knows both."""
    a, b = kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")
    c = kit.Client()
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    p = registry_kit.Providers(c, IFACE)
    p.add(20880, ephemeral=False)
    p.add(20882, ephemeral=False)
    return a, b, c, p, gateway(**more)


def gateway(**more):
    conf = {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}],
            "direct": {"enabled": True, "allow": ["*"]}, "defaults": {"timeout": "3s"}}
    conf.update(more)
    return kit.Gateway(conf)


def end(*what):
    for x in what[:-1]:
        x.kill() if hasattr(x, "kill") else x.close()
    what[-1].stop()


def names(n=40):
    h = kit.Http()
    return [h.post("/%s/whoami" % IFACE, "[]")[1].strip('"') for _ in range(n)]


def used():
    return sorted(set(names()))


def node(text):
    return WHERE + "/" + urllib.parse.quote(text, safe="")


def override(c, address, **params):
    q = {"category": "configurators", "dynamic": "false", "enabled": "true", **params}
    path = node("override://%s/%s?%s" % (address, IFACE, "&".join("%s=%s" % kv for kv in q.items())))
    c.ensure(path)
    return path


def soon(expected, what):
    kit.wait_until(lambda: used() == expected, 3, what)


def one_provider_is_taken_out():
    """disabled=true at an address, as the admin console writes it; without the node it is back.  We create nothing for it."""
    a, b, c, p, g = start()
    assert used() == ["a", "b"]
    assert not c.exists(WHERE), "the directory of rules is not ours to create"
    path = override(c, "127.0.0.1:20880", disabled="true")
    soon(["b"], "only b is used")
    r = g.reference(IFACE)
    assert {x["address"]: x["state"] for x in r["providers"]["list"]} == {
        "127.0.0.1:20880": "disabled", "127.0.0.1:20882": "listed"}, r
    p.remove(20882)
    kit.wait_until(lambda: '"NO_PROVIDER_AFTER_RULES","detail":"rules leave no provider for %s: configurators disable 1 of 1"' % IFACE in
                   kit.Http().post("/%s/whoami" % IFACE, "[]")[1], 3, "a alone is nobody")
    p.add(20882, ephemeral=False)
    c.delete(path)
    soon(["a", "b"], "both are used again")
    end(a, b, c, g)


def case_68_half_encoded():
    """Written by hand or by an old tool: only the part before the question mark is encoded."""
    a, b, c, p, g = start()
    assert used() == ["a", "b"]
    path = WHERE + "/" + urllib.parse.quote("override://127.0.0.1:20880/" + IFACE, safe="") + \
        "?category=configurators&dynamic=false&enabled=true&disabled=true"
    c.ensure(path)
    soon(["b"], "it is obeyed")
    c.delete(path)
    soon(["a", "b"], "both are used again")
    end(a, b, c, g)


def rules_that_stand_at_the_start():
    """Not one call goes to the provider that is taken out, whether the service is configured or not."""
    for more in {}, {"services": [{"name": "user", "interface": IFACE, "registry": "main"}]}:
        a, b, c, p, g = start()
        override(c, "127.0.0.1:20880", disabled="true")
        g.stop()
        g = gateway(**more)
        assert set(names(200)) == {"b"}
        end(a, b, c, g)


def weights_are_written_over():
    a, b, c, p, g = start(services=[{"name": "user", "interface": IFACE, "registry": "main", "loadbalance": "random"}])
    override(c, "127.0.0.1:20880", weight="25")
    override(c, "127.0.0.1:20882", weight="75")
    kit.wait_until(lambda: [x["weight"] for x in g.reference(IFACE)["providers"]["list"]] == [25, 75], 3, "the weights")
    n = names(2000).count("a")
    assert 400 < n < 600, n  # 500 expected, five standard deviations
    end(a, b, c, g)


def rules_that_are_none_of_ours():
    """Switched off, for another consumer, for other providers, or no rule at all: nothing changes, and the rest counts."""
    a, b, c, p, g = start()
    assert used() == ["a", "b"]
    override(c, "127.0.0.1:20880", disabled="true", enabled="false")
    override(c, "10.9.8.7", disabled="true")
    override(c, "0.0.0.0", disabled="true", application="somebody-else")
    override(c, "127.0.0.1:1", disabled="true")
    c.ensure(node("no url"))
    c.ensure(WHERE + "/%zz")
    c.ensure(node("override://127.0.0.1:99999/%s?disabled=true" % IFACE))
    override(c, "127.0.0.1:20880", weight="60")
    kit.wait_until(lambda: [x["weight"] for x in g.reference(IFACE)["providers"]["list"]] == [60, 100], 3, "the weight")
    assert used() == ["a", "b"]
    assert "a rule is skipped" in g.log(), g.log()
    end(a, b, c, g)


def rules_outlive_the_registry():
    """They stay in force while it is down, and a start from the saved list obeys them."""
    kept = {"process": {"state_dir": tempfile.mkdtemp()}}
    a, b, c, p, g = start(**kept)
    override(c, "127.0.0.1:20880", disabled="true")
    soon(["b"], "only b is used")
    g.stop()
    g = gateway(**kept)
    soon(["b"], "only b is used")
    c.close()
    zk.stop()
    time.sleep(0.5)
    assert used() == ["b"]
    g.stop()
    g = gateway(**kept)
    assert used() == ["b"], "from the saved list"
    zk.start()
    c = kit.Client()
    kit.wait_until(lambda: g.reference(IFACE)["state"] == "ready", 20, "the list is read again")
    assert used() == ["b"]
    c.delete_tree(WHERE)
    soon(["a", "b"], "both are used again")
    end(a, b, c, g)


def tagged_providers_are_for_tagged_calls():
    """A gray release gets no calls of ours; alone it is no provider."""
    a, b, c, p, g = start()
    p.remove(20882)
    p.add(20882, ephemeral=False, **{"dubbo.tag": "gray"})
    assert used()  # the reference is there
    soon(["a"], "only a is used")
    assert {x["address"]: x["state"] for x in g.reference(IFACE)["providers"]["list"]}["127.0.0.1:20882"] == "listed"
    p.remove(20880)
    kit.wait_until(lambda: "NO_PROVIDER_AFTER_RULES" in names(1)[0], 3, "nobody is left")
    c.delete_tree("/dubbo/%s/providers" % IFACE)
    p.add(20880, ephemeral=False)
    soon(["a"], "the one without a tag")
    end(a, b, c, g)


def a_session_that_expires():
    """Rules that changed meanwhile are found."""
    a, b, c, p, g = start()
    path = override(c, "127.0.0.1:20880", disabled="true")
    soon(["b"], "only b is used")
    zk.stop()
    zk.start()
    c = kit.Client()
    c.delete(path)
    override(c, "127.0.0.1:20882", disabled="true")
    kit.wait_until(lambda: used() == ["a"], 20, "the new rule is in force")
    end(a, b, c, g)


def a_read_that_is_lost():
    """The event came, the connection broke under the read that followed: the rule is read when it stands again."""
    a, b, c, p, g = start()
    g.stop()
    override(c, "127.0.0.1:20882", weight="50")
    relay = kit.Relay(2182, 2181)
    g = gateway(registries=[{"name": "main", "address": "zookeeper://127.0.0.1:2182"}])
    assert used() == ["a", "b"]
    # our consumer node is an event too; then stand the watches of interface, configurators, providers, configuration nodes
    kit.wait_until(lambda: len(registry_kit.consumers(c, IFACE)) == 1 and g.metric("dubbogate_registry_watches") == 5,
                   3, "all watches stand")
    time.sleep(0.3)
    events = g.metric("dubbogate_registry_events_total")
    relay.mute = True
    override(c, "127.0.0.1:20880", disabled="true")
    kit.wait_until(lambda: g.metric("dubbogate_registry_events_total") > events, 3, "the event")
    time.sleep(0.3)
    assert used() == ["a", "b"], "the read was not lost"
    relay.mute = False
    relay.cut()
    kit.wait_until(lambda: used() == ["b"], 5, "only b is used")
    relay.close()
    end(a, b, c, g)


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([one_provider_is_taken_out, case_68_half_encoded, rules_that_stand_at_the_start, weights_are_written_over,
                 rules_that_are_none_of_ours, rules_outlive_the_registry, a_session_that_expires, a_read_that_is_lost,
                 tagged_providers_are_for_tagged_calls])
    finally:
        if zk is not None:
            zk.close()
