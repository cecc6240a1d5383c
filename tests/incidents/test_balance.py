#!/usr/bin/env python3
"""Load balancing while the lists change in a real ZooKeeper (docs/REGISTRY.md section 8)."""
import json
import os
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
zk = None


def start(names, **service):
    """Stubs on 20880, 20882, …, listed, and a gateway that knows the service."""
    stubs = [kit.Stub(20880 + 2 * i, 20881 + 2 * i, "-n", n) for i, n in enumerate(names)]
    c = kit.Client()
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    p = registry_kit.Providers(c, IFACE)
    for s in stubs:
        p.add(s.port, ephemeral=False)
    g = kit.Gateway({"process": {"workers": 1}, "registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}],
                     "direct": {"enabled": True, "allow": ["*"]},
                     "defaults": {"timeout": "3s"},
                     "services": [{"name": "user", "interface": IFACE, "registry": "main", **service}]})
    return stubs, c, p, g


class Changes:
    """Every 100 ms another timeout stands in the URL of one provider; it is never out of the list."""

    def __init__(self, p, port):
        self.p, self.port, self.n, self.on = p, port, 0, True
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.pause = threading.Event()
        self.thread.start()

    def _run(self):
        now = {}
        while self.on:
            self.n += 1
            new = {"timeout": str(3000 + self.n)}
            self.p.add(self.port, ephemeral=False, **new)
            self.p.remove(self.port, **now)
            now = new
            self.pause.wait(0.1)

    def stop(self):
        self.on = False
        self.thread.join()
        return self.n


def case_70_round_robin_while_a_parameter_changes():
    """Not only the shares: the turn goes on, call after call, as if nothing had changed."""
    stubs, c, p, g = start("abcd", loadbalance="roundrobin")
    h = kit.Http()
    h.post("/%s/whoami" % IFACE, "[]")
    events = g.metric("dubbogate_registry_events_total")
    changes = Changes(p, 20884)
    seen = ""
    while len(seen) < 4000 or changes.n < 20:
        status, body, _ = h.post("/%s/whoami" % IFACE, "[]")
        assert status == 200, body
        seen += body.strip('"')
    n = changes.stop()
    got = {x: seen.count(x) for x in "abcd"}
    assert all(.225 * len(seen) <= x <= .275 * len(seen) for x in got.values()), got
    first = seen[:4]
    assert sorted(first) == list("abcd") and seen == (first * (len(seen) // 4 + 1))[:len(seen)], "a turn was lost"
    assert g.metric("dubbogate_registry_events_total") > events + 5, "the lists have not changed"
    print("        %d calls, %d changes: %s" % (len(seen), n, got))
    assert all(s.connects() == 1 for s in stubs), "its connection stays"
    c.close()
    g.stop()


def a_retry_sees_the_list_of_now():
    """a has the call when it leaves the list and b takes its place; then a's connection ends."""
    stubs, c, p, g = start("ab", retry={"idempotent_conditions": ["connection_lost"]},
                           methods=[{"name": "whoami", "idempotent": True}])
    p.remove(20882)
    kit.wait_until(lambda: [x["address"] for x in g.reference(IFACE)["providers"]["list"]] == ["127.0.0.1:20880"], 5, "only a")
    stubs[0].script(json.dumps({"whoami": [[{"delay_ms": 1500}, {"close": True}]]}))
    seen = []
    t = threading.Thread(target=lambda: seen.append(kit.Http().post("/%s/whoami" % IFACE, "[]")[:2]))
    t.start()
    kit.wait_until(lambda: stubs[0].numbers()["methods"].get("whoami") == 1, 1, "a has the call")
    p.add(20882, ephemeral=False)
    p.remove(20880)
    t.join()
    assert seen == [(200, '"b"')], seen
    c.close()
    g.stop()


def groups_of_the_registry():
    """One subscription and one consumer node for all groups; the first request waits for the list, and a group that comes
    later is asked, too."""
    stubs, c, p, g = start("abc")
    g.stop()
    for s, name in zip(stubs, "abc"):
        p.remove(s.port)
        s.script(json.dumps({"m": [[{"value": [name]}]]}))
    p.add(20880, ephemeral=False, group="a")
    p.add(20882, ephemeral=False, group="b")
    route = {"method": "POST", "call": "user.m"}
    g = kit.Gateway({"process": {"workers": 1}, "defaults": {"timeout": "3s"},
                     "registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}],
                     "services": [{"name": "user", "interface": IFACE, "registry": "main", "group": "*", "preload": False}],
                     "routes": [{**route, "name": "merged", "path": "/m", "cluster": "mergeable"},
                                {**route, "name": "all", "path": "/b", "cluster": "broadcast"}]})

    def ask(path, args="[]"):
        status, body, _ = kit.Http().post(path, args)
        return status, json.loads(body) if status == 200 else json.loads(body)["code"]
    assert ask("/m") == (200, ["a", "b"])
    assert ask("/b") == (200, ["b"])
    p.add(20884, ephemeral=False, group="c")
    kit.wait_until(lambda: ask("/m") == (200, ["a", "b", "c"]), 3, "the new group")
    kit.wait_until(lambda: len(kit.consumers(c, IFACE)) == 1, 3, "the consumer node")
    assert "group%3D%2A" in kit.consumers(c, IFACE)[0] or "group%3D*" in kit.consumers(c, IFACE)[0]
    # rules that look at the arguments of the request take b out, of both modes, and not for others
    url = "route://0.0.0.0/%s?category=routers&router=condition&enabled=true&force=true&priority=1&rule=%s" % (
        IFACE, urllib.parse.quote("arguments[0] = x => address != 127.0.0.1:20882", safe=""))
    c.ensure("/dubbo/%s/routers/%s" % (IFACE, urllib.parse.quote(url, safe="")))
    kit.wait_until(lambda: ask("/m", '["x"]') == (200, ["a", "c"]), 3, "the rule is in force")
    assert ask("/m", '["y"]') == (200, ["a", "b", "c"])
    before = [s.numbers()["methods"]["m"] for s in stubs]
    assert ask("/b", '["x"]') == (200, ["c"])
    assert [s.numbers()["methods"]["m"] for s in stubs] == [before[0] + 1, before[1], before[2] + 1]
    for port, name in (20880, "a"), (20882, "b"), (20884, "c"):
        p.remove(port, group=name)
    for s in stubs:
        s.kill()
    kit.wait_until(lambda: ask("/m")[0] == 503 and ask("/b")[0] == 503, 5, "nobody is left")
    c.close()
    g.stop()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([case_70_round_robin_while_a_parameter_changes, a_retry_sees_the_list_of_now, groups_of_the_registry])
    finally:
        if zk is not None:
            zk.close()
