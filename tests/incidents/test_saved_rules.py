#!/usr/bin/env python3
"""Published rules in the saved lists: a start with the registry down obeys those of the last run (docs/OPERATIONS.md sections
6 and 7, docs/REGISTRY.md section 9.4)."""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import test_routing as routing  # noqa: E402  pylint: disable=wrong-import-position
from test_routing import IFACE, Scene, soon, used  # noqa: E402  pylint: disable=wrong-import-position

SERVICE_RULE = IFACE + "::.condition-router"
WEST = "force: true\nconditions:\n  - '=> zone = west'\n"
EAST = "force: true\nconditions:\n  - '=> zone = east'\n"
ROUTE = {"name": "who", "path": "/who", "method": "POST", "call": "user.whoami", "attachments": {"dubbo.tag": "header.X-Tag"}}
USER = [{"name": "user", "interface": IFACE, "registry": "main"}]
zk = None


def saved(state):
    if not os.path.exists(state + "/references.json"):
        return {None: "no file yet"}
    with open(state + "/references.json", encoding="utf-8") as f:
        d = json.load(f)
    return {r["node"]: r["text"] for r in d.get("rules", [])}


def scene(state, **more):
    return Scene(process={"state_dir": state}, **more)


def wait_saved(state, nodes):
    kit.wait_until(lambda: set(saved(state)) == nodes, 5, "saved are %s" % sorted(nodes))


def start_again_without_registry(s):
    s.g.kill()
    s.g = kit.Gateway(s.conf)


def start_without_registry(s):
    """Killed, and started while the registry is down."""
    s.g.kill()
    s.c.close()
    zk.stop()
    s.g = kit.Gateway(s.conf)


def back(s):
    zk.start()
    s.c = kit.Client()
    kit.wait_until(lambda: s.g.admin("/registries")[1][0]["state"] == "connected", 10, "connected")


def each(rules, expected, **more):
    """`rules(scene)` publishes; calls go where they say, after a start without the registry too, from the first one on, and
    anywhere once the registry is back and the rules are deleted."""
    with tempfile.TemporaryDirectory() as state:
        s = scene(state, **more)
        paths = rules(s)
        soon(expected, "the rule is in force")
        wait_saved(state, {p.replace(routing.CONFIG + "/", "") if p.startswith(routing.CONFIG) else IFACE + "/routers" for p in paths})
        start_without_registry(s)
        assert used(60) == expected, used(60)
        back(s)
        assert used(60) == expected
        for p in paths:
            s.c.delete(p)
        soon(["a", "b"], "the rule is gone")
        wait_saved(state, set())
        s.end()


def rules_of_a_service():
    """By parameters of the provider's URL that nobody but the rule needs."""
    each(lambda s: [s.rule(SERVICE_RULE, WEST)], ["b"])


def rules_by_our_own_address():
    """Which is known from the registry's connection alone."""
    text = "force: true\nconditions:\n  - 'host = 127.0.0.1 => zone = west'\n  - 'host != 127.0.0.1 => zone = east'\n"
    each(lambda s: [s.rule(SERVICE_RULE, text)], ["b"])


def rules_of_applications():
    """Of a provider's, and of our own one."""
    each(lambda s: [s.rule("prov-a.condition-router", "force: true\nkey: prov-a\nconditions:\n  - '=> zone = none'\n")],
         ["b"])
    each(lambda s: [s.rule("gw.condition-router", "force: true\nkey: gw\nscope: application\nconditions:\n  - '=> zone = east'\n")],
         ["a"])


def routers_of_2_6():
    """The second one is about other consumers."""
    each(lambda s: [s.router(" => zone = west"), s.router("host != 127.0.0.1 => zone = none", priority="2")], ["b"])


def tags():
    """A tagged provider gets no call without its tag, and a tag rule counts."""
    text = "force: false\nkey: prov-b\ntags:\n  - name: gray\n    match:\n      - key: zone\n        value: {exact: west}\n"
    each(lambda s: [s.rule("prov-b.tag-router", text)], ["a"], routes=[ROUTE], services=USER)


def a_bad_rule_at_a_restart():
    """The former one stays in force, though the registry has it no more."""
    with tempfile.TemporaryDirectory() as state:
        s = scene(state)
        s.rule(SERVICE_RULE, WEST)
        soon(["b"], "west")
        s.rule(SERVICE_RULE, "force: true\nconditions: [\n  - '=> zone = east'\n")
        kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 1, 3, "it is counted")
        for _ in range(2):
            s.restart()
            assert used(60) == ["b"]
            kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 1, 3, "it is counted again")
            assert used(60) == ["b"]
        assert s.g.admin("/registries")[1][0]["rules"][0]["in_force"]
        s.rule(SERVICE_RULE, EAST)
        soon(["a"], "east")
        s.end()


