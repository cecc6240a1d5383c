#!/usr/bin/env python3
"""Bytes per reference, and growth over a million calls; part of make bench.  The numbers are resident memory (VmRSS).

10,000 references, each with 10 providers out of 100 addresses, provider URLs of about 450 bytes, a real ZooKeeper, two
workers that have both called every reference.  REFERENCES=10000  CALLS=1000000"""
import os
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position

REFERENCES = int(os.environ.get("REFERENCES", "10000"))
CALLS = int(os.environ.get("CALLS", "1000000"))
TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bench", "calls")
URL = ("dubbo://127.0.0.%d:20880/%s?anyhost=true&application=order-center-provider&bind.ip=10.20.30.40&bind.port=20880&deprecated=false&dubbo=2.0.2&dynamic=true"
       "&generic=false&interface=%s&methods=getOrder,listOrders,createOrder,cancelOrder&owner=trade-team&pid=12345"
       "&release=2.7.23&revision=1.4.2&service-name-mapping=true&side=provider&timeout=3000&timestamp=1700000000000&weight=100")


def calls(path, n, conns, first=0):
    r = subprocess.run([TOOL, "127.0.0.1", "8080", path, str(n), str(conns), "200", str(first)], stdout=subprocess.PIPE, text=True, check=False)
    assert r.returncode == 0, r.stdout


def rss(g):
    with open("/proc/%d/status" % g.proc.pid, encoding="ascii") as f:
        return int([x for x in f if x.startswith("VmRSS")][0].split()[1])


def publish(first, n):
    c = kit.Client(timeout_ms=600000)
    for i in range(first, first + n):
        name = "com.example.trade.OrderService%d" % i
        where = "/dubbo/%s/providers" % name
        c.ensure(where)
        for k in range(10):
            url = URL % (1 + (i * 7 + k * 11) % 100, name, name)
            c.create(where + "/" + urllib.parse.quote(url, safe=""))
    c.close()
    return len(url)


def per_reference():
    """MiB before and after, bytes per reference."""
    stub = kit.Stub(20880, 20881, "-l", "0.0.0.0")
    length = publish(0, REFERENCES + 100)
    g = kit.Gateway({"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "session_timeout": "30s",
                                     "provider_networks": ["127.0.0.0/8"]}],
                     "process": {"workers": 2}, "limits": {"references": 2 * REFERENCES},
                     "direct": {"enabled": True, "allow": ["com.example.*"]}, "defaults": {"timeout": "10s"}})
    name = "/com.example.trade.OrderService%d/whoami"
    for i in range(REFERENCES, REFERENCES + 100):  # afterwards both workers are connected to all addresses
        calls(name % i, 64, 16)
    time.sleep(1)
    before = rss(g)
    for first in range(0, REFERENCES, 500):  # no more than 1,000 names are looked up per second
        calls(name, 500, 16, first)
        time.sleep(0.6)
    for _ in range(5):  # 16 connections are spread over two workers: after these both have seen nearly every name
        calls(name, REFERENCES, 16)
    time.sleep(2)
    after = rss(g)
    n = len(g.admin("/references")[1]["references"])
    print("per reference: %d references, 10 providers each, URLs of %d bytes: %d -> %d KiB = %d bytes each" %
          (n, length, before, after, (after - before) * 1024 // REFERENCES), flush=True)
    g.stop()
    stub.kill()


def growth():
    stub = kit.Stub(20880, 20881)
    g = kit.Gateway({"services": [{"name": "user", "interface": "demo.UserService", "providers": ["dubbo://127.0.0.1:20880"]}],
                     "direct": {"enabled": True, "allow": ["*"]}})
    idle = rss(g)
    calls("/demo.UserService/whoami", 100000, 64)
    before = rss(g)
    calls("/demo.UserService/whoami", CALLS, 64)
    print("growth: idle %d KiB, after 100,000 calls %d KiB, after %d more %d KiB" % (idle, before, CALLS, rss(g)), flush=True)
    g.stop()
    stub.kill()


if __name__ == "__main__":
    registry_kit.enter_namespace(1)
    zk = kit.ZooKeeper(heap="700m").start()
    try:
        per_reference()
        growth()
    finally:
        zk.close()
