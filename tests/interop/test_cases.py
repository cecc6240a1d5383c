#!/usr/bin/env python3
"""What users of Dubbo gateways and of generic calls ran into, on real providers of all four lines.  LINE=2.6 chooses one.

ROWS are single calls; a number is the number of the case in docs/TESTING.md.  The methods' types are in the
configuration, so a bare name is called as a client would call it."""
import json
import os
import re
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

R = kit.RICH
LINES = ("2.6", "2.7", "3.2", "3.3")
S, BAD = "java.lang.String", "400 BAD_ARGUMENT"
ZERO_PERSON = {"age": 0, "name": None}
DESCRIBED = ('"L#3 Person{id=null,name=Z,age=0,active=false,vip=null,score=0.0,balance=null,favorite=null,birthday=null,'
             'address=null,others=1,byName=[h],tags=null}"')
DTO = '{"name":"Z","others":[{"zip":1}],"byName":{"h":{"zip":2}}}'
LONG = "中" * 40000 + "😀"

TYPES = {
    "echoLocalDateTime": ["java.time.LocalDateTime"], "echoDate": ["java.util.Date"], "echoPerson": ["demo.sample.api.Person"],
    "special": [S], "echoLong": ["long"], "echoBigInteger": ["java.math.BigInteger"], "echoString": [S],
    "echoBigDecimal": ["java.math.BigDecimal"], "echoStringArray": [S + "[]"], "echoInt": ["int"], "echoByte": ["byte"],
    "echoBoolean": ["boolean"], "echoEnum": ["demo.sample.api.Color"], "big": ["int"], "echoLongMap": ["java.util.Map"],
    "echoPersonList": ["java.util.List"], "describe": ["demo.sample.api.Person", S, "int"], "echoBox": ["demo.sample.api.Box"],
    "varargs": [S + "[]"], "echoPersonArray": ["demo.sample.api.Person[]"], "echoIntArray": ["int[]"],
    "echoBoxedInt": ["java.lang.Integer"], "echoBytes": ["byte[]"], "noArgs": [], "future": [S, "long"],
    "echoAnimal": ["demo.sample.api.Animal"], "circular": [], "setAttachment": [S, S], "throwChecked": [S],
    "throwRuntime": [S], "throwError": [S], "throwNested": [S], "attachments": [], "whoami": [], "echoStringList": ["java.util.List"],
}


def row(number, path, body, *expected, method="POST", headers=None, name=""):
    """`expected`: one for all lines, or (for 2.6, for the others), or one per line.  A text beginning with a number is
    an error's status and code; another text is the body, byte for byte; a dict what the body's object must hold; a
    function gets (status, text, headers)."""
    if len(expected) == 1:
        expected = expected * 4
    elif len(expected) == 2:
        expected = expected[:1] + expected[1:] * 3
    return {"n": number, "path": path if path[0] == "/" else "/%s/%s" % (R, path), "body": body, "method": method,
            "headers": headers, "expected": dict(zip(LINES, expected)), "name": name}


def text_of(value):
    return json.dumps(value, ensure_ascii=False)


def holds(**members):
    return members


def exception(cls, message):
    def check(status, text, _):
        p = json.loads(text)
        assert status == 500 and p["code"] == "PROVIDER_EXCEPTION", text
        assert p["exception"]["class"] == cls and p["exception"].get("message") == message, text
    return check


def no_class(status, text, _):
    assert status == 200 and '"class"' not in text and '"zip":3' in text, text


def list_hint(status, text, _):
    p = json.loads(text)
    assert (status, p["code"]) == (400, "ARGUMENT_COUNT") and '[["a","b"]]' in p["detail"], text


def at(pointer):
    def check(status, text, _):
        p = json.loads(text)
        assert (status, p["code"]) == (400, "BAD_ARGUMENT") and p["errors"][0]["pointer"] == pointer, text
    return check


def source(code, name):
    def check(status, text, _):
        p = json.loads(text)
        assert (status, p["code"]) == (400, code) and p["errors"][0]["source"] == name, text
    return check


def person_in_list(status, text, _):
    (p,) = json.loads(text)
    assert status == 200 and p["name"] == "x" and p["others"] == [{"streetName": "A", "zip": 1}], text
    assert p["age"] == 0 and p["tags"] is None, text


