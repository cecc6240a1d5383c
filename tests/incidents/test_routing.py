#!/usr/bin/env python3
"""Condition and tag rules in a real ZooKeeper: which provider a call may go to (docs/REGISTRY.md section 5)."""
import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
CONFIG = "/dubbo/config/dubbo"
zk = None


class Scene:
    """Two providers, a (zone=east, application prov-a) and b (zone=west, application prov-b), and a gateway."""

    def __init__(self, a=None, b=None, **more):
        self.stubs = [kit.Stub(20880, 20881, "-n", "a"), kit.Stub(20882, 20883, "-n", "b")]
        self.c = kit.Client()
        if self.c.exists("/dubbo"):
            self.c.delete_tree("/dubbo")
        self.p = registry_kit.Providers(self.c, IFACE)
        self.p.add(20880, ephemeral=False, **{"zone": "east", "application": "prov-a", **(a or {})})
        self.p.add(20882, ephemeral=False, **{"zone": "west", "application": "prov-b", **(b or {})})
        self.conf = {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181"}],
                     "direct": {"enabled": True, "allow": ["*"]}, "defaults": {"timeout": "3s"},
                     "consumer": {"application": "gw"}, **more}
        self.g = kit.Gateway(self.conf)

    def rule(self, name, text):
        path = CONFIG + "/" + name
        if self.c.exists(path):
            self.c.set(path, text.encode())
        else:
            self.c.ensure(CONFIG)
            self.c.create(path, text.encode())
        return path

    def router(self, rule, **params):
        q = {"category": "routers", "router": "condition", "enabled": "true", "force": "true", "priority": "1",
             "rule": urllib.parse.quote(rule, safe=""), **params}
        url = "route://0.0.0.0/%s?%s" % (IFACE, "&".join("%s=%s" % kv for kv in q.items()))
        path = "/dubbo/%s/routers/%s" % (IFACE, urllib.parse.quote(url, safe=""))
        self.c.ensure(path)
        return path

    def restart(self):
        self.g.stop()
        self.g = kit.Gateway(self.conf)

    def end(self):
        self.c.close()
        self.g.stop()
        for s in self.stubs:
            s.kill()


def call(path="/%s/whoami" % IFACE, body="[]", headers=None):
    status, text, _ = kit.Http().call("POST", path, body, headers)
    return text.strip('"') if status == 200 else "%d %s" % (status, json.loads(text)["code"])


def used(n=40, **kw):
    return sorted({call(**kw) for _ in range(n)})


def why_not(path="/%s/whoami" % IFACE, body="[]", headers=None):
    """What the answer says of the rules."""
    detail = json.loads(kit.Http().call("POST", path, body, headers)[1])["detail"]
    assert detail.startswith("rules leave no provider for %s: " % IFACE), detail
    return detail.split(": ", 1)[1]


def soon(expected, what, **kw):
    kit.wait_until(lambda: used(**kw) == expected, 3, "%s: %s" % (what, expected))


def service_rules_of_2_7():
    """By service key; followed while it changes, gone with its node."""
    s = Scene()
    assert used() == ["a", "b"]
    path = s.rule(IFACE + "::.condition-router", "configVersion: v2.7\nforce: true\nconditions:\n  - '=> zone = west'\n")
    soon(["b"], "only zone west")
    s.rule(IFACE + "::.condition-router", "configVersion: v2.7\nforce: true\nconditions:\n  - '=> address = 127.0.0.1:20880'\n")
    soon(["a"], "only that address")
    s.rule(IFACE + "::.condition-router", "configVersion: v2.7\nforce: true\nenabled: false\nconditions:\n  - '=> zone = x'\n")
    soon(["a", "b"], "switched off")
    s.rule(IFACE + "::.condition-router", "configVersion: v2.7\nforce: true\nconditions:\n  - '=> zone = x'\n")
    soon(["503 NO_PROVIDER_AFTER_RULES"], "nobody is in that zone")
    assert why_not() == "of 2 providers 2 were left before %s::.condition-router and none after it" % IFACE
    assert "NO_PROVIDER_AFTER_RULES): %s::.condition-router\n" % IFACE in kit.program("why", IFACE), kit.program("why", IFACE)
    s.rule(IFACE + "::.condition-router", "configVersion: v2.7\nforce: false\nconditions:\n  - '=> zone = x'\n")
    soon(["a", "b"], "a rule without force gives up")
    s.rule(IFACE + "::.condition-router", "\ufeffforce: true\nconditions:\n  - '=> zone = west'\n")
    soon(["b"], "west again, from an editor that begins with a byte order mark")
    s.rule(IFACE + ":1.0:.condition-router", "force: true\nconditions:\n  - '=> zone = x'\n")  # another version's
    s.c.delete(path)
    soon(["a", "b"], "no rule")
    s.end()


