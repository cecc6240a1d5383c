#!/usr/bin/env python3
"""The registry thread against a real ZooKeeper: lists, watches, one consumer node, look-ups."""
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import registry_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "com.example.UserService"
zk = None


def start():
    global zk
    if zk is None:
        zk = kit.ZooKeeper()
    if zk.proc is None:
        zk.start()
    c = kit.Client()
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    return c


def watches(d, interfaces, each=2):
    """Two each, of the interface and of its providers (one while the registry does not know it); one of the configuration nodes."""
    kit.wait_until(lambda: d.numbers()["watches"] == each * interfaces + 1, 2, "watches of %d interfaces" % interfaces)


def configured_service_follows_the_list():
    c = start()
    p = kit.Providers(c, IFACE)
    p.add(20881)
    d = kit.Driver(services=[IFACE])
    d.wait_providers(IFACE, ["127.0.0.1:20881"])
    p.add(20882)
    d.wait_providers(IFACE, ["127.0.0.1:20881", "127.0.0.1:20882"], 1)
    p.add(20883)
    d.wait_providers(IFACE, ["127.0.0.1:20881", "127.0.0.1:20882", "127.0.0.1:20883"], 1)
    p.remove(20881)
    d.wait_providers(IFACE, ["127.0.0.1:20882", "127.0.0.1:20883"], 1)
    r = d.reference(IFACE)
    assert r["state"] == "ready" and r["subscribes"] == 1 and r["pinned"], r
    assert [x["address"] for x in r["providers"]["list"]] == ["127.0.0.1:20882", "127.0.0.1:20883"]
    watches(d, 1)
    n = d.numbers()
    assert n["subscriptions_total"] == 1 and n["waiting"] == 0, n
    d.stop()
    c.close()


def one_consumer_node_without_time():
    c = start()
    kit.Providers(c, IFACE).add(20881)
    d = kit.Driver(services=[IFACE])
    d.wait_providers(IFACE, ["127.0.0.1:20881"])
    nodes = kit.wait_until(lambda: kit.consumers(c, IFACE), 2, "a consumer node")
    assert len(nodes) == 1
    url = urllib.parse.unquote_plus(nodes[0])
    assert url.startswith("consumer://127.0.0.1/%s?" % IFACE), url
    assert "timestamp" not in url and "pid" not in url and "instance=8080" in url, url
    assert d.reference(IFACE)["consumer_node"] == nodes[0]
    assert d.numbers()["consumer_nodes"] == 1
    node = "/dubbo/%s/consumers/%s" % (IFACE, nodes[0])
    assert c.exists(node)["owner"] != 0
    d.stop()
    assert kit.consumers(c, IFACE) == []
    c.close()


def empty_service_writes_nothing_and_wakes_up():
    c = start()
    c.ensure("/dubbo")
    d = kit.Driver(services=[IFACE])
    d.wait_providers(IFACE, [])
    d.sync()
    before = zk.zxid()
    for _ in range(2000):
        d.say("want " + IFACE)
    d.sync()
    assert zk.zxid() == before
    n = d.numbers()
    watches(d, 1, 1)
    assert n["writes_create_total"] == 0, n
    assert d.reference(IFACE)["state"] == "empty"
    kit.Providers(c, IFACE).add(20881)
    d.wait_providers(IFACE, ["127.0.0.1:20881"], 1)
    nodes = kit.wait_until(lambda: kit.consumers(c, IFACE), 2, "a consumer node")
    assert len(nodes) == 1
    d.stop()
    c.close()


def direct_form_subscribes_once():
    c = start()
    kit.Providers(c, IFACE).add(20881)
    d = kit.Driver("--workers", 2)
    d.wait_connected()
    for _ in range(1000):
        d.say("want-all " + IFACE)
    d.wait_providers(IFACE, ["127.0.0.1:20881"])
    d.sync()
    r = d.reference(IFACE)
    assert r["subscribes"] == 1 and not r["pinned"], r
    # a list of a look-up is used at once; the watch is set by the read that follows it
    watches(d, 1)
    assert d.numbers()["subscriptions_total"] == 1, d.numbers()
    kit.wait_until(lambda: len(kit.consumers(c, IFACE)) == 1, 2, "a consumer node")
    d.stop()
    c.close()


