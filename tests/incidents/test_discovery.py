#!/usr/bin/env python3
"""Providers that are instances of an application only (docs/REGISTRY.md section 6): what their registry and they themselves
may do.  Instances are written here, with the C provider behind them; real ones are in interop/test_discovery.py."""
import json
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
APP = "user-app"
zk = None


def start(**more):
    if zk.proc is None:
        zk.start()
    c = kit.Client(timeout_ms=60000)
    for path in "/dubbo", "/services":
        if c.exists(path):
            c.delete_tree(path)
    conf = {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "session_timeout": "4s",
                            "discovery": "auto"}],
            "services": [{"name": "user", "interface": IFACE}], "defaults": {"timeout": "3s"},
            "direct": {"enabled": True, "allow": ["*"]}, **more}
    return c, conf


def service(iface=IFACE, group=None, version=None, **params):
    s = {"name": iface, "path": iface, "protocol": "dubbo",
         "params": {"interface": iface, "side": "provider", "release": "3.2.15", **params}}
    for k, v in (("group", group), ("version", version)):
        if v:
            s[k] = s["params"][k] = v
    return s


def exports(*services):
    """MetadataInfo, as in the registry and as an instance says it."""
    name = lambda s: (s["group"] + "/" if "group" in s else "") + s["name"] + (
        ":" + s["version"] if "version" in s else "") + ":dubbo"
    return {"app": APP, "revision": "", "services": {name(s): s for s in services}}


def publish(c, revision, metadata, app=APP):
    path = "/dubbo/metadata/%s/%s" % (app, revision)
    c.ensure(path)
    c.set(path, json.dumps(metadata))


def set_mapping(c, *apps, iface=IFACE):
    c.ensure("/dubbo/mapping/" + iface)
    c.set("/dubbo/mapping/" + iface, ",".join(apps))


def instance_text(port, revision, remote, app):
    name = "127.0.0.1:%d" % port
    metadata = {"dubbo.endpoints": json.dumps([{"port": port, "protocol": "dubbo"}]),
                "dubbo.metadata.revision": revision, "timestamp": "1796103099337",
                "dubbo.metadata.storage-type": "remote" if remote else "local"}
    if not remote:
        metadata["dubbo.metadata-service.url-params"] = json.dumps({"protocol": "dubbo", "port": str(port)})
    return json.dumps({"name": app, "id": name, "address": "127.0.0.1", "port": port,
                       "payload": {"id": name, "name": app, "metadata": metadata}})


def path_of(port, app=APP):
    return "/services/%s/127.0.0.1:%d" % (app, port)


def add_instance(c, port, revision, remote=True, app=APP):
    c.ensure("/services/" + app)
    c.create(path_of(port, app), instance_text(port, revision, remote, app), ephemeral=True)


def said_by(metadata):
    """A script for the C provider: what it says it exports."""
    return json.dumps({"getMetadataInfo": [[{"value": metadata}]]})


def listed(g, key=IFACE):
    r = g.reference(key)
    return sorted((int(p["address"].rsplit(":", 1)[1]), p["state"]) for p in r["providers"]["list"]) if r else []


def are_listed(g, *ports, seconds=5, key=IFACE):
    kit.wait_until(lambda: listed(g, key) == [(p, "listed") for p in ports], seconds, "listed: %s" % (ports,))


def who(n=40, iface=IFACE):
    h = kit.Http()
    return {h.post("/%s/whoami" % iface, "[]")[:2] for _ in range(n)}


def stubs(*names):
    return [kit.Stub(20880 + 2 * i, 20881 + 2 * i, "-n", name) for i, name in enumerate(names)]


def saved_in(state, what):
    file = os.path.join(state, "references.json")
    if not os.path.exists(file):
        return False
    with open(file, encoding="utf-8") as f:
        return what in f.read()


def state_dir():
    return tempfile.mkdtemp(prefix="state-")


