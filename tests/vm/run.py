#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""run.py [--kernel NAME] [--suite WORD]... [--jobs N] BUILD-DIRECTORY [TEST...]: runs tests.

They run in virtual machines, N of which run at a time, by default as many as processors. It runs
the tests that are named, or those of the suites, or all. The kernel is that of the installed
headers, or the one that base.sh knows by NAME.

A test is a folder beside this file with an executable 'run', which says of itself in comments:

  # vm-files: FILE...       what it needs of the build directory, which is /build in the machine;
                            where a file is missing the test is skipped. What is below vm/kmod/,
                            modules, is that of the machine's kernel
  # vm-timeout: SECONDS     60 by default
  # vm-alone: REASON        has a machine of its own, beside which no other one runs
  # vm-machines: 2          is run by two machines at once, of the roles a and b, with a cable
  # vm-devices: SET...      has the PCI devices of that set (DEVICES below), none by default; of
                            several sets, it is run once with each, as TEST.SET
  # vm-append: OPTION...    appended to the kernel's command line
  # vm-modules: MODULE...   modules of the distribution's kernel that it loads, besides those that
                            every machine has; where the kernel has no such one it is skipped
  # vm-expect: OUTCOME      what passes, by default 'status 0'; or 'status N'; 'timeout';
                            'complaint REGEX': it ends well, but the kernel complains, and each
                            complaint matches; 'died REGEX': the machine ends before the test,
                            and its console matches
  # vm-suite: WORD          belongs to that suite, which other kernels run too
  # vm-when: asked          is run only when it or its suite is named, by default always

A kernel complaint (see the file complaints) that is not expected fails the test. An executable
'check' in the folder is then run here, with the folder of the logs as its argument.

Tests that agree on the devices and on what is appended run one after another in one machine, if
nothing else is said. After each, guest/init makes the machine what it was before. Once a test has
not ended as it should, the kernel has complained, or something is left, the other tests get another
machine. Tests that end the machine or need two have machines of their own, and those that make the
kernel complain come last.

