#!/usr/bin/env python3
"""What users of Dubbo gateways and of generic calls ran into, as far as a scripted provider shows it
(docs/TESTING.md lists all cases and where they are tested)."""
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
PATH = "/%s/m" % IFACE


def config(*providers, **more):
    c = {"process": {"workers": 1}, "direct": {"enabled": True, "allow": ["demo.*"]}, "defaults": {"timeout": "2s"},
         "services": [{"name": "user", "interface": IFACE,
                       "providers": ["dubbo://127.0.0.1:%d" % p for p in providers or (20880,)]}]}
    c.update(more)
    return c


def answers_with(stub, body, **more):
    """Every call is answered with these bytes of a reply's body, in hex."""
    action = {"raw": "dabb%02x%02xID%08x%s" % (more.get("flag", 2), more.get("status", 20), len(body) // 2, body)}
    stub.script(json.dumps({"m": [[action]]}))


def case_13_lone_surrogate_in_a_result():
    a = kit.Stub()
    answers_with(a, "91" + "0461eda0bd2e62")
    g = kit.Gateway(config())
    assert kit.Http().post(PATH, "[]")[:2] == (200, '"a\ufffd.b"')
    g.stop()


def case_38_objects_with_nothing_but_a_class():
    a = kit.Stub()
    name = "org.json.JSONObject"
    one = "48" + "05" + b"class".hex() + "%02x" % len(name) + name.encode().hex() + "5a"
    answers_with(a, "91" + "79" + one)
    g = kit.Gateway(config())
    assert kit.Http().post(PATH, "[]")[:2] == (200, "[{}]")
    g.stop()


def case_44_the_status_byte_decides():
    """Whatever serialization the text is in; and the connection stays."""
    a = kit.Stub()
    text = "No such method m in class demo.UserService"
    text = "7a%02x" % len(text) + text.encode().hex()
    answers_with(a, "%08x" % (len(text) // 2) + text, flag=0x17, status=70)
    g = kit.Gateway(config())
    for _ in range(2):
        status, body, _ = kit.Http().post(PATH, "[]")
        assert (status, json.loads(body)["code"]) == (404, "METHOD_NOT_FOUND"), body
    assert a.connects() == 1
    g.stop()


def case_46_results_over_the_limit():
    """Read past, not kept: twenty of 10 MB at once cost next to no memory."""
    a = kit.Stub(20880, 20881, "-s", "10000000")
    g = kit.Gateway(config(limits={"response_body": "1m"}, defaults={"timeout": "30s"}))
    before = g.rss_kb()
    most = []
    load = kit.Load(PATH, "[]", 20)
    begin = time.monotonic()
    while load.count() < 20 and time.monotonic() - begin < 60:
        most.append(g.rss_kb())
        time.sleep(0.02)
    seen = load.stop()
    assert set(seen) == {"502 RESPONSE_TOO_LARGE"} and sum(seen.values()) >= 20, seen
    assert max(most) - before <= 40 * 1024, "%d KiB" % (max(most) - before)
    a.kill()
    b = kit.Stub()
    kit.wait_until(lambda: kit.Http().post("/%s/whoami" % IFACE, "[]")[0] == 200, 5, "an ordinary answer")
    g.stop()
    b.kill()


def case_71_a_slow_call_is_executed_once():
    stubs = [kit.Stub(20880, 20881), kit.Stub(20882, 20883)]
    g = kit.Gateway(config(20880, 20882, defaults={"timeout": "200ms"}))
    begin = time.monotonic()
    status, body, _ = kit.Http().post("/%s/slow" % IFACE, "[800]")
    assert (status, json.loads(body)["code"]) == (504, "PROVIDER_TIMEOUT"), body
    assert 0.15 < time.monotonic() - begin < 0.7, time.monotonic() - begin
    time.sleep(0.5)
    assert sum(s.numbers()["calls"] for s in stubs) == 1, [s.numbers() for s in stubs]
    g.stop()


def case_72_73_late_and_out_of_order():
    """On one connection: late answers meet nobody, quick calls pass slow ones, each gets its own value."""
    a = kit.Stub()
    g = kit.Gateway(config(defaults={"timeout": "1500ms"}))
    slow = [threading.Thread(target=lambda: results.append(kit.Http().call(
        "POST", "/%s/slow" % IFACE, "[400]", {"X-Request-Timeout": "200ms", "Content-Type": "application/json"})[0]))
        for _ in range(50)]
    results, wrong = [], []
    for t in slow:
        t.start()
    h = kit.Http()
    for i in range(200):
        if h.post("/%s/echo" % IFACE, '["v%d"]' % i)[:2] != (200, '"v%d"' % i):
            wrong.append(i)
    for t in slow:
        t.join()
    assert not wrong and results == [504] * 50, (wrong, results)
    begin = time.monotonic()
    one = threading.Thread(target=lambda: results.append(kit.Http().post("/%s/slow" % IFACE, "[1000]")[0]))
    one.start()
    time.sleep(0.05)
    for _ in range(100):
        assert h.post("/%s/whoami" % IFACE, "[]")[0] == 200
    assert time.monotonic() - begin < 0.9, "the quick ones waited"
    one.join()
    assert results[-1] == 200 and time.monotonic() - begin >= 1 and a.connects() == 1
    g.stop()


def case_80_routes_do_not_disturb_each_other():
    """Twenty routes with common prefixes to ten services, each service on a provider of its own; reloads in between."""
    stubs = [kit.Stub(20880 + 2 * i, 20881 + 2 * i, "-n", "p%d" % i) for i in range(10)]
    paths = ["/a", "/a/{x}", "/a/b", "/a/b/c", "/a/{x}/c", "/ab", "/ab/{x}", "/abc", "/a/b/{x}", "/a/b/c/d"]
    routes = []
    for i in range(10):
        routes.append({"name": "r%d" % i, "method": "POST", "path": paths[i], "call": "s%d.whoami" % i})
        routes.append({"name": "g%d" % i, "method": "GET", "path": paths[i] + "/get", "call": "s%d.whoami" % i})
    for r in routes:
        r["args"] = []
    c = config()
    c["services"] = [{"name": "s%d" % i, "interface": "demo.S%d" % i, "providers": ["dubbo://127.0.0.1:%d" % s.port],
                      "methods": [{"name": "whoami", "types": []}]} for i, s in enumerate(stubs)]
    c["routes"] = routes
    g = kit.Gateway(c)
    wrong, count, on = [], [0], [True]

    def work():
        h = kit.Http()
        while on[0]:
            for i, p in enumerate(paths):
                for method, path in (("POST", p.replace("{x}", "z")), ("GET", p.replace("{x}", "z") + "/get")):
                    answer = h.call(method, path, None, {})[:2]
                    count[0] += 1
                    if answer != (200, '"p%d"' % i):
                        wrong.append((method, path, i, answer))
    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for i in range(10):
        time.sleep(0.2)
        if i == 5:
            g.file.seek(0)
            g.file.truncate()
            g.file.write("routes: [")
            g.file.flush()
        else:
            c["defaults"]["timeout"] = "%ds" % (2 + i % 2)
            g.write(c)
        g.proc.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    on[0] = False
    for t in threads:
        t.join()
    assert not wrong and count[0] > 200, (count, wrong[:5])
    g.stop()


def case_84_clients_that_leave():
    """A thousand clients that ask for something slow and are gone after 100 ms; others do not notice, nothing stays."""
    kit.Stub()
    g = kit.Gateway(config(defaults={"timeout": "3s", "circuit_breakers": {"max_requests": 5000,
                                                                          "max_requests_per_provider": 5000}},
                           limits={"connections": 4000, "requests_in_flight": 5000}))
    h = kit.Http()
    assert h.post("/%s/whoami" % IFACE, "[]")[0] == 200
    fds = len(os.listdir("/proc/%d/fd" % g.proc.pid))
    request = ("POST /%s/slow HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 6\r\n\r\n[2500]"
               % IFACE).encode()
    for _ in range(5):
        clients = [kit.RawClient() for _ in range(200)]
        for c in clients:
            c.s.sendall(request)
        time.sleep(0.1)
        for c in clients:
            c.s.close()
        assert h.post("/%s/whoami" % IFACE, "[]")[0] == 200
    kit.wait_until(lambda: g.metric("dubbogate_in_flight") == 0, 6, "no call is in flight")
    kit.wait_until(lambda: len(os.listdir("/proc/%d/fd" % g.proc.pid)) <= fds, 6, "no descriptor is left")
    assert h.post("/%s/whoami" % IFACE, "[]")[0] == 200
    g.stop()


if __name__ == "__main__":
    kit.run([case_13_lone_surrogate_in_a_result, case_38_objects_with_nothing_but_a_class, case_44_the_status_byte_decides,
             case_46_results_over_the_limit, case_71_a_slow_call_is_executed_once, case_72_73_late_and_out_of_order,
             case_80_routes_do_not_disturb_each_other, case_84_clients_that_leave])