def saved_list_serves_while_the_registry_is_down():
    """Who is an instance only is in the saved list like everybody: used within 1 s of the start."""
    state = state_dir()
    c, conf = start(process={"state_dir": state})
    a, b = stubs("a", "b")
    publish(c, "r1", exports(service()))
    set_mapping(c, APP)
    add_instance(c, 20880, "r1")
    add_instance(c, 20882, "r2", remote=False)
    b.script(said_by(exports(service())))
    g = kit.Gateway(conf)
    are_listed(g, 20880, 20882)
    g.stop()
    zk.stop()
    g = kit.Gateway(conf)
    begin = time.monotonic()
    kit.wait_until(lambda: who(1) <= {(200, '"a"'), (200, '"b"')}, 3, "it serves")
    assert time.monotonic() - begin < 1
    assert who() == {(200, '"a"'), (200, '"b"')}
    assert g.reference(IFACE)["state"] == "snapshot", g.reference(IFACE)
    zk.start()
    kit.wait_until(lambda: g.reference(IFACE)["state"] == "ready", 15, "the registry is heard")
    g.stop()
    a.kill()
    b.kill()


def lost_mapping_and_metadata_at_a_restart():
    """Both are written by a provider at its start only; without them in the registry what was saved counts, and an instance
    that comes later is found by it."""
    state = state_dir()
    c, conf = start(process={"state_dir": state})
    a, b = stubs("a", "b")
    publish(c, "r1", exports(service(weight="30")))
    set_mapping(c, APP)
    add_instance(c, 20880, "r1")
    g = kit.Gateway(conf)
    are_listed(g, 20880)
    kit.wait_until(lambda: saved_in(state, '"revision":"r1"') and saved_in(state, '"applications":"%s"' % APP), 5,
                   "it is saved")
    g.stop()
    c.delete_tree("/dubbo")
    g = kit.Gateway(conf)
    are_listed(g, 20880)
    add_instance(c, 20882, "r1")
    are_listed(g, 20880, 20882)
    assert [p["weight"] for p in g.reference(IFACE)["providers"]["list"]] == [30, 30]
    assert who() == {(200, '"a"'), (200, '"b"')}
    g.stop()
    g = kit.Gateway(conf)
    are_listed(g, 20880, 20882)
    g.stop()
    a.kill()
    b.kill()
    c.close()


def wiped_registry():
    """Everything is lost while the gateway runs; the instances come back, mapping and metadata do not.  No call fails."""
    c, conf = start()
    a, b = stubs("a", "b")
    publish(c, "r1", exports(service()))
    set_mapping(c, APP)
    add_instance(c, 20880, "r1")
    add_instance(c, 20882, "r1")
    g = kit.Gateway(conf)
    are_listed(g, 20880, 20882)
    assert who() == {(200, '"a"'), (200, '"b"')}
    load = kit.Load("/%s/whoami" % IFACE, "[]", 2)
    for i in range(20):
        c.create("/x%d" % i)  # the new server's zxid must be behind ours
    zk.stop()
    zk.wipe()
    zk.start()
    kit.wait_until(lambda: listed(g) == [(20880, "unlisted"), (20882, "unlisted")], 20, "the new tree is seen")
    c = kit.Client(timeout_ms=60000)
    add_instance(c, 20880, "r1")
    add_instance(c, 20882, "r1")
    are_listed(g, 20880, 20882)
    assert not c.exists("/dubbo/mapping/" + IFACE)
    seen = load.stop()
    assert set(seen) == {"200"}, seen
    g.stop()
    a.kill()
    b.kill()
    c.close()


