#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The manual pages and the documents say what is so, as far as a program can tell:

- each exported function has an installed page of its name, whose synopsis agrees with the header
  and which names every errno that the header names for it; so do members and enumerators;
- what pages and documents refer to is there;
- every example compiles, and those that are whole programs do what they say.

In documents a fenced block of c or cpp is a whole file; a fragment is indented. The build
directory is taken from NDA_TEST_BUILD (default: build).
"""

import concurrent.futures
import errno
import os
import re
import subprocess
import sys
import tempfile

BUILD = os.environ.get("NDA_TEST_BUILD", "build")
MAN = "docs/man"
MAPS = ["lib/ibv_extend/libibv_extend.map", "lib/nda/libnda.map"]
# Whose structures and enumerators the pages tell.
TOLD = ["bootstrap", "channel", "group", "import", "nic", "npu", "status"]
OURS = re.compile(r"nda|ibv_\w*(extend|hyroce)|verbs_register_driver_extend|libibverbs_extend")
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
C = [*os.environ.get("CC", "gcc").split(), "-std=c11", "-pedantic", *WARNINGS, "-Iinclude"]
CXX = [*os.environ.get("CXX", "g++").split(), "-std=c++17", *WARNINGS, "-Iinclude"]
# As tests/freestanding.sh has them; clang 11 does not know all of them for every processor.
DEVICE = ["clang++", "-std=c++17", "-ffreestanding", "-fno-exceptions", "-fno-rtti",
          "-fno-threadsafe-statics", "-nostdinc++", "-mgeneral-regs-only", "-O1",
          "-Wno-unused-command-line-argument", "-Itests/mock/ascendc", "-Iinclude", *WARNINGS]

passed = failed = 0


def check(what, problems):
    """Counts, and says what was wrong: problems is a text or a list, empty if all is well."""
    global passed, failed
    if not problems:
        passed += 1
        return
    failed += 1
    print("FAILED:", what)
    for problem in [problems] if isinstance(problems, str) else problems:
        print("   ", problem.strip().replace("\n", "\n    "))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def run(command, text=None, **environment):
    """What a command said if it failed, else an empty text."""
    try:
        done = subprocess.run(command, input=text, text=True, env={**os.environ, **environment},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else f"{done.stdout}\nstatus {done.returncode}"


# ---- Manual pages --------------------------------------------------------------------------


class Page:
    def __init__(self, file):
        self.file = file
        self.name, self.section = file.rsplit(".", 1)
        self.text = read(f"{MAN}/{file}")
        parts = re.split(r"^\.SH (.*)\n", self.text, flags=re.M)
        self.head = parts[0]
        self.parts = dict(zip(parts[1::2], parts[2::2]))
        names = self.parts.get("NAME", "").replace("\n", " ").split(" \\- ")[0]
        self.names = [name.strip().replace("\\-", "-") for name in names.split(",")]
        # As it is read: without fonts and escapes.
        self.plain = re.sub(r"\\f[BIR]", "", self.text).replace("\\-", "-").replace("\\e", "\\")

    def code(self, part, begin, end):
        text = self.parts.get(part, "")
        blocks = re.findall(rf"^{begin}\n(.*?)^{end}$", text, flags=re.M | re.S)
        return [block.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
                for block in blocks]

    def synopsis(self):
        return self.code("SYNOPSIS", r"\.ft B", r"\.ft R")

    def references(self):
        return {(name.replace("\\-", "-"), section) for name, section in
                re.findall(r"\\fB([\w.\\-]+)\\fR\((\d)\)", self.text)}


def load_pages():
    files = sorted(os.listdir(MAN))
    links = {file: os.readlink(f"{MAN}/{file}") for file in files
             if os.path.islink(f"{MAN}/{file}")}
    return {file: Page(file) for file in files if file not in links}, links


def exported():
    return [name for path in MAPS for name in re.findall(r"^\t(\w+);$", read(path), re.M)]


def check_names(pages, links):
    """A page is called as its title says; each of its other names is a link to it."""
    for file, page in pages.items():
        problems = []
        title = f".TH {page.name.upper()} {page.section} ".replace("-", "\\-")
        if title not in page.head.replace("-", "\\-").replace("\\\\-", "\\-"):
            problems.append(f"its title is not {title}")
        if page.name not in page.names:
            problems.append("NAME lacks its own name")
        for name in page.names:
            other = f"{name}.{page.section}"
            if name != page.name and links.get(other) != file:
                problems.append(f"{other} is no link to it")
        check(f"{file}: names", problems)
    check("links lead to pages that have their names",
          [f"{link} -> {target}" for link, target in links.items()
           if target not in pages or link.rsplit(".", 1)[0] not in pages[target].names])


def check_installed(symbols, directory):
    # The make that runs this has its own.
    environment = {"MAKEFLAGS": "", "MFLAGS": "", "MAKELEVEL": ""}
    said = run(["make", "-s", "install-man", f"DESTDIR={directory}", "PREFIX=/usr"],
               **environment)
    check("manual pages are installed", said)
    check("each exported function has a page of its name",
          [name for name in symbols
           if not os.path.exists(f"{directory}/usr/share/man/man3/{name}.3")])


def check_references(pages, links):
    there = set(pages) | set(links)
    for file, page in pages.items():
        check(f"{file}: what it refers to is there",
              [f"{name}({section})" for name, section in sorted(page.references())
               if OURS.match(name) and f"{name}.{section}" not in there])
        also = page.parts.get("SEE ALSO", "")
        check(f"{file}: SEE ALSO", "does not tell of others" if not also else
              [name for name in page.names if f"\\fB{name}\\fR(" in also])


def page_of(symbol, pages, links):
    file = f"{symbol}.3"
    return pages.get(links.get(file, file))


def check_synopsis(page):
    """Its headers declare each function, and as it is written there."""
    text = page.synopsis()[0]
    includes = "".join(re.findall(r"^#include.*\n", text, re.M))
    uses = "".join(f"\t(void)&{name};\n" for name in page.names)
    source = f"{includes}void use(void);\nvoid use(void)\n{{\n{uses}}}\n{text}"
    missing = [name for name in page.names if not re.search(rf"\b{name}\(", text)]
    return missing or run([*C, "-fsyntax-only", "-x", "c", "-"], source)


def declarations(path):
    """Names of functions, and the comment that each stands under."""
    comment = ""
    for token in re.finditer(r"/\*.*?\*/|\b(\w+)\(", read(path), re.S):
        if token[1]:
            yield token[1], comment
        else:
            comment = token[0]


def errnos(text):
    return {word for word in re.findall(r"\bE[A-Z0-9]{2,}\b", text) if hasattr(errno, word)}


def check_errnos(symbols, pages, links):
    found = {}
    headers = ["include/ibv_extend.h"] + [f"include/nda/{name}.h" for name in TOLD]
    for path in headers:
        for name, comment in declarations(path):
            if name in symbols:
                found.setdefault(name, comment)
    check("each exported function is described in a header", sorted(set(symbols) - set(found)))
    for name, comment in found.items():
        page = page_of(name, pages, links)
        if page:
            check(f"{name}: errors that the header tells are in its page",
                  sorted(errnos(comment) - errnos(page.plain)))


def check_members(pages):
    """Some page that names a structure tells of all its members; likewise enumerators."""
    texts = [page.plain for page in pages.values()]
    every = "\n".join(texts)
    for header in TOLD:
        text = read(f"include/nda/{header}.h")
        for name, comment in re.findall(r"/\*\*\n \* struct (\w+) - (.*?)\*/", text, re.S):
            members = {member for line in re.findall(r"^ \* (@.*?):", comment, re.M)
                       for member in re.findall(r"@(\w+)", line)}
            lacks = [sorted(m for m in members if not re.search(rf"\b{m}\b", page))
                     for page in texts if re.search(rf"\b{name}\b", page)]
            check(f"struct {name}: its members are in a page",
                  "no page names it" if not lacks else min(lacks, key=len))
        body = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        values = re.findall(r"^\t(NDA_\w+)(?: =|,)", body, re.M)
        check(f"nda/{header}.h: its enumerators are in a page",
              [value for value in values if not re.search(rf"\b{value}\b", every)])


def page_examples(pages):
    for page in pages.values():
        for number, block in enumerate(page.code("EXAMPLES", r"\.EX", r"\.EE")):
            what = f"{page.file}: example {number + 1}"
            if page.section == "3" or block.startswith("#include"):
                yield what, block, "cpp" if "nda/aiv/" in block else "c"


# ---- Documents -----------------------------------------------------------------------------


def documents():
    """Those of the tree; what was built, or unpacked, there is none of it."""
    found = []
    for directory, directories, files in os.walk("."):
        directories[:] = [name for name in directories if name != "build" and name[0] != "."]
        found += [os.path.relpath(f"{directory}/{file}") for file in files if file.endswith(".md")]
    return sorted(found)


def anchors(path):
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", read(path), flags=re.M | re.S),
                       re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(path):
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.exists(target):
            yield f"{link}: there is no {target}"
        elif anchor and anchor not in anchors(target):
            yield f"{link}: {target} has no such heading"


def check_mentions():
    """Documents that headers, pages and programs name."""
    done = subprocess.run(["grep", "-rnoEI", r"docs/[a-z0-9_-]+\.md", "include", "docs", "lib",
                           "providers", "kmod", "packaging", "udev",
                           "README.md"],
                          capture_output=True, text=True, check=False)
    check("documents that are named are there",
          [line for line in done.stdout.splitlines()
           if not os.path.exists(line.rsplit(":", 1)[1])])


def blocks(path):
    return re.findall(r"^```([^\n]*)\n(.*?)^```$", read(path), re.M | re.S)


def document_examples():
    for path in documents():
        for number, (language, block) in enumerate(blocks(path)):
            what = f"{path}: example {number + 1}"
            if language in ("c", "cpp"):
                yield what, block, language
            else:
                check(f"{what} is of a known language",
                      "" if language in ("", "sh", "text") else language)


def check_kernel():
    """docs/kernel.md tells of every call and parameter of the modules."""
    text = read("docs/kernel.md")
    calls = [name for header in ("nda", "nda_soft") for name in
             re.findall(r"#define (NDA_\w*IOC_\w+) _IO", read(f"include/uapi/{header}.h"))]
    sources = "".join(read(f"kmod/{file}") for file in os.listdir("kmod") if file.endswith(".c"))
    parameters = re.findall(r"^module_param\w*\((\w+),", sources, re.M)
    check("docs/kernel.md has all ioctls and parameters",
          [name for name in calls + parameters if not re.search(rf"\b{name}`", text)] or
          ("" if calls and parameters else "there are none to look for"))


def check_environment(pages):
    """Variables that the libraries read are in a page."""
    done = subprocess.run(["grep", "-rhoE", '"(NDA|IBV_EXTEND|HCCL|ASCEND)_[A-Z_]+"',
                           "lib/common", "lib/ibv_extend", "lib/nda"],
                          capture_output=True, text=True, check=False)
    every = "\n".join(page.plain for page in pages.values())
    check("environment variables are in a page",
          sorted({name for name in done.stdout.replace('"', "").split()
                  if not re.search(rf"\b{name}\b", every)}) if done.stdout else "there are none")


# ---- Examples ------------------------------------------------------------------------------


def compile_device(block, directory):
    """With a stand-in for the Ascend compiler's header, for both architectures."""
    built = tempfile.mkdtemp(dir=directory) + "/kernel.o"
    for architecture in ("2201", "3510"):
        said = run([*DEVICE, f"-DNDA_ASCEND_ARCH={architecture}", "-c", "-o", built,
                    "-x", "c++", "-"], block)
        if not said:
            calls = subprocess.run(["nm", "-u", built], capture_output=True, text=True, check=False)
            said = calls.stdout and f"calls to {calls.stdout}"
        if said:
            return f"architecture {architecture}: {said}"
    return ""


