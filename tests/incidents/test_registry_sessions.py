#!/usr/bin/env python3
"""The registry thread when ZooKeeper fails: outages, expired sessions, lost data, our own restart."""
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import registry_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "com.example.UserService"
ONE = ["127.0.0.1:20881"]
TWO = ["127.0.0.1:20881", "127.0.0.1:20882"]
WRITES = 3  # the node, refused because there is no `consumers`; that; the node
zk = None


def start():
    global zk
    if zk is None:
        zk = kit.ZooKeeper()
    if zk.proc is None:
        zk.start()
    zk.go_on()
    c = kit.Client()
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    return c


def node_of(c, iface=IFACE):
    """The one consumer node: (name, stat)."""
    nodes = kit.wait_until(lambda: kit.consumers(c, iface), 5, "a consumer node of " + iface)
    assert len(nodes) == 1, nodes
    return nodes[0], c.exists("/dubbo/%s/consumers/%s" % (iface, nodes[0]))


def no_list_ever_shrank(d, key=IFACE, to=1):
    for m in d.seen:
        if m["mail"] == "directory" and m["key"] == key:
            assert len(m["providers"]) >= to, m


def one_of_two_addresses_is_dead():
    c = start()
    kit.Providers(c, IFACE).add(20881, ephemeral=False)
    d = kit.Driver("--session", 2000, registry="zookeeper://127.0.0.1:2181?backup=127.0.0.1:2199",
                   services=[IFACE])
    d.wait_providers(IFACE, ONE)
    for _ in range(3):
        zk.stop()
        kit.wait_until(lambda: d.numbers()["connected"] == 0, 5, "the loss is seen")
        zk.start()
        d.wait_connected(4)
    c = kit.Client()
    kit.Providers(c, IFACE).add(20882)
    d.wait_providers(IFACE, TWO, 3)
    d.stop()
    c.close()


def all_addresses_dead_cost_nothing():
    d = kit.Driver("--session", 10000, registry="zookeeper://127.0.0.1:2198,127.0.0.1:2199", services=[IFACE])
    d.numbers()
    before = d.numbers()["cpu_ms"]
    time.sleep(3)
    assert d.numbers()["cpu_ms"] - before < 150
    assert len(d.log().splitlines()) < 150, d.log()
    d.stop()


def no_name_resolves():
    d = kit.Driver(registry="zookeeper://no-such-host.invalid:2181", services=[IFACE])
    d.say("want " + IFACE)
    m = d.wait(lambda m: m["mail"] == "refused", 6)
    assert m["refusal"] == "starting", m
    d.stop()


def outage_keeps_the_session():
    c = start()
    kit.Providers(c, IFACE).add(20881, ephemeral=False)
    relay = kit.Relay(2182, 2181)
    d = kit.Driver("--session", 10000, registry="zookeeper://127.0.0.1:2182", services=[IFACE])
    d.wait_providers(IFACE, ONE)
    name, stat = node_of(c)
    for _ in range(5):
        relay.close()
        kit.wait_until(lambda: d.numbers()["connected"] == 0, 5, "the loss is seen")
        relay.listen()
        d.wait_connected(5)
    kit.Providers(c, IFACE).add(20882)
    d.wait_providers(IFACE, TWO, 3)  # the watch is still set
    again, stat2 = node_of(c)
    assert again == name and stat2["czxid"] == stat["czxid"] and stat2["owner"] == stat["owner"], (stat, stat2)
    n = d.numbers()
    assert n["writes_create_total"] == WRITES and n["sessions_expired_total"] == 0, n
    no_list_ever_shrank(d)
    d.stop()
    relay.close()
    c.close()


def session_expired_twenty_times():
    c = start()
    ifaces = ["a.S%d" % i for i in range(3)]
    for i in ifaces:
        kit.Providers(c, i).add(20881)
    relay = kit.Relay(2182, 2181)
    d = kit.Driver(registry="zookeeper://127.0.0.1:2182", services=ifaces)
    for i in ifaces:
        d.wait_providers(i, ONE)
    before = {i: node_of(c, i) for i in ifaces}
    for round_ in range(20):
        kit.wait_until(lambda: d.numbers()["consumer_nodes"] == 3, 5, "three nodes stand")
        relay.expire()
        kit.wait_until(lambda: d.numbers()["sessions_expired_total"] == round_ + 1, 10, "expiry is seen")
        kit.wait_until(lambda: d.numbers()["consumer_nodes"] == 3, 5, "three nodes stand again")
        for i in ifaces:
            name, stat = node_of(c, i)
            assert name == before[i][0] and stat["owner"] != before[i][1]["owner"]
    n = d.numbers()
    assert n["subscriptions_total"] == 3, n
    assert n["writes_create_total"] == 3 * WRITES + 3 * 20, n
    for i in ifaces:
        no_list_ever_shrank(d, i)
        assert sum(1 for m in d.seen if m["mail"] == "directory" and m["key"] == i) == 1
        assert d.reference(i)["subscribes"] == 1
    # two of them our own, and the watches of old sessions are gone
    kit.wait_until(lambda: d.numbers()["watches"] == zk.watches() == 7, 2, "interface and providers of three, and the configuration nodes")
    d.stop()
    relay.close()
    c.close()


