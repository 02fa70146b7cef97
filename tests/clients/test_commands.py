"""Every command in README.md and docs is run, or is listed with the reason why it is not.

The commands of a page run in order, in a folder of their own: the places that it names (`/srv`, `/backups`, …) are folders
there, the demo serves at the named address, and files that it names are small ones. A server that a page starts runs until the
end of the page. Blocks that cannot run are preceded by a comment:

    <!-- not run: why -->                  for commands that need a cluster, another system, or much time
    <!-- followed by: test_guides.py::test_a_site_is_migrated -->     for commands that a separate test runs
"""

import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import zipfile
from pathlib import Path

import pytest
from catalogue import HERE
from running import PATIENCE_S, PINAKES

ROOT = HERE.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = (
    r"pinakes|curl|cargo|podman|sudo|pip|env|for|do|done|journalctl|\.ci/run|packaging/\S+|tests/\S+|echo|pg_basebackup|psql|"
    r"mongoexport|[A-Z_]+=\S* pinakes"
)
IS_COMMAND = re.compile(rf"(?:\$ .*|(?:{COMMANDS})(?: .*|$))")
MARK = re.compile(r"<!-- (not run|followed by): (.+?) -->")
PLACES = ["/srv", "/backups", "/tmp/try", "/etc/pinakes", "/usr/local/share/man/man1"]
# Pages about an existing catalogue, and the command that created it.
THERE = {"operate.md": "pinakes serve --data /srv/pinakes", "folio.md": "pinakes serve"}
# Input that is read from an interactive terminal.
TYPED = "a password of some length\n"
# Times differ, and so does the order of names.
TIMES = re.compile(r"\d+\.\d+")


class Block:
    """Consecutive lines of a page."""

    def __init__(self, page: Path, line: int, text: list[str], mark: tuple[str, str] | None, language: str) -> None:
        self.page, self.line, self.text, self.mark, self.language = page, line, text, mark, language

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_commands(self) -> bool:
        return self.language in ("", "sh") and any(IS_COMMAND.fullmatch(it) for it in self.text)

    def steps(self) -> list[tuple[str, list[str]]]:
        """Returns commands with the lines that they should print, without trailing notes."""
        steps: list[tuple[str, list[str]]] = []
        is_shown = any(it.startswith("$ ") for it in self.text)
        is_open = False
        for line in self.text:
            if is_open or not is_shown and steps and re.match(r"for .*(?!done)$", steps[-1][0]) and "done" not in steps[-1][0]:
                steps[-1] = (steps[-1][0] + "\n" + line, steps[-1][1])
            elif is_shown and not line.startswith("$ "):
                steps[-1][1].append(line)
            else:
                steps.append((line.removeprefix("$ "), []))
            is_open = line.endswith("\\") or steps[-1][0].count("'") % 2 == 1
        return [(re.sub(r"(?m)(?<=\S) {4,}(?!-)\S.*$", "", command), printed) for command, printed in steps]


def blocks(page: Path) -> list[Block]:
    """Returns the blocks of a page: indented and fenced ones."""
    found, mark, lines = [], None, page.read_text().splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if marked := MARK.fullmatch(line.strip()):
            mark = (marked[1], marked[2])
        elif fence := re.fullmatch(r"```(\w*)", line):
            end = lines.index("```", at + 1)
            found.append(Block(page, at + 2, lines[at + 1 : end], mark, fence[1]))
            at, mark = end, None
        elif line.startswith("    "):
            end = at
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            text = lines[at:end]
            indent = min(len(it) - len(it.lstrip()) for it in text)
            found.append(Block(page, at + 1, [it[indent:] for it in text], mark, ""))
            at, mark = end - 1, None
        elif line.strip():
            mark = None
        at += 1
    return found


