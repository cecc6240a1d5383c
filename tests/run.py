#!/usr/bin/env python3
"""Runs the suites that need real or scripted peers: every tests/SUITE/test_*.py, one after another.

usage: tests/run.py SUITE… [-k NAME…] [-j N]   e2e incidents interop stress; NAME = part of a test's name or of a file's;
       N files at once (1: many tests measure time)
       VARIANT=debug|asan  LINE=2.6|2.7|3.2|3.3  TIMEOUT=seconds for one file (900)

Each file is a program that makes its own network namespace and prints "ok NAME", "FAIL NAME" and
"N passed, N failed[, N skipped]" (tests/lib/registry_kit.py, run()).  It gets a directory of its own,
build/test/SUITE-NAME, for everything it writes, and when it ends, or does not, nothing that it started stays.
Directories of files that passed are removed."""
import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NUMBERS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
TIMEOUT = float(os.environ.get("TIMEOUT", "900"))
TAIL = 60
at_work = set()  # process groups, one per file
printing = threading.Lock()


def holds_name(path, names):
    """Does the file, by its own name or by that of a test, hold one of those asked for?  Many tests have no name in
    the text (one per row of a table), so the file is asked."""
    if not names or any(n in os.path.basename(path) for n in names):
        return True
    listed = subprocess.run([sys.executable, path], env=dict(os.environ, LIST_TESTS="1"), stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, check=False)
    # one that cannot even say its names is to be seen to fail
    return listed.returncode != 0 or any(n in test for n in names for test in listed.stdout.splitlines())


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def play(suite, path, names):
    """One file: (passed, failed, skipped)."""
    name = "%s-%s" % (suite, os.path.basename(path)[len("test_"):-len(".py")])
    where = os.path.join(TOP, "build", "test", name)
    shutil.rmtree(where, ignore_errors=True)
    os.makedirs(where)
    chosen = [] if any(n in os.path.basename(path) for n in names) else names
    proc = subprocess.Popen([sys.executable, path] + chosen, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=dict(os.environ, TMPDIR=where), start_new_session=True,
                            text=True, errors="replace", cwd=TOP)
    at_work.add(proc.pid)
    late = threading.Event()

    def give_up():
        late.set()
        end_group(proc.pid)

    timer = threading.Timer(TIMEOUT, give_up)
    timer.start()
    numbers, lines = None, []
    with open(os.path.join(where, "log"), "w", encoding="utf-8") as log:
        for line in proc.stdout:
            log.write(line)
            lines.append(line)
            m = NUMBERS.match(line.strip())
            if m:
                numbers = [int(n or 0) for n in m.groups()]
            elif line.startswith(("ok ", "FAIL ")):
                with printing:
                    sys.stdout.write(line)
                    sys.stdout.flush()
    os.waitid(os.P_PID, proc.pid, os.WEXITED | os.WNOWAIT)  # not reaped yet: the number is still its own
    timer.cancel()
    end_group(proc.pid)
    at_work.discard(proc.pid)
    rc = proc.wait()
    with printing:
        return report(name, where, numbers, lines, rc, late.is_set())


def report(name, where, numbers, lines, rc, late):
    """What a file that ended leaves on the screen and on the disk; its numbers."""
    if numbers is None or (rc != 0 and numbers[1] == 0):
        print("FAIL    %s: %s" % (name, "not done after %g s" % TIMEOUT if late else "it ended with %d" % rc))
        # what it had counted by itself is lost with it
        good = sum(1 for x in lines if x.startswith("ok "))
        bad = sum(1 for x in lines if x.startswith("FAIL "))
        numbers = [good, bad + 1, 0]
    if numbers[1]:
        print("---- %s/log" % os.path.relpath(where, TOP))
        sys.stdout.writelines(lines[-TAIL:])
    elif numbers[2]:
        sys.stdout.writelines(lines[-3:])
    else:
        shutil.rmtree(where, ignore_errors=True)
    sys.stdout.flush()
    return numbers


def play_all(files, names, jobs):
    """The sums. Ended from outside (Ctrl-C, SIGTERM), it takes along what the files have started."""
    total = [0, 0, 0]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        for done in [pool.submit(play, suite, path, names) for suite, path in files]:
            total = [x + y for x, y in zip(total, done.result())]
    except BaseException as e:
        if isinstance(e, Exception):
            traceback.print_exc()
        printing.acquire()  # no file can end and make room for the next
        for pid in list(at_work):
            end_group(pid)
        sys.stdout.flush()
        os._exit(143)
    return total


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("suites", nargs="+", choices=["e2e", "incidents", "interop", "stress"])
    ap.add_argument("-k", dest="names", action="extend", nargs="+", default=[])
    ap.add_argument("-j", dest="jobs", type=int, default=1)
    a = ap.parse_args()
    begin = time.monotonic()
    files = [(suite, path) for suite in a.suites
             for path in sorted(glob.glob(os.path.join(TOP, "tests", suite, "test_*.py"))) if holds_name(path, a.names)]
    total = play_all(files, a.names, max(a.jobs, 1))
    if a.names and not any(total):
        print("FAIL    no test is called %s" % " ".join(a.names))
        total[1] = 1
    print("%.0f s" % (time.monotonic() - begin))
    print("%d passed, %d failed%s" % (total[0], total[1], ", %d skipped" % total[2] if total[2] else ""))
    sys.exit(1 if total[1] else 0)


if __name__ == "__main__":
    main()
