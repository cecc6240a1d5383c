#!/usr/bin/env python3
"""The gateway over the C provider (tests/stub): every outcome of docs/PROTOCOL.md §17, headers, reload, stop."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"


def config(*ports, **more):
    service = {"name": "user", "interface": IFACE, "providers": ["dubbo://127.0.0.1:%d" % p for p in ports],
               "methods": [{"name": "getUser", "types": ["long"], "params": ["id"], "idempotent": True}]}
    service.update(more.pop("service", {}))
    c = {"process": {"workers": 1, "state_dir": ""}, "services": [service], "direct": {"enabled": True, "allow": [IFACE]}, "defaults": {"timeout": "700ms"},
         "logging": {"access": {"target": "stdout"}}}
    c.update(more)
    return c


def value(v="ok"):
    return [[{"value": v}]]


# outcome, actions of the bad provider, status, code, tried once more on the other provider?
OUTCOMES = [
    ("null", [{"null": True}], 200, None, None),
    ("exception", [{"exception": {"class": "demo.X", "message": "m"}}], 500, "PROVIDER_EXCEPTION", False),
    ("validation", [{"exception": {"class": "javax.validation.ConstraintViolationException", "message": "m"}}],
     400, "VALIDATION_FAILED", False),
    ("25", [{"status": 25, "text": "too long"}], 502, "RESPONSE_TOO_LARGE", False),
    ("50 length", [{"status": 50, "text": "Data length too large: 9, max payload: 8"}], 502, "RESPONSE_TOO_LARGE", False),
    ("50", [{"status": 50, "text": "Failed to send response"}], 502, "BAD_PROVIDER_RESPONSE", False),
    ("40", [{"status": 40, "text": "Fail to decode request"}], 502, "PROVIDER_REJECTED_REQUEST", True),
    ("60", [{"status": 60, "text": "service not found"}], 503, "PROVIDER_NOT_FOUND", True),
    ("70 not exported", [{"status": 70, "text": "org.apache.dubbo.remoting.RemotingException: Not found exported service: x"}],
     503, "PROVIDER_NOT_FOUND", True),
    ("70 no method", [{"status": 70, "text": "org.apache.dubbo.rpc.RpcException: No such method whatever in class x"}],
     404, "METHOD_NOT_FOUND", False),
    ("70 not unique", [{"status": 70, "text": "java.lang.IllegalStateException: Not unique method for method name(over)"}],
     400, "AMBIGUOUS_METHOD", False),
    ("70 count", [{"status": 70, "text": "org.apache.dubbo.rpc.RpcException: args.length != types.length"}],
     400, "ARGUMENT_COUNT", False),
    ("70 realize", [{"status": 70, "text": "x\n\tat org.apache.dubbo.common.utils.PojoUtils.realize(PojoUtils.java:1)"}],
     400, "BAD_ARGUMENT", False),
    ("70 token", [{"status": 70, "text": "org.apache.dubbo.rpc.RpcException: Invalid token! Forbid invoke remote service"}],
     502, "TOKEN_REJECTED", False),
    ("70 busy", [{"status": 70, "text": "RpcException: The service using threads greater than <dubbo:service executes=1"}],
     503, "PROVIDER_BUSY", True),
    ("70 other", [{"status": 70, "text": "java.lang.Error: x"}], 502, "PROVIDER_ERROR", False),
    ("80", [{"status": 80, "text": "x"}], 502, "PROVIDER_ERROR", False),
    ("100", [{"status": 100, "text": "Thread pool is EXHAUSTED"}], 503, "PROVIDER_BUSY", True),
    ("30", [{"status": 30, "text": "x"}], 502, "BAD_PROVIDER_RESPONSE", False),
    ("90", [{"status": 90, "text": "x"}], 502, "BAD_PROVIDER_RESPONSE", False),
    ("unknown status", [{"status": 77, "text": "x"}], 502, "BAD_PROVIDER_RESPONSE", False),
    ("fastjson2 text", [{"status": 70, "text": "RpcException: Invalid token! Forbid invoke", "serial": 23}],
     502, "TOKEN_REJECTED", False),
    ("serialization", [{"raw": "dabb1714ID0000000291c3".replace("0000000291c3", "0000000291c3")}],
     502, "UNSUPPORTED_SERIALIZATION", False),
    ("undecodable", [{"raw": "dabb0214ID0000000294ff"}], 502, "BAD_PROVIDER_RESPONSE", False),
    ("no answer", [{"never": True}], 504, "PROVIDER_TIMEOUT", False),
    ("connection lost", [{"reset": True}], 502, "CONNECTION_LOST", False),
]


def outcome(name, actions, status, code, again):
    a, b = kit.Stub(20880, 20881), kit.Stub(20882, 20883)
    try:
        for s in (a, b):
            s.script(json.dumps({"*": [actions]}))
        b.script(json.dumps({"*": value()}))
        g = kit.Gateway(config(20880))
        h = kit.Http()
        got, text, _ = h.post("/%s/m" % IFACE, "[]")
        assert got == status and (code is None or json.loads(text)["code"] == code), (name, got, text)
        if code is not None:
            p = json.loads(text)
            assert p["status"] == status and p["title"] and p["requestId"], text
            assert "127.0.0.1" not in text, "a provider address in " + text
        g.stop()
        if again is None:
            return
        g = kit.Gateway(config(20880, 20882))
        before = a.numbers()["calls"]
        seen = {}
        h = kit.Http()
        for _ in range(12):
            got, text, _ = h.post("/%s/m" % IFACE, "[]")
            what = "ok" if got == 200 else json.loads(text)["code"]
            seen[what] = seen.get(what, 0) + 1
        tried = a.numbers()["calls"] - before
        if again:
            assert seen == {"ok": 12}, (name, seen, tried)
        else:
            assert set(seen) <= {"ok", code} and seen.get(code, 0) == tried, (name, seen, tried)
        g.stop()
    finally:
        a.kill()
        b.kill()


def make(o):
    def f():
        outcome(*o)
    f.__name__ = "outcome_" + o[0].replace(" ", "_")
    return f


def nobody_listens():
    g = kit.Gateway(config(20880))
    status, text, h = kit.Http().post("/%s/m" % IFACE, "[]")
    assert status == 503 and json.loads(text)["code"] == "PROVIDER_UNREACHABLE", text
    g.stop()


def second_provider_serves_when_one_refuses():
    b = kit.Stub(20882, 20883)
    g = kit.Gateway(config(20880, 20882))
    h = kit.Http()
    for _ in range(20):
        status, text, _ = h.post("/%s/whoami" % IFACE, "[]")
        assert status == 200, text
    g.stop()
    b.kill()


def late_answers_are_dropped():
    a = kit.Stub()
    a.script(json.dumps({"m": [[{"delay_ms": 900}, {"value": "late"}], [{"value": "second"}]]}))
    g = kit.Gateway(config(20880))
    h = kit.Http()
    assert h.post("/%s/m" % IFACE, "[]")[0] == 504
    time.sleep(0.4)
    status, text, _ = h.post("/%s/m" % IFACE, "[]")
    assert (status, text) == (200, '"second"'), text
    assert a.connects() == 1, "the connection was given up"
    g.stop()
    a.kill()


def wrong_ids_and_doubles_are_dropped():
    a = kit.Stub()
    a.script(json.dumps({"m": [[{"wrong_id": True}, {"twice": True}, {"value": "v"}]]}))
    g = kit.Gateway(config(20880))
    h = kit.Http()
    for _ in range(5):
        assert h.post("/%s/m" % IFACE, "[]")[:2] == (200, '"v"')
    g.stop()
    a.kill()


def split_answers_are_put_together():
    a = kit.Stub()
    a.script(json.dumps({"m": [[{"split": 5, "ms": 20}, {"value": "x" * 5000}]]}))
    g = kit.Gateway(config(20880))
    status, text, _ = kit.Http().post("/%s/m" % IFACE, "[]")
    assert status == 200 and len(text) == 5002, (status, text[:200])
    g.stop()
    a.kill()


def request_headers():
    a = kit.Stub()
    g = kit.Gateway(config(20880, trusted_proxies=["127.0.0.0/8"]))
    h = kit.Http()
    status, _, headers = h.post("/%s/whoami" % IFACE, "[]", {"X-Request-Id": "abc-1"})
    assert status == 200 and headers["X-Request-Id"] == "abc-1", headers
    assert headers["Content-Type"] == "application/json" and headers["Cache-Control"] == "no-store", headers
    a.script(json.dumps({"m": [[{"never": True}]]}))
    begin = time.monotonic()
    assert h.post("/%s/m" % IFACE, "[]", {"X-Request-Timeout": "100ms"})[0] == 504
    assert time.monotonic() - begin < 0.6
    status, text, _ = h.post("/%s/m" % IFACE, "[]", {"X-Request-Timeout": "soon"})
    assert status == 400, text
    for method, path, body, want in (("GET", "/%s/whoami" % IFACE, None, 405), ("POST", "/nowhere", "[]", 404),
                                     ("POST", "/other.Service/m", "[]", 403), ("POST", "/%s/m" % IFACE, "{", 400),
                                     ("POST", "/%s/m" % IFACE, "[1,]", 400)):
        status, text, _ = h.call(method, path, body)
        assert status == want, (method, path, status, text)
        assert json.loads(text)["code"], text
    status, text, _ = h.post("/%s/m" % IFACE, "[]", {"Content-Type": "text/plain"})
    assert status == 415, text
    log = g.output()
    g.stop()
    for line in g.output().splitlines():
        json.loads(line)
    assert g.output().count("\n") >= 7, log
    a.kill()


def reload_keeps_the_old_one_on_errors():
    a = kit.Stub()
    g = kit.Gateway(config(20880))
    h = kit.Http()
    assert h.post("/%s/whoami" % IFACE, "[]")[0] == 200
    g.file.seek(0)
    g.file.truncate()
    g.file.write("services: [")
    g.file.flush()
    g.proc.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert h.post("/%s/whoami" % IFACE, "[]")[0] == 200
    assert "error" in g.log(), g.log()
    c = config(20880, direct={"enabled": False})
    c.update(listen=[{"address": "127.0.0.1:8080"}], admin={"listen": ["127.0.0.1:9901"]}, process={"workers": 1, "state_dir": ""})
    g.write(c)
    g.proc.send_signal(signal.SIGHUP)
    kit.wait_until(lambda: h.post("/%s/whoami" % IFACE, "[]")[0] != 200, 3, "the new configuration holds")
    g.stop()
    a.kill()


def restart_stays_pending_until_it_is_not_needed():
    c = config(20880)
    g = kit.Gateway(c)

    def reload_with(workers):
        n = g.metric("dubbogate_config_reloads_total")
        g.write(dict(c, process={"workers": workers, "state_dir": ""}))
        g.proc.send_signal(signal.SIGHUP)
        kit.wait_until(lambda: g.metric("dubbogate_config_reloads_total") > n, 3, "the reload")
        return g.metric("dubbogate_config_restart_pending")

    assert [reload_with(n) for n in (1, 2, 2, 1)] == [0, 1, 1, 0]
    g.stop()


def stop_waits_for_calls():
    a = kit.Stub()
    a.script(json.dumps({"m": [[{"delay_ms": 500}, {"value": "done"}]]}))
    g = kit.Gateway(config(20880, defaults={"timeout": "3s"}))
    load = kit.Load("/%s/m" % IFACE, "[]", 4)
    kit.wait_until(lambda: a.numbers()["calls"] >= 4, 5, "calls in flight")
    g.proc.send_signal(signal.SIGTERM)
    assert g.proc.wait(10) == 0, g.log()
    seen = load.stop()
    assert seen.get("200", 0) >= 4 and set(seen) <= {"200", "refused", "503 DRAINING"}, seen
    a.kill()


def payload_limit_is_413():
    a = kit.Stub()
    c = config(20880)
    c["services"][0]["providers"] = ["dubbo://127.0.0.1:20880?payload=1000"]
    g = kit.Gateway(c)
    status, text, _ = kit.Http().post("/%s/echo" % IFACE, json.dumps(["x" * 2000]))
    assert status == 413 and json.loads(text)["code"] == "REQUEST_TOO_LARGE", (status, text)
    assert kit.Http().post("/%s/echo" % IFACE, json.dumps(["x"]))[0] == 200
    g.stop()
    a.kill()


def admin_pages():
    a = kit.Stub()
    g = kit.Gateway(config(20880))
    assert kit.Http().post("/%s/whoami" % IFACE, "[]")[0] == 200
    for path in ("/health", "/ready", "/references", "/providers"):
        s = socket.create_connection(("127.0.0.1", 9901), 5)
        s.sendall(b"GET %s HTTP/1.0\r\n\r\n" % path.encode())
        assert b" 200 " in s.recv(65536).split(b"\r\n")[0], path
        s.close()
    r = g.reference(IFACE)
    assert r["state"] == "ready" and r["providers"], r
    out = subprocess.run([os.path.join(kit.BIN, "dubbogate"), "why", IFACE, "--admin", "127.0.0.1:9901"],
                         capture_output=True, text=True, check=False)
    assert out.returncode == 0 and IFACE in out.stdout, (out.returncode, out.stdout, out.stderr)
    g.stop()
    a.kill()


def two_thousand_calls_on_one_connection():
    a = kit.Stub()
    g = kit.Gateway(config(20880))
    seen = kit.many(2000, "/%s/whoami" % IFACE, b"[]", 8)
    assert seen == {"200": 2000}, seen
    assert a.connects() == 1, a.numbers()
    g.stop()
    a.kill()


if __name__ == "__main__":
    kit.run([make(o) for o in OUTCOMES] + [
        nobody_listens, second_provider_serves_when_one_refuses, late_answers_are_dropped,
        wrong_ids_and_doubles_are_dropped, split_answers_are_put_together, request_headers,
        reload_keeps_the_old_one_on_errors, restart_stays_pending_until_it_is_not_needed, stop_waits_for_calls, payload_limit_is_413, admin_pages,
        two_thousand_calls_on_one_connection])
