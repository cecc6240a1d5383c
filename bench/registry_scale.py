#!/usr/bin/env python3
"""What a large registry costs: make bench-registry.  A real ZooKeeper, two workers.

 - from a change in the registry to its use by every worker, at 100 changes a second, with 100 and with 5,000 providers
 - a registry of 100,000 interfaces that are not ours
 - CPU per request with 1 and 10,000 references, with 1 and 1,000 providers

SECONDS=60 of changes  FOREIGN=100000  REFERENCES=10000  CALLS=200000 per round"""
import os
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position

SECONDS = int(os.environ.get("SECONDS", "60"))
FOREIGN = int(os.environ.get("FOREIGN", "100000"))
REFERENCES = int(os.environ.get("REFERENCES", "10000"))
CALLS = int(os.environ.get("CALLS", "200000"))
ROUNDS = 5
PROVIDERS = ("/one", 1), ("/ten", 10), ("/hundred", 100), ("/thousand", 1000)
IFACE = "demo.UserService"
TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bench", "calls")


def node(iface, host, port, **params):
    q = {"application": "bench", "dubbo": "2.0.2", "interface": iface, "methods": "whoami,echo", "release": "2.7.23", "side": "provider",
         "timeout": "3000", "timestamp": "1700000000000", **params}
    url = "dubbo://%s:%d/%s?%s" % (host, port, iface, "&".join("%s=%s" % kv for kv in sorted(q.items())))
    return "/dubbo/%s/providers/%s" % (iface, urllib.parse.quote(url, safe=""))


def status(pid, key):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return int([x for x in f if x.startswith(key)][0].split()[1])


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        t = f.read().rsplit(")", 1)[1].split()
    return (int(t[11]) + int(t[12])) / os.sysconf("SC_CLK_TCK")


def quantile(v, q):
    return sorted(v)[min(len(v) - 1, int(len(v) * q))]