def unknown_names_cost_nothing():
    c = start()
    c.ensure("/dubbo")
    kit.Providers(c, IFACE).add(20881)
    d = kit.Driver("--limit", 100, services=[IFACE])
    d.wait_providers(IFACE, ["127.0.0.1:20881"])
    kit.wait_until(lambda: len(kit.consumers(c, IFACE)) == 1, 2, "a consumer node")
    before = zk.zxid()
    seen = {"unknown": 0, "limit": 0}
    for i in range(20):
        d.say("wants 500 x%d.Nope" % i)
    for _ in range(10000):
        m = d.wait(lambda m: m["mail"] == "refused", 20)
        seen[m["refusal"]] += 1
    assert seen["unknown"] >= 64 and seen["unknown"] + seen["limit"] == 10000, seen
    assert zk.zxid() == before
    assert c.children("/dubbo") == [IFACE]
    r = d.references()
    assert r["count"] == 1 and r["lookups"] == 0 and r["unknown_names"] <= 100, r
    watches(d, 1)
    # a name that was unknown is found soon after its provider came
    d.say("want a.Late")
    d.wait(lambda m: m["mail"] == "refused" and m["key"] == "a.Late")
    kit.Providers(c, "a.Late").add(20885)

    def asked():
        d.say("want a.Late")
        return d.wait(lambda m: m.get("key") == "a.Late")["mail"] == "directory"
    kit.wait_until(asked, 4, "a.Late is found")
    d.stop()
    c.close()


def versions_and_groups_are_told_apart():
    c = start()
    p = kit.Providers(c, IFACE)
    p.add(20881, version="1.0.0")
    p.add(20882, version="2.0.0", group="blue")
    p.add(20883)
    keys = [IFACE + ":1.0.0", IFACE + ":2.0.0@blue", IFACE, IFACE + ":3.0.0"]
    d = kit.Driver(services=keys)
    d.wait_providers(keys[0], ["127.0.0.1:20881"])
    d.wait_providers(keys[1], ["127.0.0.1:20882"])
    d.wait_providers(keys[2], ["127.0.0.1:20883"])
    d.wait_providers(keys[3], [])
    watches(d, 1)  # one interface, one watch
    kit.wait_until(lambda: len(kit.consumers(c, IFACE)) == 3, 2, "three consumer nodes")
    d.stop()
    c.close()


def eviction_removes_watch_and_node():
    c = start()
    names = ["a.S%d" % i for i in range(6)]
    for i, n in enumerate(names):
        kit.Providers(c, n).add(20880 + i)
    d = kit.Driver("--limit", 5)
    d.wait_connected()
    for i, n in enumerate(names[:5]):
        d.say("want " + n)
        d.wait_providers(n, ["127.0.0.1:%d" % (20880 + i)])
    kit.wait_until(lambda: d.numbers()["consumer_nodes"] == 5, 3, "five consumer nodes")
    d.say("touch " + names[0])
    d.say("want " + names[5])
    gone = d.wait(lambda m: m["mail"] == "gone")["key"]
    assert gone == names[1], gone  # the longest unused
    d.wait_providers(names[5], ["127.0.0.1:20885"])
    kit.wait_until(lambda: kit.consumers(c, names[1]) == [], 2, "the node of the evicted one is gone")
    kit.wait_until(lambda: d.numbers()["consumer_nodes"] == 5, 3, "five consumer nodes")
    watches(d, 5)
    kit.wait_until(lambda: zk.watches() == 2 * 5 + 1, 2, "the server has dropped the watch of the evicted one")
    # all busy: refused
    d.say("busy 1")
    d.say("want " + names[1])
    m = d.wait(lambda m: m["mail"] in ("refused", "gone"), 5)
    assert m["mail"] == "refused" and m["refusal"] == "limit" and m["key"] == names[1], m
    # workers that do not answer: refused, too
    d.say("silent 1")
    time.sleep(2.1)
    d.say("want " + names[1])
    m = d.wait(lambda m: m["mail"] in ("refused", "gone"), 5)
    assert m["mail"] == "refused" and m["refusal"] == "limit" and m["key"] == names[1], m
    d.stop()
    c.close()


def idle_ones_leave():
    c = start()
    kit.Providers(c, IFACE).add(20881)
    kit.Providers(c, "a.Pinned").add(20882)
    d = kit.Driver("--idle", 1500, services=["a.Pinned"])
    d.wait_connected()
    d.say("want " + IFACE)
    d.wait_providers(IFACE, ["127.0.0.1:20881"])
    d.wait(lambda m: m["mail"] == "gone" and m["key"] == IFACE, 5)
    kit.wait_until(lambda: kit.consumers(c, IFACE) == [], 2, "its node is gone")
    assert [r["key"] for r in d.references()["references"]] == ["a.Pinned"]
    d.stop()
    c.close()


