#!/usr/bin/env python3
"""Every row of docs/PROTOCOL.md §17 over scripted providers: status, code, and how often the call was sent.

Each row runs twice: with one provider, and with two that both misbehave: the call is sent to both exactly where the
table says retry, and otherwise once.  The rows come from the document, not from gateway/outcome.c."""
import json
import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

ONE, TWO = "demo.One", "demo.Two"  # exported by the first provider; by both
P26, P27 = "com.alibaba.dubbo", "org.apache.dubbo"


def config(service=None, method=None, query="", **more):
    services = []
    for name, iface, ports in (("one", ONE, (20880,)), ("two", TWO, (20880, 20882))):
        s = {"name": name, "interface": iface, "methods": [dict({"name": "m"}, **(method or {}))],
             "providers": ["dubbo://127.0.0.1:%d%s" % (p, query) for p in ports]}
        s.update(service or {})
        services.append(s)
    c = {"process": {"workers": 1}, "services": services, "direct": {"enabled": True, "allow": ["*"]},
         "defaults": {"timeout": "500ms"}}
    c.update(more)
    return c


def text(status, t, **more):
    return [dict({"status": status, "text": t}, **more)]


def raises(name):
    return [{"exception": {"class": name, "message": "m"}}]


def raw(body, status=20, flag=2):
    return [{"raw": "dabb%02x%02xID%08x%s" % (flag, status, len(body) // 2, body)}]


def hs(t):
    """A short text as Hessian2."""
    return "%02x" % len(t) + t.encode().hex()


MISSING_27 = ("%s.remoting.RemotingException: Not found exported service: demo.One:20880 in [], "
              "may be version or group mismatch")
STACK = "\n\tat %s.common.utils.PojoUtils.realize(PojoUtils.java:212)\n\tat x.Y.z(Y.java:1)"
# kind 0: an exception object as Java writes it, without attachments behind it
OBJECT = "90" + "43" + "1f" + "java.lang.IllegalStateException".encode().hex() + "91" + hs("detailMessage") + "60" + hs("m")

# name, what the provider does, status, code, sent to a second provider?
ROWS = [
    ("kind_1", raw("91" + hs("a")), 200, None, False),
    ("kind_2", raw("92"), 200, None, False),
    ("kind_4", [{"value": "a"}], 200, None, False),
    ("kind_5", [{"null": True}], 200, None, False),
    ("kind_0_exception", raw(OBJECT), 500, "PROVIDER_EXCEPTION", False),
    ("kind_3_exception", raises("demo.BizException"), 500, "PROVIDER_EXCEPTION", False),
    ("javax_violation", raises("javax.validation.ConstraintViolationException"), 400, "VALIDATION_FAILED", False),
    ("javax_validation", raises("javax.validation.ValidationException"), 400, "VALIDATION_FAILED", False),
    ("jakarta_violation", raises("jakarta.validation.ConstraintViolationException"), 400, "VALIDATION_FAILED", False),
    ("not_quite_validation", raises("demo.javax.validation.X"), 500, "PROVIDER_EXCEPTION", False),
    ("result_in_jsonb", raw("91c3", flag=0x17), 502, "UNSUPPORTED_SERIALIZATION", False),
    ("result_in_fastjson", raw("310a226122", flag=6), 502, "UNSUPPORTED_SERIALIZATION", False),
    ("undecodable", raw("94ff"), 502, "BAD_PROVIDER_RESPONSE", False),
    ("unknown_kind", raw("96"), 502, "BAD_PROVIDER_RESPONSE", False),
    ("empty_body", raw(""), 502, "BAD_PROVIDER_RESPONSE", False),
    ("cut_inside_a_text", raw("94" + "05" + "6161"), 502, "BAD_PROVIDER_RESPONSE", False),
    ("25", text(25, "Data length too large: 9, max payload: 8"), 502, "RESPONSE_TOO_LARGE", False),
    ("50_too_large", text(50, "Data length too large: 9, max payload: 8, channel: x"), 502, "RESPONSE_TOO_LARGE", False),
    ("50_other", text(50, "Failed to send response: Response [id=1], cause: x"), 502, "BAD_PROVIDER_RESPONSE", False),
    ("40", text(40, "Fail to decode request due to: RpcInvocation [methodName=$invoke, parameterTypes=null]"),
     502, "PROVIDER_REJECTED_REQUEST", True),
    ("40_in_jsonb", text(40, "Fail to decode request", serial=23), 502, "PROVIDER_REJECTED_REQUEST", True),
    ("60", text(60, "x"), 503, "PROVIDER_NOT_FOUND", True),
    ("70_not_exported_2.6", text(70, MISSING_27 % P26), 503, "PROVIDER_NOT_FOUND", True),
    ("70_not_exported_2.7", text(70, MISSING_27 % P27), 503, "PROVIDER_NOT_FOUND", True),
    ("70_no_method_3.x", text(70, P27 + ".rpc.RpcException: No such method m in class interface demo.One\n\tat x"),
     404, "METHOD_NOT_FOUND", False),
    ("70_no_method_2.x", text(70, P26 + ".rpc.RpcException: %s.m(int,[I)\n\tat x.Y.z(Y.java:1)"), 404,
     "METHOD_NOT_FOUND", False),
    ("70_no_such_type", text(70, P27 + ".rpc.RpcException: no.such.Type\n\tat x.Y.z(Y.java:1)"), 400, "UNKNOWN_TYPE", False),
    ("70_no_such_type_2.6", text(70, P26 + ".rpc.RpcException: no.such.Type"), 400, "UNKNOWN_TYPE", False),
    ("70_overloaded", text(70, "java.lang.IllegalStateException: Not unique method for method name(m) in class(demo.One), "
                               "find 2 methods."), 400, "AMBIGUOUS_METHOD", False),
    ("70_count_2.6", text(70, "java.lang.IllegalArgumentException: args.length != types.length"), 400, "ARGUMENT_COUNT",
     False),
    ("70_count_2.7", text(70, P27 + ".rpc.RpcException: GenericFilter#invoke args.length != types.length, please check "
                              "your params"), 400, "ARGUMENT_COUNT", False),
    ("70_count_with_stack", text(70, "java.lang.IllegalArgumentException: args.length != types.length" + STACK % P26),
     400, "ARGUMENT_COUNT", False),
    ("70_conversion_2.6", text(70, 'java.lang.NumberFormatException: For input string: "zz"' + STACK % P26), 400,
     "BAD_ARGUMENT", False),
    ("70_conversion_3.x", text(70, P27 + ".rpc.RpcException: x" + STACK % P27), 400, "BAD_ARGUMENT", False),
    ("70_barrier", text(70, P27 + ".rpc.RpcException: x [Serialization Security] Trigger the safety barrier! Catch not "
                            "allowed serialize class."), 400, "BAD_ARGUMENT", False),
    ("70_security", text(70, "x [Serialization Security] Serialized class java.net.URL is not in allow list"), 400,
     "BAD_ARGUMENT", False),
    ("70_token", text(70, P26 + ".rpc.RpcException: Invalid token! Forbid invoke remote service interface x"), 502,
     "TOKEN_REJECTED", False),
    ("70_token_in_jsonb", text(70, P27 + ".rpc.RpcException: Invalid token! Forbid invoke remote service", serial=23),
     502, "TOKEN_REJECTED", False),
    ("70_token_in_fastjson", text(70, P27 + ".rpc.RpcException: Invalid token! Forbid invoke remote service", serial=6),
     502, "TOKEN_REJECTED", False),
    ("70_executes", text(70, P27 + ".rpc.RpcException: Failed to invoke method m in provider URL, cause: The service using "
                             'threads greater than <dubbo:service executes="1" /> limited.'), 503, "PROVIDER_BUSY", True),
    ("70_tps", text(70, P27 + ".rpc.RpcException: Failed to invoke service x because exceed max service tps."), 503,
     "PROVIDER_BUSY", True),
    ("70_other", text(70, "java.lang.OutOfMemoryError: Java heap space"), 502, "PROVIDER_ERROR", False),
    ("70_empty", text(70, ""), 502, "PROVIDER_ERROR", False),
    ("70_unreadable_text", raw("ff", status=70), 502, "PROVIDER_ERROR", False),
    ("70_mark_behind_4_KB", text(70, "x" * 5000 + "No such method"), 502, "PROVIDER_ERROR", False),
    ("80", text(80, "x"), 502, "PROVIDER_ERROR", False),
    ("100_2.6", text(100, "Server side(127.0.0.1,20880) threadpool is exhausted ,detail msg:x"), 503, "PROVIDER_BUSY", True),
    ("100_2.7", text(100, "Server side(127.0.0.1,20880) thread pool is exhausted, detail msg:x"), 503, "PROVIDER_BUSY",
     True),
] + [("%d" % n, text(n, "x"), 502, "BAD_PROVIDER_RESPONSE", False) for n in (0, 30, 31, 35, 77, 90, 255)] + [
    ("no_answer", [{"never": True}], 504, "PROVIDER_TIMEOUT", False),
    ("reset_unanswered", [{"reset": True}], 502, "CONNECTION_LOST", False),
    ("closed_unanswered", [{"close": True}], 502, "CONNECTION_LOST", False),
    ("closed_inside_the_answer", [{"raw": "dabb0214ID0000000a9403"}, {"close": True}], 502, "CONNECTION_LOST", False),
    ("not_a_frame", [{"raw": "48545450"}], 502, "CONNECTION_LOST", False),
]
NOT_RUN = {"PROVIDER_NOT_FOUND", "PROVIDER_REJECTED_REQUEST", "PROVIDER_BUSY", "PROVIDER_UNREACHABLE", "NO_PROVIDER",
           "GATEWAY_BUSY"}
MAY_HAVE_RUN = {"PROVIDER_EXCEPTION", "BAD_PROVIDER_RESPONSE", "RESPONSE_TOO_LARGE", "UNSUPPORTED_SERIALIZATION",
                "PROVIDER_ERROR", "PROVIDER_TIMEOUT", "CONNECTION_LOST"}


def check(answer, status, code, what):
    """The problem document: its members, no address, no stack, Retry-After where the call may come again."""
    got, body, headers = answer
    assert got == status, (what, got, body)
    if code is None:
        assert headers["Content-Type"] == "application/json", headers
        return
    p = json.loads(body)
    assert p["code"] == code and p["status"] == status and p["title"] and p["requestId"], (what, body)
    assert headers["Content-Type"] == "application/problem+json", headers
    assert headers["X-Request-Id"] == p["requestId"], (headers, body)
    for leak in ("127.0.0.1", "20880", "20882", "\\tat ", "PojoUtils.java"):
        assert leak not in body, (what, leak, body)
    if code in NOT_RUN:
        assert p["retryable"] is True, (what, body)
    if code in MAY_HAVE_RUN:
        assert p["retryable"] is False, (what, body)
    if code in ("PROVIDER_BUSY", "GATEWAY_BUSY", "NO_PROVIDER"):
        assert headers.get("Retry-After") == "1", (what, headers)


def both(actions):
    a, b = kit.Stub(20880, 20881), kit.Stub(20882, 20883)
    for s in (a, b):
        s.script(json.dumps({"*": [actions]}))
    return a, b


def calls(*stubs):
    return [s.numbers()["calls"] for s in stubs]


def play(name, actions, status, code, again):
    iface = {ONE: actions, TWO: actions}
    for i in iface:  # 2.x names interface and method in the text
        iface[i] = [dict(x, text=x["text"].replace("%s", i)) if "text" in x else x for x in actions]
    a, b = both(iface[ONE])
    g = kit.Gateway(config())
    check(kit.Http().post("/%s/m" % ONE, "[]"), status, code, name)
    assert calls(a)[0] == 1, (name, "one provider", calls(a, b))  # a row that may be retried finds nobody else here
    for s in (a, b):
        s.script(json.dumps({"*": [iface[TWO]]}))
    time.sleep(0.15 if code == "CONNECTION_LOST" else 0)  # the connection is made anew
    before = calls(a, b)
    check(kit.Http().post("/%s/m" % TWO, "[]"), status, code, name)
    sent = [x - y for x, y in zip(calls(a, b), before)]
    assert sorted(sent) == ([1, 1] if again else [0, 1]), (name, "two providers", sent)
    g.stop()


def make(row):
    def f():
        play(*row)
    f.__name__ = "row_" + row[0]
    return f


# ---------------------------------------------------------------- rows that need more than an answer

def rejected_by_every_3x_provider():
    """40 from a 3.x provider mostly means that it exports the service no longer, or not yet."""
    a, b = both(text(40, "Fail to decode request due to: RpcInvocation"))
    g = kit.Gateway(config(query="?release=3.2.15"))
    check(kit.Http().post("/%s/m" % ONE, "[]"), 503, "PROVIDER_NOT_FOUND", ONE)
    before = calls(a, b)
    check(kit.Http().post("/%s/m" % TWO, "[]"), 503, "PROVIDER_NOT_FOUND", TWO)
    assert [x - y for x, y in zip(calls(a, b), before)] == [1, 1], (before, calls(a, b))
    g.stop()


def retried_calls_succeed():
    """One of two providers refuses before the method runs: no client sees it."""
    for actions in (text(100, "x"), text(40, "x"), text(60, "x"), text(70, MISSING_27 % P27)):
        a, b = both(actions)
        b.script(json.dumps({"*": [[{"value": "ok"}]]}))
        g = kit.Gateway(config())
        for _ in range(20):
            status, body, _ = kit.Http().post("/%s/m" % TWO, "[]")
            assert (status, body) == (200, '"ok"'), (actions, status, body)
        g.stop()
        a.kill()
        b.kill()


class Slammer:
    """Accepts and closes at once: a provider over its `accepts`, a port of another protocol."""

    def __init__(self, port):
        self.sock = socket.create_server(("127.0.0.1", port))
        self.accepted = 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            self.accepted += 1
            c.close()

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def closed_right_after_connect():
    """No call is written before the provider has answered a heartbeat, so none is lost."""
    s = Slammer(20880)
    try:
        b = kit.Stub(20882, 20883)
        g = kit.Gateway(config())
        for _ in range(5):
            check(kit.Http().post("/%s/m" % ONE, "[]"), 503, "PROVIDER_UNREACHABLE", "closed")
        assert s.accepted > 0
        accepted = s.accepted
        begin = time.monotonic()
        while s.accepted < accepted + 3 and time.monotonic() - begin < 10:
            assert kit.Http().post("/%s/whoami" % TWO, "[]")[0] == 200
        assert s.accepted >= accepted + 3, "it was not tried again"
        g.stop()
        b.kill()
    finally:
        s.close()


def connect_refused():
    b = kit.Stub(20882, 20883)
    g = kit.Gateway(config())
    check(kit.Http().post("/%s/m" % ONE, "[]"), 503, "PROVIDER_UNREACHABLE", "refused")
    for _ in range(20):
        assert kit.Http().post("/%s/whoami" % TWO, "[]")[0] == 200
    g.stop()
    b.kill()


def connect_timeout():
    """An address behind a link that swallows everything."""
    for c in (["ip", "link", "add", "void0", "type", "veth", "peer", "name", "void1"],
              ["ip", "addr", "add", "192.0.2.1/24", "dev", "void0"], ["ip", "link", "set", "void0", "up"],
              ["ip", "link", "set", "void1", "up"],
              ["ip", "neigh", "add", "192.0.2.9", "lladdr", "02:00:00:00:00:09", "dev", "void0"]):
        subprocess.run(c, check=True)
    try:
        b = kit.Stub(20882, 20883)
        c = config(service={"connect_timeout": "200ms"})
        c["services"][0]["providers"] = ["dubbo://192.0.2.9:20880"]
        c["services"][1]["providers"][0] = "dubbo://192.0.2.9:20880"
        c["defaults"]["timeout"] = "2s"
        g = kit.Gateway(c)
        begin = time.monotonic()
        check(kit.Http().post("/%s/m" % ONE, "[]"), 503, "PROVIDER_UNREACHABLE", "swallowed")
        assert 0.15 < time.monotonic() - begin < 1, time.monotonic() - begin
        for _ in range(5):
            status, body, _ = kit.Http().post("/%s/whoami" % TWO, "[]")
            assert status == 200, (status, body)
        g.stop()
        b.kill()
    finally:
        subprocess.run(["ip", "link", "del", "void0"], check=True)


def readonly_lets_pending_calls_finish():
    a, b = kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")
    a.script(json.dumps({"m": [[{"readonly": True}, {"delay_ms": 300}, {"value": "late"}]]}))
    g = kit.Gateway(config(defaults={"timeout": "2s"}))
    load = kit.Load("/%s/m" % ONE, "[]", 1)
    try:
        kit.wait_until(lambda: calls(a)[0] == 1, 5, "the call is pending")
        time.sleep(0.1)
        for _ in range(20):  # new calls stay away from it
            assert kit.Http().post("/%s/whoami" % TWO, "[]")[:2] == (200, '"b"')
    finally:
        load.on = False
    assert load.stop() == {"200": 1}, load.seen
    g.stop()
    a.kill()
    b.kill()


def readonly_then_close_without_an_answer():
    for serial in (2, 23):
        a = kit.Stub(20880, 20881)
        a.script(json.dumps({"m": [[{"readonly": True, "serial": serial}, {"delay_ms": 100}, {"close": True}]]}))
        g = kit.Gateway(config(defaults={"timeout": "2s"}))
        check(kit.Http().post("/%s/m" % ONE, "[]"), 502, "CONNECTION_LOST", "readonly, then closed")
        g.stop()
        a.kill()


def idempotent_methods_are_sent_again():
    """After an unknown outcome, only where the method is marked; after a timeout only if that is listed too."""
    good = json.dumps({"*": [[{"value": "ok"}]]})
    for actions, retry, status in (([{"reset": True}], {}, 200), ([{"never": True}], {}, 504),
                                   ([{"never": True}], {"idempotent_conditions": ["timeout"], "per_try_timeout": "150ms"},
                                    200)):
        a, b = both(actions)
        b.script(good)
        g = kit.Gateway(config(method={"idempotent": True}, defaults={"timeout": "600ms", "retry": retry}))
        seen = set()
        for _ in range(12):
            seen.add(kit.Http().post("/%s/m" % TWO, "[]")[0])
        assert calls(a)[0] > 0, "the bad provider was never chosen"
        assert seen <= {200, status} and status in seen, (actions, retry, seen)
        if status != 200:
            assert seen >= {status}, seen
        g.stop()
        a.kill()
        b.kill()


def no_attempts_are_none():
    """`attempts: 0`: where any other call would go to the second provider, this one is over, also when nobody listened."""
    good = json.dumps({"*": [[{"value": "ok"}]]})
    for retry in ({}, {"retry": {"attempts": 0}}):
        a, b = both(text(100, "x"))
        b.script(good)
        g = kit.Gateway(config(defaults={"timeout": "500ms", **retry}))
        seen = {kit.Http().post("/%s/m" % TWO, "[]")[0] for _ in range(30)}
        assert seen == ({200, 503} if retry else {200}), (retry, seen)
        g.stop()
        a.kill()
        g = kit.Gateway(config(defaults={"timeout": "500ms", **retry}))
        seen = {kit.Http().post("/%s/m" % TWO, "[]")[0] for _ in range(30)}
        assert seen == ({200, 503} if retry else {200}), (retry, "refused", seen)
        g.stop()
        b.kill()


def no_provider_in_the_registry():
    zk = kit.ZooKeeper().start()
    c = kit.Client()
    c.ensure("/dubbo/%s/providers" % ONE)
    g = kit.Gateway({"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}],
                     "services": [{"name": "one", "interface": ONE}], "direct": {"enabled": True, "allow": ["*"]}})
    kit.wait_until(lambda: kit.Http().post("/%s/m" % ONE, "[]")[1].find("STARTING") < 0, 5, "the first list")
    for iface in (ONE, "demo.Nowhere"):
        check(kit.Http().post("/%s/m" % iface, "[]"), 503, "NO_PROVIDER", iface)
    assert c.children("/dubbo") == [ONE], c.children("/dubbo")
    g.stop()
    zk.close()


def pending_limits():
    for limit in ({"service": {"circuit_breakers": {"max_requests": 2}}},
                  {"service": {"circuit_breakers": {"max_requests_per_provider": 2}}},
                  {"limits": {"requests_in_flight": 2}}):
        a, b = both([{"never": True}])
        g = kit.Gateway(config(defaults={"timeout": "2s"}, **limit))
        load = kit.Load("/%s/m" % ONE, "[]", 2)
        try:
            kit.wait_until(lambda s=a: calls(s)[0] == 2, 5, "two calls in flight")
            begin = time.monotonic()
            check(kit.Http().post("/%s/m" % ONE, "[]"), 503, "GATEWAY_BUSY", limit)
            assert time.monotonic() - begin < 0.5 and calls(a)[0] == 2
        finally:
            load.on = False
        assert load.stop() == {"504 PROVIDER_TIMEOUT": 2}, load.seen
        g.stop()
        a.kill()
        b.kill()


def refused_before_anything_is_sent():
    a = kit.Stub(20880, 20881)
    c = config()
    c["services"][0]["methods"] += [{"name": "n", "types": ["int"]}, {"name": "t", "types": ["java.lang.String"]},
                                    {"name": "o", "types": ["demo.Thing"]}]
    g = kit.Gateway(c)
    h = kit.Http()
    for method, body, code in (
            ("m", "{", "BAD_REQUEST"), ("m", "[1,]", "BAD_REQUEST"), ("m", "nul", "BAD_REQUEST"), ("m", "[1] x", "BAD_REQUEST"),
            ("m", '[{"a":1,"a":2}]', "BAD_REQUEST"), ("m", '["\\ud83d."]', "BAD_REQUEST"), ("m", '["\\x"]', "BAD_REQUEST"),
            ("m", "[" * 200 + "]" * 200, "BAD_REQUEST"), ("n", "[1099511627776]", "BAD_ARGUMENT"),
            ("n", "[41.5]", "BAD_ARGUMENT"), ("n", '[""]', "BAD_ARGUMENT"), ("n", "[null]", "BAD_ARGUMENT"),
            ("n", "[]", "ARGUMENT_COUNT"), ("n", "[1,2]", "ARGUMENT_COUNT"),
            ("o", '[{"class":"java.net.URL"}]', "BAD_ARGUMENT"), ("m", '[[{"class":"java.net.URL"}]]', "BAD_ARGUMENT")):
        answer = h.post("/%s/%s" % (ONE, method), body)
        check(answer, 400, code, (method, body[:40]))
        if code == "BAD_REQUEST":
            e = json.loads(answer[1])["errors"][0]
            assert "line" in e and "column" in e, answer[1]
    assert calls(a) == [0], calls(a)
    assert h.post("/%s/echo" % ONE, '["x"]')[:2] == (200, '"x"')
    g.stop()
    a.kill()


def one_way_is_202():
    a = kit.Stub(20880, 20881)
    c = config(routes=[{"name": "tell", "method": "POST", "path": "/tell", "call": "one.m", "oneway": True}])
    g = kit.Gateway(c)
    status, body, _ = kit.Http().post("/tell", "[]")
    assert (status, body) == (202, ""), (status, body)
    kit.wait_until(lambda: a.numbers()["one_ways"] == 1, 3, "the call arrives")
    a.kill()
    kit.wait_until(lambda: kit.Http().post("/tell", "[]")[0] == 503, 3, "nobody takes it")
    g.stop()


def stop_with_idle_and_busy_connections():
    """SIGTERM while clients keep their connections open and go on calling."""
    a = kit.Stub(20880, 20881)
    g = kit.Gateway(config())
    idle = [kit.Http() for _ in range(8)]
    for h in idle:
        assert h.post("/%s/whoami" % ONE, "[]")[0] == 200
    load = kit.Load("/%s/whoami" % ONE, "[]", 4)
    try:
        kit.wait_until(lambda: load.count() > 50, 5, "the load runs")
        begin = time.monotonic()
        g.stop()
        assert time.monotonic() - begin < 3, "it took %.1f s" % (time.monotonic() - begin)
    finally:
        seen = load.stop()
    # "broken": the request was on its way when the idle connection was closed
    assert all(w in ("200", "503 DRAINING", "refused") or w.startswith("broken") for w in seen), seen
    a.kill()


if __name__ == "__main__":
    kit.run([make(r) for r in ROWS] + [
        rejected_by_every_3x_provider, retried_calls_succeed, closed_right_after_connect, connect_refused, connect_timeout,
        readonly_lets_pending_calls_finish, readonly_then_close_without_an_answer, idempotent_methods_are_sent_again, no_attempts_are_none,
        no_provider_in_the_registry, pending_limits, refused_before_anything_is_sent, one_way_is_202,
        stop_with_idle_and_busy_connections])