def compile_example(block, language, directory):
    if "kernel_operator.h" in block:
        return compile_device(block, directory)
    if language == "cpp":
        return run([*CXX, "-fsyntax-only", "-x", "c++", "-"], block)
    return run([*C, "-fsyntax-only", "-x", "c", "-"], block)


def only_block(path, language):
    found = [block for kind, block in blocks(path) if kind == language]
    return found[0] if len(found) == 1 else ""


def run_driver(directory):
    """The whole extension driver serves a device, and lets go of all that it takes."""
    driver, program = f"{directory}/libexample_nda.so", f"{directory}/docs_driver"
    library = [f"-L{BUILD}/lib", "-libv_extend", f"-Wl,-rpath,{os.path.abspath(BUILD)}/lib"]
    return (run([*C, "-fPIC", "-shared", "-o", driver, "-x", "c", "-"],
                only_block("docs/extension-driver.md", "c")) or
            run([*CXX, "-I.", "-o", program, "tests/mock/docs_driver.cc", *library]) or
            run([program], IBV_EXTEND_DRIVERS=driver))


def run_quickstart(directory):
    """Each PE gets what the other one sent."""
    program = f"{directory}/hello"
    library = [f"-L{BUILD}/lib", "-lnda", f"-Wl,-rpath,{os.path.abspath(BUILD)}/lib", "-pthread"]
    said = run([*CXX, "-o", program, "-x", "c++", "-", *library],
               only_block("docs/quickstart.md", "cpp"))
    if said:
        return said
    done = subprocess.run([program], capture_output=True, text=True, timeout=300, check=False)
    wanted = [f"PE {pe} got: greetings from PE {1 - pe}" for pe in (0, 1)]
    good = done.returncode == 0 and sorted(done.stdout.splitlines()) == wanted
    return "" if good else f"status {done.returncode}\n{done.stdout}{done.stderr}"


