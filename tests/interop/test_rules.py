#!/usr/bin/env python3
"""The same rule, published in a real ZooKeeper, before real consumers of Dubbo 2.7.23 and 3.2.15 and before the gateway, all of one
application: they choose the same providers (docs/REGISTRY.md section 5).  The providers are a (2.7.23, zone east) and b (3.2.15, zone
west), both of the application prov."""
import os
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position
import registry_kit  # noqa: E402  pylint: disable=wrong-import-position

ZK = "zookeeper://127.0.0.1:2181"
CONFIG = "/dubbo/config/dubbo/"
# Dubbo takes no loopback address for one of IPv4 where a rule names addresses ("The host is ipv6, but the pattern is not")
HOST = "10.9.0.1"
A, B = HOST + ":20880", HOST + ":20882"
KEY = kit.RICH + "::"
OPENS = ["java.lang", "java.math", "java.util", "java.util.concurrent", "java.time", "java.net", "java.text", "sun.net.util"]
SOON = 10  # seconds for all of them to follow a rule


class Consumer(kit.Process):
    """A real one (tests/interop/provider, RuleConsumer)."""

    def __init__(self, line):
        jar = os.path.join(kit.TOP, "build/interop", line, "sample-provider.jar")
        self.name, self.line = "consumer " + line, line
        self.proc = subprocess.Popen(
            registry_kit.tied(["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"] +
                              # what the jar's manifest says counts for -jar only
                              ["--add-opens=java.base/%s=ALL-UNNAMED" % x for x in OPENS] + ["-cp", jar,
                               "demo.sample.run.RuleConsumer", "registry=" + ZK, "app=gw"]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.text = []
        self.more = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()
        kit.running.append(self)

    def _read(self):
        for line in self.proc.stdout:
            with self.more:
                self.text.append(line.strip())
                self.more.notify()

    def line_with(self, word, seconds):
        with self.more:
            end = time.monotonic() + seconds
            while not any(t.startswith(word) for t in self.text):
                left = end - time.monotonic()
                assert left > 0 and self.proc.poll() is None, "no %s from %s: %s" % (word, self.name, self.text[-20:])
                self.more.wait(left)
            found = next(t for t in self.text if t.startswith(word))
            self.text.clear()
            return found

    def calls(self, n, **attachments):
        self.proc.stdin.write(" ".join([str(n)] + ["%s=%s" % kv for kv in attachments.items()]) + "\n")
        self.proc.stdin.flush()
        return {k: int(v) for k, v in (x.split("=") for x in self.line_with("SEEN", 60).split()[1:])}

    def log(self):
        return ""

    def output(self):
        return "\n".join(self.text)


def gateway_calls(n, **attachments):
    h = kit.Http()
    seen = {}
    for _ in range(n):
        status, text, _ = h.call("POST", "/who", None, {"X-Tag": attachments.get("dubbo.tag", "")})
        who = text.strip('"') if status == 200 else "NONE" if "NO_PROVIDER_AFTER_RULES" in text else text
        seen[who] = seen.get(who, 0) + 1
    return seen


def publish(c, path, text):
    c.ensure(path.rsplit("/", 1)[0])
    if c.exists(path):
        c.set(path, text.encode())
    else:
        c.create(path, text.encode())


def condition(*texts, force=True):
    return "configVersion: v2.7\nforce: %s\nenabled: true\nruntime: true\nkey: x\nconditions:\n%s" % (
        str(force).lower(), "".join("  - '%s'\n" % t for t in texts))


def configurator(key, scope, **params):
    return "configVersion: v2.7\nscope: %s\nkey: %s\nenabled: true\nconfigs:\n  - side: consumer\n    addresses: ['0.0.0.0']\n" \
        "    providerAddresses: ['%s']\n    parameters:\n%s" % (
            scope, key, A, "".join("      %s: %s\n" % kv for kv in params.items()))


def tags(app, *list_of, force=False):
    return "configVersion: v2.7\nforce: %s\nenabled: true\nruntime: true\nkey: %s\ntags:\n%s" % (
        str(force).lower(), app, "".join("  - name: %s\n    addresses: ['%s']\n" % t for t in list_of))


def url_node(category, text):
    return "/dubbo/%s/%s/%s" % (kit.RICH, category, urllib.parse.quote(text, safe=""))


def override(address, **params):
    return url_node("configurators", "override://%s/%s?category=configurators&dynamic=false&enabled=true&%s" % (
        address, kit.RICH, "&".join("%s=%s" % kv for kv in params.items())))


def router(rule):
    return url_node("routers", "route://0.0.0.0/%s?category=routers&dynamic=false&enabled=true&force=true&name=r&priority=1"
                    "&router=condition&runtime=true&rule=%s" % (kit.RICH, urllib.parse.quote(rule, safe="")))


# 3.2 keeps a configurator of 2.6 that was deleted, when it was the last one (seen with 3.2.15)
KEEPS = {"2.6: override": ("3.2",), "2.6: router": ("3.2",)}  # the router comes while it is still kept
# name, node, content, who is called, attachments of the calls, lines that do not obey such a rule
RULES = [
    ("service: by parameter", CONFIG + KEY + ".condition-router", condition("=> zone=west"), {"b"}, {}, ()),
    ("service: by address", CONFIG + KEY + ".condition-router", condition("=> address=" + A), {"a"}, {}, ()),
    ("service: by method", CONFIG + KEY + ".condition-router", condition("method=who* => zone=west"), {"b"}, {}, ()),
    ("service: another method", CONFIG + KEY + ".condition-router", condition("method=other => zone=west"), {"a", "b"}, {}, ()),
    ("service: forbid", CONFIG + KEY + ".condition-router", condition("=> "), {"NONE"}, {}, ()),
    ("service: nobody, forced", CONFIG + KEY + ".condition-router", condition("=> zone=none"), {"NONE"}, {}, ()),
    ("service: nobody, not forced", CONFIG + KEY + ".condition-router", condition("=> zone=none", force=False), {"a", "b"}, {}, ()),
    ("service: two filters", CONFIG + KEY + ".condition-router", condition("=> zone=*", "=> host=10.* & zone=east"), {"a"}, {}, ()),
    ("service: not equal", CONFIG + KEY + ".condition-router", condition("=> zone!=west"), {"a"}, {}, ()),
    ("service: another consumer", CONFIG + KEY + ".condition-router", condition("application=other => zone=west"), {"a", "b"}, {}, ()),
    ("application: ours", CONFIG + "gw.condition-router", condition("=> zone=east"), {"a"}, {}, ()),
    ("application: another one's", CONFIG + "other.condition-router", condition("=> zone=east"), {"a", "b"}, {}, ()),
    ("application: the providers'", CONFIG + "prov.condition-router", condition("=> zone=east"), {"a"}, {}, ("2.7",)),
    ("tags: call without", CONFIG + "prov.tag-router", tags("prov", ("gray", B)), {"a"}, {}, ()),
    ("tags: call with", CONFIG + "prov.tag-router", tags("prov", ("gray", B)), {"b"}, {"dubbo.tag": "gray"}, ()),
    ("tags: call with another", CONFIG + "prov.tag-router", tags("prov", ("gray", B)), {"a"}, {"dubbo.tag": "x"}, ()),
    ("tags: forced by the rule", CONFIG + "prov.tag-router", tags("prov", ("gray", HOST + ":1"), force=True), {"NONE"},
     {"dubbo.tag": "gray"}, ()),
    ("configurator: disabled", CONFIG + KEY + ".configurators", configurator(kit.RICH, "service", disabled="true"), {"b"}, {}, ()),
    ("configurator: of the application", CONFIG + "gw.configurators", configurator("gw", "application", disabled="true"), {"b"}, {}, ()),
    ("2.6: override", override(A, disabled="true"), "", {"b"}, {}, ()),
    ("2.6: router", router(" => zone = west"), "", {"b"}, {}, ("3.2",)),
]


def same_choice(what, who, expected, attachments, but):
    """All of `who` call exactly those of `expected`."""
    seen = {}

    def good():
        for name, calls in who.items():
            seen[name] = calls(20, **attachments)
        return all(set(s) == expected for name, s in seen.items() if name not in but)
    try:
        kit.wait_until(good, SOON, what)
    except AssertionError as e:
        raise AssertionError("%s: %s, expected %s" % (what, seen, sorted(expected))) from e


def the_same_rule_before_all():
    subprocess.run(["ip", "address", "add", HOST + "/32", "dev", "lo"], check=True)
    zk = kit.ZooKeeper().start()
    c = kit.Client()
    a = kit.JavaProvider("2.7", 20880, ZK, "name=a", "app=prov", "export=:?zone=east", "register.mode=interface", "host=" + HOST)
    b = kit.JavaProvider("3.2", 20882, ZK, "name=b", "app=prov", "export=:?zone=west", "register.mode=interface", "host=" + HOST)
    for p in a, b:
        kit.wait_until(lambda p=p: "READY " in p.output(), 60, "the provider is ready")
    java = [Consumer("2.7"), Consumer("3.2")]
    g = kit.Gateway({"registries": [{"name": "main", "address": ZK}], "defaults": {"timeout": "3s"}, "consumer": {"application": "gw"},
                     "services": [{"name": "rich", "interface": kit.RICH, "registry": "main", "loadbalance": "random"}],
                     "routes": [{"name": "who", "path": "/who", "method": "POST", "call": "rich.whoami", "args": [],
                                 "attachments": {"dubbo.tag": "header.X-Tag"}}]})
    who = {"gateway": gateway_calls}
    for j in java:
        j.line_with("READY", 60)
        who[j.line] = j.calls
    same_choice("no rule", who, {"a", "b"}, {}, ())
    weights = CONFIG + KEY + ".configurators"
    publish(c, weights, "configVersion: v2.7\nscope: service\nkey: %s\nenabled: true\nconfigs:\n"
            "  - side: consumer\n    providerAddresses: ['%s']\n    parameters: {weight: 20, warmup: 1}\n"
            "  - side: consumer\n    providerAddresses: ['%s']\n    parameters: {weight: 80, warmup: 1}\n" % (kit.RICH, A, B))
    time.sleep(3)
    shares = {name: calls(1000).get("a", 0) for name, calls in who.items()}
    assert all(135 < n < 265 for n in shares.values()), shares  # 200 expected, five standard deviations
    c.delete(weights)
    time.sleep(1)
    for name, path, text, expected, attachments, but in RULES:
        publish(c, path, text)
        same_choice(name, who, expected, attachments, but)
        c.delete(path)
        same_choice("without " + name, who, {"a", "b"}, {}, KEEPS.get(name, ()))
        print("        %s: %s" % (name, " ".join(sorted(expected))))
    c.close()
    g.stop()
    for j in java:
        j.kill()
    a.kill()
    b.kill()
    zk.close()


if __name__ == "__main__":
    kit.run([the_same_rule_before_all])
