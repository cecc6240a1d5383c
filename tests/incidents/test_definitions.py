#!/usr/bin/env python3
"""What providers published of their methods: how calls without types and the operator see it.  Real ZooKeeper, scripted provider."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
from outage_kit import IFACE, client, config  # noqa: E402  pylint: disable=wrong-import-position

PATH = "/%s/rawArguments" % IFACE
DATE = '["2018-01-29T12:00:00Z"]'
AS_DATE = '["4b0181d9d0"]'  # Hessian's date in minutes; without types it would be sent as a string
# what a provider of 3.x writes
DEFINITION = {"methods": [
    {"name": "rawArguments", "parameterTypes": ["java.util.Date"], "returnType": "java.util.List<java.lang.String>"},
    {"name": "rawArguments", "parameterTypes": ["demo.User", "java.util.Map<java.lang.String,java.lang.Long>"], "returnType": "void"},
    {"name": "whoami", "parameterTypes": [], "returnType": "java.lang.String"}],
    "types": [{"type": "demo.User", "properties": {"name": "java.lang.String", "birthday": "java.util.Date"}}]}
zk = None


def publish(c, definition, application="test", service=IFACE):
    path = "/dubbo/metadata/%s/provider/%s" % (service, application)
    c.ensure(path)
    c.set(path, json.dumps(definition).encode())


def known(g, key=IFACE):
    return kit.wait_until(lambda: (g.admin("/references/" + key)[1].get("definitions") or None), 10, "definitions of " + key)


def call(body, path=PATH):
    status, text, _ = kit.Http().post(path, body)
    return status, text


def methods_are_shown():
    """The commands and the admin page show what the providers published, or that they did not."""
    c = client(zk)
    a = kit.Stub()
    kit.Providers(c, IFACE).add(20880)
    kit.Providers(c, "demo.Silent").add(20880)
    publish(c, DEFINITION)
    g = kit.Gateway(config(services=[{"name": "user", "interface": IFACE}, {"name": "silent", "interface": "demo.Silent"}]))
    d = known(g)
    assert [(x["application"], x["source"]) for x in d] == [("test", "report")], d
    assert {"name": "rawArguments", "parameterTypes": ["java.util.Date"], "returnType": "java.util.List<java.lang.String>"} \
        in d[0]["methods"] and len(d[0]["methods"]) == 3, d
    assert d[0]["types"] == DEFINITION["types"], d
    # the list of all references would be too long with them
    assert g.reference(IFACE)["definitions"] == [{"application": "test", "source": "report"}], g.reference(IFACE)
    assert g.admin("/references/demo.Silent")[1]["definitions"] == []
    status, other = g.admin("/references/demo.Nobody")
    assert status == 404 and "error" in other, other

    why = kit.program("why", IFACE)
    assert "3 methods known by the report of test\n" in why and "rawArguments(" not in why, why
    assert "    java.util.List<java.lang.String> rawArguments(java.util.Date)\n" in kit.program("why", "-l", IFACE)
    assert "methods are not known" in kit.program("why", "demo.Silent")

    ls = kit.program("ls", "-l", "-r", "zookeeper://127.0.0.1:2181", IFACE)
    assert "    methods by the report of test:\n" in ls, ls
    assert "      void rawArguments(demo.User,java.util.Map<java.lang.String,java.lang.Long>)\n" in ls, ls
    assert "    test has published no methods; registries[].telnet_methods would ask its providers of 2.6\n" in kit.program("ls", "-l", "-r", "zookeeper://127.0.0.1:2181", "demo.Silent")
    publish(c, "no definition")
    assert "methods of test cannot be read: " in kit.program("ls", "-l", "-r", "zookeeper://127.0.0.1:2181", IFACE)
    assert call(DATE) == (200, AS_DATE), call(DATE)
    g.stop()
    a.kill()
    c.close()


def every_cluster_mode_knows_them():
    """A route without types, whatever its mode: the overload that the arguments fit, with a date for a date."""
    c = client(zk)
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    for s, group in zip(stubs, "gh"):
        kit.Providers(c, IFACE).add(s.port, group=group)
    publish(c, DEFINITION)
    for service in (IFACE + "/provider/test", IFACE + "/g/provider/test", IFACE + "/h/provider/test"):
        path = "/dubbo/metadata/" + service
        c.ensure(path)
        c.set(path, json.dumps(DEFINITION).encode())
    modes = ["failover", "failfast", "failsafe", "forking", "broadcast", "mergeable"]
    route = lambda mode: {"name": mode, "method": "POST", "path": "/" + mode, "cluster": mode, "args": [{"from": "body"}],
                          "call": ("all" if mode == "mergeable" else "one") + ".rawArguments",
                          **({"idempotent": True} if mode == "forking" else {})}
    g = kit.Gateway(config(services=[{"name": "one", "interface": IFACE, "group": "g"},
                                     {"name": "all", "interface": IFACE, "group": "*"}], routes=[route(m) for m in modes]))
    known(g, IFACE + "@g")
    known(g, IFACE + "@*")
    date = json.loads(AS_DATE)
    for mode in modes:
        status, text = call(json.dumps(json.loads(DATE)[0]), "/" + mode)
        assert status == 200 and json.loads(text) == (date + date if mode == "mergeable" else date), (mode, status, text)
        assert call('"no date"', "/" + mode)[0] == 400, (mode, call('"no date"', "/" + mode))
    g.stop()
    for s in stubs:
        s.kill()
    c.close()


def a_start_with_the_registry_down():
    """What was known of the methods is in the saved list: a start without the registry serves calls without types, and
    what the registry says later counts."""
    c = client(zk)
    a = kit.Stub()
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    publish(c, DEFINITION)
    with tempfile.TemporaryDirectory(prefix="state-") as state:
        conf = config(process={"state_dir": state})
        path = os.path.join(state, "references.json")
        g = kit.Gateway(conf)
        before = known(g)
        assert call(DATE) == (200, AS_DATE)
        g.stop()
        with open(path, encoding="utf-8") as f:
            saved = json.load(f)["definitions"]
        assert [(x["registry"], x["reference"], x["application"]) for x in saved] == [("main", IFACE, "test")], saved
        c.close()
        zk.stop()
        for _ in range(2):  # also after a run that heard nothing of the registry
            g = kit.Gateway(conf)
            assert call(DATE) == (200, AS_DATE), g.admin("/references/" + IFACE)
            d = known(g)
            assert d == [{**before[0], "source": "saved"}], d
            assert "candidates" in call("[1,2,3]")[1], call("[1,2,3]")
            g.stop()
        g = kit.Gateway(conf)
        zk.start()
        kit.wait_until(lambda: g.reference(IFACE)["definitions"][0]["source"] == "report", 15, "it is read again")
        assert call(DATE) == (200, AS_DATE)
        g.stop()
    a.kill()


if __name__ == "__main__":
    zk = kit.ZooKeeper() if os.environ.get("REGISTRY_KIT_INSIDE") == "1" else None
    try:
        kit.run([methods_are_shown, every_cluster_mode_knows_them, a_start_with_the_registry_down])
    finally:
        if zk is not None:
            zk.close()
