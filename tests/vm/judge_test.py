#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What run.py makes of a machine's results: above all, that nothing bad passes."""

import sys
import types

sys.dont_write_bytecode = True
from run import FAIL, PASS, SKIP, begun, groups, judge, outcome

WARNING = "complaint t [ 1.0] WARNING: CPU: 0\n"
OTHER = "complaint t [ 2.0] BUG: KASAN\n"
ALIEN = "complaint u [ 2.0] BUG: KASAN\n"
LEFT = "left t module nda\n"
SKIPPED = "skip t no device\nstatus t 77 10\nend 0\n"
PANIC = "[ 1.0] Kernel panic - not syncing\n"


def ended(status):
    return f"status t {status} 10\nend {status}\n"


# Name, vm-expect, results, the machine's end, console, verdict
CASES = [
    ("status 0 passes", "status 0", ended(0), "0", "", PASS),
    ("another status fails", "status 0", ended(3), "3", "", FAIL),
    ("a status that is expected passes", "status 3", ended(3), "3", "", PASS),
    ("status 0 fails where another is expected", "status 3", ended(0), "0", "", FAIL),
    ("no result at all fails", "status 0", "", "0", "", FAIL),
    ("another test's result is its own", "status 0", "status tt 0 9\nend 0", "0", "", FAIL),
    ("a machine that dies in it fails", "status 0", "", "died", PANIC, FAIL),
    ("a machine that dies after it fails", "status 0", "status t 0 10\n", "died", PANIC, FAIL),
    ("it stands when a later one dies", "status 0", "status t 0 9\nstatus u 0 9\n", "died", "", PASS),
    ("another end than was said fails", "status 0", ended(0), "1", "", FAIL),
    ("a hanging machine fails", "status 0", "", "timeout", "", FAIL),
    ("a hanging test fails", "status 0", ended(124), "124", "", FAIL),
    ("a time-out that is expected passes", "timeout", ended(124), "124", "", PASS),
    ("ending fails where a time-out is expected", "timeout", ended(0), "0", "", FAIL),
    ("a complaint fails", "status 0", WARNING + ended(0), "0", "", FAIL),
    ("one that is expected passes", "complaint WARNING", WARNING + ended(0), "0", "", PASS),
    ("its absence fails", "complaint WARNING", ended(0), "0", "", FAIL),
    ("one beside it fails", "complaint WARNING", WARNING + OTHER + ended(0), "0", "", FAIL),
    ("a status beside it fails", "complaint WARNING", WARNING + ended(1), "1", "", FAIL),
    ("another test's complaint is its own", "status 0", ALIEN + ended(0), "0", "", PASS),
    ("a death that is expected passes", "died Kernel panic", "", "died", PANIC, PASS),
    ("another death fails", "died Kernel panic", "", "died", "", FAIL),
    ("living fails where it should die", "died Kernel panic", ended(0), "0", PANIC, FAIL),
    ("77 with a reason is a skip", "status 0", SKIPPED, "0", "", SKIP),
    ("77 without a reason fails", "status 0", "status t 77 1\nend 0\n", "0", "", FAIL),
    ("a skip with a complaint fails", "status 0", WARNING + SKIPPED, "0", "", FAIL),
    ("leaving something fails", "status 0", LEFT + ended(0), "0", "", FAIL),
    ("leaving something at an expected status fails", "status 3", LEFT + ended(3), "3", "", FAIL),
    ("leaving something at a skip fails", "status 0", LEFT + SKIPPED, "0", "", FAIL),
    ("what another leaves is its own", "status 0", "left u module nda\n" + ended(0), "0", "", PASS),
]


def a_test(name, machine="m", expect="status", timeout=60):
    return types.SimpleNamespace(
        name=name, label=name, machine=lambda: machine, expect=expect, timeout=timeout
    )


def shared(*tests):
    """The names of those that share a machine, by machine."""
    return [" ".join(test.name for test in group) for group in groups(tests)]


t, u = a_test("t"), a_test("u")
# Name, what is found, what should be
OTHERS = [
    ("alike tests share a machine", shared(t, u), ["t u"]),
    ("others do not", shared(t, a_test("u", "n")), ["t", "u"]),
    ("the kernel complains last", shared(a_test("t", expect="complaint"), u), ["u t"]),
    ("long ones come first", shared(t, a_test("u", "n", timeout=61)), ["u", "t"]),
    ("none has begun", begun([t, u], ""), []),
    ("one has begun", begun([t, u], "begin t\nstatus t 0 9\nend 0\n"), [t]),
    ("one that died has begun", begun([t, u], "begin t\nstatus t 0 9\nbegin u\n"), [t, u]),
    ("half a name is none", begun([a_test("tt")], "begin t"), []),
]


def main():
    failed = 0
    for name, expected, results, end, console, verdict in CASES:
        expect, _, pattern = expected.partition(" ")
        test = types.SimpleNamespace(expect=expect, pattern=pattern)
        got, _, complaints = outcome("t", results, end)
        found, why = judge(test, got, complaints, console)
        if found != verdict:
            failed += 1
            print(f"{name}: {found} ({why}), not {verdict}")
    for name, found, wanted in OTHERS:
        if found != wanted:
            failed += 1
            print(f"{name}: {found}, not {wanted}")
    print(f"{len(CASES) + len(OTHERS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