def box(data):
    def check(status, text, _):
        b = json.loads(text)
        assert status == 200 and b["items"][0]["name"] == "y", text
        assert b["data"] == data if data else b["data"]["name"] == "x" and b["data"]["age"] == 0, text
    return check


def null_and_person(status, text, _):
    v = json.loads(text)
    assert status == 200 and v[0] is None and v[1]["name"] == "x", text


def money(status, text, _):
    v = json.loads(text, parse_float=str, parse_int=str)["balance"]
    assert status == 200 and float(v) == 10000000.0, text


def digits(want):
    """2.6 publishes no property types; with them every digit stays."""
    def check(status, text, _):
        assert status == 200 and json.loads(text, parse_float=str, parse_int=str)["balance"] == want, text
    return check


def located(status, text, _):
    e = json.loads(text)
    assert (status, e["code"]) == (400, "BAD_REQUEST") and "line" in e["errors"][0] and "column" in e["errors"][0], text


def traced(status, text, _):
    v = json.loads(text)
    assert status == 200 and v["TraceId"] == "t1" and v["userName"] == "Ann", text


def returned(status, text, headers):
    assert (status, text) == (200, '"set k"') and headers["X-Dubbo-k"] == "v", (text, headers)


def untouched(status, text, _):
    v = json.loads(text)
    assert status == 200 and v.get("path", R) == R and v.get("group") in (None, "") and v.get("generic", "true") == "true", text
    assert not {"token", "_TO", "async", "timeout-countdown"} & set(v), text


def future_getters(status, text, _):
    assert status == 200 and "done" in json.loads(text), text


