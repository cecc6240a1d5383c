#!/usr/bin/env python3
"""The way to the providers: silent and cut links, heartbeats, answers late and out of order, one connection for all
(docs/PROTOCOL.md §7, docs/ROBUSTNESS.md P2)."""
import json
import os
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"


def config(*providers, **more):
    c = {"process": {"workers": 1}, "direct": {"enabled": True, "allow": [IFACE]}, "defaults": {"timeout": "300ms"},
         "services": [{"name": "user", "interface": IFACE, "providers": ["dubbo://127.0.0.1:%s" % p for p in providers]}]}
    c.update(more)
    return c


def whoami(h=None):
    """(status, name or code, seconds)"""
    begin = time.monotonic()
    status, body, _ = (h or kit.Http()).post("/%s/whoami" % IFACE, "[]")
    v = json.loads(body)
    return status, v if status == 200 else v["code"], time.monotonic() - begin


def refuse_new(link):
    """A host that is gone takes no connection; those that were open stay, and are silent."""
    link.sock.shutdown(socket.SHUT_RDWR)
    link.sock.close()


def link_that_goes_silent():
    """Of two providers: calls on the silent one end at their deadline; five in a row and a probe later it is given up,
    no call is lost any more, and it is used again when the link is whole."""
    a, b = kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")
    link = kit.Relay(21880, 20880)
    try:
        g = kit.Gateway(config(21880, 20882))
        kit.wait_until(lambda: {whoami()[1] for _ in range(10)} == {"a", "b"}, 5, "both are used")
        link.swallow = True
        refuse_new(link)
        begin = time.monotonic()
        good = 0
        while good < 40:
            status, what, s = whoami()
            assert (status == 200 and what == "b") or (status, what) == (504, "PROVIDER_TIMEOUT") or what in (
                "CONNECTION_LOST", "PROVIDER_UNREACHABLE"), (status, what)
            assert s < 0.6, "a call took %.2f s" % s
            good = good + 1 if status == 200 else 0
            assert time.monotonic() - begin < 10, "it is still asked after 10 s"
        print("        given up after %.1f s" % (time.monotonic() - begin))
        link.swallow = False
        link.listen()
        kit.wait_until(lambda: whoami()[1] == "a", 10, "the healed one is used again")
        g.stop()
    finally:
        link.close()


def silent_link_to_the_only_provider():
    """Nothing hangs; the dead connection is found and a new one serves."""
    a = kit.Stub(20880, 20881, "-n", "a")
    link = kit.Relay(21880, 20880)
    try:
        c = config(21880)
        c["services"][0]["connect_timeout"] = "200ms"
        g = kit.Gateway(c)
        assert whoami()[0] == 200
        link.swallow = True
        status, what, s = whoami()
        assert (status, what) == (504, "PROVIDER_TIMEOUT") and s < 0.6, (status, what, s)
        begin = time.monotonic()
        kit.wait_until(lambda: whoami()[1] and link.accepted == 2, 10, "the silent connection is given up")
        print("        given up after %.1f s" % (time.monotonic() - begin))
        link.swallow = False
        kit.wait_until(lambda: whoami()[0] == 200, 2, "a new one serves")
        g.stop()
        a.kill()
    finally:
        link.close()


def silent_idle_link_is_found_by_heartbeats():
    a = kit.Stub(20880, 20881, "-n", "a")
    link = kit.Relay(21880, 20880)
    try:
        g = kit.Gateway(config("21880?heartbeat=500"))
        assert whoami()[0] == 200
        kit.wait_until(lambda: a.numbers()["heartbeats"] >= 2, 5, "heartbeats")
        link.swallow = True
        kit.wait_until(lambda: a.numbers()["connections"] == 0, 2.5, "the silent connection is closed")
        link.swallow = False
        status, what, _ = whoami()
        assert (status, what) == (200, "a"), (status, what)
        assert link.accepted == 2, link.accepted
        g.stop()
        a.kill()
    finally:
        link.close()


