#!/usr/bin/env python3
"""Providers that fail call after call are ejected and come back (docs/OPERATIONS.md section 2.6, outages 3 and 4)."""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
PATH = "/%s/whoami" % IFACE
BROKEN = {"*": [[{"status": 70, "text": "x"}]]}
FINE = {"*": [[{"value": "fine"}]]}


def config(n, **more):
    """n providers of a fixed list, and one worker, so that figures are exact."""
    ports = [20880 + 2 * i for i in range(n)]
    c = {"process": {"workers": 1},
         "services": [{"name": "user", "interface": IFACE, "providers": ["dubbo://127.0.0.1:%d" % p for p in ports]}],
         "direct": {"enabled": True, "allow": ["*"]},
         "defaults": dict({"timeout": "300ms", "loadbalance": "roundrobin", "outlier_detection": {"base_ejection_time": "2s"}}, **more)}
    return c, [kit.Stub(p, p + 1) for p in ports]


def states(g):
    return [p["state"] for p in g.admin("/providers?service=demo.UserService")[1]["providers"]]


def calls(h, n, path=PATH, headers=None):
    return [h.post(path, "[]", headers or {})[0] for _ in range(n)]


def hung_provider_is_ejected_and_comes_back():
    """Outage 3: five calls time out at their deadline, then no call goes there.  It goes on: used again within 10 s, and
    it has received exactly what was sent to it."""
    c, stubs = config(2)
    g = kit.Gateway(c)
    h = kit.Http()
    assert calls(h, 10) == [200] * 10
    stubs[0].proc.send_signal(signal.SIGSTOP)
    seen = []
    for _ in range(40):
        begin = time.monotonic()
        seen += calls(h, 1)
        assert time.monotonic() - begin < 0.5, "later than its deadline"
    assert seen.count(504) == 5 and set(seen) == {200, 504} and set(seen[-20:]) == {200}, seen
    assert sorted(states(g)) == ["ejected", "up"], states(g)
    assert "PROVIDER_TIMEOUT\n" in kit.program("providers"), kit.program("providers")
    time.sleep(3)  # longer than the ejection: it does not answer a heartbeat, so no call tries it
    assert calls(h, 20) == [200] * 20
    stubs[0].proc.send_signal(signal.SIGCONT)
    before = stubs[0].numbers()["calls"]
    end = time.monotonic() + 10
    while stubs[0].numbers()["calls"] < before + 10:
        assert time.monotonic() < end, "it is used again within 10 s"
        assert calls(h, 5) == [200] * 5
    assert states(g) == ["up", "up"] and g.metric("dubbogate_provider_ejections_total") == 1
    sent = sum(p["calls"] for p in g.admin("/providers?service=demo.UserService")[1]["providers"])
    assert sum(s.numbers()["calls"] for s in stubs) == sent, sent
    g.stop()


def connected_anew_is_tried_at_once():
    """Whatever is left of its time: a minute here."""
    c, stubs = config(2, outlier_detection={"base_ejection_time": "60s"})
    g = kit.Gateway(c)
    h = kit.Http()
    assert calls(h, 10) == [200] * 10
    stubs[0].proc.send_signal(signal.SIGSTOP)
    calls(h, 20)

    def hung():
        calls(h, 2)
        return next(p for p in g.admin("/providers?service=" + IFACE)[1]["providers"] if p["address"].endswith(":20880"))
    kit.wait_until(lambda: hung()["state"] == "ejected" and hung()["last_error"] == "connection lost", 5, "its connection was given up")
    stubs[0].proc.send_signal(signal.SIGCONT)
    kit.wait_until(lambda: hung()["state"] == "up", 10, "it is used again")
    g.stop()