ROWS = [
    row(1, "echoLocalDateTime", '["2018-01-29 12:00:00"]', '"2018-01-29T12:00"'),
    row(1, "echoLocalDateTime", '["2018-01-29T12:00:00"]', '"2018-01-29T12:00"'),
    row(2, "echoDate", '["2018-01-29T12:00:00Z"]', '"2018-01-29T12:00:00.000Z"'),
    row(2, "echoDate", '["2018-01-29T20:00:00+08:00"]', '"2018-01-29T12:00:00.000Z"'),
    row(2, "echoDate", "[1517227200000]", '"2018-01-29T12:00:00.000Z"'),
    row(3, "echoPerson", '[{"name":"x","birthday":"2018-01-29T12:00:00Z"}]', BAD, holds(birthday="2018-01-29T12:00:00.000Z")),
    row(4, "special", '["timestamp"]', '"2020-09-13T12:26:40.123Z"'),
    row(4, "special", '["sqldate"]', '"2020-09-13T12:26:40.123Z"'),
    row(5, "echoLong", "[9007199254740993]", "9007199254740993"),
    row(5, "echoLong", '["9223372036854775807"]', "9223372036854775807"),
    row(5, "echoBigInteger", "[123456789012345678901234567890]", "123456789012345678901234567890"),
    row(5, "echoString", '["910700000033523356"]', '"910700000033523356"'),
    row(6, "echoBigDecimal", "[1.10]", "1.10"),
    row(6, "echoBigDecimal", '["0.10"]', "0.10"),
    row(6, "echoBigDecimal", "[10000000.00]", "10000000.00"),
    row(6, "special", '["bigs"]', "[1E+400,-5,0.10]"),
    row(7, "echoPerson", '[{"balance":10000000.00}]', money, digits("10000000.00")),
    row(7, "echoPerson", '[{"balance":10000000}]', money, digits("10000000")),
    row(8, "echoPerson", '[{"name":5}]', BAD, holds(name="5")),
    row(8, "echoString", "[5]", '"5"'),
    row(8, "echoString", "[1.50]", '"1.50"'),
    row(9, "echoStringArray", "[[1,2]]", '["1","2"]'),
    row(9, "echoStringList", "[[1,2]]", "[1,2]", '["1","2"]'),
    row(9, "echoStringSet", "[[1]]", "[1]", '["1"]'),
    row(10, "echoInt", "[1099511627776]", BAD),
    row(10, "echoInt", "[41.5]", BAD),
    row(10, "echoInt", '[""]', BAD),
    row(10, "echoInt", "[5.0]", "5"),
    row(10, "echoByte", "[300]", BAD),
    row(11, "echoBoolean", '["yes"]', BAD),
    row(11, "echoBoolean", '["true"]', "true"),
    row(11, "echoBoolean", "[1]", BAD),
    row(12, "echoEnum", '["RED"]', '"RED"'),
    row(12, "echoPerson", '[{"favorite":"GREEN"}]', holds(favorite="GREEN")),
    row(13, "echoString", '["a\\ud83d.b"]', "400 BAD_REQUEST"),
] + [row(14, "big", "[%d]" % n, '"%s"' % ("x" * n)) for n in (32767, 32768, 32769, 65536, 1000000)] + [
    row(14, "echoString", text_of([LONG]), text_of(LONG)),
    row(15, "/echo?v=%E4%B8%AD%E6%96%87+a%2Bb%26c", None, '"中文 a+b&c"', method="GET"),
    row(16, "echoLongMap", '[{"3":{"name":"x"}}]', lambda s, t, _: json.loads(t)["3"]["name"] == "x" or 1 / 0),
    row(17, "echoLongMap", '[{"abc":{}}]', BAD),
    row(18, "echoPersonList", '[[{"name":"x","others":[{"streetName":"A","zip":1}]}]]', person_in_list),
    row(19, "describe", "[%s,\"L\",3]" % DTO, DESCRIBED),
    row(19, "describe", '{"count":3,"label":"L","p":%s}' % DTO, DESCRIBED),
    row(19, "describe", '{"p":%s,"count":3,"label":"L"}' % DTO, DESCRIBED),
    row(20, "echoBox", '[{"code":1,"data":{"name":"x"},"items":[{"name":"y"}]}]', box({"name": "x"}), box({"name": "x"}),
        box(None), box(None)),
    row(21, "echoPersonList?types=java.util.List%3Cdemo.sample.api.Person%3E", '[[{"name":"x"}]]',
        lambda s, t, _: json.loads(t)[0]["name"] == "x" or 1 / 0),
    row(22, "varargs?types=java.lang.String...", '[["a","b"]]', '"[a, b]"'),
    row(22, "varargs?types=%5BLjava.lang.String%3B", '[["a","b"]]', '"[a, b]"'),
    row(22, "varargs?types=java.lang.String%5B%5D", '[["a","b"]]', '"[a, b]"'),
    row(23, "echoStringArray", '[["a",null]]', '["a",null]'),
    row(23, "echoPersonArray", '[[null,{"name":"x"}]]', null_and_person),
    row(23, "echoPersonList", '[[null,{"name":"x"}]]', BAD, null_and_person),
    row(24, "echoInt", "[null]", at("/0")),
    row(24, "echoIntArray", "[[1,null]]", at("/0/1")),
    row(24, "echoBoxedInt", "[null]", "null"),
    row(25, "echoBytes", '["AQL/"]', '"AQL/"'),
    row(25, "echoBytes", "[[1,2,-1]]", '"AQL/"'),
    row(26, "echoPerson", '["{\\"name\\":\\"x\\"}"]', BAD),
    row(26, "echoPerson", '[[{"name":"x"}]]', BAD),
    row(27, "echoLong?group=g1&version=1.0.0", "[7]", "7", name="no types"),
    row(27, "noArgs?group=g1&version=1.0.0", "[]", '"no args"', name="no types"),
    row(28, "noSuch", "[1]", "404 METHOD_NOT_FOUND"),
    row(28, "EchoString", '["x"]', "404 METHOD_NOT_FOUND"),
    row(29, "echoLong", "[]", "400 ARGUMENT_COUNT"),
    row(29, "echoLong", "[1,2]", "400 ARGUMENT_COUNT"),
    row(29, "echoStringList", '["a","b"]', list_hint),
    row(30, "noArgs", "[]", '"no args"'),
    row(30, "noArgs", None, '"no args"'),
    row(30, "/ping", None, '"no args"', method="GET"),
    row(30, "echoPerson", "{}", ZERO_PERSON),
    row(31, "/over2?v=5&w=x", None, '"Integer,String:5,x"', method="GET"),
    row(31, "/over2?v=abc&w=x", None, source("BAD_ARGUMENT", "query.v"), method="GET"),
    row(31, "/over2?w=x", None, source("MISSING_ARGUMENT", "query.v"), method="GET"),
    row(32, "future", '["v",50]', future_getters, '"future v"'),
    row(33, "echoPerson", '[{"name":"x","address":{"zip":1},"others":[{"zip":2}],"byName":{"k":{"zip":3}}}]', no_class),
    row(34, "/animal", '{"class":"demo.sample.api.Dog","species":"canis","breed":"beagle"}',
        *[holds(species="canis", breed="beagle")] * 2 + [BAD] * 2),
    row(34, "/animal", '{"class":"java.net.URL","species":"canis"}', BAD, name="not listed"),
    row(35, "echoPerson", '[{"name":"x","serialVersionUID":5}]', BAD),
    row(36, "circular", "[]", {"name": "a", "next": {"name": "b", "next": None}}),
    row(37, "/set", '["k","v"]', '"set k"', returned),  # 2.6 returns none
    row(39, "special", '["atomic"]', *["502 BAD_PROVIDER_RESPONSE"] * 3 + ["5"]),
    row(40, "/stock", '["m"]', "422 OUT_OF_STOCK"),
    row(40, "/stock2", '["x"]', exception("java.lang.IllegalArgumentException", "x")),
    row(41, "throwRuntime", "[null]", exception("java.lang.IllegalArgumentException", None)),
    row(41, "throwError", '["boom"]', exception("java.lang.AssertionError", "boom")),
    row(41, "throwNested", '["outer"]', exception("java.lang.IllegalStateException", "outer")),
    row(42, "/demo.sample.api.ValidatedService/signup", '[{"login":null,"age":1}]', "400 VALIDATION_FAILED"),
    row(45, "big", "[9000000]", "502 RESPONSE_TOO_LARGE"),
    row(45, "noArgs", "[]", '"no args"', name="behind it"),
    row(47, "noArgs?group=g1&version=1.0.0", "[]", '"no args"', name="fixed address"),
    row(77, "/trace", "[]", traced, headers={"X-Trace": "t1"}),
    row(78, "/forward", "[]", untouched, headers={"generic": "false", "path": "x", "group": "g2", "token": "t", "_TO": "1",
                                                  "async": "true", "timeout-countdown": "1"}),
    row(79, "noArgs?group=tok&version=1.0.0", "[]", '"no args"', name="token from the registry"),
    row(79, "/demo.sample.api.HelloService/sayHello?group=tok&version=1.0.0", '["x"]', "502 TOKEN_REJECTED",
        name="fixed address without token"),
    row(79, "/demo.sample.api.ValidatedService/signup?group=tok&version=1.0.0", '[{"login":null,"age":1}]',
        "400 VALIDATION_FAILED", name="fixed address with token"),
    row(81, "echoString", "[7", located),
    row(81, "echoString", '{"a":1,"a":2}', located),
    row(81, "echoString", "nul", located),
    row(81, "/x", "[]", "404 ROUTE_NOT_FOUND"),
    row(81, "echoString", '["after"]', '"after"'),
]


