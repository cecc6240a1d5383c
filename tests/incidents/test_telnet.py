#!/usr/bin/env python3
"""registries[].telnet_methods: providers without a report are asked on their service port.  Real ZooKeeper, scripted
providers; what a real 2.6 says is in tests/interop/test_telnet.py."""
import json
import os
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
from outage_kit import IFACE, Before, client, config, ready  # noqa: E402  pylint: disable=wrong-import-position
from test_definitions import AS_DATE, DATE, DEFINITION, PATH, call, known, publish  # noqa: E402  pylint: disable=wrong-import-position

AT_ONCE = 16  # gateway/telnet.h
METHODS = b"java.util.List rawArguments(java.util.Date)\r\nvoid rawArguments(int,int)\r\ndubbo>"
zk = None


class TelnetPort:
    """A service port: a line of text gets `answer(s, interface)`, anything else is a provider's, at port `to`."""

    def __init__(self, port, answer, to=None):
        self.answer, self.to = answer, to
        self.asked, self.now, self.most = [], 0, 0
        self.lock = threading.Lock()
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(("127.0.0.1", port))
        self.sock.listen(200)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(s,), daemon=True).start()

    def _serve(self, s):
        try:
            first = s.recv(65536)
            if first.startswith(b"ls -l ") and first.endswith(b"\r\n"):
                self._say(s, first[len(b"ls -l "):-2].decode())
            elif first and self.to:
                with socket.create_connection(("127.0.0.1", self.to)) as up:
                    up.sendall(first)
                    threading.Thread(target=self._pump, args=(up, s), daemon=True).start()
                    self._pump(s, up)
        except OSError:
            pass
        finally:
            s.close()

    def _say(self, s, interface):
        with self.lock:
            self.asked.append(interface)
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            self.answer(s, interface)
            with self.lock:
                self.now -= 1
            s.recv(1)  # the gateway closes
        except OSError:
            pass

    @staticmethod
    def _pump(a, b):
        try:
            while True:
                data = a.recv(65536)
                if not data:
                    break
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def says(text):
    return lambda s, interface: s.sendall(text)


def on(**more):
    conf = config(**more)
    conf["registries"][0]["telnet_methods"] = True
    return conf


def events(g, key):
    return [e["text"] for e in g.reference(key)["events"]]


def told(g, key, text, seconds=5):
    kit.wait_until(lambda: any(text in e for e in events(g, key)), seconds, "%s of %s" % (text, key))


def calls_have_types():
    """What telnet said decides as a report does, is shown, is asked again when the providers change, and is saved; a
    report counts more."""
    c = client(zk)
    a = kit.Stub(20881, 20882)
    port = TelnetPort(20880, says(METHODS), to=20881)
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    with tempfile.TemporaryDirectory(prefix="state-") as state:
        conf = on(process={"state_dir": state})
        g = kit.Gateway(config())
        ready(g, 1)
        assert call(DATE)[1] != AS_DATE, call(DATE)
        assert "    test has published no methods; registries[].telnet_methods would ask its providers of 2.6\n" in \
            kit.program("ls", "-l", "-r", "zookeeper://127.0.0.1:2181", IFACE)
        g.stop()
        assert port.asked == [], port.asked
        g = kit.Gateway(conf)
        d = known(g)
        assert [(x["application"], x["source"]) for x in d] == [("test", "telnet")], d
        assert call(DATE) == (200, AS_DATE), call(DATE)
        assert "candidates" in call("[1,2,3]")[1], call("[1,2,3]")
        why = kit.program("why", "-l", IFACE)
        assert "2 methods known by the telnet of test\n" in why and "    void rawArguments(int,int)\n" in why, why
        assert port.asked == [IFACE], port.asked

        kit.Providers(c, IFACE).add(20880, host="127.0.0.2", timestamp=1700000000000)  # started last, refuses
        ready(g, 2)
        told(g, IFACE, "no methods by telnet from 127.0.0.2 port 20880: Connection refused")
        kit.Providers(c, IFACE).remove(20880, host="127.0.0.2", timestamp=1700000000000)
        ready(g, 1)
        kit.wait_until(lambda: port.asked == [IFACE] * 2, 5, "it is asked again")
        assert call(DATE) == (200, AS_DATE), call(DATE)
        g.stop()
        c.close()
        zk.stop()
        g = kit.Gateway(conf)
        assert known(g) == [{**d[0], "source": "saved"}], known(g)
        assert call(DATE) == (200, AS_DATE), call(DATE)
        zk.start()
        kit.wait_until(lambda: g.reference(IFACE)["definitions"][0]["source"] == "telnet", 15, "it is asked again")
        c = kit.Client()
        publish(c, DEFINITION)
        kit.Providers(c, IFACE).add(20881, ephemeral=False)
        kit.wait_until(lambda: g.reference(IFACE)["definitions"][0]["source"] == "report", 10, "the report is used")
        g.stop()
    assert len(port.asked) == 3, port.asked
    port.close()
    a.kill()
    c.close()