def silent_server():
    """SIGSTOP: no connection is closed, nothing is answered."""
    c = start()
    kit.Providers(c, IFACE).add(20881, ephemeral=False)
    d = kit.Driver("--session", 2000, services=[IFACE])
    d.wait_providers(IFACE, ONE)
    zk.pause()
    kit.wait_until(lambda: d.numbers()["connected"] == 0, 5, "the loss is seen")
    d.say("want " + IFACE)
    d.wait(lambda m: m["mail"] == "directory" and m["providers"] == ONE, 1)
    time.sleep(3)
    zk.go_on()
    d.wait_connected(10)
    c = kit.Client()
    kit.Providers(c, IFACE).add(20882)
    d.wait_providers(IFACE, TWO, 3)
    kit.wait_until(lambda: d.numbers()["consumer_nodes"] == 1, 5, "the node stands again")
    d.stop()
    c.close()


def wiped_registry():
    c = start()
    kit.Providers(c, IFACE).add(20881)
    kit.Providers(c, IFACE).add(20882)
    d = kit.Driver("--session", 2000, services=[IFACE])
    d.wait_providers(IFACE, TWO)
    for i in range(20):
        c.create("/x%d" % i)  # the new server's zxid must be behind ours
    zk.stop()
    zk.wipe()
    zk.start()
    d.wait_providers(IFACE, [t + " unlisted" for t in TWO], 12)
    c = kit.Client()
    p = kit.Providers(c, IFACE)
    p.add(20883)
    d.wait_providers(IFACE, [t + " unlisted" for t in TWO] + ["127.0.0.1:20883"], 2)
    kit.wait_until(lambda: d.numbers()["consumer_nodes"] == 1, 5, "the node stands again")
    p.add(20881)
    d.wait_providers(IFACE, ["127.0.0.1:20881", "127.0.0.1:20882 unlisted", "127.0.0.1:20883"], 2)
    p.remove(20881)
    d.wait_providers(IFACE, ["127.0.0.1:20882 unlisted", "127.0.0.1:20883"], 2)
    no_list_ever_shrank(d, to=2)
    assert d.registries()[0]["new_tree"]
    d.stop()
    c.close()


def rolled_back_registry():
    c = start()
    p = kit.Providers(c, IFACE)
    p.add(20881, ephemeral=False)
    zk.stop()
    old = tempfile.mkdtemp(prefix="zk-old-")
    shutil.copytree(zk.dir + "/data", old + "/data")
    zk.start()
    c = kit.Client()
    kit.Providers(c, IFACE).add(20882, ephemeral=False)
    kit.Providers(c, IFACE).add(20883, ephemeral=False)
    d = kit.Driver("--session", 2000, services=[IFACE])
    d.wait_providers(IFACE, TWO + ["127.0.0.1:20883"])
    for i in range(20):
        c.create("/x%d" % i)
    zk.stop()
    zk.wipe()
    shutil.move(old + "/data", zk.dir + "/data")
    zk.start()
    after = ["127.0.0.1:20881", "127.0.0.1:20882 unlisted", "127.0.0.1:20883 unlisted"]
    d.wait_providers(IFACE, after, 12)
    time.sleep(1.5)
    d.sync()
    assert d.directories[IFACE]["providers"] == after
    d.stop()
    os.rmdir(old)
    zk.stop()
    zk.wipe()


def mass_vanish_keeps_them():
    c = start()
    providers = kit.Client()
    p = kit.Providers(providers, IFACE)
    p.add(20881)
    p.add(20882)
    d = kit.Driver(services=[IFACE])
    d.wait_providers(IFACE, TWO)
    providers.close()  # both at once: their session
    d.wait_providers(IFACE, [t + " unlisted" for t in TWO], 2)
    kit.Providers(c, IFACE).add(20881)
    d.wait_providers(IFACE, ["127.0.0.1:20881", "127.0.0.1:20882 unlisted"], 2)
    d.stop()
    c.close()