def record(number: int) -> bytes:
    """Returns a MARC record of a book, or of a name."""
    def marc(kind: bytes, fields: list[tuple[bytes, bytes]]) -> bytes:
        data = b"".join(it + b"\x1e" for _, it in fields)
        base = 25 + 12 * len(fields)
        directory, begin = b"", 0
        for tag, text in fields:
            directory += tag + b"%04d%05d" % (len(text) + 1, begin)
            begin += len(text) + 1
        return b"%05dn%s a22%05d   4500" % (base + len(data) + 1, kind, base) + directory + b"\x1e" + data + b"\x1d"

    return marc(b"am", [(b"001", b"b%d" % number), (b"008", b"800101s1980    xxu           000 0 eng d"),
                        (b"245", b"10\x1faBook %d" % number)])


def name(number: int) -> bytes:
    """Returns a MARC record of a person."""
    text = record(number)
    return text[:6] + b"z" + text[7:].replace(b"245", b"100").replace(b"Book", b"Name")


class Place:
    """The folder in which the commands of a page run."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url, self.prelude = folder, url, []
        self.servers: list[subprocess.Popen] = []
        tools = folder / "bin"
        tools.mkdir()
        (tools / "pinakes").symlink_to(Path(PINAKES).resolve())
        self.environment = os.environ | {
            "PATH": f"{tools}:{os.environ['PATH']}", "PINAKES_BENCH_PASSWORD": TYPED.strip(), "LC_ALL": "C.UTF-8",
        }
        for place in ["etc/pinakes", "backups", "man/man1"]:
            (folder / place).mkdir(parents=True)
        (folder / "etc/pinakes/pinakes.toml").write_text('[server]\nlisten = "127.0.0.1:0"\n')
        self.fill()

    def fill(self) -> None:
        """Creates the files that pages name."""
        files = self.folder
        (files / "functionalAccounts.json").write_bytes((HERE / "functionalAccounts.json").read_bytes())
        dataset = {
            "pid": "20.500.12345/1", "type": "raw", "ownerGroup": "group1", "owner": "o", "contactEmail": "a@b.ch",
            "sourceFolder": "/data/1", "creationTime": "2020-01-15T08:00:00.000Z", "creationLocation": "/ESS",
            "principalInvestigator": "P I", "datasetName": "run 1",
        }
        (files / "datasets.ndjson").write_text(json.dumps(dataset) + "\n")
        (files / "documents.ndjson").write_text('{"id": "ai-1-a", "title": "A"}\n')
        edges = "oci,citing,cited,creation,timespan,journal_sc,author_sc\n06101-06102,omid:br/06101,omid:br/06102,2020,P1Y,no,no\n"
        meta = '"id","title"\n"doi:10.1093/nar/25.17.3389 omid:br/06101","A"\n"doi:10.1/b omid:br/06102","B"\n'
        for archive, inner, text in [("dump.zip", "a.csv", edges), ("meta.zip", "m.csv", meta), ("new.zip", "b.csv", edges)]:
            with zipfile.ZipFile(files / archive, "w") as it:
                it.writestr(inner, text)
        (files / "ids.tsv").write_text("ai-1-a\t10.1093/nar/25.17.3389\n")
        for text in ["datasets.ndjson", "documents.ndjson", "ids.tsv"]:
            subprocess.run(["zstd", "--quiet", "--keep", text], cwd=files, check=True)
        (files / "books.mrc").write_bytes(record(1) + record(2))
        (files / "authorities.mrc").write_bytes(name(1) + name(2))
        (files / "map.xtm").write_text(
            '<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"><topic id="tide"><name><value>Tide</value></name>'
            "</topic></topicMap>"
        )

    def written(self, command: str) -> str:
        """Returns the command as it is run here."""
        command = command.replace("--data …", "--data /srv/pinakes")
        for place in PLACES:
            here = {"/usr/local/share/man/man1": "man/man1"}.get(place, place.strip("/").replace("tmp/", ""))
            command = re.sub(rf"(?<![\w./]){re.escape(place)}(?=[/\s'\"]|$)", str(self.folder / here), command)
        command = re.sub(r"\b20\d\d-\d\d-\d\d\b(?=\s|$)", datetime.date.today().isoformat(), command)
        return command.replace("http://127.0.0.1:3000", self.url)

    def begin(self, command: str) -> None:
        """Creates a catalogue, for pages about an existing one."""
        self.serve(command)
        self.end()
        self.servers.clear()

    def settings(self, block: Block) -> None:
        """Writes what a page puts into pinakes.toml."""
        file = self.folder / "pinakes.toml"
        before = file.read_text() if file.exists() else ""
        file.write_text(before + self.written("\n".join(block.text)) + "\n")

    def serve(self, command: str) -> None:
        out = (self.folder / f"server-{len(self.servers)}.txt").open("w+")
        command = self.written(command) + " --listen 127.0.0.1:0"
        self.servers.append(subprocess.Popen(shlex.split(command), cwd=self.folder, stdout=out, stderr=out, env=self.environment))
        end = time.monotonic() + PATIENCE_S
        while not (found := re.search(r"listens on (http://\S+)", Path(out.name).read_text())):
            assert self.servers[-1].poll() is None and time.monotonic() < end, Path(out.name).read_text()
            time.sleep(0.05)
        self.url = found[1]

    def run(self, command: str) -> str:
        text = self.written(command)
        script = "\n".join([*self.prelude, text])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, capture_output=True, text=True, input=TYPED,
            env=self.environment, timeout=PATIENCE_S, check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if re.match(r"[A-Z_]+=\$\(", text):
            self.prelude.append(text)
        return done.stdout

    def end(self) -> None:
        for server in self.servers:
            server.terminate()
        assert [it.wait(timeout=PATIENCE_S) for it in self.servers] == [0] * len(self.servers)


@pytest.fixture(scope="module")
def demo():
    """Returns the address of a demo."""
    with tempfile.TemporaryFile("w+") as out:
        server = subprocess.Popen([PINAKES, "demo", "--listen", "127.0.0.1:0"], stdout=out, stderr=out)
        end, found = time.monotonic() + PATIENCE_S, None
        while not found:
            out.seek(0)
            found = re.search(r"http://127\.0\.0\.1:\d+", out.read())
            assert server.poll() is None and time.monotonic() < end
            time.sleep(0.1)
        yield found[0]
        server.terminate()
        assert server.wait(timeout=PATIENCE_S) == 0


def plain(text: str) -> str:
    """Returns the output without the parts that differ between runs."""
    return TIMES.sub("0.0", text).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda it: str(it.relative_to(ROOT)))
def test_what_a_page_shows_runs(page, demo, tmp_path, record_property):
    place = Place(tmp_path, demo)
    skipped = []
    try:
        if page.name in THERE:
            place.begin(THERE[page.name])
        for block in blocks(page):
            if block.mark and block.mark[0] == "not run":
                skipped.append(f"{block}: {block.mark[1]}")
            elif block.mark:
                file, test = block.mark[1].split("::")
                assert f"def {test}(" in (HERE / file).read_text(), f"{block}: there is no {block.mark[1]}"
            elif block.is_commands:
                for command, printed in block.steps():
                    if re.match(r"pinakes serve\b", command):
                        place.serve(command)
                        continue
                    if command.startswith("pinakes restore"):
                        # The data that was lost.
                        shutil.rmtree(tmp_path / "srv")
                    said = place.run(command)
                    if printed:
                        assert plain(said) == plain("\n".join(printed)), f"{block}: {command}"
            elif block.text[0].startswith("[") and page.name.endswith("-migrate.md"):
                place.settings(block)
    finally:
        place.end()
    record_property("skipped", skipped)
    for it in skipped:
        print("not run", it)


def test_what_is_not_run_is_few_and_says_why():
    """Counts the blocks that are not run, by their marks: a new one must be added here."""
    marked = [it for page in PAGES for it in blocks(page) if it.mark and it.mark[0] == "not run"]
    reasons = {it.mark[1] for it in marked}
    print(*(f"not run: {it}: {it.mark[1]}" for it in marked), sep="\n")
    assert all(len(it.split()) >= 3 for it in reasons), reasons
    assert len(marked) == 20, "\n".join(map(str, marked))


def test_each_mark_stands_before_commands():
    for page in PAGES:
        marks = len(MARK.findall(page.read_text()))
        assert marks == sum(it.mark is not None for it in blocks(page)), page
        for block in blocks(page):
            assert not block.mark or block.is_commands, f"{block} is no block of commands"
