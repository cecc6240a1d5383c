#!/usr/bin/env python3
"""How registries are reached: credentials and ACLs, a chroot, several registries in one process."""
import base64
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
PATH = "/%s/whoami" % IFACE
PASSWORD = "s3cret"
zk = None


def start():
    if zk.proc is None:
        zk.start()
    c = kit.Client(timeout_ms=60000)
    c.login("ops", PASSWORD)
    for top in ("/dubbo", "/prod"):
        if c.exists(top):
            c.delete_tree(top)
    return c


def config(address="zookeeper://ops:%s@127.0.0.1:2181" % PASSWORD, **more):
    c = {"registries": [{"name": "main", "address": address, "session_timeout": "4s"}],
         "services": [{"name": "user", "interface": IFACE}], "direct": {"enabled": True, "allow": ["*"]},
         "defaults": {"timeout": "3s"}}
    c.update(more)
    return c


def node_of(c, root="/dubbo"):
    nodes = kit.wait_until(lambda: kit.consumers(c, IFACE, root), 5, "a consumer node")
    assert len(nodes) == 1 and "timestamp" not in nodes[0], nodes
    return "%s/%s/consumers/%s" % (root, IFACE, nodes[0])


def ready(g, key=IFACE, seconds=10):
    kit.wait_until(lambda: (g.reference(key) or {}).get("state") == "ready", seconds, key + " is ready")


def digest(user, password):
    text = "%s:%s" % (user, password)
    return "%s:%s" % (user, base64.b64encode(hashlib.sha1(text.encode()).digest()).decode())


def secret_is_kept(g, *paths):
    for p in ("/ready", "/references", "/registries", "/providers") + paths:
        try:
            text = str(g.admin(p))
        except ValueError:
            continue
        assert PASSWORD not in text, (p, text)
    assert PASSWORD not in g.log() + g.output()
    shown = subprocess.run([os.path.join(kit.BIN, "dubbogate"), "-T", "-c", g.file.name], capture_output=True, text=True,
                           check=True).stdout
    assert PASSWORD not in shown and "zookeeper://***@127.0.0.1" in shown, shown


def a_tree_that_is_not_open():
    """Providers of 3.x with credentials: nobody else may read.  Our node is as theirs, also after a new session and when
    another process takes it over; the password is nowhere to be read."""
    c = start()
    c.acl = registry_kit.CREATOR_ALL_ACL
    a = kit.Stub()
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    relay = kit.Relay(2182, 2181)
    conf = config("zookeeper://ops:%s@127.0.0.1:2182" % PASSWORD)
    g = kit.Gateway(conf)
    ready(g)
    assert kit.Http().post(PATH, "[]")[0] == 200
    node = node_of(c)
    assert c.acl_of(node) == [(31, "digest", digest("ops", PASSWORD))] == c.acl_of("/dubbo/" + IFACE), c.acl_of(node)
    owner = c.exists(node)["owner"]
    relay.expire()
    kit.wait_until(lambda: (c.exists(node) or {"owner": owner})["owner"] != owner, 10, "the node of the next session")
    assert c.acl_of(node) == [(31, "digest", digest("ops", PASSWORD))]
    secret_is_kept(g)
    owner = c.exists(node)["owner"]
    g.kill()
    g = kit.Gateway(conf)
    kit.wait_until(lambda: (c.exists(node) or {"owner": owner})["owner"] != owner, 3, "it is taken over")
    assert c.acl_of(node) == [(31, "digest", digest("ops", PASSWORD))]
    kit.Stub(20882, 20883)
    kit.Providers(c, IFACE).add(20882)
    kit.wait_until(lambda: g.reference(IFACE)["providers"]["usable"] == 2, 2, "the watch works")
    g.stop()
    relay.close()
    c.close()
    a.kill()


def without_or_with_other_credentials():
    """Refused, and said so; the password that was tried is not."""
    c = start()
    c.acl = registry_kit.CREATOR_ALL_ACL
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    for address in "zookeeper://127.0.0.1:2181", "zookeeper://ops:other-%s@127.0.0.1:2181" % PASSWORD:
        g = kit.Gateway(config(address))
        kit.wait_until(lambda: "not authenticated" in g.log(), 5, "the log says so")
        status, text, _ = kit.Http().post(PATH, "[]")
        assert status == 503 and '"STARTING"' in text, (status, text)
        assert "not authenticated" in str(g.reference(IFACE)["events"]), g.reference(IFACE)
        assert PASSWORD not in g.log()
        g.stop()
    ls = subprocess.run([os.path.join(kit.BIN, "dubbogate"), "ls", "-r", "zookeeper://ops:%s@127.0.0.1:2181" % PASSWORD],
                        capture_output=True, text=True, check=True)
    assert IFACE in ls.stdout, ls
    c.close()


