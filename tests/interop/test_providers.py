#!/usr/bin/env python3
"""Real providers of every Dubbo line beside each other in one real ZooKeeper: each registers the loopback address,
and takes its node away when it is asked to stop.  LINE=2.6|2.7|3.2|3.3 chooses one line."""
import os
import signal
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

ONLY = os.environ.get("LINE")
PORTS = {line: 20880 + i for i, line in enumerate(kit.LINES) if not ONLY or line == ONLY}
RELEASE = {"2.6": None, "2.7": "2.7.23", "3.2": "3.2.15", "3.3": "3.3.2"}  # 2.6 does not name its own
INTERFACES = [kit.RICH, "demo.sample.api.HelloService", "demo.sample.api.ValidatedService"]


def providers(c, iface):
    """{port: parameters} of the provider nodes, each of which must be dubbo://127.0.0.1."""
    out = {}
    for name in c.children("/dubbo/%s/providers" % iface):
        url = urllib.parse.urlsplit(urllib.parse.unquote_plus(name))
        assert (url.scheme, url.hostname, url.path) == ("dubbo", "127.0.0.1", "/" + iface), name
        assert url.port not in out, name
        out[url.port] = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
    return out


def lines_register_loopback_and_leave():
    zk = kit.ZooKeeper().start()
    c = kit.Client()
    java = {line: kit.JavaProvider(line, port) for line, port in PORTS.items()}
    for p in java.values():
        p.wait_ready()
    for iface in INTERFACES:
        seen = kit.wait_until(lambda i=iface: len(providers(c, i)) == len(PORTS) and providers(c, i), 5,
                              "a node of every line for " + iface)
        for line, port in PORTS.items():
            assert seen[port].get("release") == RELEASE[line] and seen[port]["interface"] == iface, (line, seen[port])
    instances = c.children("/services/sample-provider")
    assert sorted(instances) == ["127.0.0.1:%d" % p for line, p in PORTS.items() if line[0] == "3"], instances
    for p in java.values():
        p.proc.send_signal(signal.SIGTERM)
    kit.wait_until(lambda: not any(providers(c, i) for i in INTERFACES), 8, "no node is left")
    for p in java.values():
        p.proc.wait(15)
    c.close()
    zk.close()


if __name__ == "__main__":
    kit.run([lines_register_loopback_and_leave])
