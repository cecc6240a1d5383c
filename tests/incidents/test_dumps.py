#!/usr/bin/env python3
"""Trees as real providers of 2.6.6, 2.7.23, 3.2.15 and 3.3.2 left them (tests/data/dumps), in a real ZooKeeper: who is
found.  tests/data/dump-providers.json was written from the trees by hand and by docs/REGISTRY.md: for each reference its
providers, the places where a consumer finds them (2.6 and 2.7 look at `interface`, 3.x at `application` first, the gateway
at both) and what their URLs say, configurators applied.  Conditions and tags choose per call and are not its matter."""
import json
import os
import shutil
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import registry_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

DATA = os.path.join(kit.TOP, "tests", "data")
with open(os.path.join(DATA, "dump-providers.json"), encoding="utf-8") as f:
    EXPECTED = json.load(f)
# instances that were to be asked; what they said is not in the tree, but beside them ran one that differs in this alone
TWINS = {"inst-32-local": "inst-32-remote", "inst-33-local": "inst-33-remote"}


def load(c, tree):
    for name in c.children("/"):
        if name != "zookeeper":
            c.delete_tree("/" + name)
    for path in sorted(tree, key=lambda p: p.count("/")):
        c.ensure(path)
        c.set(path, (tree[path]["data"] or "").encode())


def of_twin(tree, app, port):
    path = [p for p in tree if p.startswith("/dubbo/metadata/%s/" % TWINS[app])][0]
    services = json.loads(tree[path]["data"])["services"]
    for s in services.values():
        s["port"] = port
        s["params"]["application"] = app
    return services


def of_nodes(tree, root, address):
    """An instance that is in both places exports the same there."""
    services = {}
    for path in tree:
        url = urllib.parse.unquote_plus(path.rsplit("/", 1)[1])
        if not path.startswith(root + "/") or "/providers/" not in path or not url.startswith("dubbo://%s/" % address):
            continue
        params = dict(p.split("=", 1) for p in url.partition("?")[2].split("&"))
        params.pop("timestamp", None)
        services[str(len(services))] = {
            "name": path.split("/")[2], "path": url.partition("?")[0].split("/", 3)[3], "protocol": "dubbo",
            "port": int(address.rsplit(":", 1)[1]), "group": params.get("group"), "version": params.get("version"),
            "params": params}
    return services


def write_answers(tree, root, into):
    """What the instances of the tree say when they are asked over dubbo."""
    for path, node in tree.items():
        if '"dubbo.metadata.storage-type":"local"' not in (node["data"] or ""):
            continue
        i = json.loads(node["data"])
        metadata = i["payload"]["metadata"]
        if json.loads(metadata["dubbo.metadata-service.url-params"])["protocol"] != "dubbo":
            continue
        services = (of_twin(tree, i["name"], i["port"]) if i["name"] in TWINS
                    else of_nodes(tree, root, path.rsplit("/", 1)[1]))
        os.makedirs(os.path.join(into, i["name"]), exist_ok=True)
        with open(os.path.join(into, i["name"], metadata["dubbo.metadata.revision"]), "w", encoding="utf-8") as out:
            json.dump({"app": i["name"], "services": services}, out)


def expected(reference, discovery):
    found = {}
    for p in reference["providers"]:
        if discovery == "auto" or discovery in p["places"]:
            what = {k: v for k, v in p.items() if k not in ("address", "places")}
            found[p["address"] + (" " + what.pop("unusable") if "unusable" in what else "")] = what
    return found


def difference(d, want):
    """Of the directory, in words; what the URLs do not say is not compared."""
    if d is None:
        return "no list"
    got = dict(zip(d["providers"], d["details"]))
    if sorted(got) != sorted(want):
        return "providers %s instead of %s" % (sorted(got), sorted(want))
    if len(got) != len(d["providers"]):
        return "a provider more than once: %s" % d["providers"]
    for address, what in want.items():
        for k, v in what.items():
            if got[address].get(k) != v:
                return "%s: %s is %r instead of %r" % (address, k, got[address].get(k), v)
    return None


def look(references, root, discovery, answers):
    """References that differ; all are given the same time, and then a moment to change again."""
    driver = kit.Driver("--root", root, "--discovery", discovery, "--metadata", answers, "--details", "1",
                        services=[r["reference"] for r in references])
    end = time.monotonic() + 5
    bad = ["?"]
    still = 0
    while still < 2 and time.monotonic() < end:
        driver.sync()
        bad = ["%s: %s" % (r["reference"], x) for r in references
               for x in [difference(driver.directories.get(r["reference"]), expected(r, discovery))] if x]
        still = 0 if bad else still + 1
        time.sleep(0.2 if still else 0.05)
    driver.stop()
    return bad


def every_tree(discovery):
    c = kit.Client()
    bad = []
    n = 0
    for name, references in EXPECTED.items():
        with open(os.path.join(DATA, "dumps", name), encoding="utf-8") as f_dump:
            tree = json.load(f_dump)
        load(c, tree)
        for root in sorted({r["root"] for r in references}):
            answers = tempfile.mkdtemp(prefix="answers-")
            write_answers(tree, root, answers)
            mine = [r for r in references if r["root"] == root]
            n += len(mine)
            bad += ["%s %s" % (name, x) for x in look(mine, root, discovery, answers)]
            shutil.rmtree(answers)
    c.close()
    assert not bad and n == 23, "%d references\n%s" % (n, "\n".join(bad))


def interface_level():
    """As consumers of 2.6 and 2.7."""
    every_tree("interface")


def application_level():
    """As consumers of 3.x, where there are instances."""
    every_tree("application")


def both_levels():
    every_tree("auto")


def all_trees_have_expectations():
    trees = {f for f in os.listdir(os.path.join(DATA, "dumps")) if f.endswith(".json")}
    assert trees == set(EXPECTED), trees ^ set(EXPECTED)


def main():
    zk = kit.ZooKeeper().start() if os.environ.get("REGISTRY_KIT_INSIDE") == "1" else None
    try:
        kit.run([all_trees_have_expectations, interface_level, application_level, both_levels])
    finally:
        if zk:
            zk.close()


if __name__ == "__main__":
    main()