def heartbeats_keep_a_connection():
    """Answered in any serialization or with any body; the provider's interval counts."""
    answers = (None, "dabb2214ID000000014e", "dabb3714ID000000014e", "dabb3714ID000000020000", "dabb2214ID00000000")
    stubs = [kit.Stub(20880 + 2 * i, 20881 + 2 * i) for i in range(len(answers))]
    for s, answer in zip(stubs, answers):
        if answer:
            s.script(json.dumps({"$heartbeat": [[{"raw": answer}]]}))
    c = config()
    c["services"] = [{"name": "s%d" % i, "interface": "demo.S%d" % i,
                      "providers": ["dubbo://127.0.0.1:%d?heartbeat=400" % s.port]} for i, s in enumerate(stubs)]
    c["direct"]["allow"] = ["*"]
    g = kit.Gateway(c)

    def call_all():
        for i in range(len(stubs)):
            assert kit.Http().post("/demo.S%d/whoami" % i, "[]")[0] == 200, i

    call_all()
    before = [s.numbers()["heartbeats"] for s in stubs]
    time.sleep(2.4)  # six intervals
    n = [s.numbers()["heartbeats"] - x for s, x in zip(stubs, before)]
    assert all(4 <= x <= 7 for x in n), n
    call_all()
    assert [s.connects() for s in stubs] == [1] * len(stubs), [s.numbers() for s in stubs]
    g.stop()


def unanswered_heartbeats_end_a_connection():
    a = kit.Stub()
    a.script(json.dumps({"$heartbeat": [[{"raw": "dabb2214ID000000014e"}], [{"never": True}]]}))
    g = kit.Gateway(config("20880?heartbeat=300"))
    assert whoami()[0] == 200
    time.sleep(1.6)
    assert a.numbers()["connections"] == 0, a.numbers()
    assert whoami()[1] == "PROVIDER_UNREACHABLE" and a.numbers()["calls"] == 1, a.numbers()  # not written at all
    a.script("{}")
    kit.wait_until(lambda: whoami()[0] == 200, 2, "a new connection")
    g.stop()
    a.kill()


def hasty_heartbeat_of_a_url_is_slowed_down():
    """heartbeat=1 is what a URL says, not what workers do: the connection would be given up after 3 ms of silence."""
    a = kit.Stub()
    g = kit.Gateway(config("20880?heartbeat=1"))
    assert whoami()[0] == 200
    before = a.numbers()["heartbeats"]
    time.sleep(1)
    assert 2 <= a.numbers()["heartbeats"] - before <= 6, a.numbers()
    assert whoami()[0] == 200 and a.connects() == 1, a.numbers()
    g.stop()
    a.kill()


def heartbeats_of_the_provider_are_answered():
    """2.6 sends them: the same id and serialization come back; one-way ones are left alone."""
    a = kit.Stub()
    a.script(json.dumps({"m": [[{"request": "dabbe200" + "00000000000000aa" + "00000001" + "4e"},
                                {"request": "dabba200" + "00000000000000ab" + "00000001" + "4e"}, {"value": "v"}]]}))
    g = kit.Gateway(config(20880))
    for _ in range(3):
        assert kit.Http().post("/%s/m" % IFACE, "[]")[:2] == (200, '"v"')
    assert a.connects() == 1, a.numbers()
    g.stop()
    a.kill()


def provider_that_is_slow_to_greet():
    """A cold or busy one: calls wait for its first answer as long as they can; with another provider they go there as
    soon as it takes longer than a connection may."""
    a, b = kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")
    a.script(json.dumps({"$heartbeat": [[{"delay_ms": 1500}, {"raw": "dabb2214ID000000014e"}]]}))
    c = config(20880, 20882, defaults={"timeout": "3s", "connect_timeout": "300ms"})
    c["services"].append({"name": "alone", "interface": "demo.Alone", "providers": ["dubbo://127.0.0.1:20880"]})
    c["direct"]["allow"] = ["*"]
    g = kit.Gateway(c)
    begin = time.monotonic()
    assert kit.Http().post("/demo.Alone/whoami", "[]")[:2] == (200, '"a"')
    assert 1.4 < time.monotonic() - begin < 2.5 and a.connects() == 1, a.numbers()
    g.stop()
    g = kit.Gateway(c)
    alone = kit.Load("/demo.Alone/whoami", "[]", 1)
    alone.on = False
    time.sleep(0.5)
    h = kit.Http()
    begin = time.monotonic()
    while time.monotonic() - begin < 0.7:
        assert whoami(h)[:2] == (200, "b")
    assert alone.stop() == {"200": 1}, alone.seen
    kit.wait_until(lambda: whoami(h)[1] == "a", 2, "both are used")
    g.stop()


