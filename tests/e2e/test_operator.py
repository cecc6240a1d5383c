#!/usr/bin/env python3
"""What an operator meets: sockets, configurations that cannot work, reloads, and the answer to "why"."""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "demo.UserService"
PROGRAM = os.path.join(kit.BIN, "dubbogate")


def config(**more):
    c = {"process": {"workers": 2}, "direct": {"enabled": True, "allow": ["*"]},
         "services": [{"name": "user", "interface": IFACE, "providers": ["dubbo://127.0.0.1:20880"]}]}
    c.update(more)
    return c


def run(*args):
    r = subprocess.run([PROGRAM] + list(args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20, check=False)
    return r.returncode, r.stdout


def raw(data, path=None):
    """Everything that comes back until the gateway closes."""
    s = socket.socket(socket.AF_UNIX) if path else socket.socket()
    s.settimeout(20)
    s.connect(path or ("127.0.0.1", 8080))
    s.sendall(data)
    got = b""
    while True:
        try:
            part = s.recv(65536)
        except OSError:
            part = b""
        if not part:
            s.close()
            return got
        got += part


def unix_socket_with_two_workers():
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "s.sock")
    a = kit.Stub()
    g = kit.Gateway(config(listen=[{"address": "127.0.0.1:8080"}, {"address": "unix:" + path}]))
    request = b"POST /%s/whoami HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]"
    for _ in range(20):
        assert b" 200 " in raw(request % IFACE.encode(), path)
    g.stop()
    assert not os.path.exists(path), "the socket's file stays"
    a.kill()


def configurations_that_cannot_work():
    """-t says what the start would say."""
    registry = {"name": "main", "address": "zookeeper://127.0.0.1:2181"}
    bad = [
        ({"listen": [{"address": "127.0.0.1:8080"}, {"address": "127.0.0.1:8080"}]}, "listened on twice"),
        ({"listen": [{"address": "127.0.0.1:8080"}], "admin": {"listen": ["127.0.0.1:8080"]}}, "listened on twice"),
        ({"listen": [{"address": "unix:/" + "x" * 120}]}, "1 to 107 bytes"),
        ({"listen": [{"address": "300.1.1.1:80"}]}, "300.1.1.1"),
        ({"registries": [dict(registry, address="zookeeper://127.0.0.1:2181/chroot")]}, "a path in the address"),
        ({"registries": [dict(registry, address="zookeeper://127.0.0.1:2181?foo=1")]}, 'no parameter "foo"'),
        ({"registries": [dict(registry, address="zookeeper://u@127.0.0.1:2181")]}, "a user and a password, or neither"),
        ({"registries": [dict(registry, chroot="/prod/")]}, "a node path such as /prod"),
        ({"registries": [registry, dict(registry, name="b")], "services": [{"name": "a", "interface": IFACE}],
          "direct": {"enabled": False}}, "there are several registries"),
        ({"registries": [registry, dict(registry, name="b")], "direct": {"enabled": True, "allow": ["*"], "registry": "c"}},
         'no registry named "c"'),
        ({"services": [{"name": "a", "interface": IFACE, "providers": ["dubbo://127.0.0.1"]}]}, "no port"),
        ({"services": [{"name": "a", "interface": IFACE, "providers": ["tri://127.0.0.1:50051"]}]}, "cannot be called (protocol)"),
        ({"defaults": {"response": {"headers": {"Transfer-Encoding": "chunked"}}}}, "set by the gateway itself"),
        ({"defaults": {"response": {"headers": {"X B": "1"}}}}, "no header name"),
        ({"defaults": {"response": {"headers": {"X-B": "1\r\nX-C: 2"}}}}, "control bytes"),
    ]
    for more, what in bad:
        c = config(listen=[{"address": "127.0.0.1:8080"}])
        c.update(more)
        name = os.path.join(os.environ.get("TMPDIR", "/tmp"), "bad.yaml")
        with open(name, "w", encoding="utf-8") as f:
            json.dump(c, f)
        rc, text = run("-t", "-c", name)
        assert rc != 0 and what in text, (more, rc, text)
        assert text.count(what) == 1, (more, text)


def bad_configurations_are_told_exactly():
    """tests/data/bad-configs.json: the file, and every line that -t prints."""
    name = os.path.join(os.environ.get("TMPDIR", "/tmp"), "gateway.yaml")
    with open(os.path.join(kit.TOP, "tests/data/bad-configs.json"), encoding="utf-8") as f:
        cases = json.load(f)
    for case in cases:
        with open(name, "w", encoding="utf-8") as f:
            f.write("\n".join(case["config"]))
        rc, text = run("-t", "-c", name)
        lines = [line.replace(name, "gateway.yaml") for line in text.splitlines()]
        assert rc == 1 and lines == case["want"], (case["name"], rc, lines, case["want"])


def error_of_defaults_is_told_once():
    c = config(listen=[{"address": "127.0.0.1:8080"}], defaults={"timeout": "60s", "max_timeout": "10s"})
    name = os.path.join(os.environ.get("TMPDIR", "/tmp"), "bad.yaml")
    with open(name, "w", encoding="utf-8") as f:
        json.dump(c, f)
    rc, text = run("-t", "-c", name)
    assert rc != 0 and text.count("max_timeout") == 1, text