def config():
    methods = [{"name": n, "types": t} for n, t in TYPES.items()]
    for m in methods:
        if m["name"] == "describe":
            m["params"] = ["p", "label", "count"]
    address = "dubbo://127.0.0.1:20880"
    return {
        "process": {"workers": 1},
        "registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "provider_networks": ["127.0.0.0/8"]}],
        "services": [
            {"name": "rich", "interface": R, "methods": methods + [{"name": "over", "types": ["java.lang.Integer", S]}]},
            {"name": "fixed", "interface": R, "group": "g1", "version": "1.0.0", "providers": [address]},
            {"name": "tokenless", "interface": "demo.sample.api.HelloService", "group": "tok", "version": "1.0.0",
             "providers": [address]},
            {"name": "token", "interface": "demo.sample.api.ValidatedService", "group": "tok", "version": "1.0.0",
             "providers": [address + "?token=secret"]},
            {"name": "valid", "interface": "demo.sample.api.ValidatedService",
             "methods": [{"name": "signup", "types": ["demo.sample.api.Signup"]}]}],
        "routes": [
            {"name": "echo", "method": "GET", "path": "/echo", "call": "rich.echoString",
             "args": [{"from": "query.v", "type": S}]},
            {"name": "ping", "method": "GET", "path": "/ping", "call": "rich.noArgs"},
            {"name": "over2", "method": "GET", "path": "/over2", "call": "rich.over",
             "args": [{"from": "query.v", "type": "java.lang.Integer"}, {"from": "query.w", "type": S}]},
            {"name": "animal", "method": "POST", "path": "/animal", "call": "rich.echoAnimal", "args": [{"from": "body"}],
             "request": {"class_key": "pass", "allow_classes": ["demo.sample.api.Dog"]}},
            {"name": "set", "method": "POST", "path": "/set", "call": "rich.setAttachment", "return_attachments": ["k"]},
            {"name": "stock", "method": "POST", "path": "/stock", "call": "rich.throwChecked",
             "exceptions": [{"class": "demo.sample.api.BizException", "status": 422, "code": "OUT_OF_STOCK"}]},
            {"name": "stock2", "method": "POST", "path": "/stock2", "call": "rich.throwRuntime",
             "exceptions": [{"class": "demo.sample.api.BizException", "status": 422, "code": "OUT_OF_STOCK"}]},
            {"name": "trace", "method": "POST", "path": "/trace", "call": "rich.attachments",
             "attachments": {"TraceId": "header.X-Trace", "userName": "const:Ann"}},
            {"name": "forward", "method": "POST", "path": "/forward", "call": "rich.attachments",
             "forward_headers": ["X-Trace"]}],
        "defaults": {"timeout": "5s"}, "limits": {"response_body": "32m"},
        "direct": {"enabled": True, "allow": ["demo.sample.api.*"]}}


