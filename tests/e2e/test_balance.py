#!/usr/bin/env python3
"""Which provider a call goes to, with real providers behind the gateway (docs/REGISTRY.md section 8).  The exact orders
are in tests/unit/gateway_balance.c."""
import bisect
import hashlib
import json
import os
import signal
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"


def stubs(*names, options=()):
    """One per name, on 20880, 20882, …"""
    return [kit.Stub(20880 + 2 * i, 20881 + 2 * i, "-n", n, *options) for i, n in enumerate(names)]


def config(loadbalance, urls, **more):
    c = {"process": {"workers": 1}, "direct": {"enabled": True, "allow": ["demo.*"]},
         "defaults": {"timeout": "3s", **({"loadbalance": loadbalance} if loadbalance else {})},
         "services": [{"name": "user", "interface": IFACE, "providers": ["dubbo://127.0.0.1:" + u for u in urls]}]}
    c.update(more)
    return c


def whoami(h):
    status, body, _ = h.post("/%s/whoami" % IFACE, "[]")
    assert status == 200, body
    return body.strip('"')


def order(n, h=None):
    h = h or kit.Http()
    return "".join(whoami(h) for _ in range(n))


def round_robin_by_weight():
    stubs("a", "b", "c")
    g = kit.Gateway(config("roundrobin", ["20880?weight=5", "20882?weight=1", "20884?weight=1"]))
    seen = order(28)
    assert seen[14:] == "aabacaa" * 2, seen
    g.stop()


def round_robin_has_a_turn_per_method():
    """getUser in between does not move whoami's turn."""
    stubs("a", "b")
    g = kit.Gateway(config("roundrobin", ["20880", "20882"]))
    h = kit.Http()
    order(2, h)
    seen = ""
    for _ in range(4):
        seen += whoami(h)
        assert h.post("/%s/echo" % IFACE, "[1]")[0] == 200
    assert seen == "abab", seen
    g.stop()


def provider_asks_for_round_robin():
    """loadbalance= of the first provider, when the operator says nothing; and when he does."""
    stubs("a", "b")
    conf = config(None, ["20880?loadbalance=roundrobin", "20882"])
    g = kit.Gateway(conf)
    order(2)
    assert order(20) == "ab" * 10
    conf["defaults"]["loadbalance"] = "random"
    g.write(conf)
    g.proc.send_signal(signal.SIGHUP)
    kit.wait_until(lambda: order(20) not in ("ab" * 10, "ba" * 10), 5, "the operator's choice counts")
    g.stop()