Logs are in BUILD-DIRECTORY/vm/log/TEST (with --kernel in vm/kernels/NAME/log), for two machines with .a and .b: console, results (what
guest/init writes), qemu, and capture.pcap of what was on the cable.
"""

import argparse
import copy
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.relpath(__file__))
BOOT_SECONDS = 240
# After a test: what it leaves is removed, lost memory is looked for.
AFTER_SECONDS = 60
APPEND = (
    "console=ttyS0 panic=-1 oops=panic nokaslr mitigations=off random.trust_cpu=on tsc=reliable "
    "no_timer_check log_buf_len=4M quiet loglevel=4"
)
PASS, FAIL, SKIP = "PASS", "FAIL", "SKIP"
# What a test says of itself where its run does not.
SAID = {
    "alone": "",
    "append": "",
    "devices": "none",
    "expect": "status 0",
    "files": "",
    "machines": "1",
    "modules": "",
    "suite": "",
    "timeout": "60",
    "when": "always",
}
# Each set: QEMU's devices, and what is appended to the kernel's command line. Their addresses are
# those that guest/lib.sh names. edu: a DMA engine with one register that can be rung (a transfer
# to the very end of its 4 KiB buffer ends QEMU, and it does not say when a transfer is refused).
# ivshmem-plain: memory behind BAR 2. virtio-rng: interrupt vectors in BAR 1. The IOMMU has to
# come before what is behind it; caching-mode keeps the kernel from batching invalidations.
PCI = [
    "edu,dma_mask=0xffffffffffffffff,addr=04.0",
    "edu,dma_mask=0xffffffffffffffff,addr=05.0",
    "ivshmem-plain,memdev=hbm,addr=06.0",
    "virtio-rng-pci,addr=07.0",
]
# The memory is 64 MiB, in pci-gib 2 GiB, of which only what is touched is taken.
DEVICES = {
    "none": ([], ""),
    "pci": (PCI, "intel_iommu=off"),
    "pci-iommu": (
        ["intel-iommu,intremap=on,caching-mode=on"] + PCI,
        "intel_iommu=on,strict iommu=nopt iommu.strict=1",
    ),
    "pci-gib": (PCI, "intel_iommu=off"),
    "pci-iommu-lazy": (
        ["intel-iommu,intremap=on,caching-mode=off"] + PCI,
        "intel_iommu=on iommu=nopt iommu.strict=0",
    ),
}


class Test:
    """One that is run with one set of devices; label is its name, where there are more sets with
    the set's behind it."""

    def __init__(self, name):
        self.name = self.label = name
        self.folder = os.path.join(HERE, name)
        said = dict(SAID)
        run = os.path.join(self.folder, "run")
        if not os.access(run, os.X_OK):
            raise ValueError(f"no test '{name}' in {HERE}")
        with open(run) as file:
            for line in file:
                found = re.fullmatch(r"# vm-(\w+): *(.*?)\s*", line)
                if found and found[1] not in said:
                    raise ValueError(f"{run}: vm-{found[1]} is not known")
                if found:
                    said[found[1]] = found[2]
        self.files = said["files"].split()
        self.timeout = int(said["timeout"])
        self.alone = said["alone"] != ""
        self.machines = int(said["machines"])
        self.sets = said["devices"].split()
        self.devices = self.sets[0]
        self.append = said["append"]
        self.modules = said["modules"].split()
        self.suite = said["suite"]
        self.always = said["when"] == "always"
        self.expect, _, self.pattern = said["expect"].partition(" ")
        if self.expect not in ("status", "timeout", "complaint", "died"):
            raise ValueError(f"{run}: vm-expect: {self.expect} is not known")
        for devices in self.sets:
            if devices not in DEVICES:
                raise ValueError(f"{run}: vm-devices: {devices} is not known")

    def wanted(self):
        """The status that its run should end with."""
        if self.expect == "status":
            return self.pattern
        return "124" if self.expect == "timeout" else "0"

    def machine(self):
        """Tests with the same may share a machine."""
        if self.alone or self.machines > 1 or self.expect == "died":
            return self.label
        return (self.devices, self.append)

    def each(self):
        """One per set of devices."""
        for devices in self.sets:
            test = copy.copy(self)
            test.devices = devices
            if len(self.sets) > 1:
                test.label = f"{self.name}.{devices}"
            yield test


