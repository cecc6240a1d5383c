#!/usr/bin/env python3
"""Which provider a call goes to, with real providers behind the gateway (docs/REGISTRY.md section 8).  The exact orders
are in tests/unit/gateway_balance.c."""
import json
import os
import signal
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


def unknown_name_is_refused():
    g = kit.Gateway(config("fastest", ["20880"]), wait=False)
    assert g.proc.wait(10) != 0 and "shortestresponse" in g.log(), g.log()


if __name__ == "__main__":
    kit.run([round_robin_by_weight, round_robin_has_a_turn_per_method, provider_asks_for_round_robin, least_active_spreads,
             adaptive_spreads, shortest_response_finds_the_fast_one, unknown_name_is_refused])