def watches_beyond_the_budget():
    c = start()
    ifaces = ["com.example.Service%02d" % i for i in range(20)]
    for i in ifaces:
        kit.Providers(c, i).add(20881, ephemeral=False)
    d = kit.Driver("--watch-bytes", 1280, "--session", 10000, services=ifaces)
    for i in ifaces:
        d.wait_providers(i, ONE)
    sessions = d.registries()[0]["sessions"]
    assert len(sessions) == 3 and all(s["watch_bytes"] <= 1280 for s in sessions), sessions
    assert len({s["session"] for s in sessions}) == len(sessions)
    kit.wait_until(lambda: d.numbers()["consumer_nodes"] == 20, 5, "twenty nodes")
    zk.stop()
    zk.start()
    d.wait_connected(10)
    c = kit.Client()
    for i in ifaces:
        kit.Providers(c, i).add(20882)
        d.wait_providers(i, TWO, 3)
    kit.wait_until(lambda: d.numbers()["watches"] == 41, 2, "two of each interface, one of the configuration nodes")
    d.stop()
    c.close()


def stop_with_calls_in_flight():
    c = start()
    c.ensure("/dubbo")
    d = kit.Driver("--session", 10000, services=["a.S%d" % i for i in range(500)])
    d.wait_providers("a.S499", [])
    zk.pause()
    for i in range(500):
        d.say("refresh a.S%d" % i)
    d.say("wants 60 x.N")
    d.numbers()
    begin = time.monotonic()
    d.say("stop")
    d.proc.wait(15)
    took = time.monotonic() - begin
    zk.go_on()
    assert took < 8, took
    d.stop()
    c.close()


def stop_while_not_connected():
    d = kit.Driver(registry="zookeeper://127.0.0.1:2199", services=[IFACE])
    d.numbers()
    begin = time.monotonic()
    d.stop()
    assert time.monotonic() - begin < 3


def restart_takes_its_node_over():
    c = start()
    kit.Providers(c, IFACE).add(20881)
    d = kit.Driver("--session", 3000, services=[IFACE])
    d.wait_providers(IFACE, ONE)
    name, stat = node_of(c)
    d.kill()
    d = kit.Driver("--session", 3000, services=[IFACE])
    d.wait_providers(IFACE, ONE)
    kit.wait_until(lambda: node_of(c)[1]["owner"] != stat["owner"], 2, "the node is the new process's")
    again, stat2 = node_of(c)
    assert again == name
    other = kit.Driver("--session", 3000, "--instance", 8081, services=[IFACE])
    kit.wait_until(lambda: len(kit.consumers(c, IFACE)) == 2, 5, "two gateways, two nodes")
    time.sleep(4.5)  # the old session has ended
    assert c.exists("/dubbo/%s/consumers/%s" % (IFACE, name))["owner"] == stat2["owner"], (stat, stat2, d.log())
    assert len(kit.consumers(c, IFACE)) == 2
    d.stop()
    other.stop()
    c.close()


def deleted_interface_is_not_made_again():
    c = start()
    kit.Providers(c, IFACE).add(20881, ephemeral=False)
    relay = kit.Relay(2182, 2181)
    d = kit.Driver(registry="zookeeper://127.0.0.1:2182", services=[IFACE])
    d.wait_providers(IFACE, ONE)
    node_of(c)
    c.delete_tree("/dubbo/" + IFACE)
    relay.expire()
    kit.wait_until(lambda: d.numbers()["sessions_expired_total"] == 1, 10, "expiry is seen")
    d.wait_connected()
    d.sync()
    time.sleep(0.5)
    assert c.children("/dubbo") == []
    kit.Providers(c, IFACE).add(20881)
    node_of(c)
    d.stop()
    relay.close()
    c.close()


def no_permission_to_write():
    c = start()
    kit.Providers(c, IFACE).add(20881)
    c.create("/dubbo/%s/consumers" % IFACE, acl=kit.READ_ONLY_ACL)
    d = kit.Driver(services=[IFACE])
    d.wait_providers(IFACE, ONE)
    time.sleep(1)
    assert d.log().count("consumer node cannot be written") == 1, d.log()
    assert d.numbers()["writes_create_total"] == 1
    assert d.reference(IFACE)["consumer_node"] is None
    kit.Providers(c, IFACE).add(20882)
    d.wait_providers(IFACE, TWO, 2)
    assert d.numbers()["writes_create_total"] == 1
    d.stop()
    c.close()