LEAK = re.compile(r"\d+\.\d+\.\d+\.\d+|:20880|:2181|\\tat |\[::|localhost")  # of an error, to a client


def fault(r, line, answer):
    """What is wrong with the answer; None = nothing."""
    status, text, headers = answer
    want = r["expected"][line]
    if status != 200 and LEAK.search(text):
        return "case 43: it tells an address or a stack"
    if callable(want):
        try:
            want(status, text, headers)
        except (AssertionError, KeyError, ValueError, IndexError, TypeError, ZeroDivisionError) as e:
            return "%s %s" % (type(e).__name__, e)
        return None
    if isinstance(want, dict):
        got = json.loads(text)
        return None if status == 200 and {k: got.get(k) for k in want} == want else "expected %s" % want
    if re.match(r"\d{3} [A-Z]", want):
        return None if status != 200 and "%d %s" % (status, json.loads(text)["code"]) == want else "expected " + want
    return None if (status, text) == (200, want) else "expected " + want[:100]


def play(line):
    java = kit.JavaProvider(line, 20880, "zookeeper://127.0.0.1:2181", "export=:", "export=g1:1.0.0",
                            "export=tok:1.0.0?token=secret", heap="256m")
    java.wait_ready()
    g = kit.Gateway(config())
    try:
        kit.wait_until(lambda: (g.reference(R) or {}).get("state") == "ready", 20, "the reference is ready")
        bad = []
        h = kit.Http()
        connects = None
        for r in ROWS:
            answer = h.call(r["method"], r["path"], r["body"],
                            dict({"Content-Type": "application/json"} if r["body"] else {}, **(r["headers"] or {})))
            why = fault(r, line, answer)
            if why:
                bad.append("case %d %s %s %s: %s; got %d %s" % (r["n"], r["name"], r["path"], str(r["body"])[:80], why[:200],
                                                               answer[0], answer[1][:400]))
            if connects is None:
                connects = g.metric("dubbogate_provider_connects_total")
        assert not bad, "%d of %d:\n%s" % (len(bad), len(ROWS), "\n".join(bad))
        assert g.metric("dubbogate_provider_connects_total") == connects == 1, "one connection served all of it"
        print("        %d calls to Dubbo %s" % (len(ROWS), line))
        g.stop()
    finally:
        g.kill()
        java.kill()
        clean()


def clean():
    c = kit.Client()
    c.delete_tree("/dubbo")
    c.close()


def rows_2_6():
    play("2.6")


def rows_2_7():
    play("2.7")


def rows_3_2():
    play("3.2")


def rows_3_3():
    play("3.3")


def wanted(names):
    only = os.environ.get("LINE")
    return [x for x in names if not only or x == only]


def case_48_defaults_of_the_provider():
    """Group and version that stand in the URL as default.group and default.version: written by hand, for a real one."""
    line = wanted(LINES)[0]
    java = kit.JavaProvider(line, 20880, "zookeeper://127.0.0.1:2181", "export=g1:1.0.0")
    java.wait_ready()
    c = kit.Client()
    where = "/dubbo/%s/providers" % R
    for name in c.children(where):
        c.delete(where + "/" + name)
    c.create(where + "/" + urllib.parse.quote("dubbo://127.0.0.1:20880/%s?default.group=g1&default.version=1.0.0&interface=%s"
                                              "&side=provider" % (R, R), safe=""), b"", True)
    g = kit.Gateway({"registries": config()["registries"], "direct": {"enabled": True, "allow": [R]}})
    h = kit.Http()
    kit.wait_until(lambda: h.post("/%s/noArgs?group=g1&version=1.0.0" % R, "[]")[:2] == (200, '"no args"'), 10, "an answer")
    assert h.post("/%s/noArgs" % R, "[]")[0] == 503
    g.stop()
    c.close()
    java.kill()
    clean()


