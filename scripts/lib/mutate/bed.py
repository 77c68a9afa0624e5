# SPDX-License-Identifier: MIT OR GPL-2.0
"""Copies of a tree, what is built in them, and which tests run which lines."""

import collections
import fnmatch
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import threading
import time

from mutate import mutants

SCRIPTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
GROUPS = ("unit", "fabric", "net", "spawn", "cli", "docs")
TARGETS = ("lib", "tools", "examples", "unit-tests", "fabric-tests", "net-tests", "spawn-tests")
# How each build is made. Sanitizers see what results do not show: leaks, use after free.
FLAVOURS = {
    "cov": ["CFLAGS=-O0 -g --coverage -fprofile-update=prefer-atomic",
            "CPPFLAGS=-DUNIT_COVERAGE -include {directory}/count_exit.h"],
    "asan": ["CFLAGS=-O1", "SANITIZE=address,undefined"],
    "plain": ["CFLAGS=-O2"],
}
# A mutant may kill or signal what it likes: processes, mounts and addresses are the test's own.
JAIL = ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc"]
INNER = 'ip link set lo up; "$@"; exit $?'
# What a module or an RDMA device is needed for, and the tests that have them
IN_VM = (
    ("lib/fabric/verbs*.c", ["fabric.sh"]),
    ("lib/mem/r[ce]*.c", ["t_pool_rdma"]),
    ("lib/mem/gid.c", ["t_pool_rdma", "cli_probe.sh"]),
    ("lib/mem/device*.c", ["cli_probe.sh", "t_pool_rdma", "t_rdma_gone"]),
    ("lib/mem/*", ["t_pool_life", "t_pool_edge", "t_pool_rdma"]),
    ("lib/ring/*", ["t_library"]),
    ("lib/net/*", ["net.sh"]),
    ("lib/spawn/*", ["spawn.sh"]),
    ("tools/ringgate-probe/pool*", ["cli_pool.sh"]),
    ("tools/ringgate-probe/*", ["cli_probe.sh"]),
    ("tools/ringgate/doctor*", ["cli_module.sh", "cli_probe.sh"]),
    ("tools/ringgate/*", ["cli_module.sh"]),
)


class Trouble(Exception):
    """What keeps the whole run from going on, for the user."""


def compiler():
    return os.environ.get("CC") or ("ccache gcc" if shutil.which("ccache") else "gcc")


def digest(*paths):
    """Of the contents of files and of all files below directories."""
    total = hashlib.sha256()
    for path in paths:
        names = [path]
        if os.path.isdir(path):
            names = sorted(os.path.join(at, name) for at, _, files in os.walk(path) for name in files)
        for name in names:
            if os.path.isfile(name):
                with open(name, "rb") as file:
                    total.update(name.encode() + b"\0" + file.read())
    return total.hexdigest()