def service_of_its_own():
    """A service looks elsewhere than its registry says, and names applications that no mapping has; both at a reload too."""
    c, conf = start()
    a, b = stubs("a", "b")
    kit.Providers(c, IFACE).add(20880)
    publish(c, "r1", exports(service()))
    add_instance(c, 20882, "r1")
    conf["registries"][0]["discovery"] = "interface"

    def change(**more):
        conf["services"][0] = {"name": "user", "interface": IFACE, **more}
        g.write(conf)
        g.proc.send_signal(signal.SIGHUP)
    g = kit.Gateway(conf)
    are_listed(g, 20880)
    change(provided_by=[APP])
    are_listed(g, 20880, 20882)
    assert who() == {(200, '"a"'), (200, '"b"')}
    change(provided_by=[APP], discovery="application")
    kit.wait_until(lambda: (20882, "listed") in listed(g) and (20880, "listed") not in listed(g), 5, "the instance only")
    change(provided_by=[APP], discovery="interface")
    kit.wait_until(lambda: (20880, "listed") in listed(g) and (20882, "listed") not in listed(g), 5, "the node only")
    set_mapping(c, APP)
    change(discovery="auto")
    are_listed(g, 20880, 20882)
    g.stop()
    a.kill()
    b.kill()
    c.close()


def groups_and_versions():
    """An application exports one interface several times: each reference gets its own, `group: *` all."""
    c, conf = start(services=[{"name": "one", "interface": IFACE, "version": "1.0", "group": "g"},
                              {"name": "two", "interface": IFACE, "version": "2.0"},
                              {"name": "three", "interface": IFACE, "version": "3.0", "group": "g"}])
    a, b = stubs("a", "b")
    publish(c, "r1", exports(service(version="1.0", group="g"), service(version="2.0")))
    publish(c, "r2", exports(service(version="1.0", group="h"), service(version="2.0", weight="60")))
    set_mapping(c, APP)
    add_instance(c, 20880, "r1")
    add_instance(c, 20882, "r2")
    g = kit.Gateway(conf)
    are_listed(g, 20880, key=IFACE + ":1.0@g")
    are_listed(g, 20880, 20882, key=IFACE + ":2.0")
    assert [p["weight"] for p in g.reference(IFACE + ":2.0")["providers"]["list"]] == [100, 60], g.reference(IFACE + ":2.0")
    h = kit.Http()
    ask = lambda query: h.post("/%s/whoami?%s" % (IFACE, query), "[]")[:2]
    assert {ask("version=1.0&group=g") for _ in range(20)} == {(200, '"a"')}
    assert {ask("version=1.0&group=h") for _ in range(20)} == {(200, '"b"')}
    assert {ask("version=2.0") for _ in range(60)} == {(200, '"a"'), (200, '"b"')}
    ls = kit.program("ls", "-r", "zookeeper://127.0.0.1:2181", IFACE + ":1.0@g")
    assert ls.endswith("%-50s user-app (2)\n" % IFACE), ls
    status, text = ask("version=3.0&group=g")
    assert (status, json.loads(text)["code"]) == (503, "NO_PROVIDER"), text
    g.stop()
    a.kill()
    b.kill()
    c.close()


def revision_changed_in_place():
    """A provider exports one service more and writes its new revision into its node: the node stays, what it exports is new."""
    other = "demo.OtherService"
    c, conf = start(services=[{"name": "user", "interface": IFACE}, {"name": "other", "interface": other}])
    a, b = stubs("a", "b")
    publish(c, "r1", exports(service()))
    publish(c, "r2", exports(service(), service(other)))
    publish(c, "r3", exports(service(other)))
    set_mapping(c, APP)
    set_mapping(c, APP, iface=other)
    add_instance(c, 20880, "r1")
    add_instance(c, 20882, "r1")
    g = kit.Gateway(conf)
    are_listed(g, 20880, 20882)
    assert who(5, other) and listed(g, other) == [], listed(g, other)
    load = kit.Load("/%s/whoami" % IFACE, "[]", 2)
    c.set(path_of(20882), instance_text(20882, "r2", True, APP))
    are_listed(g, 20882, key=other)
    assert who(5, other) == {(200, '"b"')}
    assert listed(g) == [(20880, "listed"), (20882, "listed")]
    c.set(path_of(20882), instance_text(20882, "r3", True, APP))
    are_listed(g, 20880)
    assert load.stop().keys() == {"200"}
    g.stop()
    a.kill()
    b.kill()
    c.close()