def case_49_50_51_versions():
    """A version of * takes every provider and sends each its own; another version takes only its providers; 0.0.0 and
    none are one."""
    for line in wanted(LINES):
        a = kit.JavaProvider(line, 20880, "zookeeper://127.0.0.1:2181", "export=:1.0.0", "name=a")
        b = kit.JavaProvider(line, 20882, "zookeeper://127.0.0.1:2181", "export=:2.0.0", "export=:", "name=b")
        for p in (a, b):
            p.wait_ready()
        g = kit.Gateway({"registries": config()["registries"], "direct": {"enabled": True, "allow": [R]},
                         "services": [{"name": "any", "interface": R, "version": "*"},
                                      {"name": "two", "interface": R, "version": "2.0.0"}], "defaults": {"timeout": "5s"}})
        kit.wait_until(lambda: (g.reference(R + ":*") or {}).get("state") == "ready", 20, "the reference is ready")
        h = kit.Http()
        kit.wait_until(lambda: h.post("/%s/whoami?version=1.0.0" % R, "[]")[0] == 200, 10, "a list for 1.0.0")
        seen = [h.post("/%s/whoami?version=*" % R, "[]")[:2] for _ in range(200)]
        assert set(seen) == {(200, '"a"'), (200, '"b"')}, (line, list(set(seen))[:3])
        seen = [h.post("/%s/whoami?version=1.0.0" % R, "[]")[:2] for _ in range(200)]
        assert set(seen) == {(200, '"a"')}, (line, list(set(seen))[:3])
        kit.wait_until(lambda: h.post("/%s/whoami" % R, "[]")[0] == 200, 10, "a list without version")
        for query in ("", "?version=0.0.0"):
            answer = h.post("/%s/whoami%s" % (R, query), "[]")
            assert answer[:2] == (200, '"b"'), (line, query, answer)
        keys = [r["key"] for r in g.admin("/references")[1]["references"]]
        assert sorted(keys) == [R, R + ":*", R + ":1.0.0", R + ":2.0.0"], (line, keys)
        g.stop()
        for p in (a, b):
            p.kill()
        clean()


def case_74_short_heartbeat():
    """Providers that close connections after 6 s of silence: they stay open, by heartbeats of the provider's interval."""
    lines = wanted(LINES)
    java = [kit.JavaProvider(line, 20880 + 2 * i, "zookeeper://127.0.0.1:2181", "protocol.heartbeat=2000", "app=s%d" % i,
                             "export=g%d:?heartbeat=2000" % i) for i, line in enumerate(lines)]
    for j in java:
        j.wait_ready()
    g = kit.Gateway({"registries": config()["registries"], "process": {"workers": 1}, "direct": {"enabled": True, "allow": [R]},
                     "services": [{"name": "s%d" % i, "interface": R, "group": "g%d" % i} for i in range(len(lines))]})
    kit.wait_until(lambda: g.admin("/ready")[0] == 200, 20, "ready")

    def call_all():
        return [kit.Http().post("/%s/noArgs?group=g%d" % (R, i), "[]")[:2] for i in range(len(lines))]
    assert call_all() == [(200, '"no args"')] * len(lines)
    connects = g.metric("dubbogate_provider_connects_total")  # those too by which instances were asked what they export
    time.sleep(15)
    assert call_all() == [(200, '"no args"')] * len(lines)
    assert g.metric("dubbogate_provider_connects_total") == connects, "connections were made anew"
    assert g.metric("dubbogate_provider_heartbeats_total") >= 4 * len(lines)
    g.stop()
    for j in java:
        j.kill()
    clean()


if __name__ == "__main__":
    zk = None
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    tests = [(line, globals()["rows_" + line.replace(".", "_")]) for line in LINES]
    try:
        kit.run([t for line, t in tests if line in wanted(LINES)] +
                [case_48_defaults_of_the_provider, case_49_50_51_versions, case_74_short_heartbeat])
    finally:
        if zk is not None:
            zk.close()