class Tree:
    """A copy of the checkout, with builds beside it."""

    def __init__(self, top, directory):
        self.top = top
        self.path = os.path.join(directory, "tree")
        self.directory = directory
        self.temporary = os.path.join(directory, "tmp")
        os.makedirs(self.path, exist_ok=True)
        os.makedirs(self.temporary, exist_ok=True)
        os.chmod(self.temporary, 0o1777)
        self._bring(os.path.join(SCRIPTS, "lib/mutate/count_exit.h"), os.path.join(directory, "count_exit.h"))
        self._copy()

    @staticmethod
    def _bring(source, target):
        """A file's time stays where it is the same: all that is counted includes one of these."""
        if same(source, target):
            return
        shutil.copyfile(source, target)
        shutil.copymode(source, target)

    def _copy(self):
        """What git knows or does not ignore; times stay, so that make builds what changed."""
        listed = subprocess.run(["git", "-C", self.top, "ls-files", "-z", "-co", "--exclude-standard", "."],
                                capture_output=True, check=True).stdout.decode()
        wanted = {name for name in listed.split("\0") if name and os.path.isfile(os.path.join(self.top, name))}
        for at, _, files in os.walk(self.path):
            for name in files:
                path = os.path.join(at, name)
                if os.path.relpath(path, self.path) not in wanted:
                    os.remove(path)
        for name in wanted:
            source, target = os.path.join(self.top, name), os.path.join(self.path, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            self._bring(source, target)
        cache, link = os.path.join(self.top, ".cache"), os.path.join(self.path, ".cache")
        if os.path.isdir(cache) and not os.path.lexists(link):
            os.symlink(os.path.realpath(cache), link)

    def build_dir(self, flavour):
        return os.path.join(self.directory, flavour)

    def make(self, flavour, targets, *more):
        """(exit status, output) of make."""
        # Not with CCACHE_BASEDIR: it names objects in the .d files as make does not, so that what
        # includes a header that changed stays as it is.
        environment = dict(os.environ, CCACHE_NOHASHDIR="1")
        environment.pop("CCACHE_BASEDIR", None)
        done = subprocess.run(["make", "-s", "-j2", f"O={self.build_dir(flavour)}", f"CC={compiler()}", "WERROR=0",
                               *(flag.format(directory=self.directory) for flag in FLAVOURS[flavour]), *more, *targets], cwd=self.path, env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", check=False)
        return done.returncode, done.stdout

    def build(self, flavour, targets=TARGETS):
        status, output = self.make(flavour, targets)
        if status:
            raise Trouble(f"the tree does not build ({flavour}):\n{output[-2000:]}")

    def commands(self):
        """How each C file is compiled: {source: [argument]}."""
        status, output = self.make("plain", TARGETS, "-nB", "V=1")
        if status:
            raise Trouble(f"make -n: {output[-2000:]}")
        found = {}
        for line in output.splitlines():
            if " -c -o " in line and line.endswith(".c"):
                words = shlex.split(line)
                found.setdefault(words[-1], words)
        return found

    def write(self, name, content):
        with open(os.path.join(self.path, name), "wb") as file:
            file.write(content)

    def read(self, name):
        with open(os.path.join(self.path, name), "rb") as file:
            return file.read()


def same(one, other):
    try:
        with open(one, "rb") as a, open(other, "rb") as b:
            return a.read() == b.read()
    except OSError:
        return False


class Program:
    """A test program or script, by its path in the tree."""

    def __init__(self, group, name, source):
        self.group = group
        self.name = name  # tests/unit/test_x, or tests/cli/x.sh
        self.source = source
        self.script = name.endswith(".sh")
        self.needs = []  # targets of make besides itself
        self.seconds = {}  # of each build that it runs in

    def path(self, tree, flavour):
        return os.path.join(tree.path if self.script else tree.build_dir(flavour), self.name)


def programs(tree):
    found = []
    for group in GROUPS:
        directory = os.path.join(tree.path, "tests", group)
        for name in sorted(os.listdir(directory) if os.path.isdir(directory) else []):
            path = f"tests/{group}/{name}"
            if name.endswith(".c") and group not in ("cli", "docs"):
                found.append(Program(group, path[:-2], path))
            elif name.endswith(".sh"):
                found.append(Program(group, path, path))
    return found


class Result:
    """Of one run of one program."""

    def __init__(self, status, output, seconds):
        self.passed = status == 0
        self.output = output
        self.seconds = seconds
        count = re.findall(r"^(\d+) passed, ", output, re.M)
        self.results = int(count[-1]) if count else 0
        self.skipped = bool(re.search(r"^\d+ passed, .*skipped$", output, re.M))


def jailed(command, **more):
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return subprocess.run([*JAIL, *user, "bash", "-c", INNER, "mutate", *command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, **more)


def run_program(tree, program, flavour, limit, **variables):
    environment = dict(os.environ, RGATE_BUILD=tree.build_dir(flavour), TMPDIR=tree.temporary, **variables)
    start = time.monotonic()
    done = jailed([os.path.join(SCRIPTS, "run-tests"), "--limit", str(limit), program.path(tree, flavour)],
                  cwd=tree.path, env=environment)
    return Result(done.returncode, done.stdout, time.monotonic() - start)


def clear(directory):
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.remove(path)


class Coverage:
    """{file: {line: {program}}}, and the same for whole functions."""

    def __init__(self):
        self.lines = collections.defaultdict(lambda: collections.defaultdict(set))
        self.functions = collections.defaultdict(lambda: collections.defaultdict(set))
        self.inside = collections.defaultdict(dict)  # file: line: function

    def add(self, program, counted):
        for file, lines, functions, inside in counted:
            for line in lines:
                self.lines[file][line].add(program)
            for function in functions:
                self.functions[file][function].add(program)
            for line, function in inside:
                self.inside[file][line] = function

    def seen_by(self, file, line):
        """The programs that run the line. One that runs the function may do so in a
        process that ends without counting. What has no code of its own, as the size of an
        array, is of the function that has the last code before it."""
        by_line = self.lines[file].get(line)
        if by_line:
            return set(by_line)
        before = [known for known in self.inside[file] if known <= line]
        function = self.inside[file][max(before)] if before else None
        return set(self.functions[file].get(function, ()))

    def touched(self, file):
        return bool(self.lines.get(file))


def count(tree, program, scratch, limit):
    """Run a program that counts; (result, [(file, lines, functions, lines of functions)], needs)."""
    build = tree.build_dir("cov")
    shutil.rmtree(scratch, ignore_errors=True)
    for at, _, _ in os.walk(os.path.join(build, "obj")):
        path = scratch + at
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o777)  # some processes are other users
    result = run_program(tree, program, "cov", limit, GCOV_PREFIX=scratch)
    counted, needs = {}, set()
    for at, _, files in os.walk(scratch + os.path.join(build, "obj")):
        data = [name for name in files if name.endswith(".gcda")]
        if not data:
            continue
        original = at[len(scratch):]
        for name in data:
            notes = name[:-5] + ".gcno"
            os.symlink(os.path.join(original, notes), os.path.join(at, notes))
        add_counts(tree, at, data, counted)
        part = os.path.relpath(original, os.path.join(build, "obj"))
        if part.startswith("tools/"):
            needs.add("tools")
        elif part.startswith("Documentation/examples"):
            needs.add("examples")
    shutil.rmtree(scratch, ignore_errors=True)
    return result, [(file, sorted(a), sorted(b), sorted(c)) for file, (a, b, c) in counted.items()], sorted(needs)


def add_counts(tree, directory, data, counted):
    output = subprocess.run(["gcov", "-j", "-t", *(os.path.join(directory, name) for name in data)],
                            cwd=tree.path, capture_output=True, text=True, errors="replace", check=False).stdout
    for document in output.splitlines():
        try:
            files = json.loads(document)["files"]
        except ValueError:
            continue
        for file in files:
            name = os.path.relpath(os.path.join(tree.path, file["file"]), tree.path)
            if not re.match(r"(lib|tools)/", name):
                continue
            lines, functions, inside = counted.setdefault(name, (set(), set(), set()))
            lines.update(x["line_number"] for x in file["lines"] if x["count"])
            functions.update(x["name"] for x in file["functions"] if x["execution_count"])
            inside.update((x["line_number"], x["function_name"]) for x in file["lines"] if "function_name" in x)


class Bed:
    """Trees for as many workers as there are, and what is known of the programs."""

    def __init__(self, top, directory, jobs, tests, say):
        self.directory = directory
        self.tests = tests
        self._lock = threading.Lock()
        self.say = say
        self.trees = [Tree(top, os.path.join(directory, str(number))) for number in range(jobs)]
        self.commands = self.trees[0].commands()
        self.coverage = Coverage()
        self.programs = {}
        self.unused = []  # (program, why)
        self.vm_lock = threading.Lock()
        self._vm_times = {}

    # Programs

    def prepare(self):
        """Build, count, and see what passes unmutated."""
        cov = self.trees[0]
        self.say("building for gcov")
        cov.build("cov")
        self.say("building with sanitizers")
        each(self.trees, lambda tree, _: tree.build("asan"), range(len(self.trees)), pinned=True)
        known = self._known()
        everything = [program for program in programs(cov) if fnmatch.fnmatch(program.name, self.tests)]
        if not everything:
            raise Trouble(f"no test matches '{self.tests}'")
        common = digest(os.path.join(SCRIPTS, "lib/mutate/count_exit.h"),
                        *(os.path.join(cov.path, name) for name in ("lib", "tools", "uapi", "Makefile")))
        todo = []
        for program in everything:
            program.key = self._key(cov, program, common)
            if known.get(program.name, {}).get("key") != program.key:
                todo.append(program)
        start = time.monotonic()
        done = [0]

        def measure(tree, program):
            entry = self._measure(tree, program)
            with self._lock:
                known[program.name] = entry
                self._save(known)
            done[0] += 1
            left = (time.monotonic() - start) / done[0] * (len(todo) - done[0])
            self.say(f"[{done[0]:3}/{len(todo)}] which lines does {program.name} run? {left / 60:.0f} min left")

        each(self.trees, measure, todo)
        for program in everything:
            self._take(program, known[program.name])

    def _file(self):
        return os.path.join(self.directory, "coverage.json")

    def _save(self, known):
        """After each, so that an end in between costs nothing"""
        with open(self._file() + ".new", "w", encoding="utf-8") as file:
            json.dump(known, file)
        os.replace(self._file() + ".new", self._file())

    def _known(self):
        try:
            with open(self._file(), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    def _key(self, tree, program, common):
        library = os.path.join(tree.path, os.path.dirname(program.source), "lib")
        return common + digest(os.path.join(tree.path, program.source), library)

    def _measure(self, tree, program):
        """Counted in the tree that is built for it; timed where mutants will run."""
        entry = {"key": program.key, "seconds": {}, "why": ""}
        with tempdir(tree, "gcov") as scratch:
            result, entry["counted"], entry["needs"] = count(self.trees[0], program, scratch, 600)
        if not entry["counted"]:
            entry["why"] = "runs nothing of lib/ or tools/"
            return entry
        results = 0
        for flavour in ("asan", "plain"):
            if flavour == "plain":
                tree.build("plain", self.targets(program, entry["needs"], tree, "plain"))
            for _ in range(2):
                result = run_program(tree, program, flavour, 600)
                if result.passed:
                    break
            # Without sanitizers, too, where more is tried then.
            if result.passed and result.results > results:
                entry["seconds"][flavour], results = result.seconds, result.results
            if result.passed and not result.skipped:
                break
        if not entry["seconds"]:
            entry["why"] = "fails unmutated: " + (last_complaint(result.output) or "?")
        return entry

    def _take(self, program, entry):
        program.needs = entry["needs"]
        program.seconds = entry["seconds"]
        if not entry["seconds"]:
            self.unused.append((program.name, entry["why"]))
            return
        self.programs[program.name] = program
        self.coverage.add(program.name, entry["counted"])

    def targets(self, program, needs, tree, flavour):
        own = [] if program.script else [program.path(tree, flavour)]
        return own + list(needs)

    def seen_by(self, mutant):
        """[(seconds, program, build)] of what runs the mutant's line, quickest first."""
        return sorted(((seconds, self.programs[name], flavour)
                       for name in self.coverage.seen_by(mutant.file, mutant.line)
                       for flavour, seconds in self.programs[name].seconds.items()),
                      key=lambda run: run[0])

    # Mutants before they run

    def compiled_as(self, name):
        """The C files that show what a change of `name` means: itself, or who includes it."""
        if name in self.commands:
            return [name]
        needle = f" {name} "
        users = []
        for source in self.commands:
            path = os.path.join(self.trees[0].build_dir("cov"), "obj", source[:-2] + ".d")
            try:
                with open(path, encoding="utf-8") as file:
                    text = file.read().replace("\\\n", " ").replace("\n", " ") + " "
            except OSError:
                continue
            if needle in text and source.startswith(("lib/", "tools/")):
                users.append(source)
        return users[:3]

    def mutants_of(self, name):
        """All that can be changed in the file `name`; nothing where nothing here compiles it."""
        users = self.compiled_as(name)
        if not users:
            return []
        tree = self.trees[0].path
        arguments = [f"-I{os.path.join(tree, word[2:])}" if word.startswith("-I") else word
                     for word in self.commands[users[0]] if re.match(r"-(I|D|std=)", word)]
        return mutants.find(name, os.path.join(tree, name), os.path.join(tree, users[0]), arguments)

    def machine_code(self, tree, name):
        """Of what `name` is compiled into; None where it does not compile."""
        code = []
        for source in self.compiled_as(name):
            words = list(self.commands[source])
            target = os.path.join(tree.temporary, "code.o")
            words[words.index("-o") + 1] = target
            words = [word for word in words if word not in ("-MMD", "-MP", "-g")] + ["-w"]
            done = subprocess.run(words, cwd=tree.path, capture_output=True, check=False)
            if done.returncode:
                return None
            with open(target, "rb") as file:
                code.append(file.read())
        return code

    # The VM

    def vm_programs(self, name):
        for pattern, tests in IN_VM:
            if fnmatch.fnmatch(name, pattern):
                return tests
        return []

    def run_in_vm(self, tree, test, limit):
        with self.vm_lock:
            own = [os.path.join(tree.build_dir("plain"), "tests/vm", test)] if not test.endswith(".sh") else []
            own += {"fabric.sh": ["fabric-tests"], "net.sh": ["net-tests"], "spawn.sh": ["spawn-tests"]}.get(test, [])
            status, output = tree.make("plain", ["tools", "lab-kmod", *own])
            if status:
                return Result(status, output, 0)
            environment = dict(os.environ, O=tree.build_dir("plain"), TESTS=test, VM_TIMEOUT=str(int(limit)))
            start = time.monotonic()
            done = subprocess.run([os.path.join(tree.path, "scripts/check"), "vm"], cwd=tree.path, env=environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", check=False)
            return Result(done.returncode, done.stdout, time.monotonic() - start)

    def vm_time(self, tree, test):
        """What the test takes unmutated; None where it fails."""
        if test not in self._vm_times:
            result = self.run_in_vm(tree, test, 900)
            self._vm_times[test] = result.seconds if result.passed else None
            if not result.passed:
                self.unused.append((f"tests/vm/{test}", "fails unmutated"))
        return self._vm_times[test]


def last_complaint(output):
    lines = [line.strip() for line in output.splitlines() if re.match(r"\s*(not ok|.*: (no end|exit|killed))", line)]
    return lines[0] if lines else ""


class tempdir:  # pylint: disable=invalid-name
    """A directory of a thread's own, gone afterwards."""

    def __init__(self, tree, name):
        self._path = os.path.join(tree.directory, f"{name}-{threading.get_ident()}")

    def __enter__(self):
        return self._path

    def __exit__(self, *_):
        shutil.rmtree(self._path, ignore_errors=True)


def each(trees, work, items, pinned=False):
    """work(tree, item) for all items, as many at once as there are trees."""
    queue = collections.deque(items)
    lock = threading.Lock()
    troubles = []

    def worker(number):
        while not troubles:
            with lock:
                if not queue or (pinned and number not in queue):
                    return
                if pinned:
                    queue.remove(number)
                    item = number
                else:
                    item = queue.popleft()
            try:
                work(trees[number], item)
            except BaseException as error:  # pylint: disable=broad-except
                troubles.append(error)

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(len(trees))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise troubles[0]
