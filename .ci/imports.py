"""Imports go one way, between packages and within them: fails where a package depends on another that it must not know,
however far away, where files of one package import each other in a circle, and where a file imports one of a higher layer.

Which knows which are tables in ARCHITECTURE.md. Reads what cargo resolves for this platform; dependencies of tests and of builds do not count.
"""

import json
import platform
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

import modules

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


def table(n_cells):
    """The rows of the tables in ARCHITECTURE.md that have so many cells, as texts."""
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf8").split("\n"):
        cells = [it.strip() for it in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == n_cells:
            yield cells


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def layers(members):
    """The rows of the table of layers in ARCHITECTURE.md, the highest first: packages, whether they know those below, libraries they never
    use. Errors: a package in no row or in two, a pattern that fits none."""
    folders = {str(Path(it["manifest_path"]).parent.relative_to(ROOT)): it["name"] for it in members}
    rows, seen = [], []
    for cells in table(4):
        if not cells[1].startswith("`crates/"):
            continue
        patterns, libraries = quoted(cells[1]), quoted(cells[3])
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


def inner_layers():
    """The rows of the table of layers within packages, by folder: for each layer, the highest first, patterns of its modules."""
    rows = [(quoted(cells[0]), cells[1]) for cells in table(2)]
    return {folder[0]: [quoted(it) for it in text.split(" over ")] for folder, text in rows if folder[:1] and folder[0].startswith("crates/")}


def module_of(file, sources):
    """`datasets/read` of `src/datasets/read.rs`, `pages` of `src/pages/mod.rs`."""
    path = file.relative_to(sources).with_suffix("")
    return str(path.parent if path.name == "mod" else path)


def layer_of(module, layers):
    """The layer whose pattern fits best: the longest one."""
    fitting = [(len(pattern), at) for at, patterns in enumerate(layers) for pattern in patterns if fnmatchcase(module, pattern)]
    return max(fitting)[1] if fitting else None


def inside(package, rows):
    """What is wrong with imports within a package."""
    folder = Path(package["manifest_path"]).parent
    layers = rows.get(str(folder.relative_to(ROOT)), [])
    for target in package["targets"]:
        if not {"lib", "bin"} & set(target["kind"]):
            continue
        first = Path(target["src_path"])
        sources, found = first.parent, modules.arrows(first)
        for circle in modules.circles(found):
            yield f"{package['name']}: {len(circle)} files import each other in a circle; move what two of them need below both:"
            for file in sorted(circle):
                for other in sorted(circle & set(found[file])):
                    names = ", ".join(sorted(found[file][other]))
                    yield f"    {module_of(file, sources)} uses of {module_of(other, sources)}: {names}"
        for file in sorted(found) if layers else []:
            mine = layer_of(module_of(file, sources), layers)
            if mine is None:
                yield f"{package['name']}: {module_of(file, sources)} is in no layer of the table in ARCHITECTURE.md"
                continue
            for other in sorted(found[file]):
                if (its := layer_of(module_of(other, sources), layers)) is not None and its < mine:
                    names = ", ".join(sorted(found[file][other]))
                    yield f"{package['name']}: {module_of(file, sources)} uses of a higher layer, {module_of(other, sources)}: {names}"


def main():
    about = metadata()
    found = paths(about)
    rows = layers([it for it in about["packages"] if it["name"] in found])
    wrong = [
        f"{package} must not depend on {other}: {' -> '.join(found[package][other])}"
        for package, others in rules(rows, set(found))
        for other in sorted(others & set(found[package]))
    ]
    within = inner_layers()
    for package in about["packages"]:
        if package["name"] in found:
            wrong += inside(package, within)
    if wrong:
        sys.exit("\n".join(wrong))
    print("imports go one way")


main()
