#!/usr/bin/env python3
"""Cluster modes of routes, with real providers behind the gateway (docs/OPERATIONS.md section 2.8)."""
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"


def config(urls, service=None, log=None, **route):
    return {"process": {"workers": 1, "drain_timeout": "1s"}, "defaults": {"timeout": "2s"},
            "logging": {"access": {"target": log or "none"}},
            "services": [{"name": "user", "interface": IFACE, "providers": ["dubbo://127.0.0.1:" + u for u in urls],
                          **(service or {})}],
            "routes": [{"name": "r", "method": "POST", "path": "/m", "call": "user.m", "args": [], **route},
                       {"name": "w", "method": "POST", "path": "/w", "call": "user.whoami", "args": []}]}


def stubs(*actions):
    """One provider per list of actions, on 20880, 20882, …; each answers `m` with it."""
    made = []
    for i, a in enumerate(actions):
        s = kit.Stub(20880 + 2 * i, 20881 + 2 * i)
        s.script(json.dumps({"m": [a]}))
        made.append(s)
    return made


def calls(s):
    return s.numbers()["methods"].get("m", 0)


def ask(h=None, path="/m"):
    """(status, result or code)"""
    status, body, _ = (h or kit.Http()).post(path, "[]")
    v = json.loads(body)
    return (status, v) if status == 200 else (status, v["code"])


def connect_all(n=30):
    h = kit.Http()
    for _ in range(n):
        h.post("/w", "[]")


BUSY = [{"status": 100, "text": "exhausted"}]


def value(v):
    return [{"value": v}]


def later(ms, v):
    return [{"delay_ms": ms}, {"value": v}]


# ---------------------------------------------------------------- one provider at a time

def failover_is_the_default():
    a, b = stubs(BUSY, value("b"))
    for mode in {}, {"cluster": "failover"}:
        g = kit.Gateway(config(["20880", "20882?weight=0"], **mode))
        assert ask() == (200, "b")
        g.stop()
    assert calls(a) == 2 and calls(b) == 2


def failover_only_what_did_not_run():
    """A lost connection is no reason to run it again, unless the route says idempotent; then at another provider."""
    a, b = stubs([{"close": True}], value("b"))
    for idempotent, answer in ((False, (502, "CONNECTION_LOST")), (True, (200, "b"))):
        g = kit.Gateway(config(["20880", "20882?weight=0"], idempotent=idempotent))
        assert ask() == answer
        g.stop()
    assert calls(a) == 2 and calls(b) == 1


def failfast_asks_once():
    a, b = stubs(BUSY, value("b"))
    g = kit.Gateway(config(["20880", "20882?weight=0"], cluster="failfast"))
    assert ask() == (503, "PROVIDER_BUSY")
    a.kill()
    kit.wait_until(lambda: ask() == (200, "b"), 3, "a provider in back-off is not the one attempt")
    g.stop()


def failsafe_answers_null():
    a, = stubs(BUSY)
    log = "/tmp/failsafe-access.log"
    open(log, "w", encoding="ascii").close()
    g = kit.Gateway(config(["20880"], cluster="failsafe", log=log))
    assert ask() == (200, None) and calls(a) == 1
    a.script(json.dumps({"m": [value("v"), [{"exception": {"class": "a.B", "message": "no"}}]]}))
    assert ask() == (200, "v")
    assert ask() == (500, "PROVIDER_EXCEPTION"), "an exception is an answer"
    a.kill()
    assert ask() == (200, None)
    assert g.log().count("is answered as null (failsafe)") == 1, g.log()  # repeats are counted, not written
    g.stop()
    lines = [json.loads(x) for x in open(log, encoding="utf-8")]
    assert [(x["status"], x.get("code")) for x in lines] == [
        (200, "PROVIDER_BUSY"), (200, None), (500, "PROVIDER_EXCEPTION"), (200, lines[3].get("code"))], lines
    assert lines[3]["code"] in ("PROVIDER_UNREACHABLE", "CONNECTION_LOST"), lines
    os.unlink(log)


def failsafe_may_answer_204():
    stubs(BUSY)
    g = kit.Gateway(config(["20880"], cluster="failsafe", response={"null_status": 204}))
    assert kit.Http().post("/m", "[]")[:2] == (204, "")
    g.stop()


# ---------------------------------------------------------------- several at once