def only_provider_hangs():
    """Outage 4 with one provider: five calls end at their deadline, the next at once with 503 and Retry-After; it goes on:
    used again within 5 s."""
    c, stubs = config(1)
    g = kit.Gateway(c)
    h = kit.Http()
    assert calls(h, 2) == [200] * 2
    stubs[0].proc.send_signal(signal.SIGSTOP)
    assert calls(h, 5) == [504] * 5
    # the connection is given a second to answer a heartbeat; until then calls go on trying
    kit.wait_until(lambda: calls(h, 1) == [503], 5, "it is known to hang")
    for _ in range(20):
        begin = time.monotonic()
        status, text, headers = h.post(PATH, "[]")
        assert status == 503 and json.loads(text)["code"] == "PROVIDER_UNREACHABLE" and headers["Retry-After"] == "1", text
        assert "ejected" in json.loads(text)["detail"] and time.monotonic() - begin < 0.2, text
        time.sleep(0.05)
    stubs[0].proc.send_signal(signal.SIGCONT)
    begin = time.monotonic()
    kit.wait_until(lambda: calls(h, 1) == [200], 5, "it is used again")
    assert time.monotonic() - begin < 5
    assert calls(h, 20) == [200] * 20
    g.stop()


def failing_provider_is_tried_again():
    """Case 83: five failures in a row eject, a success in between forgives; after the time one call tries it, which ejects
    it for longer; then it answers and is one of two again."""
    c, stubs = config(2, retry={"attempts": 0})
    stubs[1].script(json.dumps(FINE))
    stubs[0].script(json.dumps({"*": [[{"status": 70, "text": "x"}]] * 4 + [[{"value": "fine"}]] + [[{"status": 70, "text": "x"}]]}))
    g = kit.Gateway(c)
    h = kit.Http()
    seen = calls(h, 40)
    assert seen.count(502) == 9 and set(seen[-15:]) == {200}, seen
    assert sorted(states(g)) == ["ejected", "up"] and g.metric("dubbogate_providers_ejected") == 1
    before = stubs[0].numbers()["calls"]
    begin = time.monotonic()
    kit.wait_until(lambda: calls(h, 5).count(502) == 1, 4, "one call tries it")
    assert time.monotonic() - begin > 1, "before its time"
    assert calls(h, 40) == [200] * 40 and stubs[0].numbers()["calls"] == before + 1
    assert g.metric("dubbogate_provider_ejections_total") == 2
    stubs[0].script(json.dumps(FINE))
    begin = time.monotonic()
    kit.wait_until(lambda: calls(h, 5) == [200] * 5 and states(g) == ["up", "up"], 8, "it is back")
    assert time.monotonic() - begin > 2, "the second time is longer"
    before = stubs[0].numbers()["calls"]
    assert calls(h, 20) == [200] * 20 and stubs[0].numbers()["calls"] == before + 10
    for s in stubs:
        s.kill()
    g.stop()


def ejections_are_forgiven():
    """The second ejection is longer, but not than max_ejection_time; each base_ejection_time that it is well takes one back."""
    c, stubs = config(1, retry={"attempts": 0}, outlier_detection={"base_ejection_time": "1s", "max_ejection_time": "1500ms"})
    g = kit.Gateway(c)
    h = kit.Http()

    def ejected_ms():
        return g.admin("/providers?service=" + IFACE)[1]["providers"][0]["ejected_ms"]

    def failures(n):
        stubs[0].script(json.dumps(BROKEN))
        assert calls(h, n) == [502] * n
        return ejected_ms()
    assert 500 < failures(5) <= 1000
    time.sleep(1)
    assert 1000 < failures(1) <= 1500, "twice the time would be 2 s"
    stubs[0].script(json.dumps(FINE))
    kit.wait_until(lambda: calls(h, 1) == [200] and ejected_ms() == 0, 4, "it is well")
    time.sleep(2.1)
    assert 500 < failures(5) <= 1000, "as the first one"
    stubs[0].kill()
    g.stop()