def address_without_a_route():
    """connect() fails at once: the next provider, or 503."""
    a = kit.Stub(20880, 20881, "-n", "a")
    c = config("20880")
    c["services"][0]["providers"] += ["dubbo://240.0.0.%d:20880" % i for i in range(1, 4)]
    c["services"].append({"name": "alone", "interface": "demo.Alone", "providers": ["dubbo://240.0.0.1:20880"]})
    c["direct"]["allow"] = ["*"]
    g = kit.Gateway(c)
    assert whoami()[:2] == (200, "a"), "a try that no provider saw counts as none"
    h = kit.Http()
    for _ in range(40):
        assert whoami(h)[:2] == (200, "a")
        status, text, _ = h.post("/demo.Alone/whoami", "[]")
        assert status == 503 and '"PROVIDER_UNREACHABLE"' in text, (status, text)
    g.stop()
    a.kill()


def cut_link():
    """Only what was under way is lost; the next call finds a connection."""
    a = kit.Stub(20880, 20881, "-n", "a")
    a.script(json.dumps({"m": [[{"never": True}]]}))
    link = kit.Relay(21880, 20880)
    try:
        g = kit.Gateway(config(21880, defaults={"timeout": "3s"}))
        load = kit.Load("/%s/m" % IFACE, "[]", 4)
        kit.wait_until(lambda: a.numbers()["calls"] == 4, 5, "four calls under way")
        load.on = False
        link.cut()
        assert load.stop() == {"502 CONNECTION_LOST": 4}, load.seen
        a.script("{}")
        kit.wait_until(lambda: whoami()[0] == 200, 1, "a new connection")
        g.stop()
        a.kill()
    finally:
        link.close()


def slow_link():
    """Delay is not failure."""
    a = kit.Stub(20880, 20881, "-n", "a")
    link = kit.Relay(21880, 20880)
    link.delay = 0.05
    try:
        g = kit.Gateway(config(21880, defaults={"timeout": "2s"}))
        for _ in range(5):
            status, _, s = whoami()
            assert status == 200 and 0.09 < s < 0.6, (status, s)
        assert link.accepted == 1
        g.stop()
        a.kill()
    finally:
        link.close()


def answers_out_of_order():
    """One connection: a slow call does not hold up the others."""
    a = kit.Stub()
    g = kit.Gateway(config(20880, defaults={"timeout": "3s"}))
    slow = {}

    def call_slow():
        begin = time.monotonic()
        slow["status"] = kit.Http().post("/%s/slow" % IFACE, "[1000]")[0]
        slow["s"] = time.monotonic() - begin

    t = threading.Thread(target=call_slow)
    t.start()
    kit.wait_until(lambda: a.numbers()["calls"] == 1, 3, "the slow call is under way")
    h = kit.Http()
    begin = time.monotonic()
    for _ in range(100):
        assert whoami(h)[0] == 200
    quick = time.monotonic() - begin
    t.join()
    assert quick < 0.5 and slow["status"] == 200 and 0.95 < slow["s"] < 1.5, (quick, slow)
    assert a.connects() == 1, a.numbers()
    g.stop()
    a.kill()


