#!/usr/bin/env python3
"""answers.json against what real providers sent: recorded frames (tests/vectors/captures-*.json) were made without the
gateway and decoded by another reader.  Where a recorded request is a row of the table, the row must be what docs/JSON.md
makes of the recorded answer, worked out here once more.  Needs neither Java nor a gateway."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import registry_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

from table import CASES  # noqa: E402  pylint: disable=wrong-import-position

VERSIONS = {"2.6": "2.6.6", "2.7": "2.7.23", "3.2": "3.2.15", "3.3": "3.3.2"}
CLASS_NAME = re.compile(r"^[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)+$")


def load(*path):
    with open(os.path.join(HERE, *path), encoding="utf-8") as f:
        return json.load(f)


def exact(text):
    """JSON with its numbers as written."""
    return json.loads(text, parse_float=lambda t: "#" + t, parse_int=lambda t: "#" + t)


def number(v):
    return int(v[1:])


def time_text(m):
    t = "%02d:%02d" % (number(m["hour"]), number(m["minute"]))
    if number(m["second"]) or number(m["nano"]):
        t += ":%02d" % number(m["second"])
    if number(m["nano"]):
        n = "%09d" % number(m["nano"])
        t += "." + (n[:3] if n[3:] == "000000" else n[:6] if n[6:] == "000" else n)
    return t


def date_text(m):
    return "%04d-%02d-%02d" % tuple(number(m[k]) for k in ("year", "monthValue", "dayOfMonth"))


def instant_text(m):
    import datetime  # pylint: disable=import-outside-toplevel
    t = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=number(m["epochSecond"]))
    n = "%09d" % number(m["nano"])
    frac = "" if n == "0" * 9 else "." + (n[:3] if n[3:] == "000000" else n[:6] if n[6:] == "000" else n)
    return t.strftime("%Y-%m-%dT%H:%M:%S") + frac + "Z"


def uuid_text(m):
    n = "%016x%016x" % tuple(number(m[k]) & (1 << 64) - 1 for k in ("mostSignificantBits", "leastSignificantBits"))
    return "-".join((n[:8], n[8:12], n[12:16], n[16:20], n[20:]))


REBUILT = {"java.util.UUID": uuid_text, "java.time.Instant": instant_text, "java.time.LocalDate": date_text,
           "java.time.LocalTime": time_text, "java.time.LocalDateTime": lambda m: date_text(m) + "T" + time_text(m)}


def double_text(t):
    """Docs/JSON.md: a double always shows that it is one, 1.0e300."""
    m = re.match(r"^(#-?\d+)(\.\d+)?e\+?(-?\d+)$", t)
    return "%s%se%s" % (m.group(1), m.group(2) or ".0", m.group(3)) if m else t


def product(v):
    """From the raw form of the recordings to what a client sees: some classes rebuilt, `class` stripped."""
    if isinstance(v, list):
        return [product(x) for x in v]
    if isinstance(v, str) and v.startswith("#"):
        return double_text(v)
    if not isinstance(v, dict):
        return v
    c = v.get("class")
    if isinstance(c, str) and c in REBUILT:
        return REBUILT[c](v)
    return {k: product(x) for k, x in v.items() if not (k == "class" and isinstance(x, str) and CLASS_NAME.match(x))}


def exception_class(v):
    return v.get("exceptionClass") or v.get("class") or "?"


def expected(frame):
    """The row that the recorded answer calls for; None where the text of the recording does not decide it."""
    status, values = frame["status"], frame["values"]
    if status != 20:
        return {50: "502 BAD_PROVIDER_RESPONSE -", 25: "502 RESPONSE_TOO_LARGE -"}.get(status)
    kind = int(values[0])
    if kind in (2, 5):
        return "null"
    if kind in (0, 3):
        return "500 PROVIDER_EXCEPTION " + exception_class(exact(values[1]))
    t = json.dumps(product(exact(values[1])), sort_keys=True, ensure_ascii=False)
    return t if len(t) < 3000 else None


def key(c):
    return "%s(%s) %s" % (c["method"], ",".join(c["types"]), c["args"])


def pairs(version):
    """(method, arguments as JSON value, answer frame) of every recorded call."""
    by_name = {f["name"]: f for f in load("..", "vectors", "captures-%s.json" % version)}
    for name, q in by_name.items():
        r = by_name.get(name[:-len("req")] + "rsp")
        values = q.get("values") or []
        if name.endswith(".req") and r is not None and r.get("values") and len(values) >= 8 and values[3] == '"$invoke"' \
                and values[1] == '"demo.sample.api.RichService"':
            yield name, json.loads(values[5]), exact(values[7]) or [], json.loads(values[2]), r


def check(line):
    answers = load("answers.json")
    rows, bad = set(), []
    for name, method, args, version, frame in pairs(VERSIONS[line]):
        if "gson" in name or "raw" in name or version not in ("0.0.0", "") or method == "attachments":
            continue  # other generic modes; what a consumer sends besides the arguments is not the table's matter
        for c in CASES:
            if c["method"] != method or exact(c["args"]) != args:
                continue
            forms = answers[key(c)]
            lines = forms.get("typed", forms.get("*"))
            want, got = expected(frame), lines.get(line, lines.get("*"))
            if want is None:
                assert frame["status"] != 20 or len(got) > 1000, (name, got)
                want = got if re.match(r"[45]\d\d [A-Z_]+ ", got) or frame["status"] == 20 else "an error"
            rows.add(key(c))
            if got != want:
                bad.append((name, "recorded", want, "in the table", got))
    assert not bad, "\n".join(map(str, bad))
    assert len(rows) >= 20, "only %d rows were compared: %s" % (len(rows), sorted(rows))
    print("        %d rows of the table seen on the wire of Dubbo %s" % (len(rows), VERSIONS[line]))


def every_method_is_in_the_table():
    with open(os.path.join(HERE, "provider/src/main/java/demo/sample/api/RichService.java"), encoding="utf-8") as f:
        methods = set(re.findall(r"(\w+)\([^)]*\)(?: throws \w+)?;", f.read()))
    assert len(methods) > 50 and methods == {c["method"] for c in CASES}, methods ^ {c["method"] for c in CASES}


def every_row_has_an_answer_per_line():
    answers = load("answers.json")
    assert set(answers) == {key(c) for c in CASES}, set(answers) ^ {key(c) for c in CASES}
    for k, forms in answers.items():
        for form in ("route", "typed", "untyped"):
            lines = forms.get(form, forms.get("*"))
            assert lines and all(lines.get(x, lines.get("*")) for x in VERSIONS), (k, form)


def recorded_2_6():
    check("2.6")


def recorded_2_7():
    check("2.7")


def recorded_3_2():
    check("3.2")


def recorded_3_3():
    check("3.3")


if __name__ == "__main__":
    kit.run([every_method_is_in_the_table, every_row_has_an_answer_per_line, recorded_2_6, recorded_2_7, recorded_3_2,
             recorded_3_3])