def forking_takes_the_first():
    """The slow and the failing one make no difference; each call is at as many different providers as there are forks."""
    three = stubs(later(1500, "slow"), BUSY, later(30, "good"))
    g = kit.Gateway(config(["20880", "20882", "20884"], cluster="forking", forks=3, idempotent=True))
    connect_all()
    h = kit.Http()
    begin = time.monotonic()
    for _ in range(10):
        assert ask(h) == (200, "good")
    assert time.monotonic() - begin < 1.4, "it waited for the slow one"
    assert calls(three[0]) == calls(three[2]) == 10, [calls(s) for s in three]
    g.stop()


def forking_with_two_of_three():
    three = stubs(*(later(20, i) for i in range(3)))
    g = kit.Gateway(config(["20880", "20882", "20884"], cluster="forking", idempotent=True))
    connect_all()
    h = kit.Http()
    for _ in range(30):
        assert ask(h)[0] == 200
    n = [calls(s) for s in three]
    assert sum(n) == 60 and max(n) <= 30, "no provider gets a call twice: %s" % n
    g.stop()


def forking_when_all_fail():
    """What the method said tells more than that somebody was busy."""
    stubs(BUSY, [{"delay_ms": 50}, {"exception": {"class": "a.B", "message": "no"}}])
    g = kit.Gateway(config(["20880", "20882", "20890"], cluster="forking", forks=3, idempotent=True, retry={"attempts": 0}))
    assert ask() == (500, "PROVIDER_EXCEPTION")
    g.stop()


def forking_has_one_deadline():
    stubs(later(5000, 1), later(5000, 2))
    g = kit.Gateway(config(["20880", "20882"], cluster="forking", idempotent=True, timeout="300ms"))
    begin = time.monotonic()
    assert ask() == (504, "PROVIDER_TIMEOUT")
    assert .2 < time.monotonic() - begin < 1, time.monotonic() - begin
    g.stop()


def in_flight(g):
    return sum(x["in_flight"] for x in g.admin("/connections")[1]["connections"])


