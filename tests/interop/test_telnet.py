#!/usr/bin/env python3
"""Calls without types on real providers that publish no methods: with registries[].telnet_methods 2.6 is asked by telnet,
and what refuses it says so.  LINE=2.6|2.7 chooses one line."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

from table import CASES  # noqa: E402  pylint: disable=wrong-import-position
from test_interop import ANSWERS, canonical, clean, look_up  # noqa: E402  pylint: disable=wrong-import-position

R = kit.RICH
HELLO = "demo.sample.api.HelloService"
OTHER = "%s:1.0.0@g1" % R
zk = None


def gateway(on, *keys, **more):
    main = {"name": "main", "address": "zookeeper://127.0.0.1:2181", "provider_networks": ["127.0.0.0/8"]}
    if on:
        main["telnet_methods"] = True
    services = []
    for i, key in enumerate(keys):
        interface, _, rest = key.partition(":")
        version, _, group = rest.partition("@")
        services.append({"name": "s%d" % i, "interface": interface, "version": version, "group": group})
    g = kit.Gateway({"registries": [main], "services": services, "defaults": {"timeout": "5s"},
                     "direct": {"enabled": True, "allow": [R, HELLO]}, **more})
    for key in keys:
        kit.wait_until(lambda k=key: (g.reference(k) or {}).get("state") == "ready", 20, key + " is ready")
    return g


def definitions(g, key):
    return g.admin("/references/" + key)[1]["definitions"]


def events(g, key):
    return [e["text"] for e in g.reference(key)["events"]]


def known(g, key):
    return kit.wait_until(lambda: definitions(g, key), 5, "methods of " + key)


def differ(form):
    """Calls without types whose answer is not that of `form`."""
    bad = []
    h = kit.Http()
    for c in CASES:
        key = "%s(%s) %s" % (c["method"], ",".join(c["types"]), c["args"])
        for query in ("", "?group=g1&version=1.0.0"):
            status, text, _ = h.post("/%s/%s%s" % (R, c["method"], query), c["args"])
            seen, want = canonical(status, text), look_up(ANSWERS, key, "2.6", form)
            if seen != want:
                bad.append("%s%s: %s, not %s" % (key, query, seen[:150], (want or "")[:150]))
    return bad


def line_2_6():
    """Each call without types comes out as if they had been given; without the key as before."""
    java = kit.JavaProvider("2.6", 20880, "zookeeper://127.0.0.1:2181", "export=:", "export=g1:1.0.0")
    java.wait_ready()
    try:
        g = gateway(True, R, OTHER)
        for key in (R, OTHER):
            d = known(g, key)
            assert [(x["application"], x["source"]) for x in d] == [("sample-provider", "telnet")], d
            over = [m["parameterTypes"] for m in d[0]["methods"] if m["name"] == "over"]
            assert over == [["int"], ["java.lang.String"], ["java.lang.Integer", "java.lang.String"]], over
            assert d[0]["types"] == [], d[0]["types"]
            assert any(e.startswith("methods of sample-provider known by the telnet") for e in events(g, key)), events(g, key)
        bad = differ("typed")
        assert not bad, "\n".join(bad)
        h = kit.Http()
        status, text, _ = h.post("/%s/echoDate" % R, '["2018-01-29T12:00:00Z"]')
        assert (status, text) == (200, '"2018-01-29T12:00:00.000Z"'), text
        status, text, _ = h.post("/%s/over" % R, "[true]")
        assert status == 400 and "over(java.lang.Integer,java.lang.String)" in text, text
        g.stop()

        g = gateway(False, R, OTHER)
        assert definitions(g, R) == [], definitions(g, R)
        bad = differ("untyped")
        assert not bad, "\n".join(bad)
        assert not any("telnet" in e for e in events(g, R)), events(g, R)
        g.stop()
    finally:
        java.kill()
        clean()


def line_2_7():
    """The report of 2.7 counts; a 2.7 that looks like 2.6 refuses the command, and calls go on as before."""
    java = kit.JavaProvider("2.7", 20880, "zookeeper://127.0.0.1:2181", "export=:")
    java.wait_ready()
    c = kit.Client()
    old, mute = HELLO + ":1@old", HELLO + ":1@mute"
    try:
        kit.Providers(c, HELLO).add(20880, application="old", group="old", version="1")
        kit.Providers(c, HELLO).add(20880, application="mute", group="mute", version="1", release="2.7.23")
        g = gateway(True, R, old, mute)
        assert [x["source"] for x in known(g, R)] == ["report"], definitions(g, R)
        kit.wait_until(lambda: any('from 127.0.0.1 port 20880: the answer is "Command: ls disabled' in e for e in events(g, old)),
                       5, "the refusal is told")
        kit.wait_until(lambda: any("no report, and no provider of 2.6" in e for e in events(g, mute)), 5, "nobody is asked")
        assert definitions(g, old) == definitions(g, mute) == [], g.admin("/references")
        status, text, _ = kit.Http().post("/%s/over" % R, "[5]")
        assert (status, text) == (200, '"int:5"'), text
        status, text, _ = kit.Http().post("/%s/sayHello?types=java.lang.String" % HELLO, '["x"]')
        assert status == 200, text
        g.stop()
    finally:
        c.close()
        java.kill()
        clean()


TESTS = [line_2_6, line_2_7]

if __name__ == "__main__":
    only = os.environ.get("LINE")
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([t for t in TESTS if not only or t.__name__ == "line_" + only.replace(".", "_")])
    finally:
        if zk is not None:
            zk.close()