def trial_is_one_call():
    """Robustness T5: until the first success there is one call in flight at it."""
    c, stubs = config(2, retry={"attempts": 0})
    stubs[1].script(json.dumps(FINE))
    stubs[0].script(json.dumps(BROKEN))
    g = kit.Gateway(c)
    calls(kit.Http(), 30)
    assert sorted(states(g)) == ["ejected", "up"]
    stubs[0].script(json.dumps({"*": [[{"delay_ms": 250}, {"value": "late"}], [{"value": "fine"}]]}))
    before = stubs[0].numbers()["calls"]
    time.sleep(2.1)
    load = kit.Load(PATH, "[]", 8)
    kit.wait_until(lambda: stubs[0].numbers()["calls"] == before + 1, 5, "it is tried")
    time.sleep(0.1)
    assert stubs[0].numbers()["calls"] == before + 1
    kit.wait_until(lambda: stubs[0].numbers()["calls"] > before + 50, 5, "it is used")
    assert set(load.stop()) == {"200"}
    for s in stubs:
        s.kill()
    g.stop()


def all_failing_are_all_used():
    """Robustness T4: above max_ejection_percent nobody's failures are his own."""
    c, stubs = config(3, retry={"attempts": 0})
    for s in stubs:
        s.script(json.dumps(BROKEN))
    g = kit.Gateway(c)
    h = kit.Http()
    assert calls(h, 60) == [502] * 60
    assert states(g) == ["ejected"] * 3
    before = [s.numbers()["calls"] for s in stubs]
    assert calls(h, 60) == [502] * 60
    assert all(s.numbers()["calls"] > n + 10 for s, n in zip(stubs, before))
    for s in stubs:
        s.script(json.dumps(FINE))
    kit.wait_until(lambda: calls(h, 10) == [200] * 10 and states(g) == ["up"] * 3, 8, "all are well")
    for s in stubs:
        s.kill()
    g.stop()


def two_of_three_are_too_many():
    """Above max_ejection_percent ejected ones are used beside the healthy one; with 100 only when nobody else is left."""
    for percent, failures in ((50, 20), (100, 0)):
        c, stubs = config(3, retry={"attempts": 0}, outlier_detection={"max_ejection_percent": percent})
        for s in stubs:
            s.script(json.dumps(FINE if s is stubs[2] else BROKEN))
        g = kit.Gateway(c)
        h = kit.Http()
        assert calls(h, 60).count(502) >= 10
        assert sorted(states(g)) == ["ejected", "ejected", "up"]
        assert calls(h, 30).count(502) == failures, percent
        stubs[2].script(json.dumps(BROKEN))
        kit.wait_until(lambda: calls(h, 1) == [502] and states(g) == ["ejected"] * 3, 5, "all are ejected")
        assert calls(h, 10) == [502] * 10, "those that are connected are better than none"
        for s in stubs:
            s.kill()
        g.stop()


def not_everything_is_a_failure():
    """Exceptions of the application, the client's own short deadlines, and `consecutive_failures: 0` eject nobody."""
    c, stubs = config(1, max_timeout="300ms")
    c["services"].append({"name": "off", "interface": "demo.Off", "providers": ["dubbo://127.0.0.1:20880"],
                          "outlier_detection": {"consecutive_failures": 0}})
    stubs[0].script(json.dumps({"whoami": [[{"exception": {"class": "x.Y", "message": "m"}}]], "slow": [[{"never": True}]],
                                "broken": [[{"status": 70, "text": "x"}]], "$heartbeat": [[{"null": True}]]}))
    g = kit.Gateway(c)
    h = kit.Http()
    assert calls(h, 12) == [500] * 12
    assert calls(h, 12, "/%s/slow" % IFACE, {"X-Request-Timeout": "20ms"}) == [504] * 12
    assert calls(h, 12, "/demo.Off/broken") == [502] * 12
    assert states(g) == ["up"] and g.metric("dubbogate_provider_ejections_total") == 0
    assert calls(h, 12, "/%s/broken" % IFACE) == [502] * 12
    assert states(g) == ["ejected"]
    stubs[0].kill()
    g.stop()


if __name__ == "__main__":
    kit.run([hung_provider_is_ejected_and_comes_back, connected_anew_is_tried_at_once, only_provider_hangs,
             failing_provider_is_tried_again, ejections_are_forgiven, trial_is_one_call, all_failing_are_all_used, two_of_three_are_too_many,
             not_everything_is_a_failure])
