#!/usr/bin/env python3
"""Files of saved lists as a full disk or a power cut leaves them (docs/OPERATIONS.md section 7, docs/REGISTRY.md
section 9.4).  Every cut is in unit/registry_store.c; here the program itself starts on some."""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
from outage_kit import IFACE, client, config, timed  # noqa: E402  pylint: disable=wrong-import-position

SERVICES = ["demo.S%d" % i for i in range(300)]
zk = None


def path(i):
    return "/%s/whoami" % SERVICES[i]


def put(file, data):
    with open(file, "wb") as f:
        f.write(data)


def whole_list(conf, state):
    """What the gateway saved of all services; no registry is left."""
    c = client(zk)
    for s in SERVICES:
        kit.Providers(c, s).add(20880, ephemeral=False)
    g = kit.Gateway(conf)
    kit.wait_until(lambda: all(r["state"] == "ready" for r in g.admin("/references")[1]["references"]), 20, "all are known")
    g.stop()
    c.close()
    zk.stop()
    with open(state + "/references.json", "rb") as f:
        data = f.read()
    assert data.count(b"dubbo://") == len(SERVICES) and len(data) > 10 * 4096
    return data


def why(name):
    return subprocess.run([os.path.join(kit.BIN, "dubbogate"), "why", name], stdout=subprocess.PIPE, text=True, check=False).stdout


def no_list_and_no_registry():
    """Nothing is claimed of lists that are not there, and `why` knows each name that could not be looked up."""
    zk.stop()
    conf = config(services=[])
    conf["registries"][0]["connect_timeout"] = "1s"  # from then on it is said at once
    g = kit.Gateway(conf)
    for name in "demo.First", "demo.Second":
        status, text, _ = kit.Http().post("/%s/whoami" % name, "[]")
        assert (status, json.loads(text)["code"]) == (503, "STARTING"), text
        kit.wait_until(lambda: why(name).startswith(name + ": refused at "), 2, name)  # pylint: disable=cell-var-from-loop
        assert "the registry was not connected" in why(name), why(name)
    status, ready = g.admin("/ready")[:2]
    assert status == 200 and ready["degraded"] == ["1 of 1 registries not connected; no list of providers is in use"], ready
    g.stop()
    zk.start()


def cut_at_a_block():
    """A torn file is refused as a whole: the gateway starts, says why, and serves as soon as the registry is back.  A torn
    temporary file beside a whole one does not matter."""
    a = kit.Stub()
    with tempfile.TemporaryDirectory() as state:
        conf = config(process={"state_dir": state}, defaults={"timeout": "300ms"})
        conf["services"] = [{"name": s[5:].lower(), "interface": s} for s in SERVICES]
        file = state + "/references.json"
        data = whole_list(conf, state)
        for cut in len(data) // 8192 * 4096, len(data) // 4096 * 4096, len(data) - 1:
            put(file, data)
            put(file + ".tmp", data[:cut])
            g = kit.Gateway(conf)
            assert [kit.Http().post(path(i), "[]")[0] for i in range(0, 300, 50)] == [200] * 6
            refs = g.admin("/references")[1]["references"]
            assert [r["source"] for r in refs if r["providers"]["usable"] == 1] == ["snapshot"] * 300 and "ignored" not in g.log()
            g.kill()
            put(file, data[:cut])
            g = kit.Gateway(conf)
            assert "the saved lists are ignored: the saved list is damaged" in g.log(), g.log()[:500]
            # not even the first of the file, which stands whole in it
            assert {timed(kit.Http(), path(i))[:2] for i in (0, 299)} == {(503, "STARTING")}
            assert g.admin("/ready")[0] == 503
            if cut != len(data) - 1:
                g.kill()
        zk.start()
        h = kit.Http()
        for i in 0, 150, 299:
            kit.wait_until(lambda i=i: h.post(path(i), "[]")[0] == 200, 10, "it is served")
        kit.wait_until(lambda: g.admin("/ready")[0] == 200, 5, "it is ready")
        g.stop()
        with open(file, "rb") as f:
            assert f.read().count(b"dubbo://") == len(SERVICES), "it is whole again"
        assert os.listdir(state) == ["references.json"], os.listdir(state)
    a.kill()


def a_service_without_providers():
    """That nobody offers a service is known from the last run: it does not keep a start with the registry down from being
    ready.  The times of lists are those of the file."""
    a = kit.Stub()
    nobody = "demo.NotDeployedYet"
    with tempfile.TemporaryDirectory() as state:
        conf = config(process={"state_dir": state})
        conf["services"].append({"name": "later", "interface": nobody})
        c = client(zk)
        kit.Providers(c, IFACE).add(20880, ephemeral=False)
        g = kit.Gateway(conf)
        kit.wait_until(lambda: g.admin("/ready")[0] == 200, 10, "ready")
        g.stop()
        with open(state + "/references.json", encoding="utf-8") as f:
            saved = next(r["saved_ms"] for r in json.load(f)["references"] if r["reference"].startswith(IFACE))
        c.close()
        zk.stop()
        time.sleep(1.1)
        g = kit.Gateway(conf)
        kit.wait_until(lambda: g.admin("/ready")[0] == 200, 5, "ready without the registry")
        assert timed(kit.Http())[0] == 200
        status, text = kit.Http().post("/%s/whoami" % nobody, "[]")[:2]
        assert status == 503, text
        at = g.reference(IFACE)["last_change"]
        # the file's own words: its mtime is the kernel's coarse clock, which is up to 4 ms behind the one in it
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(saved // 1000)) + ".%03dZ" % (saved % 1000)
        assert at == when, (at, saved)
        zk.start()
        c = client(zk)
        kit.Providers(c, nobody).add(20880)
        kit.wait_until(lambda: kit.Http().post("/%s/whoami" % nobody, "[]")[0] == 200, 15, "it is offered now")
        g.stop()
        c.close()
    a.kill()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([no_list_and_no_registry, cut_at_a_block, a_service_without_providers])
    finally:
        if zk is not None:
            zk.close()
