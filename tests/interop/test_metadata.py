#!/usr/bin/env python3
"""Calls without types on real providers: what they published of their methods decides.  LINE=3.2 chooses one line."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

from table import CASES  # noqa: E402  pylint: disable=wrong-import-position
from test_interop import ANSWERS, arguments, canonical, clean, look_up  # noqa: E402  pylint: disable=wrong-import-position

R = kit.RICH
LINES = ("2.7", "3.2", "3.3")
zk = None


def config(**more):
    services = [{"name": n, "interface": R, **k} for n, k in (("plain", {}), ("other", {"version": "1.0.0", "group": "g1"}))]
    routes = []
    for i, c in enumerate(CASES):
        for name in ("plain", "other"):
            routes.append({"name": "r%d-%s" % (i, name), "method": "POST", "path": "/%s/%d" % (name, i),
                           "call": "%s.%s" % (name, c["method"]),
                           "args": [{"from": "body.a%d" % k} for k in range(len(c["types"]))]})
    return {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "provider_networks": ["127.0.0.0/8"]}],
            "services": services, "routes": routes, "defaults": {"timeout": "5s"},
            "direct": {"enabled": True, "allow": [R, "demo.sample.api.HelloService"]}, **more}


def holds(**members):
    def check(status, text, what):
        assert status == 200, (what, text)
        v = json.loads(text, parse_float=str, parse_int=str)
        assert {k: v.get(k) for k in members} == members, (what, text)
    return check


def is_body(expected):
    def check(status, text, what):
        assert (status, text) == (200, expected), (what, status, text)
    return check


def refused(status_code, *words):
    def check(status, text, what):
        p = json.loads(text)
        assert "%s %s" % (status, p["code"]) == status_code, (what, text)
        assert all(w in text for w in words), (what, text)
    return check


# what only a provider's own description makes possible: method, arguments, what comes back
ROWS = [
    ("echoPerson", '[{"name":"x","birthday":"2018-01-29T12:00:00Z"}]', holds(name="x", birthday="2018-01-29T12:00:00.000Z")),
    ("echoPerson", '[{"birthday":"2018-01-29"}]', holds(birthday="2018-01-29T00:00:00.000Z")),
    ("echoPerson", '[{"balance":10000000.00}]', holds(balance="10000000.00")),
    ("echoPerson", '[{"balance":10000000}]', holds(balance="10000000")),
    ("echoPerson", '[{"name":5,"age":"41","id":"9007199254740993"}]', holds(name="5", age="41", id="9007199254740993")),
    ("echoPerson", '[{"favorite":"GREEN","tags":[1,true]}]', holds(favorite="GREEN", tags=["1", "true"])),
    ("echoPerson", '[{"age":null,"birthday":null,"nobody":1}]', holds(age="0", birthday=None)),
    ("echoPerson", '[{"address":{"streetName":7,"zip":"10115"},"byName":{"k":{"streetName":8,"zip":1}},"others":[{"zip":"2"}]}]',
     holds(address={"streetName": "7", "zip": "10115"}, byName={"k": {"streetName": "8", "zip": "1"}},
           others=[{"streetName": None, "zip": "2"}])),
    ("echoPersonList", '[[{"birthday":"2018-01-29T12:00:00Z"}]]',
     lambda s, t, w: holds(birthday="2018-01-29T12:00:00.000Z")(s, json.dumps(json.loads(t)[0]) if s == 200 else t, w)),
    ("echoPersonMap", '[{"k":{"birthday":"2018-01-29T12:00:00Z"}}]',
     lambda s, t, w: holds(birthday="2018-01-29T12:00:00.000Z")(s, json.dumps(json.loads(t)["k"]) if s == 200 else t, w)),
    ("echoPersonArray", '[[{"birthday":1517227200000}]]',
     lambda s, t, w: holds(birthday="2018-01-29T12:00:00.000Z")(s, json.dumps(json.loads(t)[0]) if s == 200 else t, w)),
    ("echoStringList", '[[1,2.50]]', is_body('["1","2.50"]')),
    ("echoStringSet", '[[1]]', is_body('["1"]')),
    ("echoBytes", '["AQID/w=="]', is_body('"AQID/w=="')),
    ("echoBytes", '[[1,2,3,-1]]', is_body('"AQID/w=="')),
    ("echoInstant", '["2020-09-13T12:26:40.123Z"]', is_body('"2020-09-13T12:26:40.123Z"')),
    ("echoLocalDateTime", '["2018-01-29 12:00:00"]', is_body('"2018-01-29T12:00"')),
    ("echoDate", '["2018-01-29T20:00:00+08:00"]', is_body('"2018-01-29T12:00:00.000Z"')),
    ("echoString", '[1.50]', is_body('"1.50"')),
    ("echoFloat", '[99.8]', is_body("99.8")),
    ("over", '["5"]', is_body('"String:5"')),
    ("over", '[5]', is_body('"int:5"')),
    ("over", '[5,"w"]', is_body('"Integer,String:5,w"')),
    ("over", '[null,null]', is_body('"Integer,String:null,null"')),
    # what cannot be
    ("over", '[true]', refused("400 BAD_ARGUMENT", '"candidates":["over(', "over(java.lang.String)")),
    ("over", '[1,2,3]', refused("400 ARGUMENT_COUNT", "over(java.lang.Integer,java.lang.String)")),
    ("echoLong", '[1,2]', refused("400 ARGUMENT_COUNT", "echoLong(long)")),
    ("echoStringList", '["a","b"]', refused("400 ARGUMENT_COUNT", "[[")),
    ("echoBytes", '["no base 64!"]', refused("400 BAD_ARGUMENT")),
    ("echoInstant", '["yesterday"]', refused("400 BAD_ARGUMENT")),
    ("echoInt", '[1099511627776]', refused("400 BAD_ARGUMENT")),
    ("echoByte", '[300]', refused("400 BAD_ARGUMENT")),
    ("echoPerson", '[{"birthday":"soon"}]', refused("400 BAD_ARGUMENT", '"pointer":"/0/birthday"')),
    ("echoPerson", '[{"age":41.5}]', refused("400 BAD_ARGUMENT", '"pointer":"/0/age"')),
    ("noSuch", '[1]', refused("404 METHOD_NOT_FOUND")),
    ("EchoString", '["x"]', refused("404 METHOD_NOT_FOUND")),
]


def play(line):
    bad = []
    java = kit.JavaProvider(line, 20880, "zookeeper://127.0.0.1:2181", "export=:", "export=g1:1.0.0")
    java.wait_ready()
    g = kit.Gateway(config())
    h = kit.Http()
    n = 0
    try:
        kit.wait_until(lambda: (g.reference(R) or {}).get("state") == "ready", 20, "the reference is ready")
        for i, c in enumerate(CASES):
            key = "%s(%s) %s" % (c["method"], ",".join(c["types"]), c["args"])
            named = "{%s}" % ",".join('"a%d":%s' % kv for kv in enumerate(arguments(c["args"])))
            for path, body in (("/plain/%d" % i, named), ("/other/%d" % i, named), ("/%s/%s" % (R, c["method"]), c["args"]),
                               ("/%s/%s?group=g1&version=1.0.0" % (R, c["method"]), c["args"])):
                n += 1
                status, text, _ = h.post(path, body)
                seen, want = canonical(status, text), look_up(ANSWERS, key, line, "typed")
                if seen != want:
                    bad.append("%s %s: %s, with types %s" % (path, key, seen[:150], (want or "")[:150]))
        for method, args, check in ROWS:
            n += 1
            status, text, _ = h.post("/%s/%s" % (R, method), args)
            try:
                check(status, text, "%s %s" % (method, args))
            except AssertionError as e:
                bad.append(str(e)[:400])
        assert not bad, "%d of %d differ on %s\n%s" % (len(bad), n, line, "\n".join(bad))
    finally:
        g.stop()
        java.kill()
        clean()


def line_2_7():
    play("2.7")


def line_3_2():
    play("3.2")


def line_3_3():
    play("3.3")


TESTS = [line_2_7, line_3_2, line_3_3]

if __name__ == "__main__":
    only = os.environ.get("LINE")
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([t for t in TESTS if not only or t.__name__ == "line_" + only.replace(".", "_")])
    finally:
        if zk is not None:
            zk.close()
