"""Power failures during commands: backup, restore, imports, the build of a citation graph.

A command runs with its flushes reported to this program (flushes.c), which records what they guarantee: the bytes of a file, or
the names in a folder, separately. At one flush the power fails: the command is killed, and its folder is replaced by one of those
that may be found then, with any sectors and names of what was not flushed. This folder must meet the same requirements as a real
one.

power.py PROGRAM RECORDER FOLDER CASE...; POWER_CUTS is the number of failures of a case, POWER_SEED selects another series.
"""

import collections
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

PROGRAM, RECORDER, WORK = sys.argv[1:4]
CUTS = int(os.environ.get("POWER_CUTS", "3"))
SEED = int(os.environ.get("POWER_SEED", "20261125"))
PATIENCE_S = int(os.environ.get("PATIENCE", "120"))
SECTOR = 512
# What is lost on the disk at a case.
HERE = os.path.join(WORK, "disk")
DATA, BACKUP, RESTORED = (os.path.join(HERE, it) for it in ("data", "backup", "restored"))


class Disk:
    """What is guaranteed to be on the disk under a folder, by the inode numbers of files and folders."""

    def __init__(self, folder, overlooked):
        self.folder, self.overlooked = folder, overlooked
        self.bytes, self.names, self.held = {}, {}, {}
        self.read(folder, self.bytes, self.names, hold=True)
        self.root = os.stat(folder).st_ino

    def read(self, folder, contents, names, hold=False):
        own = {}
        for entry in os.scandir(folder):
            own[entry.name] = number = entry.inode()
            if hold:
                # So that the inode number is not reused.
                self.held.setdefault(number, os.open(entry.path, os.O_RDONLY))
            if entry.is_dir():
                self.read(entry.path, contents, names, hold)
            else:
                with open(entry.path, "rb") as file:
                    contents[number] = file.read()
        names[os.stat(folder).st_ino] = own

    def flush(self, file):
        number = os.fstat(file).st_ino
        is_folder = os.path.isdir(f"/proc/self/fd/{file}")
        if self.overlooked == ("folders" if is_folder else "files"):
            return
        self.held.setdefault(number, os.dup(file))
        if not is_folder:
            with open(f"/proc/self/fd/{file}", "rb") as opened:
                self.bytes[number] = opened.read()
            return
        own = {}
        for entry in os.scandir(f"/proc/self/fd/{file}"):
            own[entry.name] = entry.inode()
            self.held.setdefault(entry.inode(), os.open(entry.path, os.O_RDONLY))
        self.names[number] = own

    def fail(self, dice):
        """Replaces the folder by one that may be found after a failure now."""
        written, names = {}, {}
        self.read(self.folder, written, names)
        found, files = self.folder + ".found", {}

        def make(number, to):
            os.mkdir(to, 0o700)
            kept, now = self.names.get(number, {}), names.get(number, {})
            # A disk that was never told to keep any mostly keeps none.
            of_ten = 0 if self.overlooked == "folders" and dice.randrange(2) == 0 else dice.randrange(11)
            for name in sorted(set(kept) | set(now)):
                chosen = (now if dice.randrange(10) < of_ten else kept).get(name)
                if chosen is None:
                    continue
                path = os.path.join(to, name)
                if chosen in self.names or chosen in names:
                    make(chosen, path)
                    continue
                if chosen not in files:
                    old = self.bytes.get(chosen, b"")
                    files[chosen] = mixed(old, written.get(chosen, old), dice)
                with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                    file.write(files[chosen])

        make(self.root, found)
        shutil.rmtree(self.folder)
        os.rename(found, self.folder)

    def close(self):
        for file in self.held.values():
            os.close(file)


def mixed(old, new, dice):
    """Returns bytes of a file that may be found: those that were flushed, and any sectors of those that were written."""
    shorter, longer = sorted((len(old), len(new)))
    n_bytes = shorter + dice.randrange(longer - shorter + 1)
    found = bytearray(old[:n_bytes].ljust(n_bytes, b"\0"))
    of_ten = dice.randrange(11)
    for at in range(0, min(len(found), len(new)), SECTOR):
        if dice.randrange(10) < of_ten:
            end = min(at + SECTOR, len(found), len(new))
            found[at:end] = new[at:end]
    return bytes(found)