def metadata_that_cannot_be_read():
    """A revision without its node: its instances are left out, `why` says so, the others serve; it is read again."""
    c, conf = start()
    a, b = stubs("a", "b")
    publish(c, "r1", exports(service()))
    set_mapping(c, APP)
    add_instance(c, 20880, "r1")
    add_instance(c, 20882, "r2")
    g = kit.Gateway(conf)
    are_listed(g, 20880)
    assert who() == {(200, '"a"')}
    c.ensure("/dubbo/metadata/%s/r2" % APP)
    c.set("/dubbo/metadata/%s/r2" % APP, "{not json")
    time.sleep(1)
    assert listed(g) == [(20880, "listed")] and who() == {(200, '"a"')}
    assert "what user-app exports, revision r2, cannot be read: " in kit.program("why", IFACE), kit.program("why", IFACE)
    publish(c, "r2", exports(service()))
    are_listed(g, 20880, 20882, seconds=25)
    assert "what user-app exports, revision r2, is known now" in kit.program("why", IFACE), kit.program("why", IFACE)
    assert who() == {(200, '"a"'), (200, '"b"')}
    g.stop()
    a.kill()
    b.kill()
    c.close()


def how_providers_were_found():
    """Told by `why`, `providers` and /references; what changes in it alone is told too."""
    state = state_dir()
    c, conf = start(process={"state_dir": state})
    abc = stubs("a", "b", "c")
    p = registry_kit.Providers(c, IFACE)
    p.add(20880, ephemeral=False, application="old-app")
    p.add(20882, ephemeral=False, application=APP)
    publish(c, "r1", exports(service()))
    set_mapping(c, APP)
    add_instance(c, 20882, "r1")
    add_instance(c, 20884, "r1")
    conf["services"].append({"name": "fixed", "interface": "demo.Fixed", "providers": ["dubbo://127.0.0.1:20880"]})
    g = kit.Gateway(conf)
    are_listed(g, 20880, 20882, 20884)
    found = lambda key=IFACE: [(x["application"], x["found"]) for x in g.reference(key)["providers"]["list"]]
    three = [("old-app", "interface"), (APP, "both"), (APP, "instance")]
    assert found() == three and found("demo.Fixed") == [("", "configuration")], (found(), found("demo.Fixed"))
    for lines in kit.program("why", IFACE), kit.program("providers"):
        words = [x.split() for x in lines.splitlines() if x.startswith("127.0.0.1:")]
        assert [(w[7], w[6]) for w in words if w[6] != "configuration"] == three, lines
    c.delete(path_of(20882))
    kit.wait_until(lambda: found()[1] == (APP, "interface"), 5, "the instance is gone, its node is not")
    kit.wait_until(lambda: (APP, "interface") in [(x["application"], x["found"]) for x in g.admin("/references/" + IFACE)[1]["endpoints"]],
                   5, "the workers know it")
    g.stop()
    c.close()
    zk.stop()
    g = kit.Gateway(conf)
    kit.wait_until(lambda: len(found()) == 3, 5, "a list")
    assert {x[1] for x in found()} == {"saved"}, found()
    g.stop()
    for x in abc:
        x.kill()


def main():
    global zk
    zk = kit.ZooKeeper().start() if os.environ.get("REGISTRY_KIT_INSIDE") == "1" else None
    try:
        kit.run([saved_list_serves_while_the_registry_is_down, lost_mapping_and_metadata_at_a_restart, wiped_registry,
                 service_of_its_own, groups_and_versions, revision_changed_in_place, metadata_that_cannot_be_read,
                 how_providers_were_found])
    finally:
        if zk:
            zk.close()


if __name__ == "__main__":
    main()