def at_once(path, body, n):
    """Answers of n calls that run side by side."""
    seen = []
    ts = [threading.Thread(target=lambda: seen.append(kit.Http().post(path, body)[:2])) for _ in range(n)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    return seen


def least_active_spreads(name="leastactive"):
    """Three slow calls at once are at three providers, whatever the weights say; every time."""
    all_three = stubs("a", "b", "c")
    for s in all_three:
        s.script(json.dumps({"slow": [[{"delay_ms": 300}, {"null": True}]]}))  # scripted calls are counted by method
    g = kit.Gateway(config(name, ["20880?weight=1000", "20882?weight=1", "20884?weight=1"]))
    order(10)
    for i in range(1, 4):
        assert {s for s, _ in at_once("/%s/slow" % IFACE, "[300]", 3)} == {200}
        slow = [s.numbers()["methods"]["slow"] for s in all_three]
        assert slow == [i, i, i], slow
    g.stop()


def adaptive_spreads():
    least_active_spreads("adaptive")


def shortest_response_finds_the_fast_one():
    for s, name, ms in zip(stubs("a", "b", "c"), "abc", (60, 0, 30)):
        s.script(json.dumps({"whoami": [[{"delay_ms": ms}, {"value": name}]]}))
    g = kit.Gateway(config("shortestresponse", ["20880", "20882", "20884"]))
    seen = order(60)
    assert seen[40:] == "b" * 20, seen
    g.stop()


def ring(ports, nodes=160):
    """Dubbo's, written down once more."""
    points = {}
    for p in ports:
        for i in range(nodes // 4):
            d = hashlib.md5(b"127.0.0.1:%d%d" % (p, i)).digest()
            for word in struct.unpack("<4I", d):
                points[word] = p
    order_ = sorted(points)

    def find(key):
        h = struct.unpack("<I", hashlib.md5(key.encode()).digest()[:4])[0]
        at = bisect.bisect_left(order_, h)
        return points[order_[at % len(order_)]]
    return find


def route(**more):
    return {"name": "who", "path": "/who/{id}", "call": "user.whoami", "args": [], **more}


def same_key_same_provider():
    """By the first argument, as Dubbo; when a provider goes, only its keys move, to where the ring leads without it."""
    a, b, c = stubs(*(str(20880 + 2 * i) for i in range(3)))
    for s in (a, b, c):
        s.script(json.dumps({"m": [[{"value": s.port}]]}))
    g = kit.Gateway(config("consistenthash", ["20880", "20882", "20884"]))
    h = kit.Http()

    def where(key):
        status, body, _ = h.post("/%s/m" % IFACE, [key, 1])
        assert status == 200, body
        return int(body)
    find, keys = ring([20880, 20882, 20884]), ["user-%d" % i for i in range(60)] + [7, -1, True, None, 2.5, "ë"]

    def text(k):
        return k if isinstance(k, str) else json.dumps(k)
    where("x"), where("y"), where("z")
    before = {k: where(k) for k in keys}
    assert before == {k: find(text(k)) for k in keys} == {k: where(k) for k in keys}
    assert set(before.values()) == {20880, 20882, 20884}
    b.kill()
    kit.wait_until(lambda: "20882" not in json.dumps(g.admin("/connections")[1]), 5, "its connection is gone")
    find = ring([20880, 20884])
    assert {k: where(k) for k in keys} == {k: before[k] if before[k] != 20882 else find(text(k)) for k in keys}
    g.stop()


def provider_asks_for_a_hash():
    """METHOD.loadbalance, METHOD.hash.arguments and hash.nodes of the first provider's URL."""
    for s in stubs("a", "b", "c"):
        s.script(json.dumps({"m": [[{"value": s.port}]]}))
    url = "?m.loadbalance=consistenthash&m.hash.arguments=1,0&hash.nodes=40"
    g = kit.Gateway(config(None, ["20880" + url, "20882", "20884"]))
    h = kit.Http()
    find = ring([20880, 20882, 20884], 40)
    order(20, h)
    for i in range(40):
        status, body, _ = h.post("/%s/m" % IFACE, ["u%d" % i, i])
        assert (status, int(body)) == (200, find("%du%d" % (i, i))), (i, body)
    g.stop()


def sticky_by_what_a_route_names():
    stubs("a", "b", "c")
    names = {20880: "a", 20882: "b", 20884: "c"}
    find = ring(names)
    for source, ask in (("path.id", lambda h, k: h.call("GET", "/who/%s" % k)),
                        ("query.user", lambda h, k: h.call("GET", "/who/1?user=%s" % k)),
                        ("header.X-User", lambda h, k: h.call("GET", "/who/1", headers={"X-User": k}))):
        g = kit.Gateway(config("random", ["20880", "20882", "20884"], routes=[route(method="GET", hash_policy=[source])]))
        h = kit.Http()
        order(20, h)
        for i in range(30):
            assert ask(h, "user-%d" % i)[:2] == (200, '"%s"' % names[find("user-%d" % i)]), (source, i)
        g.stop()


def sticky_by_a_member_of_the_body():
    """Two sources make one key; a request without any is balanced as usual."""
    stubs("a", "b", "c")
    names = {20880: "a", 20882: "b", 20884: "c"}
    find = ring(names)
    g = kit.Gateway(config("roundrobin", ["20880", "20882", "20884"], routes=[
        route(method="POST", args=[{"from": "body"}], hash_policy=["body.user.id", "header.X-Shop"])]))
    h = kit.Http()
    order(3, h)
    for i in range(30):
        body = {"user": {"id": i}}
        assert h.post("/who/1", body)[:2] == (200, '"%s"' % names[find(str(i))])
        assert h.post("/who/1", body, {"X-Shop": "s"})[:2] == (200, '"%s"' % names[find("%ds" % i)])
    assert sorted(h.post("/who/1", {"x": 1})[1] for _ in range(3)) == ['"a"', '"b"', '"c"']
    g.stop()


def sticky_for_a_whole_service():
    """Inherited by its routes and by the direct form; a route may have its own, or none."""
    stubs("a", "b", "c")
    names = {20880: "a", 20882: "b", 20884: "c"}
    find = ring(names)
    c = config("roundrobin", ["20880", "20882", "20884"], routes=[
        route(method="GET"), {**route(method="GET", hash_policy=["path.id"]), "name": "own", "path": "/own/{id}"},
        {**route(method="GET", hash_policy=[]), "name": "none", "path": "/none/{id}"}])
    c["services"][0]["hash_policy"] = ["header.X-User", "path.shop"]
    g = kit.Gateway(c)
    h = kit.Http()
    order(3, h)
    for i in range(20):
        user = {"X-User": "u%d" % i}
        at = '"%s"' % names[find("u%d" % i)]
        assert h.call("GET", "/who/1", headers=user)[1] == at
        assert h.post("/%s/whoami" % IFACE, "[]", user)[1] == at
        assert h.call("GET", "/own/%d" % i, headers=user)[1] == '"%s"' % names[find(str(i))]
    assert {h.call("GET", "/none/1", headers={"X-User": "u"})[1] for _ in range(3)} == {'"a"', '"b"', '"c"'}
    g.stop()


def hash_settings_are_checked():
    for more, what in (({"hash_policy": ["path.nobody"]}, "no variable {nobody}"),
                       ({"hash_policy": ["user"]}, "a source"),
                       ({"hash": {"arguments": ["first"]}}, "the number of an argument"),
                       ({"hash": {"nodes": 100000}}, "1600")):
        g = kit.Gateway(config("random", ["20880"], routes=[route(method="GET", **more)]), wait=False)
        assert g.proc.wait(10) != 0 and what in g.log(), g.log()


def unknown_name_is_refused():
    g = kit.Gateway(config("fastest", ["20880"]), wait=False)
    assert g.proc.wait(10) != 0 and "shortestresponse" in g.log(), g.log()


if __name__ == "__main__":
    kit.run([round_robin_by_weight, round_robin_has_a_turn_per_method, provider_asks_for_round_robin, least_active_spreads,
             adaptive_spreads, shortest_response_finds_the_fast_one, same_key_same_provider,
             provider_asks_for_a_hash, sticky_by_what_a_route_names, sticky_by_a_member_of_the_body, sticky_for_a_whole_service,
             hash_settings_are_checked, unknown_name_is_refused])