def nodes_come_back_at_a_pace():
    n = 700
    c = start()
    ifaces = ["a.S%d" % i for i in range(n)]
    for i in ifaces:
        kit.Providers(c, i).add(20881, ephemeral=False)
    relay = kit.Relay(2182, 2181)
    d = kit.Driver("--session", 10000, "--limit", 2000, registry="zookeeper://127.0.0.1:2182")
    d.wait_connected()
    d.say("configure " + " ".join(ifaces))
    kit.wait_until(lambda: d.numbers()["consumer_nodes"] == n, 15, "all nodes stand")
    relay.expire()
    kit.wait_until(lambda: d.numbers()["sessions_expired_total"] == 1, 15, "expiry is seen")
    begin = time.monotonic()
    kit.wait_until(lambda: d.numbers()["consumer_nodes"] == n, 15, "all nodes stand again")
    took = time.monotonic() - begin
    assert took > n / 1000 - 0.3, took
    n2 = d.numbers()
    assert n2["writes_create_total"] == n * WRITES + n and n2["subscriptions_total"] == n, n2
    d.stop()
    relay.close()
    c.close()


def garbage_nodes_are_skipped():
    c = start()
    p = kit.Providers(c, IFACE)
    p.add(20881)
    for junk in ["no-url", "%zz", "dubbo%3A%2F%2F", "consumer%3A%2F%2F127.0.0.1%2Fx", "x" * 30000,
                 "tri%3A%2F%2F127.0.0.1%3A50051%2F" + IFACE, "dubbo%3A%2F%2F169.254.169.254%3A80%2F" + IFACE]:
        c.create("/dubbo/%s/providers/%s" % (IFACE, junk))
    d = kit.Driver(services=[IFACE])
    m = d.wait(lambda m: m["mail"] == "directory" and m["usable"] == 1)
    assert ONE[0] in m["providers"], m
    r = d.reference(IFACE)
    assert r["providers"]["usable"] == 1 and sum(r["providers"]["ignored"].values()) == 2, r["providers"]
    d.stop()
    c.close()


def ensemble_loses_a_server():
    global zk
    if zk is not None:
        zk.stop()
    ports = {1: 2281, 2: 2282, 3: 2283}
    servers = {p: kit.ZooKeeper(port=p, ensemble=(ports, n)) for n, p in ports.items()}
    try:
        for s in servers.values():
            s.start(wait=False)
        for s in servers.values():
            s.wait_ready()
        c = kit.Client(2281)
        kit.Providers(c, IFACE).add(20881, ephemeral=False)
        d = kit.Driver("--session", 6000, services=[IFACE],
                       registry="zookeeper://127.0.0.1:2281?backup=127.0.0.1:2282,127.0.0.1:2283")
        d.wait_providers(IFACE, ONE)
        name, stat = node_of(c)
        at = int(d.registries()[0]["server"].rsplit(":", 1)[1])
        servers[at].stop()
        kit.wait_until(lambda: d.registries()[0]["server"] != "127.0.0.1:%d" % at, 8, "another server")
        d.wait_connected(5)
        alive = next(p for p in ports.values() if p != at)
        c = kit.wait_until(lambda: try_client(alive), 10, "the ensemble has a quorum")
        again, stat2 = node_of(c)
        assert again == name and stat2["czxid"] == stat["czxid"] and stat2["owner"] == stat["owner"], (stat, stat2)
        kit.Providers(c, IFACE).add(20882)
        d.wait_providers(IFACE, TWO, 3)
        n = d.numbers()
        assert n["sessions_expired_total"] == 0 and n["writes_create_total"] == WRITES, n
        no_list_ever_shrank(d)
        d.stop()
        c.close()
    finally:
        for s in servers.values():
            s.close()


def try_client(port):
    try:
        return kit.Client(port)
    except (OSError, kit.ZkError):
        return None


if __name__ == "__main__":
    try:
        kit.run([
            one_of_two_addresses_is_dead,
            all_addresses_dead_cost_nothing,
            no_name_resolves,
            outage_keeps_the_session,
            session_expired_twenty_times,
            silent_server,
            wiped_registry,
            rolled_back_registry,
            mass_vanish_keeps_them,
            watches_beyond_the_budget,
            stop_with_calls_in_flight,
            stop_while_not_connected,
            restart_takes_its_node_over,
            deleted_interface_is_not_made_again,
            no_permission_to_write,
            nodes_come_back_at_a_pace,
            garbage_nodes_are_skipped,
            ensemble_loses_a_server,
        ])
    finally:
        if zk is not None:
            zk.close()