# ---- All of it -----------------------------------------------------------------------------


def main():
    if any(part.startswith("san-") for part in os.path.abspath(BUILD).split(os.sep)):
        print("SKIPPED: documents are the same in a build with sanitizers")
        print("0 passed, 0 failed, 1 skipped")
        return
    symbols = exported()
    pages, links = load_pages()
    check_names(pages, links)
    check_references(pages, links)
    check_errnos(symbols, pages, links)
    check_members(pages)
    for path in documents():
        check(f"{path}: its links lead somewhere", list(broken_links(path)))
    check_mentions()
    check_kernel()
    check_environment(pages)
    examples = [*page_examples(pages), *document_examples()]
    with tempfile.TemporaryDirectory() as directory, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        check_installed(symbols, directory)
        jobs = [("the extension driver of the documents works", pool.submit(run_driver, directory)),
                ("the first program of the documents works",
                 pool.submit(run_quickstart, directory))]
        jobs += [(f"{page.file}: its synopsis is that of the header",
                  pool.submit(check_synopsis, page))
                 for page in pages.values() if page.section == "3"]
        jobs += [(f"{what} compiles", pool.submit(compile_example, block, language, directory))
                 for what, block, language in examples]
        for what, job in jobs:
            check(what, job.result())
    print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed != 0)


main()