def saved_list_serves_a_start_without_registry():
    c = start()
    p = kit.Providers(c, IFACE)
    p.add(20881)
    p.add(20882)
    with tempfile.TemporaryDirectory() as state:
        d = kit.Driver("--state", state, services=[IFACE])
        d.wait_providers(IFACE, ["127.0.0.1:20881", "127.0.0.1:20882"])
        kit.wait_until(lambda: os.path.exists(state + "/references.json"), 1.2, "the list is saved")
        d.kill()
        zk.stop()
        d = kit.Driver("--state", state, services=[IFACE, "a.Other"])
        d.wait_providers(IFACE, ["127.0.0.1:20881", "127.0.0.1:20882"], 2, "snapshot")
        r = d.reference(IFACE)
        assert r["state"] == "snapshot" and r["source"] == "snapshot", r
        assert d.numbers()["waiting"] == 1  # a.Other
        start2 = time.monotonic()
        d.say("want b.Unknown")
        m = d.wait(lambda m: m["mail"] == "refused" and m["key"] == "b.Unknown", 5)
        assert m["refusal"] == "starting" and time.monotonic() - start2 < 3.5, m
        zk.start()
        kit.wait_until(lambda: d.reference(IFACE)["state"] == "ready", 10, "confirmed by the registry")
        d.wait_providers("a.Other", [])
        d.stop()
    c.sock.close()


def no_state_directory_is_a_warning():
    c = start()
    kit.Providers(c, IFACE).add(20881)
    d = kit.Driver("--state", "/proc/nowhere", services=[IFACE])
    d.wait_providers(IFACE, ["127.0.0.1:20881"])
    time.sleep(1.2)
    assert d.numbers()["snapshot_writable"] == 0
    assert d.log().count("cannot be saved") == 1, d.log()
    d.stop()
    c.close()


def fixed_providers_need_no_registry():
    d = kit.Driver(registry=None, services=[IFACE + "=dubbo://127.0.0.1:20881,127.0.0.1:20882"])
    d.wait_providers(IFACE, ["127.0.0.1:20881", "127.0.0.1:20882"], 2, "static")
    d.say("configure %s=127.0.0.1:20883" % IFACE)
    d.wait_providers(IFACE, ["127.0.0.1:20883"], 2, "static")
    d.say("configure")
    d.wait(lambda m: m["mail"] == "gone" and m["key"] == IFACE, 2)
    d.stop()


def storm_is_read_at_a_pace():
    c = start()
    p = kit.Providers(c, IFACE)
    p.add(20001)
    d = kit.Driver(services=[IFACE])
    d.wait_providers(IFACE, ["127.0.0.1:20001"])
    before = d.numbers()["events_total"]
    begin = time.monotonic()
    for i in range(300):
        p.add(20100 + i)
    took = time.monotonic() - begin
    d.wait(lambda m: m["mail"] == "directory" and len(m["providers"]) == 301, 5)
    events = d.numbers()["events_total"] - before
    assert events <= took * 10 + 3, (events, took)
    d.stop()
    c.close()


def ls_reads_only():
    c = start()
    p = kit.Providers(c, IFACE)
    p.add(20881, version="1.0.0")
    p.add(20882, version="1.0.0")
    p.add(20883, version="2.0.0", group="blue")
    kit.Providers(c, "a.Other").add(20884)
    for other in ("config", "mapping", "metadata"):
        c.ensure("/dubbo/%s/x" % other)
    before = zk.zxid()
    program = os.path.join(kit.TOP, "build", kit.VARIANT, "dubbogate")
    # the second address is dead: the client library must still find the first
    registry = "zookeeper://127.0.0.1:2181?backup=127.0.0.1:2199"
    out = subprocess.run([program, "ls", "-r", registry], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()[1:]]
    assert rows == [["a.Other", "-", "-", "1"], [IFACE, "1.0.0", "-", "2"], [IFACE, "2.0.0", "blue", "1"]], out
    out = subprocess.run([program, "ls", "-l", "-r", registry, "User*"], capture_output=True, text=True, check=True)
    assert zk.zxid() <= before + 4  # two sessions began and ended
    bad = subprocess.run([program, "ls", "-r", "zookeeper://127.0.0.1:2199"], capture_output=True, text=True,
                         check=False)
    assert bad.returncode != 0 and "does not answer" in bad.stderr, bad
    c.close()


if __name__ == "__main__":
    try:
        kit.run([
            configured_service_follows_the_list,
            one_consumer_node_without_time,
            empty_service_writes_nothing_and_wakes_up,
            direct_form_subscribes_once,
            unknown_names_cost_nothing,
            versions_and_groups_are_told_apart,
            eviction_removes_watch_and_node,
            idle_ones_leave,
            saved_list_serves_a_start_without_registry,
            no_state_directory_is_a_warning,
            fixed_providers_need_no_registry,
            storm_is_read_at_a_pace,
            ls_reads_only,
        ])
    finally:
        if zk is not None:
            zk.close()