def rules_that_stand_at_the_start():
    """Not one call goes where a rule forbids it, though lists and rules are read at the same time."""
    s = Scene()
    s.rule(IFACE + "::.condition-router", "force: true\nconditions:\n  - '=> zone = west'\n")
    for more in {}, {"services": [{"name": "user", "interface": IFACE, "registry": "main"}]}:
        s.conf.update(more)
        s.restart()
        assert used(100) == ["b"]
    s.rule("prov-b.tag-router", "force: true\nkey: prov-b\ntags:\n  - name: gray\n    addresses: ['127.0.0.1:20882']\n")
    s.restart()
    assert used(100) == ["503 NO_PROVIDER_AFTER_RULES"], "the rule of the provider's application counts from the first call on"
    s.end()


def rules_of_applications():
    """Ours, and of the providers': the latter are about their own providers only."""
    s = Scene()
    assert used() == ["a", "b"]
    path = s.rule("gw.condition-router", "force: true\nscope: application\nkey: gw\nconditions:\n  - '=> zone = east'\n")
    soon(["a"], "our application's")
    s.rule("somebody.condition-router", "force: true\nkey: somebody\nconditions:\n  - '=> zone = none'\n")
    s.c.delete(path)
    soon(["a", "b"], "no rule")
    path = s.rule("prov-a.condition-router", "force: true\nkey: prov-a\nconditions:\n  - '=> zone = none'\n")
    soon(["b"], "none of prov-a's, all of prov-b's")
    s.c.delete(path)
    soon(["a", "b"], "no rule")
    s.end()


def method_and_arguments():
    """What only the call knows: the real method and the real arguments, not those of $invoke."""
    s = Scene()
    s.rule(IFACE + "::.condition-router",
           "force: true\nconditions:\n  - 'method = whoami => zone = west'\n  - 'method = echo & arguments[0] = x* => zone = east'\n")
    soon(["b"], "whoami goes west")
    before = [x.numbers() for x in s.stubs]
    for i in range(20):
        assert call("/%s/echo" % IFACE, '["x%d"]' % i) == "x%d" % i
    after = [x.numbers() for x in s.stubs]
    calls = [y["calls"] - x["calls"] for x, y in zip(before, after)]
    assert calls == [20, 0], calls
    for i in range(40):
        assert call("/%s/echo" % IFACE, '["y%d"]' % i) == "y%d" % i
    calls = [y["calls"] - x["calls"] for x, y in zip(after, [x.numbers() for x in s.stubs])]
    assert min(calls) > 0, calls
    s.end()


def routers_of_2_6():
    """route:// below the interface; the one with the higher priority has the last word."""
    s = Scene()
    assert used() == ["a", "b"]
    path = s.router(" => zone = west")
    soon(["b"], "only zone west")
    s.router("method = whoami => zone = none", force="false", priority="2")
    s.router(" => zone = east", enabled="false")
    s.router("function route(){}", router="script")
    assert used() == ["b"]
    s.c.delete(path)
    soon(["a", "b"], "no router")
    s.end()