def a_provider_that_does_not_answer():
    """The operator sees why there are no methods; nothing stays open, and calls go on."""
    def slowly(s, interface):
        for i in range(len(METHODS)):
            s.sendall(METHODS[i:i + 1])
            time.sleep(0.005)

    def for_ever(s, interface):
        while True:
            s.sendall(b"void a()\r\n" * 5000)

    rows = [("demo.Silent", lambda s, i: s.recv(1), "no answer in time"),
            ("demo.Ends", lambda s, i: s.shutdown(socket.SHUT_RDWR), "it closed the connection"),
            ("demo.Cut", lambda s, i: (s.sendall(METHODS[:-6]), s.shutdown(socket.SHUT_RDWR)), "it closed the connection"),
            ("demo.ForEver", for_ever, "the answer is too long"),
            ("demo.Garbage", says(b"\xda\xbb\0\1\n\ndubbo>"), 'the answer is "'),
            ("demo.Unknown", says(b"No such service demo.Unknown\r\ndubbo>"), 'the answer is "No such service demo.Unknown"'),
            ("demo.Other", says(b"Unsupported command: ls\r\ndubbo>"), 'the answer is "Unsupported command: ls"')]
    c = client(zk)
    a = kit.Stub()
    ports = []
    kit.Providers(c, IFACE).add(20880)
    kit.Providers(c, "demo.Nobody").add(20999)
    kit.Providers(c, "demo.Slow").add(20899)
    ports.append(TelnetPort(20899, slowly))
    for i, (iface, answer, _) in enumerate(rows):
        ports.append(TelnetPort(20900 + i, answer))
        kit.Providers(c, iface).add(20900 + i)
    names = ["demo.Slow", "demo.Nobody"] + [r[0] for r in rows]
    g = kit.Gateway(on(services=[{"name": n[5:], "interface": n} for n in [IFACE] + names]))
    ready(g, 1)
    assert call("[1]", "/%s/whoami" % IFACE)[0] in (200, 400), call("[1]", "/%s/whoami" % IFACE)
    before = Before(g)
    for iface, _, why in rows:
        told(g, iface, why)
    told(g, "demo.Nobody", "Connection refused")
    d = known(g, "demo.Slow")
    assert [m["parameterTypes"] for m in d[0]["methods"]] == [["java.util.Date"], ["int", "int"]], d
    assert all(g.reference(r[0])["definitions"] == [] for r in rows), g.admin("/references")
    status, text = call("[]", "/%s/whoami" % IFACE)
    assert status == 200, text
    before.check()
    for p in ports:
        p.close()
    g.stop()
    a.kill()
    c.close()


def many_references():
    """A few connections at a time, whatever the number of services; and an end with questions open is an end."""
    n = 60
    names = ["demo.N%02d" % i for i in range(n)]
    gate = threading.Event()
    c = client(zk)
    port = TelnetPort(20880, lambda s, i: (gate.wait(2.5), s.sendall(b"void of%s()\r\ndubbo>" % i[5:].encode())))
    for name in names:
        kit.Providers(c, name).add(20880)
    g = kit.Gateway(on(services=[{"name": x[5:], "interface": x} for x in names], process={"workers": 1}))
    kit.wait_until(lambda: port.most == AT_ONCE, 5, "as many as allowed are asked")
    time.sleep(0.3)
    assert port.most == AT_ONCE, port.most  # later the gateway may have closed one whose thread here does not know yet
    gate.set()
    for name in names:
        assert [m["name"] for m in known(g, name)[0]["methods"]] == ["of" + name[5:]], known(g, name)
    assert sorted(port.asked) == names, port.asked
    g.stop()
    gate.clear()
    port.most = 0
    g = kit.Gateway(on(services=[{"name": x[5:], "interface": x} for x in names], process={"workers": 1}))
    kit.wait_until(lambda: port.most == AT_ONCE, 5, "they are asked again")
    g.stop()
    gate.set()
    port.close()
    c.close()


if __name__ == "__main__":
    zk = kit.ZooKeeper() if os.environ.get("REGISTRY_KIT_INSIDE") == "1" else None
    try:
        kit.run([calls_have_types, a_provider_that_does_not_answer, many_references])
    finally:
        if zk is not None:
            zk.close()
