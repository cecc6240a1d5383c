#!/usr/bin/env python3
"""One service with 10,000 providers, and its list that never rests (docs/ROBUSTNESS.md Z9).  Real ZooKeeper."""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
from outage_kit import IFACE, PATH, client, config  # noqa: E402  pylint: disable=wrong-import-position
from registry_kit import provider_node  # noqa: E402  pylint: disable=wrong-import-position

N = 10000
CHURN_S = 6
CHANGES_PER_S = 17  # a tenth of them in a minute
zk = None


class Churn(threading.Thread):
    """One provider more and one less, over and over; the address of the last one that came."""

    def __init__(self, c, where):
        super().__init__()
        self.c, self.where = c, where
        self.last = None

    def run(self):
        end = time.monotonic() + CHURN_S
        n = 0
        while time.monotonic() < end:
            n += 1
            self.last = "10.200.%d.1" % (n % 250)
            self.c.create(self.where + "/" + provider_node(IFACE, 20880 + n // 250, self.last))
            self.c.delete(self.where + "/" + provider_node(IFACE, 20880, "10.%d.%d.1" % (n // 25, n % 25 * 10)))
            time.sleep(2 / CHANGES_PER_S)
        self.last = "%s:%d" % (self.last, 20880 + n // 250)


def events(g):
    return g.metric("dubbogate_registry_events_total")


def ten_thousand_providers_that_come_and_go():
    """Nine of ten cannot be reached, the list changes 17 times a second: it is read at most four times a second, no call fails
    once a good one was found, and the last change is known soon."""
    c = client(zk)
    where = "/dubbo/%s/providers" % IFACE
    c.ensure(where)
    a = kit.Stub(20880, 20881, "-l", "0.0.0.0")
    for n in range(N):
        c.create(where + "/" + provider_node(IFACE, 20880, "%d.%d.%d.1" % (127 if n % 10 == 9 else 10, n // 250, n % 250)))
    g = kit.Gateway(config())
    kit.wait_until(lambda: g.reference(IFACE) and len(g.reference(IFACE)["providers"]["list"]) == N, 20, "all are known")
    http = kit.Http()
    kit.wait_until(lambda: all(http.post(PATH, "[]")[0] == 200 for _ in range(10)), 20, "one that answers is found")
    churn = Churn(c, where)
    before, start = events(g), time.monotonic()
    churn.start()
    calls = [http.post(PATH, "[]")[0] for _ in iter(churn.is_alive, False)]
    took = time.monotonic() - start
    n = events(g) - before
    assert calls and set(calls) == {200}, {x: calls.count(x) for x in set(calls)}
    assert CHURN_S / 2 < n <= 4 * took + 1, (n, took)
    kit.wait_until(lambda: churn.last in [x["address"] for x in g.reference(IFACE)["providers"]["list"]], 5, "the last one is known")
    g.stop()
    a.kill()
    c.close()


def rules_of_many_services():
    """More of them than a list may have providers: the one that concerns us is obeyed, nothing is left out."""
    c = client(zk)
    c.ensure("/dubbo/config/dubbo")
    c.create_many(["/dubbo/config/dubbo/com.example.trade.Service%d::.condition-router" % n for n in range(25000)])
    c.create("/dubbo/config/dubbo/%s::.condition-router" % IFACE, b"force: true\nconditions:\n  - '=> address = 127.0.0.1:20882'\n")
    stubs = [kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")]
    where = "/dubbo/%s/providers" % IFACE
    c.ensure(where)
    for port in 20880, 20882:
        c.create(where + "/" + provider_node(IFACE, port))
    g = kit.Gateway(config())
    http = kit.Http()
    kit.wait_until(lambda: http.post(PATH, "[]")[0] == 200, 10, "a list")
    for _ in range(40):
        status, text, _ = http.post("/%s/whoami" % IFACE, "[]")
        assert (status, text) == (200, '"b"'), (status, text)
    assert g.metric("dubbogate_registry_bad_rules") == 0
    assert g.metric("dubbogate_registry_watches") < 20, "only what concerns us is watched"
    g.stop()
    for s in stubs:
        s.kill()
    c.close()


if __name__ == "__main__":
    zk = kit.ZooKeeper() if os.environ.get("REGISTRY_KIT_INSIDE") == "1" else None
    try:
        kit.run([ten_thousand_providers_that_come_and_go, rules_of_many_services])
    finally:
        if zk is not None:
            zk.close()