def late_answers_meet_nobody():
    """Calls that time out among calls that echo: every echo gets its own value, over one connection."""
    a = kit.Stub()
    g = kit.Gateway(config(20880, defaults={"timeout": "200ms"}))
    bad = []

    def slow():
        for _ in range(5):
            status = kit.Http().post("/%s/slow" % IFACE, "[400]")[0]
            if status != 504:
                bad.append(("slow", status))

    threads = [threading.Thread(target=slow) for _ in range(10)]
    for t in threads:
        t.start()
    h = kit.Http()
    n = 0
    while any(t.is_alive() for t in threads):
        n += 1
        status, body, _ = h.post("/%s/echo" % IFACE, '["value %d"]' % n)
        if (status, body) != (200, '"value %d"' % n):
            bad.append((n, status, body))
    for t in threads:
        t.join()
    assert not bad and n > 50, (n, bad[:5])
    assert a.connects() == 1, a.numbers()
    g.stop()
    a.kill()


def clients_that_leave():
    """Calls of clients that went away end with their deadline; nothing piles up."""
    a = kit.Stub()
    g = kit.Gateway(config(20880, defaults={"timeout": "1s"}))
    before = len(os.listdir("/proc/%d/fd" % g.proc.pid))
    for _ in range(10):
        clients = [kit.RawClient() for _ in range(50)]
        for c in clients:
            c.s.sendall(b"POST /%s/slow HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 6\r\n\r\n"
                        b"[3000]" % IFACE.encode())
        for c in clients:
            c.s.close()
    assert whoami()[0] == 200
    kit.wait_until(lambda: g.reference(IFACE)["in_flight"] == 0, 5, "no call is pending")
    kit.wait_until(lambda: len(os.listdir("/proc/%d/fd" % g.proc.pid)) <= before + 3, 5, "no descriptor is left")
    assert whoami()[0] == 200
    g.stop()
    a.kill()


def large_bodies_at_once():
    """What waits to be written is bounded by limits.memory, as the bodies are: sixteen of 900 KB are no overload."""
    a = kit.Stub()
    g = kit.Gateway(config(20880, defaults={"timeout": "20s"}))
    seen = []

    def one(i):
        text = json.dumps([chr(ord("a") + i) * 900000])
        status, body, _ = kit.Http(timeout=30).post("/%s/echo" % IFACE, text)
        seen.append(status if status != 200 or json.loads(body) == json.loads(text)[0] else "another answer")

    threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [200] * 16, seen
    g.stop()
    a.kill()


def clients_that_reset_under_load():
    """Under load calls wait without being suspended: a reset is seen at once, ends that call only, and nothing is left."""
    a = kit.Stub()
    g = kit.Gateway(config(20880, defaults={"timeout": "2s"}))
    assert whoami()[0] == 200
    before = len(os.listdir("/proc/%d/fd" % g.proc.pid))
    end = time.monotonic() + 2
    bad, done, resets = [], [], []
    head = b"POST /%s/%s HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"

    def steady():
        h = kit.Http()
        while time.monotonic() < end:
            what = whoami(h)[:2]
            done.append(1)
            if what[0] != 200:
                bad.append(what)

    def resetting():
        while time.monotonic() < end:
            clients = [kit.RawClient() for _ in range(8)]
            for c in clients:
                c.s.sendall(head % (IFACE.encode(), b"slow", 4, b"[20]"))
            for c in clients:
                c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                c.s.close()
                resets.append(1)

    threads = [threading.Thread(target=f) for f in [steady] * 16 + [resetting] * 2]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad, bad[:3]
    assert len(done) > 100 and len(resets) > 50, (len(done), len(resets))
    kit.wait_until(lambda: g.reference(IFACE)["in_flight"] == 0, 5, "no call is pending")
    kit.wait_until(lambda: len(os.listdir("/proc/%d/fd" % g.proc.pid)) <= before + 3, 5, "no descriptor is left")
    g.stop()
    a.kill()


if __name__ == "__main__":
    kit.run([link_that_goes_silent, silent_link_to_the_only_provider, silent_idle_link_is_found_by_heartbeats,
             heartbeats_keep_a_connection, unanswered_heartbeats_end_a_connection,
             heartbeats_of_the_provider_are_answered, hasty_heartbeat_of_a_url_is_slowed_down,
             provider_that_is_slow_to_greet, address_without_a_route, cut_link, slow_link, answers_out_of_order,
             late_answers_meet_nobody, clients_that_leave, large_bodies_at_once,
             clients_that_reset_under_load])