def changed_while_we_were_away():
    """What the registry says at the start counts, before the first call that it concerns is sent elsewhere."""
    with tempfile.TemporaryDirectory() as state:
        s = scene(state, services=USER)
        path = s.rule(SERVICE_RULE, WEST)
        soon(["b"], "west")
        wait_saved(state, {SERVICE_RULE})
        s.g.stop()
        s.c.delete(path)
        s.g = kit.Gateway(s.conf)
        soon(["a", "b"], "it was deleted")
        wait_saved(state, set())
        start_without_registry(s)
        assert used() == ["a", "b"], "and stays so"
        back(s)
        s.end()


def deleted_and_nobody_has_called():
    """What the registry has no more is not saved again, though nobody needed it since the start."""
    with tempfile.TemporaryDirectory() as state:
        s = scene(state)
        path = s.rule(SERVICE_RULE, WEST)
        soon(["b"], "west")
        s.g.stop()
        assert set(saved(state)) == {SERVICE_RULE}
        s.c.delete(path)
        s.g = kit.Gateway(s.conf)
        kit.wait_until(lambda: s.g.metric("dubbogate_registry_watches") >= 1, 5, "the directory of rules is read")
        s.g.stop()
        assert saved(state) == {}, saved(state)
        s.g = kit.Gateway(s.conf)
        s.end()


def of_a_service_that_nobody_has_called():
    """They are kept from run to run, like its list."""
    with tempfile.TemporaryDirectory() as state:
        s = scene(state)
        s.rule(SERVICE_RULE, WEST)
        router = s.router(" => zone = west")
        soon(["b"], "west")
        wait_saved(state, {SERVICE_RULE, IFACE + "/routers"})
        s.restart()
        kit.wait_until(lambda: s.g.admin("/registries")[1][0]["state"] == "connected", 5, "connected")
        s.c.delete(router)
        s.restart()  # the file is written at the end of a run
        assert set(saved(state)) == {SERVICE_RULE, IFACE + "/routers"}
        start_without_registry(s)
        assert used(60) == ["b"]
        back(s)
        s.end()


def given_up_as_idle():
    """Asked for again while the registry is down, a service gets its saved list and its rules with it."""
    with tempfile.TemporaryDirectory() as state:
        s = scene(state, limits={"reference_idle": "10s"})
        s.router(" => zone = west")
        soon(["b"], "west")
        s.restart()
        assert used() == ["b"]
        kit.wait_until(lambda: s.g.reference(IFACE) is None, 30, "the idle reference is given up")
        wait_saved(state, {IFACE + "/routers"})
        s.c.close()
        zk.stop()
        assert used(60) == ["b"], used(60)
        start_again_without_registry(s)
        assert used(60) == ["b"], used(60)
        back(s)
        s.end()


def newer_than_the_list_that_they_are_about():
    """They ask for parameters that nothing asked for when the list was saved; nobody has called it since."""
    text = "force: true\nkey: gw\nscope: application\nconditions:\n  - '=> zone = west'\n"
    with tempfile.TemporaryDirectory() as state:
        s = scene(state)
        assert used() == ["a", "b"]
        s.restart()
        s.rule("gw.condition-router", text)
        wait_saved(state, {"gw.condition-router"})
        start_without_registry(s)
        assert used(60) == ["b"], used(60)
        back(s)
        s.end()


def directory_that_cannot_be_read():
    """At a start: the last run's rules stay, of services that are not configured too, and everybody can see why."""
    with tempfile.TemporaryDirectory() as state:
        s = scene(state)
        s.rule(SERVICE_RULE, WEST)
        soon(["b"], "west")
        wait_saved(state, {SERVICE_RULE})
        s.c.set_acl(routing.CONFIG, [(2 | 4 | 8 | 16, "world", "anyone")])
        for _ in range(2):
            s.restart()
            kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 1, 5, "it is counted")
            assert used(60) == ["b"], used(60)
        assert "1 published rules are not obeyed as they stand" in s.g.admin("/ready")[1]["degraded"], s.g.admin("/ready")
        first = s.g.admin("/registries")[1][0]["rules"][0]
        assert first == {"name": routing.CONFIG, "in_force": True, "error": "not authenticated"}, first
        why = kit.program("why", IFACE)
        assert "  rule %s: not authenticated (it, a part of it or a former one is in force)\n" % routing.CONFIG in why, why
        s.c.set_acl(routing.CONFIG, [(31, "world", "anyone")])
        s.rule(SERVICE_RULE, EAST)
        soon(["a"], "the node itself could always be read")
        kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 0, 10, "the directory is read again within seconds")
        assert s.g.admin("/ready")[1]["degraded"] == [], (s.g.admin("/ready"), s.g.reference(IFACE))
        s.end()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([rules_of_a_service, rules_by_our_own_address, rules_of_applications, routers_of_2_6, tags,
                 a_bad_rule_at_a_restart, changed_while_we_were_away,
                 deleted_and_nobody_has_called, of_a_service_that_nobody_has_called, given_up_as_idle,
                 directory_that_cannot_be_read,
                 newer_than_the_list_that_they_are_about])
    finally:
        if zk is not None:
            zk.close()