def many_query_parameters():
    a = kit.Stub()
    g = kit.Gateway(config())
    h = kit.Http()
    for n in (10, 150, 600):
        status, text, _ = h.post("/%s/whoami?%s" % (IFACE, "&".join("k%d=v" % i for i in range(n))), "[]")
        assert status == 200, (n, status, text)
    g.stop()
    a.kill()


def no_request_is_too_long_for_the_access_log():
    """A method of 12,000 bytes that would have to be escaped: cut, but there."""
    name = os.path.join(os.environ.get("TMPDIR", "/tmp"), "access.log")
    g = kit.Gateway(config(limits={"request_header": "64k"}, logging={"access": {"target": name}}))
    raw(b"\x01" * 12000 + b" /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    raw(b"M" * 12000 + b" /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    g.stop()
    with open(name, encoding="utf-8") as f:
        lines = [json.loads(x) for x in f]
    # Two workers may have answered them: their lines come in either order.
    assert sorted(x["method"] for x in lines) == ["\x01" * 64, "M" * 64], lines


def errors_outside_the_library_have_a_code():
    a = kit.Stub()
    g = kit.Gateway(config(limits={"request_body": "16k", "header_timeout": "1s", "body_timeout": "1s"}))
    head = b"POST /%s/whoami HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" % IFACE.encode()
    for data, status, code in (
            (head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"1" * 4096 + b"\r\n" + b"4000\r\n" + b"1" * 16384, 413,
             "REQUEST_TOO_LARGE"),
            (b"GET / HTTP/1.1\r\nHo", 408, "REQUEST_TIMEOUT"),
            (head + b"Content-Length: 10\r\n\r\n[", 408, "REQUEST_TIMEOUT")):
        answer = raw(data).decode()
        lines, body = answer.split("\r\n\r\n", 1)
        assert lines.startswith("HTTP/1.1 %d " % status) and "application/problem+json" in lines, answer
        problem = json.loads(body)
        assert (problem["status"], problem["code"]) == (status, code), answer
    g.stop()
    a.kill()


def every_reload_is_logged():
    a = kit.Stub()
    g = kit.Gateway(config())
    for i in range(3):
        g.write(config(**{"bad%d" % i: 1, "listen": [{"address": "127.0.0.1:8080"}]}))
        g.proc.send_signal(signal.SIGHUP)
        kit.wait_until(lambda: '"bad%d"' % i in g.log(), 2, "an error is in the log")  # pylint: disable=cell-var-from-loop
    g.write(config(listen=[{"address": "127.0.0.1:8081"}], admin={"listen": ["127.0.0.1:9901"]}))
    rc, text = run("reload")
    assert rc == 0 and '"listen" changed; takes effect after a restart' in text, (rc, text)
    g.stop()
    a.kill()


def why_of_a_call_that_failed():
    """Nobody listens at the registry: the start says so, and so does why."""
    g = kit.Gateway(config(registries=[{"name": "main", "address": "zookeeper://127.0.0.1:2999", "connect_timeout": "1s"}]))
    status, text, _ = kit.Http().post("/demo.Nobody/x?version=2.0", "[]")
    assert status == 503 and '"STARTING"' in text, (status, text)
    rc, text = run("why", "demo.Nobody:2.0")
    assert rc == 1 and "not connected" in text and "zookeeper://127.0.0.1:2999" in text, (rc, text)
    rc, text = run("why", "demo.Never")
    assert rc == 1 and "no such reference" in text, (rc, text)
    kit.wait_until(lambda: "no answer from zookeeper://127.0.0.1:2999" in g.log(), 5, "the log says so")
    time.sleep(0.5)
    assert g.log().count("no answer from") == 1, g.log()
    g.stop()


def drain_delay_lets_clients_leave():
    """From the signal on every answer says Connection: close while listeners stay: no client that obeys sees an error."""
    a = kit.Stub()
    g = kit.Gateway(config(process={"workers": 2, "drain_delay": "1s"}))
    end = threading.Event()
    told, errors = [], []

    def client():
        h = kit.Http()
        while not end.is_set():
            try:
                status, _, headers = h.post("/%s/whoami" % IFACE, "[]")
            except OSError as e:
                errors.append(repr(e))
                return
            if status != 200:
                errors.append(status)
            if headers.get("Connection") == "close":
                told.append(1)
                h = kit.Http()

    threads = [threading.Thread(target=client) for _ in range(16)]
    for t in threads:
        t.start()
    time.sleep(0.3)
    assert not told
    assert g.admin("/ready")[0] == 200
    g.proc.send_signal(signal.SIGTERM)
    kit.wait_until(lambda: g.admin("/ready") == (503, {"status": "draining"}), 0.5, "/ready says that it leaves")
    time.sleep(0.5)
    end.set()
    for t in threads:
        t.join()
    assert not errors and len(told) >= 16, (errors[:3], len(told))
    assert g.proc.wait(10) == 0
    a.kill()


if __name__ == "__main__":
    kit.run([drain_delay_lets_clients_leave, unix_socket_with_two_workers, configurations_that_cannot_work, bad_configurations_are_told_exactly, error_of_defaults_is_told_once, many_query_parameters, no_request_is_too_long_for_the_access_log,
             errors_outside_the_library_have_a_code, every_reload_is_logged, why_of_a_call_that_failed])
