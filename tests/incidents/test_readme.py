#!/usr/bin/env python3
"""The reader's first route: the configuration and the commands of README.md, as they stand there, against a real
ZooKeeper and the C provider.  Also every command name that README.md and --help name."""
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import gateway_kit as kit  # noqa: E402  pylint: disable=wrong-import-position

IFACE = "com.example.UserService"
USER = '{"id":42,"name":"Zo\u00eb","tags":["a","b"],"balance":12345.6700}'


def section():
    with open(os.path.join(kit.TOP, "README.md"), encoding="utf-8") as f:
        return f.read().split("## Your own ZooKeeper")[1].split("## Reading the source")[0]


def blocks():
    """The indented blocks, each as one text."""
    out, now = [], []
    for line in section().splitlines() + ["."]:
        if line.startswith("    "):
            now.append(line[4:])
        elif line.strip() or not now:
            if now:
                out.append("\n".join(now) + "\n")
            now = []
    return out


def run(command):
    args = shlex.split(command.split("  #")[0])
    if args[0].endswith("/dubbogate"):
        args[0] = os.path.join(kit.BIN, "dubbogate")
    p = subprocess.run(args, capture_output=True, text=True, check=False, timeout=20)
    return p.returncode, p.stdout, p.stderr


def commands():
    return [line for b in blocks() for line in b.splitlines()
            if line.startswith("build/release/dubbogate") or line.startswith("curl")]


def first_route():
    zk = kit.ZooKeeper().start()
    try:
        c = kit.Client()
        s = kit.Stub()
        kit.Providers(c, IFACE).add(20880)
        config = [b for b in blocks() if b.startswith("listen:")]
        assert len(config) == 1, config
        with tempfile.TemporaryDirectory() as d:
            os.chdir(d)
            text = config[0].split("build/release/")[0]
            with open("my.yaml", "w", encoding="utf-8") as f:
                f.write(text)
            g = None
            n = 0
            for command in commands():
                if command.endswith("dubbogate -c my.yaml"):
                    g = kit.Process()
                    g._start([os.path.join(kit.BIN, "dubbogate"), "-c", "my.yaml"])
                    kit.listening(8080, 15, g.proc, g.log)
                    kit.wait_until(lambda: kit.get(9901, "/ready")[0] == 200, 10, "it is ready")
                    continue
                rc, out, err = run(command)
                assert rc == 0, (command, rc, out, err)
                n += 1
                if "curl" in command or " call " in command:
                    assert out.strip() == USER, (command, out)
                elif " ls " in command or " why " in command:
                    assert IFACE in out, (command, out)
            assert g is not None and n >= 6, (g, n)
            os.chdir("/")
            assert g.kill(15) == 0, g.log()
        s.kill()
        c.close()
    finally:
        zk.close()


if __name__ == "__main__":
    kit.run([first_route])
