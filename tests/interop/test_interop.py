#!/usr/bin/env python3
"""Every method of RichService on every Dubbo line, found in a real ZooKeeper: route, direct form with types,
direct form without types; with and without group and version.  LINE=2.6|2.7|3.2|3.3 chooses one line.

table.py lists the calls, answers.json what must come back per form and line."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

from table import CASES  # noqa: E402  pylint: disable=wrong-import-position

zk = None
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers.json"), encoding="utf-8") as f:
    ANSWERS = json.load(f)
SEEN = {} if os.environ.get("RECORD") else None  # RECORD=file: write what was seen, for review by eye


def record():
    out = {}
    for key, forms in SEEN.items():
        short = {f: ({"*": v["3.3"]} if len(set(v.values())) == 1 else v) for f, v in forms.items()}
        if short["route"] == short["typed"] == short["untyped"]:
            short = {"*": short["route"]}
        elif short["route"] == short["typed"]:
            short = {"*": short["route"], "untyped": short["untyped"]}
        out[key] = short
    with open(os.environ["RECORD"], "w", encoding="utf-8") as to:
        json.dump(out, to, indent=1, ensure_ascii=False)


def canonical(status, text):
    """What the table holds: the status and the JSON with its numbers as written; members sorted, for a provider's
    HashMap has no order.  Of a problem: the code, and the class of the exception."""
    v = json.loads(text, parse_float=lambda t: "#" + t, parse_int=lambda t: "#" + t)
    if status != 200:
        return "%d %s %s" % (status, v["code"], v.get("exception", {}).get("class", "-"))
    if isinstance(v, dict) and "request-id" in v:  # attachments(): these differ from call to call
        v.update({k: "?" for k in ("request-id", "traceparent", "input") if k in v})
    t = json.dumps(v, sort_keys=True, ensure_ascii=False)
    return t if len(t) < 3000 else "%d characters, %s..." % (len(t), t[:40])


def look_up(table, key, line, form):
    """answers.json: {case: {form or "*": {line or "*": answer}}}"""
    forms = table.get(key, {})
    lines = forms.get(form, forms.get("*", {}))
    return lines.get(line, lines.get("*"))


def config():
    services, routes = [], []
    for name, ver, group in (("plain", "", ""), ("other", "1.0.0", "g1")):
        s = {"name": name, "interface": kit.RICH, "methods": []}
        if ver:
            s.update(version=ver, group=group)
        services.append(s)
    for i, c in enumerate(CASES):
        for name in ("plain", "other"):
            r = {"name": "r%d-%s" % (i, name), "method": "POST", "path": "/%s/%d" % (name, i),
                 "call": "%s.%s" % (name, c["method"])}
            r["args"] = [{"from": "body.a%d" % k, "type": t} for k, t in enumerate(c["types"])]
            routes.append(r)
    return {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "provider_networks": ["127.0.0.0/8"]}],
            "services": services, "routes": routes, "defaults": {"timeout": "5s"},
            "direct": {"enabled": True, "allow": [kit.RICH]}}


def arguments(text):
    """The elements of a JSON array, as they are written."""
    out, depth, start, inside, skip = [], 0, 1, False, False
    for i, ch in enumerate(text):
        if skip:
            skip = False
        elif inside:
            skip = ch == "\\"
            inside = ch != '"'
        elif ch == '"':
            inside = True
        elif ch in "[{":
            depth += 1
        elif ch in "]}":
            depth -= 1
        if not inside and (ch == "," and depth == 1 or depth == 0):
            if text[start:i].strip():
                out.append(text[start:i].strip())
            start = i + 1
    return out


def clean():
    """The nodes of a killed provider stay until its session ends; the next line must not see them."""
    c = kit.Client()
    c.delete_tree("/dubbo")
    c.close()


def play(line):
    bad = []
    java = kit.JavaProvider(line, 20880, "zookeeper://127.0.0.1:2181", "export=:", "export=g1:1.0.0")
    java.wait_ready()
    g = kit.Gateway(config())
    try:
        kit.wait_until(lambda: (g.reference(kit.RICH) or {}).get("state") == "ready", 20, "the reference is ready")
        h = kit.Http()
        n = 0
        for i, c in enumerate(CASES):
            key = "%s(%s) %s" % (c["method"], ",".join(c["types"]), c["args"])
            types = ",".join(c["types"])
            for extra, name in (("", "plain"), ("group=g1&version=1.0.0", "other")):
                named = "{%s}" % ",".join('"a%d":%s' % kv for kv in enumerate(arguments(c["args"])))
                forms = [
                    ("route", "/%s/%d" % (name, i), named),
                    ("typed", "/%s/%s?types=%s&%s" % (kit.RICH, c["method"], types, extra), c["args"]),
                    ("untyped", "/%s/%s?%s" % (kit.RICH, c["method"], extra), c["args"])]
                for form, path, body in forms:
                    status, text, _ = h.post(path.rstrip("?&"), body)
                    n += 1
                    got = canonical(status, text)
                    if SEEN is not None:
                        SEEN.setdefault(key, {}).setdefault(form, {}).setdefault(line, got)
                    expected = look_up(ANSWERS, key, line, form)
                    if got != expected:
                        bad.append((key[:90], form, name, "expected", str(expected)[:300], "got", status, text[:500]))
        assert not bad, "%d of %d:\n%s" % (len(bad), n, "\n".join(map(str, bad[:200])))
        print("        %d calls to Dubbo %s" % (n, line))
    finally:
        g.kill()
        java.kill()
        clean()


def line_2_6():
    play("2.6")


def line_2_7():
    play("2.7")


def line_3_2():
    play("3.2")


def line_3_3():
    play("3.3")


TESTS = [line_2_6, line_2_7, line_3_2, line_3_3]

if __name__ == "__main__":
    only = os.environ.get("LINE")
    if os.environ.get("REGISTRY_KIT_INSIDE") == "1":
        zk = kit.ZooKeeper().start()
    try:
        kit.run([t for t in TESTS if not only or t.__name__ == "line_" + only.replace(".", "_")])
    finally:
        if zk is not None:
            zk.close()
        if SEEN is not None and os.environ.get("REGISTRY_KIT_INSIDE") == "1":
            record()