def tags_of_calls():
    """A route gives its calls a tag: providers with it, else those without any, unless it is forced (docs/TESTING.md, case 69)."""
    route = {"name": "who", "path": "/who", "method": "POST", "call": "user.whoami",
             "attachments": {"dubbo.tag": "header.X-Tag", "dubbo.force.tag": "header.X-Force"}}
    s = Scene(a={"dubbo.tag": "custom"}, routes=[route],
              services=[{"name": "user", "interface": IFACE, "registry": "main"}])
    who = {"path": "/who", "body": None}
    soon(["b"], "a call without a tag", **who)
    assert used(100, headers={"X-Tag": "custom"}, **who) == ["a"]
    assert used(100, headers={"X-Tag": "none"}, **who) == ["b"], "back to those without a tag"
    assert used(10, headers={"X-Tag": "none", "X-Force": "true"}, **who) == ["503 NO_PROVIDER_AFTER_RULES"]
    assert why_not(headers={"X-Tag": "none", "X-Force": "true"}, **who) == "none of 2 providers has the tag that is asked for"
    assert used() == ["b"], "the direct form has no tag"
    s.end()


def tag_rules():
    """The rule of a provider's application says which of its providers have a tag."""
    route = {"name": "who", "path": "/who", "method": "POST", "call": "user.whoami",
             "attachments": {"dubbo.tag": "header.X-Tag"}}
    s = Scene(routes=[route], services=[{"name": "user", "interface": IFACE, "registry": "main"}])
    gray = {"path": "/who", "body": None, "headers": {"X-Tag": "gray"}}
    assert used() == ["a", "b"]
    path = s.rule("prov-b.tag-router", "force: false\nkey: prov-b\ntags:\n  - name: gray\n    addresses: ['127.0.0.1:20882']\n")
    soon(["a"], "without a tag")
    assert used(**gray) == ["b"]
    s.rule("prov-b.tag-router", "force: false\nkey: prov-b\ntags:\n  - name: gray\n    match:\n      - key: zone\n        value: {exact: east}\n")
    soon(["a", "b"], "nobody of that application is in zone east", **gray)
    s.c.delete(path)
    soon(["a", "b"], "no rule")
    s.end()


def configurators_in_yaml():
    """Application, then service: the later one wins."""
    s = Scene()
    assert used() == ["a", "b"]
    head = "configVersion: v2.7\nkey: %s\nenabled: true\nscope: %s\nconfigs:\n  - side: consumer\n"
    s.rule("gw.configurators", head % ("gw", "application") + "    addresses: ['0.0.0.0']\n    parameters: {weight: 7, disabled: true}\n"
           "    providerAddresses: ['127.0.0.1:20880']\n")
    soon(["b"], "a is disabled")
    path = s.rule(IFACE + "::.configurators", head % (IFACE, "service") + "    parameters: {disabled: false, weight: 9}\n")
    kit.wait_until(lambda: [x["weight"] for x in s.g.reference(IFACE)["providers"]["list"]] == [9, 9], 3, "weights")
    assert used() == ["a", "b"]
    s.c.delete(path)
    soon(["b"], "the application's again")
    s.end()


def a_rule_that_is_none():
    """It leaves the former one in force, and everybody can see it."""
    s = Scene()
    name = IFACE + "::.condition-router"
    s.rule(name, "force: true\nconditions:\n  - '=> zone = west'\n")
    soon(["b"], "only zone west")
    s.rule(name, "force: true\nconditions: [\n  - '=> zone = east'\n")
    kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 1, 3, "it is counted")
    assert used() == ["b"]
    rules = s.g.admin("/registries")[1][0]["rules"]
    assert rules[0]["name"] == name and rules[0]["in_force"] and rules[0]["error"], rules
    assert "is not understood" in s.g.log(), s.g.log()
    s.rule("gw.script-router", "script: evil()")
    kit.wait_until(lambda: "script rules are not run" in s.g.log(), 3, "scripts are told")
    s.rule(name, "force: true\nconditions:\n  - '=> zone = east'\n")
    soon(["a"], "zone east")
    assert s.g.metric("dubbogate_registry_bad_rules") == 0
    s.end()