def open_and_mixed_trees():
    """A node is as its parent: open below an open one (2.6, 2.7), ours alone where the parent's digests are hidden."""
    c = start()
    kit.Providers(c, IFACE).add(20880, ephemeral=False)
    g = kit.Gateway(config())
    assert c.acl_of(node_of(c)) == [(31, "world", "anyone")]
    g.stop()
    where = "/dubbo/%s/consumers" % IFACE
    # ops may read, create and delete there, not administer: it is shown "user:x"
    c.set_acl(where, [(31, "digest", digest("admin", "a")), (1 | 4 | 8, "digest", digest("ops", PASSWORD))])
    assert ("admin:x" in str(c.acl_of(where))), c.acl_of(where)
    g = kit.Gateway(config())
    assert c.acl_of(node_of(c)) == [(31, "digest", digest("ops", PASSWORD))]
    g.stop()
    c.login("admin", "a")
    c.close()


def below_a_chroot():
    """The whole tree is below /prod; what is beside it is not looked at."""
    c = start()
    a, b = kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")
    kit.Providers(c, IFACE).add(20882, ephemeral=False)
    p = kit.Providers(c, IFACE, "/prod/dubbo")
    p.add(20880, ephemeral=False)
    relay = kit.Relay(2182, 2181)
    conf = config("zookeeper://127.0.0.1:2182")
    conf["registries"][0]["chroot"] = "/prod"
    g = kit.Gateway(conf)
    ready(g)
    h = kit.Http()
    assert {h.post(PATH, "[]")[1] for _ in range(20)} == {'"a"'}
    node = node_of(c, "/prod/dubbo")
    assert not kit.consumers(c, IFACE)
    relay.cut()  # watches are set again
    time.sleep(0.5)
    p.add(20882)
    kit.wait_until(lambda: {h.post(PATH, "[]")[1] for _ in range(20)} == {'"a"', '"b"'}, 3, "both are used")
    owner = c.exists(node)["owner"]
    relay.expire()
    kit.wait_until(lambda: (c.exists(node) or {"owner": owner})["owner"] != owner, 10, "the node of the next session")
    p.remove(20882)
    kit.wait_until(lambda: {h.post(PATH, "[]")[1] for _ in range(20)} == {'"a"'}, 3, "one is gone")
    owner = c.exists(node)["owner"]
    g.kill()
    g = kit.Gateway(conf)
    kit.wait_until(lambda: (c.exists(node) or {"owner": owner})["owner"] != owner, 3, "taken over, in one multi")
    g.stop()
    relay.close()
    c.close()
    a.kill()
    b.kill()


def several_registries():
    """Each service has its own; one that is down concerns nobody else, also at a start from saved lists."""
    global zk
    second = kit.ZooKeeper(port=2191).start()
    try:
        c = start()
        c2 = kit.Client(2191, timeout_ms=60000)
        a, b = kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")
        kit.Providers(c, IFACE).add(20880, ephemeral=False)
        for i in "demo.Other", "demo.Third":
            kit.Providers(c2, i).add(20882, ephemeral=False)
        conf = config()
        conf["registries"].append({"name": "second", "address": "zookeeper://127.0.0.1:2191", "session_timeout": "4s"})
        conf["services"][0]["registry"] = "main"
        conf["services"].append({"name": "other", "interface": "demo.Other", "registry": "second"})
        conf["direct"]["registry"] = "second"
        conf["process"] = {"state_dir": tempfile.mkdtemp(prefix="state-")}
        g = kit.Gateway(conf)
        ask = lambda i: kit.Http().post("/demo.%s/whoami" % i, "[]")[:2]
        ready(g)
        ready(g, "demo.Other")
        both = lambda: (ask("UserService"), ask("Other"), ask("Third")) == ((200, '"a"'), (200, '"b"'), (200, '"b"'))
        assert both()
        assert len(kit.consumers(c, IFACE)) == 1 and not kit.consumers(c, "demo.Other")
        kit.wait_until(lambda: [len(kit.consumers(c2, i)) for i in ("demo.Other", "demo.Third")] == [1, 1], 3, "two there")
        assert [r["state"] for r in g.admin("/registries")[1]] == ["connected", "connected"], g.admin("/registries")
        kit.wait_until(lambda: os.listdir(conf["process"]["state_dir"]), 5, "the saved lists")
        time.sleep(1.2)
        second.stop()
        kit.wait_until(lambda: "1 of 2 registries" in str(g.admin("/ready")), 5, "/ready tells")
        assert g.admin("/ready")[0] == 200 and both()
        kit.Providers(c, IFACE).add(20882)
        kit.wait_until(lambda: g.reference(IFACE)["providers"]["usable"] == 2, 3, "the first one goes on")
        kit.Providers(c, IFACE).remove(20882)
        zk.stop()
        g.kill(signal.SIGKILL)
        g = kit.Gateway(conf)
        assert both(), "from the saved lists"
        zk.start()
        second.start()
        ready(g, seconds=20)
        ready(g, "demo.Other", seconds=20)
        assert both()
        g.stop()
        a.kill()
        b.kill()
    finally:
        second.close()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([a_tree_that_is_not_open, without_or_with_other_credentials, open_and_mixed_trees, below_a_chroot,
                 several_registries])
    finally:
        if zk is not None:
            zk.close()