class Machine:
    """One that runs; it ends at the latest with the 'with' block."""

    def __init__(self, runner, log, role, initrd, processors, test, options):
        suffix = "." + role if role else ""
        self.role = role
        self.files = {}
        for kind in ("console", "results", "qemu"):
            self.files[kind] = os.path.join(log, kind + suffix)
            open(self.files[kind], "w").close()
        command = "qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max".split()
        command += "-nodefaults -no-user-config -display none -no-reboot".split()
        command += ["-m", runner.memory, "-smp", str(processors)]
        command += ["-kernel", os.path.join(runner.base, "kernel")]
        devices, append = DEVICES[test.devices]
        append = f"{APPEND} vm.role={role} vm.devices={test.devices} {append} {test.append}"
        append += " " + runner.append
        command += ["-initrd", initrd, "-append", append]
        command += ["-serial", "file:" + self.files["console"]]
        command += ["-serial", "file:" + self.files["results"]]
        command += ["-device", "isa-debug-exit,iobase=0x501,iosize=2"]
        size = "2G" if test.devices == "pci-gib" else "64M"
        command += ["-object", f"memory-backend-ram,id=hbm,size={size},share=on"]
        for device in devices:
            command += ["-device", device]
        self.runner = runner
        with open(self.files["qemu"], "w") as output:
            self.process = subprocess.Popen(
                command + options, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def wait(self, tests):
        """Its exit status, 'timeout' or 'died'. The exit device makes QEMU's status odd."""
        current, seconds = None, BOOT_SECONDS
        deadline = time.monotonic() + seconds * self.runner.patience
        while time.monotonic() < deadline and not self.runner.stopped:
            try:
                status = self.process.wait(0.2)
                return str(status // 2) if status > 0 and status % 2 == 1 else "died"
            except subprocess.TimeoutExpired:
                pass
            began = begun(tests, self.read("results"))
            if began and began[-1] is not current:
                current = began[-1]
                # Of two machines the one that is done first waits for the other.
                seconds = current.timeout * current.machines + AFTER_SECONDS
                deadline = time.monotonic() + seconds * self.runner.patience
        self.process.kill()
        return "timeout"

    def read(self, kind):
        with open(self.files[kind], errors="replace") as file:
            return file.read().replace("\r", "")


def begun(tests, results):
    """Those that have, in their order."""
    names = [line.split()[1] for line in results.splitlines() if line.startswith("begin ")]
    return [test for test in tests if test.name in names]


def outcome(name, results, end):
    """What became of a test: ('status', 'N'), ('timeout', ''), ('died', ''), ('left', WHAT) or
    ('skip', REASON), its seconds, and the kernel's complaints."""
    lines = results.splitlines()
    status = seconds = None

    def told(what):
        return [line.split(" ", 2)[2] for line in lines if line.startswith(f"{what} {name} ")]

    complaints, skip, left = told("complaint"), told("skip"), told("left")
    for line in lines:
        words = line.split()
        if words[:2] == ["status", name]:
            status, seconds = words[2], int(words[3]) / 1000
    last = lines[-1].split() if lines else [""]
    if status is None:
        return ("timeout" if end == "timeout" else "died", ""), seconds, complaints
    if last[:2] == ["status", name] or (last[0] == "end" and last[1] != end):
        # The machine ended right after the test, or not as it said.
        return ("died", ""), seconds, complaints
    if status == "124":
        return ("timeout", ""), seconds, complaints
    if left:
        return ("left", "; ".join(left)), seconds, complaints
    if status == "77" and skip:
        return ("skip", skip[0]), seconds, complaints
    return ("status", status), seconds, complaints


def judge(test, got, complaints, console):
    """(PASS, ''), (SKIP, reason) or (FAIL, what is wrong)."""
    kind, value = got
    unexpected = complaints
    good = kind == test.expect and kind in ("timeout", "status") and value == test.pattern
    if test.expect == "complaint":
        unexpected = [line for line in complaints if not re.search(test.pattern, line)]
        good = got == ("status", "0") and len(complaints) > len(unexpected)
    elif test.expect == "died":
        good = kind == "died" and re.search(test.pattern, console) is not None
    if unexpected:
        return FAIL, f"{kind} {value}, and the kernel complains: {unexpected[0]}"
    if good:
        return PASS, ""
    if kind == "skip":
        return SKIP, value
    return FAIL, f"{kind} {value}".rstrip() + f", not {test.expect} {test.pattern}".rstrip()


class Runner:
    def __init__(self, build, kernel):
        self.build = build
        self.vm = os.path.join(build, "vm")
        self.base = os.path.join(self.vm, "kernels", kernel) if kernel else self.vm + "/base"
        self.logs = os.path.join(self.base if kernel else self.vm, "log")
        debug = kernel == "debug"
        # The checkers need memory, and time.
        self.memory = "2048M" if debug else "1024M"
        self.append = "kasan_multi_shot dummy.numdummies=0" if debug else ""
        self.patience = 5 if debug else 1
        self.count = {PASS: 0, FAIL: 0, SKIP: 0}
        self.stopped = False
        # Held while something is said that belongs together.
        self.saying = threading.RLock()

    def report(self, test, verdict, seconds, why=""):
        reason = f": {why}" if why else ""
        with self.saying:
            self.count[verdict] += 1
            print(f"  {verdict}  {test.label} ({seconds:.1f} s){reason}", flush=True)

    def missing(self, test):
        """Why it cannot be run here, or None."""
        for file in test.files:
            if not os.path.exists(self.host_path(file)):
                return f"{file} is not built"
        with open(os.path.join(self.base, "lacks")) as file:
            lacks = file.read().split()
        for module in test.modules:
            if module in lacks:
                return f"the kernel has no module {module}"
        return None

    def host_path(self, file):
        """Of what a test names."""
        if (file + "/").startswith("vm/kmod/"):
            return os.path.join(self.base, file[len("vm/") :])
        return os.path.join(self.build, file)

    def run_all(self, tests, jobs):
        """Runs them all, so many machines at a time."""
        with ThreadPoolExecutor(jobs) as pool:
            together = groups(test for test in tests if not test.alone)
            try:
                for done in [pool.submit(self.run, group) for group in together]:
                    done.result()
            except BaseException:
                # The machines are to end too.
                self.stopped = True
                raise
        for group in groups(test for test in tests if test.alone):
            self.run(group)

    def run(self, tests):
        """Runs them in one machine, or in more where a test does not leave it as it was."""
        while tests and not self.stopped:
            tests = self.share(tests)

    def share(self, tests):
        """Runs tests in one machine, or one test in two, and answers which it did not come to."""
        machines, ends, log, took = self.boot(tests, tests[0].label)
        if self.stopped:
            return []
        began = begun(tests, machines[0].read("results")) if machines else []
        with self.saying:
            if began and len(tests) > 1:
                labels = " ".join(test.label for test in began)
                print(f"  VM    {labels} ({took:.1f} s)", flush=True)
            if not began:
                # The next machine would not come further.
                why = f"the machine ends before a test begins: {ends[0]}" if ends else ""
                for test in tests:
                    self.report(test, FAIL, took, why or "cannot be packed")
                for machine in machines:
                    self.show(tests[0], log, [machine])
                return []
        for test in began:
            verdict, seconds, why = self.judge(test, log, machines, ends)
            if verdict == FAIL and test is not began[0]:
                why += self.alone(test)
            with self.saying:
                self.report(test, verdict, took if len(tests) == 1 else seconds or 0, why)
                if verdict == FAIL:
                    self.show(test, log, machines)
        return [test for test in tests if test not in began]

    def alone(self, test):
        """Whether a test that failed behind others also fails without them: it remains failed."""
        machines, ends, log, _ = self.boot([test], test.label + ".alone")
        passes = bool(machines) and self.judge(test, log, machines, ends)[0] != FAIL
        return f" (in a machine of its own it {'passes' if passes else 'fails too'}, see {log})"

    def boot(self, tests, label):
        """The machines that have run them, how these ended, the folder of the logs, seconds."""
        begin = time.monotonic()
        log = self.new_log(tests, label)
        with tempfile.TemporaryDirectory() as work:
            try:
                initrd = self.pack(work, tests)
            except subprocess.CalledProcessError:
                return [], [], log, 0
            machines, ends = self.let_run(work, log, initrd, tests)
        return machines, ends, log, time.monotonic() - begin

    def new_log(self, tests, label):
        """A folder of that name, to which the other tests' names link."""
        os.makedirs(self.logs, exist_ok=True)
        folder = os.path.join(self.logs, label)
        for path in [folder] + [os.path.join(self.logs, test.label) for test in tests[1:]]:
            if os.path.islink(path):
                os.unlink(path)
            shutil.rmtree(path, ignore_errors=True)
        os.mkdir(folder)
        for test in tests[1:]:
            os.symlink(label, os.path.join(self.logs, test.label))
        return folder

    def pack(self, work, tests):
        """What the machine starts from: the base and an archive with the tests."""
        plan, overlay, initrd = (os.path.join(work, n) for n in ("tests", "overlay", "initrd"))
        with open(plan, "w") as file:
            file.writelines(
                f"{test.name} {test.timeout * self.patience} {test.wanted()}\n" for test in tests
            )
        command = [os.path.join(HERE, "pack.py"), "--build", self.build]
        command += ["--has", os.path.join(self.base, "base.cpio.list"), overlay]
        command.append(plan + "=/vm/tests")
        for part in ("guest/lib.sh", "guest/state.sh", "complaints"):
            command.append(f"{HERE}/{part}=/vm/{os.path.basename(part)}")
        command.append(f"{HERE}/guest/init=/init")
        for test in tests:
            command.append(f"{test.folder}=/vm/{test.name}")
            command += [f"{self.host_path(file)}=/build/{file}" for file in test.files]
        subprocess.run(command, check=True)
        with open(initrd, "wb") as joined:
            for part in (os.path.join(self.base, "base.cpio"), overlay):
                with open(part, "rb") as file:
                    shutil.copyfileobj(file, joined)
        return initrd

    def let_run(self, work, log, initrd, tests):
        """Runs the machines to their ends."""
        if tests[0].machines == 1:
            with Machine(self, log, "", initrd, 2, tests[0], []) as machine:
                return [machine], [machine.wait(tests)]
        capture = f"filter-dump,id=dump,netdev=wire,file={log}/capture.pcap,maxlen=65535"
        a_options = cable(work, "a", "b") + ["-object", capture]
        b_options = cable(work, "b", "a")
        with Machine(self, log, "a", initrd, 1, tests[0], a_options) as a:
            with Machine(self, log, "b", initrd, 1, tests[0], b_options) as b:
                return [a, b], [a.wait(tests), b.wait(tests)]

    def judge(self, test, log, machines, ends):
        """Its verdict, its seconds, and what is wrong."""
        for machine, end in zip(machines, ends):
            got, seconds, complaints = outcome(test.name, machine.read("results"), end)
            verdict, why = judge(test, got, complaints, machine.read("console"))
            if verdict != PASS:
                return verdict, seconds, f"machine {machine.role}: {why}" if machine.role else why
        check = os.path.join(test.folder, "check")
        if os.access(check, os.X_OK):
            with open(os.path.join(log, "check"), "w") as output:
                done = subprocess.run([check, log], stdout=output, stderr=output)
            if done.returncode != 0:
                return FAIL, seconds, f"{check} fails"
        return PASS, seconds, ""

    @staticmethod
    def show(test, log, machines):
        """The last lines of what the machines and the check printed of the test."""
        texts = [machine.read("qemu") for machine in machines]
        for machine in machines:
            begin = f"vm: {test.name} begins\n"
            before, found, after = machine.read("console").partition(begin)
            said = re.split(r"^vm: \S+ begins$", after, 1, re.M)[0]
            texts.append(found + said if found else before)
        check = os.path.join(log, "check")
        if os.path.exists(check):
            with open(check) as file:
                texts.append(file.read())
        for text in texts:
            print("".join(f"        {line}\n" for line in text.splitlines()[-60:]), end="")


def cable(work, here, there):
    """QEMU's options for one end of the cable: a datagram is a frame."""
    return [
        "-netdev",
        f"dgram,id=wire,local.type=unix,local.path={work}/{here},"
        f"remote.type=unix,remote.path={work}/{there}",
        "-device",
        f"virtio-net-pci,netdev=wire,host_mtu=4200,romfile=,mac=52:54:00:00:00:0{here}",
    ]


def groups(tests):
    """Lists of tests that share a machine, those that may take longest first."""
    found = {}
    for test in tests:
        found.setdefault(test.machine(), []).append(test)
    for group in found.values():
        # A machine in which the kernel has complained is not used further.
        group.sort(key=lambda test: test.expect == "complaint")
    return sorted(found.values(), key=lambda group: -sum(test.timeout for test in group))


def every_test():
    return sorted(n for n in os.listdir(HERE) if os.path.exists(os.path.join(HERE, n, "run")))


def main():
    # So that machines are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel")
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    runner = Runner(args.build, args.kernel)
    base = [os.path.join(HERE, "base.sh"), runner.vm] + ([args.kernel] if args.kernel else [])
    try:
        named = [Test(name) for name in dict.fromkeys(args.names or every_test())]
        if args.suite:
            named = [test for test in named if test.suite in args.suite]
        asked = args.names or args.suite
        tests = [test for one in named if asked or one.always for test in one.each()]
        subprocess.run(base, check=True)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"run.py: {error}")
    ready = []
    for test in tests:
        missing = runner.missing(test)
        if missing:
            runner.report(test, SKIP, 0, missing)
        else:
            ready.append(test)
    runner.run_all(ready, args.jobs)
    passed, failed, skipped = (runner.count[verdict] for verdict in (PASS, FAIL, SKIP))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(0 if passed and not failed else 1)


if __name__ == "__main__":
    main()