def rules_of_many_applications():
    """Each provider may be of another application; of those beyond the first 64 the rules are told, not obeyed."""
    s = Scene()
    for i in range(60):
        s.p.add(30000 + i, ephemeral=False, disabled="true", application="other-%d" % i)
    s.rule("prov-a.condition-router", "force: true\nkey: prov-a\nconditions:\n  - '=> zone = none'\n")
    s.rule("prov-b.condition-router", "force: true\nkey: prov-b\nconditions:\n  - '=> zone = west'\n")
    s.restart()
    assert used(60) == ["b"], "both count from the first call on"
    assert s.g.metric("dubbogate_registry_bad_rules") == 0
    for i in range(60, 70):
        s.p.add(30000 + i, ephemeral=False, disabled="true", application="other-%d" % i)
    kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 1, 5, "it is counted")
    assert "rule %s: providers of more than 64 applications" % IFACE in kit.program("why", IFACE)
    for i in range(60, 70):
        s.p.remove(30000 + i, disabled="true", application="other-%d" % i)
    kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 0, 5, "and no more")
    s.end()


def more_routers_than_are_obeyed():
    """Those of the highest priority are, wherever their texts stand; one that is no rule is told."""
    s = Scene()
    s.router(" => zone = west", priority="7")
    for i in range(300):
        s.router("method = other => zone = east", name="%03d" % i, priority="1")
    soon(["b"], "the one of priority 7 has the last word")
    kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 1, 5, "it is counted")
    rules = s.g.admin("/registries")[1][0]["rules"]
    assert rules == [{"name": IFACE + "/routers", "in_force": True,
                      "error": "45 left out, those of the lowest priority: more than 256"}], rules
    bad = "/dubbo/%s/routers/no%%20rule" % IFACE
    s.c.create(bad)
    kit.wait_until(lambda: "1 left out, the first: " in kit.program("why", IFACE), 5, "what is no rule is told")
    assert used() == ["b"]
    s.c.delete(bad)
    s.c.delete_tree("/dubbo/%s/routers" % IFACE)
    soon(["a", "b"], "no rule")
    kit.wait_until(lambda: s.g.metric("dubbogate_registry_bad_rules") == 0, 3, "and nothing to tell")
    s.end()


def routers_too_long_to_be_saved():
    """Over 1 MiB together: they are obeyed, and it is told that a start without the registry would not know them."""
    s = Scene()
    for i in range(200):
        s.router("method = other => zone = east", name="%03d" % i + "x" * 5600)
    s.router(" => zone = west", priority="2")
    soon(["b"], "they are obeyed")
    kit.wait_until(lambda: "/routers: over 1 MiB together, so not in the saved lists (it, a part" in kit.program("why", IFACE), 5, "it is told")
    s.end()


def rules_while_the_registry_is_down():
    """They stay in force; what changed meanwhile is found when it is back."""
    s = Scene()
    name = IFACE + "::.condition-router"
    s.rule(name, "force: true\nconditions:\n  - '=> zone = west'\n")
    soon(["b"], "only zone west")
    s.c.close()
    zk.stop()
    assert used(100) == ["b"]
    zk.start()
    s.c = kit.Client()
    assert used() == ["b"]
    s.rule(name, "force: true\nconditions:\n  - '=> zone = east'\n")
    kit.wait_until(lambda: used() == ["a"], 20, "zone east")
    s.end()


if __name__ == "__main__":
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([service_rules_of_2_7, rules_that_stand_at_the_start, rules_of_applications, method_and_arguments,
                 routers_of_2_6, tags_of_calls, tag_rules, configurators_in_yaml, a_rule_that_is_none,
                 rules_of_many_applications, more_routers_than_are_obeyed, routers_too_long_to_be_saved,
                 rules_while_the_registry_is_down])
    finally:
        if zk is not None:
            zk.close()
