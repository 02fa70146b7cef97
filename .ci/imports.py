"""Imports between packages go one way: fails where one depends on another that it must not know, however far away.

Which knows which is a table in ARCHITECTURE.md. Reads what cargo resolves for this platform; dependencies of tests and of builds do not count.
"""

import json
import platform
import re
import subprocess
import sys
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parent.parent
PLATFORM = f"{platform.machine()}-unknown-linux-gnu"


def metadata():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)


def paths(about):
    """For each of our packages by name: the names of all that it depends on, each with the way there."""
    names = {it["id"]: it["name"] for it in about["packages"]}
    next_ids = {
        node["id"]: [it["pkg"] for it in node["deps"] if any(kind["kind"] is None for kind in it["dep_kinds"])]
        for node in about["resolve"]["nodes"]
    }
    found = {}
    for start in about["workspace_members"]:
        ways, open_ids = {start: [names[start]]}, [start]
        for package in open_ids:
            for other in next_ids[package]:
                if other not in ways:
                    ways[other] = [*ways[package], names[other]]
                    open_ids.append(other)
        found[names[start]] = {names[package]: way for package, way in ways.items() if package != start}
    return found


def layers(members):
    """The rows of the table of layers in ARCHITECTURE.md, the highest first: packages, whether they know those below, libraries they never
    use. Errors: a package in no row or in two, a pattern that fits none."""
    folders = {str(Path(it["manifest_path"]).parent.relative_to(ROOT)): it["name"] for it in members}
    rows, seen = [], []
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf8").split("\n"):
        cells = [it.strip() for it in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 4 or not cells[1].startswith("`crates/"):
            continue
        patterns, libraries = (re.findall(r"`([^`]+)`", cells[at]) for at in (1, 3))
        packages = set()
        for pattern in patterns:
            fitting = {name for folder, name in folders.items() if PurePath(folder).match(pattern)}
            if not fitting:
                sys.exit(f"ARCHITECTURE.md, table of layers: {pattern} is no package")
            packages |= fitting
        if cells[2] not in ("all below", "nothing"):
            sys.exit(f"ARCHITECTURE.md, table of layers: {cells[2]!r} instead of 'all below' or 'nothing'")
        rows.append((packages, cells[2] == "all below", set(libraries)))
        seen += packages
    wrong = [it for it in folders.values() if seen.count(it) != 1]
    if wrong:
        sys.exit(f"ARCHITECTURE.md, table of layers: in no row, or in two: {', '.join(wrong)}")
    return rows


def rules(rows, ours):
    """Pairs of a package and what it must not depend on."""
    for at, (packages, knows_below, libraries) in enumerate(rows):
        below = set().union(*(row[0] for row in rows[at + 1 :])) if knows_below else set()
        for package in packages:
            yield package, (ours - below) | libraries


def main():
    about = metadata()
    found = paths(about)
    rows = layers([it for it in about["packages"] if it["name"] in found])
    wrong = [
        f"{package} must not depend on {other}: {' -> '.join(found[package][other])}"
        for package, others in rules(rows, set(found))
        for other in sorted(others & set(found[package]))
    ]
    if wrong:
        sys.exit("\n".join(wrong))
    print("imports go one way")


main()