def run(*arguments, stdin=""):
    done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=PATIENCE_S)
    return done.returncode, done.stdout, done.stderr


class Refused(Exception):
    """A command failed that must succeed."""


def must(*arguments, **more):
    code, out, errors = run(*arguments, **more)
    if code != 0:
        raise Refused(f"{' '.join(arguments)}: {code}: {out[-300:]} {errors[-300:]}")
    return out


def cut(arguments, cut_at, dice, overlooked):
    """Runs a command on the disk, with a failure at the flush of that number; returns what was flushed, in order, and whether
    the command had reported that it was done."""
    disk = Disk(HERE, overlooked)
    address = os.path.join(WORK, "flushes")
    if os.path.exists(address):
        os.remove(address)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen()
    listener.settimeout(PATIENCE_S)
    process = subprocess.Popen(
        [PROGRAM, *arguments],
        env={**os.environ, "LD_PRELOAD": RECORDER, "FLUSHES": address},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    # What is there once a flush is done is there before the next one, too.
    flushed, is_noted_first = [], overlooked is None and dice.randrange(2) == 0
    try:
        told, _ = listener.accept()
        told.settimeout(PATIENCE_S)
        while message := told.recv(4):
            at = f"/proc/{process.pid}/fd/{int.from_bytes(message, 'little')}"
            flushed.append(("folders" if os.path.isdir(at) else "files", re.sub(r"[0-9a-f]{16,}", "*", os.readlink(at))))
            fails = len(flushed) == cut_at
            if fails:
                # Nothing is written while the disk is being examined.
                os.kill(process.pid, signal.SIGSTOP)
                while state_of(process.pid) != "T":
                    time.sleep(0.001)
            if not fails or is_noted_first:
                file = os.open(at, os.O_RDONLY)
                disk.flush(file)
                os.close(file)
            if fails:
                break
            told.send(b"1")
        is_done = len(flushed) != cut_at and process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        listener.close()
    disk.fail(dice)
    disk.close()
    return flushed, is_done


def moments(flushed, overlooked):
    """The numbers of flushes by what is flushed: a file that is flushed once is as telling as one that is flushed all the time. A
    flush that is overlooked is no moment of its own."""
    found = {}
    for number, (sort, what) in enumerate(flushed, 1):
        if sort != overlooked:
            found.setdefault(what, []).append(number)
    return list(found.values())


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def hashed(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def exported(data, *what):
    """Returns exported records without times."""
    records = []
    for line in must("export", *what, "--data", data).splitlines():
        record = json.loads(line)
        for name in ("createdAt", "updatedAt", "datasetlifecycle"):
            record.pop(name, None)
        records.append(json.dumps(record, sort_keys=True))
    return sorted(records)


def check(data):
    code, out, errors = run("check", "--data", data)
    return [] if code == 0 else [f"check: {out[-300:]} {errors[-300:]}"]


def differs(what, found, expected):
    return [] if found == expected else [f"{what}: {len(found)} records, expected {len(expected)}, or they differ"]


class Backup:
    """A backup that was reported as done restores to equal data; an interrupted one is never considered complete."""

    def prepare(self):
        must("import", "scicat", datasets(300), "--data", DATA)
        must("tenant", "add", "second", "--data", DATA)
        self.expected = exported(DATA)
        self.command = ["backup", BACKUP, "--data", DATA]

    def judge(self, is_done):
        faults = check(DATA) + differs("the source", exported(DATA), self.expected)
        if not os.path.exists(BACKUP):
            return faults + (["the backup was reported done and is lost"] if is_done else [])
        code, out, errors = run("restore", BACKUP, "--data", RESTORED)
        if code != 0:
            return faults + [f"a backup that is there is not restored: {out} {errors[-300:]}"]
        return faults + differs("the restored", exported(RESTORED), self.expected)


class Restore:
    """A catalogue under its final name is complete."""

    def prepare(self):
        must("import", "scicat", datasets(300), "--data", DATA)
        self.expected = exported(DATA)
        must("backup", BACKUP, "--data", DATA)
        shutil.rmtree(DATA)
        self.command = ["restore", BACKUP, "--data", DATA]

    def judge(self, is_done):
        if not os.path.exists(DATA):
            if is_done:
                return ["the catalogue was reported restored and is lost"]
            must("restore", BACKUP, "--data", DATA)
        return check(DATA) + differs("the restored", exported(DATA), self.expected)


class Scicat:
    """An import that is run again gives the same result as one that was not interrupted."""

    def prepare(self):
        self.command = ["import", "scicat", datasets(400), "--data", DATA]
        self.expect()

    def found(self):
        return exported(DATA, "--kind", "dataset")

    def expect(self):
        must(*self.command)
        self.expected = self.found()
        shutil.rmtree(DATA)

    def judge(self, is_done):
        if not os.path.exists(DATA):
            if is_done:
                return ["an import was reported done and is lost"]
            must(*self.command)
        faults = check(DATA)
        if not is_done:
            must(*self.command)
        return faults + check(DATA) + differs("the import", self.found(), self.expected)


class Documents(Scicat):
    """The same for catalogue documents."""

    def prepare(self):
        file = os.path.join(WORK, "documents.ndjson")
        with open(file, "w") as out:
            for n in range(20000):
                words = " ".join(f"w{n * k % 997}" for k in range(1, 9))
                out.write(json.dumps({"id": f"d-{n}", "title": words, "doi_str_mv": [f"10.1/{n}"]}) + "\n")
        self.command = ["import", "documents", file, "--data", DATA]
        self.expect()

    def found(self):
        return exported(DATA, "documents")


class Marc:
    """An import of MARC records resumes when the server runs."""

    profile = "Default - Create instance and SRS MARC Bib"

    def prepare(self):
        file = os.path.join(WORK, "books.mrc")
        if not os.path.exists(file):
            must("bench", "generate", "--count", "400", "--out", file, "marc-bibliographic")
        must("tenant", "add", "lib", "--data", DATA)
        self.whole = os.path.join(WORK, "whole")
        self.command = ["import", "marc", "--tenant", "lib", "--profile", self.profile, file, "--data", DATA]
        # The first use of a library loads its reference data, which is not part of this test.
        served(DATA, lambda ask: ask("/instance-types?limit=1"))
        shutil.copytree(DATA, self.whole, dirs_exist_ok=True)
        must(*self.command[:-1], self.whole)
        self.expected = self.found(self.whole)

    def found(self, data):
        counted, titles = collections.Counter(), []
        for line in must("export", "folio", "--tenant", "lib", "--data", data).splitlines():
            line = json.loads(line)
            counted[line["path"]] += 1
            if line["path"] == "/instance-storage/instances":
                titles.append(line["record"]["title"])
                counted[line["record"]["hrid"]] += 1
        assert titles, "no instances"
        return sorted(titles) + sorted(counted.items())

    def judge(self, is_done):
        faults = check(DATA)

        def goes_on(ask):
            end = time.monotonic() + PATIENCE_S
            while time.monotonic() < end:
                jobs = ask("/metadata-provider/jobExecutions?limit=9").get("jobExecutions", [])
                if all(it["status"] in ("COMMITTED", "ERROR", "CANCELLED") for it in jobs):
                    return len(jobs)
                time.sleep(0.1)
            raise Refused(f"an import does not go on: {jobs}")

        if served(DATA, goes_on) == 0:
            if is_done:
                return faults + ["an import was reported done and is lost"]
            must(*self.command)
        found = self.found(DATA)
        return faults + check(DATA) + differs("the import", found, self.expected)


class Citations:
    """The build of a citation graph resumes when it is run again."""

    def prepare(self):
        file = os.path.join(WORK, "citations.csv")
        if not os.path.exists(file):
            must("bench", "generate", "--count", "20000", "--out", file, "citations")
        self.graph = os.path.join(HERE, "graph")
        self.command = ["citations", "build", "--edges", file, "--out", self.graph]
        must(*self.command)
        self.expected = hashed(self.graph)
        os.remove(self.graph)

    def judge(self, is_done):
        if os.path.exists(self.graph):
            code, out, errors = run("citations", "verify", "--graph", self.graph)
            if code != 0:
                return [f"a graph that is there is not whole: {out} {errors[-300:]}"]
        elif is_done:
            return ["a graph was reported done and is lost"]
        else:
            must(*self.command)
        return [] if hashed(self.graph) == self.expected else ["the graph differs"]


def datasets(n):
    file, out = os.path.join(WORK, f"datasets-{n}.ndjson"), []
    if not os.path.exists(file):
        must("bench", "generate", "--count", str(n), "--out", file, "scicat-datasets")
        with open(file) as lines:
            out = [{**json.loads(line), "pid": f"p/{k}"} for k, line in enumerate(lines)]
        with open(file, "w") as lines:
            lines.writelines(json.dumps(it) + "\n" for it in out)
    return file


names = itertools.count()


def served(data, work):
    """Calls `work` with a function that sends requests to a server over the folder, and returns its result."""
    log = os.path.join(WORK, "server.log")
    if "ann" not in must("user", "list", "--tenant", "lib", "--data", data):
        must("user", "add", "ann", "--group", "admin", "--tenant", "lib", "--data", data, stdin="a-long-password\n")
    token = must("token", "create", "ann", "--name", f"drill-{next(names)}", "--tenant", "lib", "--data", data)
    token = next(it for it in token.split() if it.startswith("pnk_"))
    with open(log, "w") as out:
        server = subprocess.Popen([PROGRAM, "serve", "--data", data, "--listen", "127.0.0.1:0"], stdout=out, stderr=out)
    try:
        end, place = time.monotonic() + PATIENCE_S, None
        while place is None and time.monotonic() < end:
            with open(log) as lines:
                place = next((word.strip("\",/") for line in lines for word in line.split() if "http://127.0.0.1:" in word), None)
            time.sleep(0.05)
        place = place[place.index("http://"):]

        def ask(path):
            headers = {"X-Okapi-Tenant": "lib", "X-Okapi-Token": token}
            request = urllib.request.Request(place + path, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                # A file that lacks what was not flushed is damaged: it is a fault like any other.
                raise Refused(f"{path}: {error.code} {error.read(500).decode(errors='replace')}") from error

        return work(ask)
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


CASES = {"backup": Backup, "restore": Restore, "scicat": Scicat, "documents": Documents, "marc": Marc, "citations": Citations}
# The flushes that are ignored, if not both types: an import of MARC records uses existing folders and files, so that an
# omitted flush of names is hardly ever noticeable.
SORTS = {"marc": ("files",)}


def series(name, n_cuts, overlooked):
    """Returns the first fault in a series of failures, and how many failures there were before."""
    dice = random.Random(f"{SEED} {name} {overlooked}")
    for folder in (HERE, os.path.join(WORK, "whole"), os.path.join(WORK, "begun")):
        shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(HERE)
    case = CASES[name]()
    case.prepare()
    begun = os.path.join(WORK, "begun")
    shutil.copytree(HERE, begun)
    # Some happen after the command has ended: what it reported must hold.
    n_flushes, choices, cuts = None, [], []
    for n in range(n_cuts):
        shutil.rmtree(HERE)
        shutil.copytree(begun, HERE)
        cut_at = 1 << 30 if n % 4 == 0 else dice.choice(dice.choice(choices))
        flushed, is_done = cut(case.command, cut_at, dice, overlooked)
        n_flushes, choices = n_flushes or len(flushed), choices or moments(flushed, overlooked)
        cuts.append(cut_at if cut_at <= len(flushed) else "the end")
        try:
            faults = case.judge(is_done)
        except Refused as refused:
            faults = [str(refused)]
        if faults:
            return f"seed {SEED}, failure {n} at flush {cuts[-1]} of {n_flushes}: {faults}", n
    return None, n_flushes


failed = False
for name in sys.argv[4:] or CASES:
    fault, n_flushes = series(name, CUTS, None)
    if fault:
        print(f"  FAILED: {name}: {fault}", flush=True)
        failed = True
        continue
    # An omitted flush is detected.
    missed = []
    for sort in SORTS.get(name, ("files", "folders")):
        fault, n = series(name, 10 * CUTS, sort)
        missed.append(f"without the flushes of {sort} failure {n + 1} shows it" if fault else None)
        if not fault:
            print(f"  FAILED: {name}: nobody misses the flushes of {sort}", flush=True)
            failed = True
    print(f"  {name}: {CUTS} failures at {n_flushes} flushes, nothing is lost; {', '.join(filter(None, missed))}", flush=True)
sys.exit(failed)