def clients_that_leave():
    """In the middle of forks, some at once: nothing is left behind."""
    made = stubs(later(300, 1), later(300, 1))
    g = kit.Gateway(config(["20880", "20882"], cluster="forking", idempotent=True))
    connect_all()
    for i in range(60):
        s = kit.socket.create_connection(("127.0.0.1", 8080))
        s.setsockopt(kit.socket.SOL_SOCKET, kit.socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.sendall(b"POST /m HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n[]")
        if i % 3 == 0:
            kit.wait_until(lambda: in_flight(g) > 0, 2, "it is asked for")  # pylint: disable=cell-var-from-loop
        s.close()
    kit.wait_until(lambda: in_flight(g) == 0, 5, "every call has ended")
    assert ask() == (200, 1) and calls(made[0]) > 0 and calls(made[1]) > 0
    g.stop()


def gateway_that_stops():
    stubs(later(5000, 1), later(5000, 2))
    g = kit.Gateway(config(["20880", "20882"], cluster="forking", idempotent=True, timeout="6s"))
    connect_all()
    seen = []
    ts = [threading.Thread(target=lambda: seen.append(ask())) for _ in range(3)]
    for t in ts:
        t.start()
    kit.wait_until(lambda: in_flight(g) == 6, 2, "six calls are under way")
    assert g.kill(signal.SIGTERM) == 0, g.log()
    for t in ts:
        t.join()
    assert seen == [(503, "DRAINING")] * 3, seen


# ---------------------------------------------------------------- all of them

def broadcast_asks_everybody():
    three = stubs(value("a"), value("b"), value("c"))
    g = kit.Gateway(config(["20880", "20882?weight=0", "20884"], cluster="broadcast"))
    h = kit.Http()
    for i in range(1, 6):
        assert ask(h) == (200, "c"), "the last one's result"
        assert [calls(s) for s in three] == [i, i, i]
    g.stop()


def broadcast_goes_on_after_a_failure():
    """One that fails and one that is not there: the others are called all the same, and the answer is the error."""
    a, b = stubs([{"exception": {"class": "a.B", "message": "no"}}], value("b"))
    g = kit.Gateway(config(["20880", "20882", "20890"], cluster="broadcast"))
    status, body, _ = kit.Http().post("/m", "[]")
    assert (status, json.loads(body)["code"]) == (500, "PROVIDER_EXCEPTION"), body
    assert "2 of 3 providers failed" in body, body
    assert calls(a) == 1 and calls(b) == 1
    g.stop()


def broadcast_stops_at_the_deadline():
    a, b, c = stubs(value("a"), later(1000, "b"), value("c"))
    g = kit.Gateway(config(["20880", "20882", "20884"], cluster="broadcast", timeout="300ms"))
    assert ask() == (504, "PROVIDER_TIMEOUT")
    assert [calls(a), calls(b), calls(c)] == [1, 1, 0], "nobody is asked whose answer cannot be waited for"
    g.stop()


def broadcast_one_way():
    three = stubs(value("a"), value("b"), value("c"))
    g = kit.Gateway(config(["20880", "20882", "20884"], cluster="broadcast", oneway=True))
    assert kit.Http().post("/m", "[]")[0] == 202
    kit.wait_until(lambda: [calls(s) for s in three] == [1, 1, 1], 3, "all have it")
    g.stop()


def broadcast_without_anybody():
    g = kit.Gateway(config(["20890"], cluster="broadcast"))
    assert ask() == (503, "PROVIDER_UNREACHABLE")
    g.stop()


# ---------------------------------------------------------------- groups

GROUPS = ["20880?group=a", "20882?group=b", "20884?group=b", "20886?group=c"]


def mergeable(*results, group="*", **route):
    made = stubs(*results)
    g = kit.Gateway(config(GROUPS[:len(results)], {"group": group}, cluster="mergeable", **route))
    return made, g


def lists_of_groups_are_joined():
    made, g = mergeable(value([1, 2]), value([3]), value([3]), later(100, [{"x": 4}]))
    h = kit.Http()
    for _ in range(10):
        assert ask(h) == (200, [1, 2, 3, {"x": 4}])
    assert [calls(made[0]), calls(made[1]) + calls(made[2]), calls(made[3])] == [10, 10, 10]
    g.stop()


def objects_of_groups_are_united():
    """In the order of a list, the later group wins; providers of other groups are not asked."""
    made, g = mergeable(value({"a": 1, "b": 1}), value({"b": 2}), value({"b": 2}), value({"c": 3}), group="b,a")
    assert ask() == (200, {"b": 1, "a": 1})
    assert calls(made[3]) == 0
    g.stop()


def groups_without_a_result():
    made, g = mergeable([{"null": True}], value([1]), value([1]))
    assert ask() == (200, [1])
    made[1].script(json.dumps({"m": [[{"null": True}]]}))
    made[2].script(json.dumps({"m": [[{"null": True}]]}))
    assert ask() == (200, None)
    g.stop()


def a_group_that_fails():
    """Half a result would look like a whole one."""
    made, g = mergeable(value([1]), BUSY, BUSY, retry={"attempts": 0})
    assert ask() == (503, "PROVIDER_BUSY")
    g.stop()
    for s in made:
        s.kill()
    kit.running[:] = []
    made, g = mergeable(value([1]), value([2]), value([2]), group="a,nobody")
    assert ask() == (503, "NO_PROVIDER")
    g.stop()


def results_that_cannot_be_merged():
    made, g = mergeable(value(1), value([2]), value([2]))
    assert ask() == (502, "BAD_PROVIDER_RESPONSE")
    g.stop()


def a_retry_stays_in_its_group():
    made, g = mergeable(value([1]), BUSY, value([2]))
    h = kit.Http()
    for _ in range(10):
        assert ask(h) == (200, [1, 2])
    assert calls(made[1]) > 0, "with an even chance to be the first"
    g.stop()


# ---------------------------------------------------------------- configuration

def modes_are_checked():
    for more, what in (({"cluster": "available"}, "mergeable"), ({"cluster": "forking"}, "only with"),
                       ({"cluster": "mergeable"}, "a list of groups"),
                       ({"cluster": "forking", "idempotent": True, "oneway": True}, "oneway"),
                       ({"cluster": "forking", "idempotent": True, "forks": 1}, "forks")):
        g = kit.Gateway(config(["20880"], **more), wait=False)
        assert g.proc.wait(10) != 0 and what in g.log(), (more, g.log())


if __name__ == "__main__":
    kit.run([failover_is_the_default, failover_only_what_did_not_run, failfast_asks_once, failsafe_answers_null,
             failsafe_may_answer_204, forking_takes_the_first, forking_with_two_of_three, forking_when_all_fail,
             forking_has_one_deadline, clients_that_leave, gateway_that_stops, broadcast_asks_everybody,
             broadcast_goes_on_after_a_failure, broadcast_stops_at_the_deadline, broadcast_one_way,
             broadcast_without_anybody, lists_of_groups_are_joined, objects_of_groups_are_united, groups_without_a_result,
             a_group_that_fails, results_that_cannot_be_merged, a_retry_stays_in_its_group, modes_are_checked])