def changes(providers):
    """Every 10 ms one provider comes, and from the 50th on one goes.  Of each that comes: how long until every worker has a list
    with it."""
    c = kit.Client(timeout_ms=600000)
    c.ensure("/dubbo/%s/providers" % IFACE)
    for i in range(providers - 50):
        c.create(node(IFACE, "10.%d.%d.1" % (i // 250, i % 250), 20880))
    d = registry_kit.Driver("--workers", 2, "--session", 30000, services=[IFACE])
    d.wait(lambda m: m["mail"] == "directory" and len(m["providers"]) >= providers - 50, 60, "the list")
    time.sleep(1)
    made = {}   # port -> ms
    seen = {}   # (port, worker) -> ms
    stop = threading.Event()

    def watch():
        known = [set(), set()]
        while not stop.is_set():
            try:
                m = d.next(1)
            except AssertionError:
                continue
            d.seen.clear()
            if m["mail"] == "directory":
                now = {p for p in m["providers"] if p.startswith("10.255.")}
                for p in now - known[m["worker"]]:
                    seen.setdefault((p, m["worker"]), m["ms"])
                known[m["worker"]] = now
    t = threading.Thread(target=watch)
    t.start()
    cpu = cpu_s(d.proc.pid)
    start = time.monotonic()
    n = 0
    while time.monotonic() - start < SECONDS:
        due = start + n * 0.01
        if due > time.monotonic():
            time.sleep(due - time.monotonic())
        made["10.255.0.1:%d" % (1000 + n)] = int(time.monotonic() * 1000)
        c.create(node(IFACE, "10.255.0.1", 1000 + n))
        if n >= 50:
            c.delete(node(IFACE, "10.255.0.1", 1000 + n - 50))
        n += 1
    cpu = cpu_s(d.proc.pid) - cpu
    took = time.monotonic() - start
    time.sleep(2)
    stop.set()
    t.join()
    waits = [max(seen[(p, 0)], seen[(p, 1)]) - ms for p, ms in made.items() if (p, 0) in seen and (p, 1) in seen]
    print("changes, %d providers: %d a second for %.0f s; to every worker: median %d ms, p99 %d ms, longest %d ms; %d of %d seen; "
          "CPU %.1f %%, RSS %d KiB" % (providers, 2 * n / took, took, quantile(waits, 0.5), quantile(waits, 0.99), max(waits), len(waits), n,
                                       100 * cpu / took, status(d.proc.pid, "VmRSS")), flush=True)
    d.stop()
    c.delete_tree("/dubbo")
    c.close()


def foreign():
    """A start beside interfaces that nobody asks for."""
    c = kit.Client(timeout_ms=600000)
    c.ensure("/dubbo/%s/providers" % IFACE)
    c.create(node(IFACE, "127.0.0.1", 20880))
    out = []
    for n in 0, FOREIGN:
        for i in range(n):
            c.create("/dubbo/com.example.foreign.Service%06d" % i)
        start = time.monotonic()
        d = registry_kit.Driver("--workers", 2, "--session", 30000, services=[IFACE])
        d.wait_providers(IFACE, ["127.0.0.1:20880"])
        first = 1000 * (time.monotonic() - start)
        time.sleep(3)
        out.append("%d others: first list after %.0f ms, RSS %d KiB, CPU in 3 s %.2f s" %
                   (n, first, status(d.proc.pid, "VmRSS"), cpu_s(d.proc.pid)))
        d.stop()
    print("foreign interfaces: " + "; ".join(out), flush=True)
    c.close()


def calls(path, n, conns, first=0):
    r = subprocess.run([TOOL, "127.0.0.1", "8080", path, str(n), str(conns), "200", str(first)], stdout=subprocess.PIPE, text=True, check=False)
    assert r.returncode == 0, r.stdout


def per_request(g, path="/%s/whoami" % IFACE):
    """Microseconds of CPU per request."""
    before = cpu_s(g.proc.pid)
    calls(path, CALLS, 64)
    return 1e6 * (cpu_s(g.proc.pid) - before) / CALLS


def gateway(registry_root, **more):
    return kit.Gateway({"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "root": registry_root,
                                        "provider_networks": ["127.0.0.0/8"]}],
                        "process": {"workers": 2}, "limits": {"references": 2 * REFERENCES},
                        "direct": {"enabled": True, "allow": ["*"]}, "defaults": {"timeout": "10s"}, **more})


def cpu_per_request():
    stub = kit.Stub(20880, 20881, "-l", "0.0.0.0")
    c = kit.Client(timeout_ms=600000)
    for root, providers in PROVIDERS:
        where = "%s/%s/providers" % (root, IFACE)
        c.ensure(where)
        for i in range(providers):
            c.create(node(IFACE, "127.%d.%d.1" % (i // 250, i % 250), 20880).replace("/dubbo/", root + "/", 1))
    c.ensure("/versions/%s/providers" % IFACE)
    for i in range(1000):
        c.create(node(IFACE, "127.0.0.1", 20880, version="1.%d" % i).replace("/dubbo/", "/versions/", 1))
    for i in range(REFERENCES):
        name = "com.example.trade.OrderService%d" % i
        c.ensure("/one/%s/providers" % name)
        c.create(node(name, "127.0.0.1", 20880).replace("/dubbo/", "/one/", 1))
    v = {}
    for _ in range(ROUNDS):
        g = gateway("/one")
        calls("/%s/whoami" % IFACE, CALLS // 4, 64)
        v.setdefault("1 reference", []).append(per_request(g))
        g.stop()
        for root, providers in PROVIDERS[1:]:
            g = gateway(root)
            calls("/%s/whoami" % IFACE, CALLS // 4, 64)
            v.setdefault("%d providers" % providers, []).append(per_request(g))
            g.stop()
        # as long a list, one connection: what the list itself costs
        g = gateway("/versions", services=[{"name": "user", "interface": IFACE, "version": "*", "registry": "main"}],
                    routes=[{"name": "who", "path": "/who", "method": "POST", "call": "user.whoami", "args": []}])
        calls("/who", CALLS // 4, 64)
        v.setdefault("1000 providers at one address", []).append(per_request(g, "/who"))
        g.stop()
    g = gateway("/one")
    for first in range(0, REFERENCES, 500):  # no more than 1,000 names are looked up per second
        calls("/com.example.trade.OrderService%d/whoami", 500, 16, first)
        time.sleep(0.6)
    for _ in range(ROUNDS):
        v.setdefault("%d references" % (REFERENCES + 1), []).append(per_request(g))
    g.stop()
    base = quantile(v["1 reference"], 0.5)
    for name, all_of_it in v.items():
        print("CPU per request, %s: %.2f us (x %.3f); rounds %s" % (name, quantile(all_of_it, 0.5), quantile(all_of_it, 0.5) / base,
                                                                 " ".join("%.2f" % x for x in all_of_it)), flush=True)
    stub.kill()
    c.close()


if __name__ == "__main__":
    registry_kit.enter_namespace(1)
    zk = kit.ZooKeeper(heap="700m").start()
    try:
        changes(100)
        changes(5000)
        foreign()
        cpu_per_request()
    finally:
        zk.close()
