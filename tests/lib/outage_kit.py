"""What tests of outages share: a registry with one service, the checks at the end of each, a host whose network can be
cut without a sound, and a disk that can be full."""
import ctypes
import os
import re
import subprocess
import tempfile
import time

import gateway_kit as kit

IFACE = "demo.UserService"
PATH = "/%s/whoami" % IFACE


def client(zk):
    """A session on an empty registry, begun anew where a test left it stopped."""
    if zk.proc is None:
        zk.start()
    c = kit.Client(timeout_ms=60000)
    if c.exists("/dubbo"):
        c.delete_tree("/dubbo")
    return c


def config(**more):
    return {"registries": [{"name": "main", "address": "zookeeper://127.0.0.1:2181", "session_timeout": "4s"}],
            "services": [{"name": "user", "interface": IFACE}], "defaults": {"timeout": "3s"},
            "direct": {"enabled": True, "allow": ["*"]}, **more}


def ready(g, n, iface=IFACE):
    kit.wait_until(lambda: (g.reference(iface) or {"providers": {"usable": 0}})["providers"]["usable"] == n, 10,
                   "%d are known" % n)


def states(g, iface=IFACE):
    return sorted(x["state"] for x in g.reference(iface)["providers"]["list"])


def endpoints(g, iface=IFACE):
    """What the workers know of each address."""
    return {x["address"]: x for x in g.admin("/references/" + iface)[1]["endpoints"]}


def one_node_per_reference(c, g, ifaces):
    """A consumer node for every live reference that has providers, no other, and none that tells a time."""
    live = [r["key"] for r in g.admin("/references")[1]["references"] if r["consumer_node"]]
    found = {i: kit.consumers(c, i) for i in ifaces}
    assert sorted(i for i in found if found[i]) == sorted(live), (found, live)
    assert all(len(n) <= 1 and "timestamp" not in "".join(n) for n in found.values()), found


class Before:
    """Taken when the gateway knows its providers and serves; check() when the outage is over and no client is left."""

    ROOM = 4  # a connection that closes while we count; a file that is being saved

    def __init__(self, g):
        self.g = g
        self.files = self.count()

    def count(self):
        """Without connections of clients and of this very test, which come and go."""
        n = 0
        where = "/proc/%d/fd" % self.g.proc.pid
        ours = inodes_of_ports(self.g.proc.pid, {8080, 9901})
        for f in os.listdir(where):
            try:
                m = re.match(r"socket:\[(\d+)\]", os.readlink(where + "/" + f))
            except OSError:
                continue
            n += m is None or m.group(1) not in ours
        return n

    def check(self, c=None, ifaces=(IFACE,), more_files=0):
        kit.wait_until(lambda: self.count() <= self.files + more_files + self.ROOM, 5,
                       "descriptors are back at %d, now %d" % (self.files, self.count()))
        if c is not None:
            kit.wait_until(lambda: sum(len(kit.consumers(c, i)) for i in ifaces) == sum(
                1 for r in self.g.admin("/references")[1]["references"] if r["consumer_node"]), 8,
                           "as many consumer nodes as references")
            one_node_per_reference(c, self.g, ifaces)
        kit.wait_until(lambda: self.g.metric("dubbogate_in_flight") == 0, 3, "nothing is in flight")


def inodes_of_ports(pid, ports):
    """Sockets of the process's network whose own port is one of those."""
    out = set()
    for table in "tcp", "tcp6":
        with open("/proc/%d/net/%s" % (pid, table), encoding="ascii") as f:
            for line in f.readlines()[1:]:
                w = line.split()
                if int(w[1].rsplit(":", 1)[1], 16) in ports:
                    out.add(w[9])
    return out


def timed(h, path=PATH, body="[]"):
    """(status, code or text, seconds)"""
    begin = time.monotonic()
    status, text, _ = h.post(path, body)
    m = re.search(r'"code":"([A-Z_]+)"', text)
    return status, m.group(1) if m and status != 200 else text, time.monotonic() - begin


class Host:
    """A network of its own beside the test's, joined by a cable; what runs in it ends with the test.  cut() drops all that
    goes over the cable, both ways, without a sound: the frames get addresses that nobody has."""

    HERE, THERE = "10.9.0.1", "10.9.0.2"
    MAC_HERE, MAC_THERE, NOBODY = "02:00:00:00:09:01", "02:00:00:00:09:02", "02:00:00:00:09:77"

    def __init__(self):
        self.proc = subprocess.Popen(kit.tied(["unshare", "-n", "sleep", "1000"]))
        own = os.readlink("/proc/self/ns/net")
        kit.wait_until(lambda: os.readlink("/proc/%d/ns/net" % self.proc.pid) != own, 5, "the network is there")
        self.run("ip link add here address %s type veth peer name there address %s netns %d" % (
            self.MAC_HERE, self.MAC_THERE, self.proc.pid))
        self.run("ip addr add %s/24 dev here" % self.HERE)
        self.run("ip link set here up")
        for line in ("ip link set lo up", "ip addr add %s/24 dev there" % self.THERE, "ip link set there up"):
            self.run(line, True)
        self.heal()

    def run(self, line, inside=False):
        subprocess.run(self.inside() * inside + line.split(), check=True)

    def inside(self):
        return ["nsenter", "-t", str(self.proc.pid), "-n", "--"]

    def _neighbours(self, here, there):
        self.run("ip neigh replace %s lladdr %s dev there nud permanent" % (self.HERE, here), True)
        self.run("ip neigh replace %s lladdr %s dev here nud permanent" % (self.THERE, there))

    def cut(self):
        self._neighbours(self.NOBODY, self.NOBODY)

    def heal(self):
        self._neighbours(self.MAC_HERE, self.MAC_THERE)

    def close(self):
        self.run("ip link del here")
        self.proc.kill()
        self.proc.wait()


class SmallDisk:
    """A file system of so many blocks, in a mount namespace of this program alone."""

    def __init__(self, blocks):
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.unshare(0x20000) == 0, os.strerror(ctypes.get_errno())
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        self.dir = tempfile.mkdtemp(prefix="disk-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dk" % (4 * blocks), "tmpfs", self.dir], check=True)

    def leave(self, blocks):
        """Fills all but that."""
        if os.path.exists(self.dir + "/filler"):
            os.unlink(self.dir + "/filler")
        free = os.statvfs(self.dir).f_bavail
        with open(self.dir + "/filler", "wb") as f:
            f.write(b"x" * 4096 * (free - blocks))
        assert os.statvfs(self.dir).f_bavail == blocks

    def close(self):
        subprocess.run(["umount", "-l", self.dir], check=True)
        os.rmdir(self.dir)
