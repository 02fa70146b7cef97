"""Imports between packages go one way: fails where one depends on another that it must not know, however far away.

Reads what cargo resolves for this platform; dependencies of tests and of builds do not count.
"""

import json
import platform
import subprocess
import sys
from pathlib import Path

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


def below(found, about, folder):
    """Names of the packages in a folder."""
    place = str(ROOT / folder) + "/"
    return {it["name"] for it in about["packages"] if it["name"] in found and it["manifest_path"].startswith(place)}


def rules(found, about):
    """Pairs of a package and what it must not depend on."""
    ours = set(found)
    formats, dialects = below(found, about, "crates/formats"), below(found, about, "crates/dialects")
    if not formats or not dialects:
        sys.exit("no packages in crates/formats or crates/dialects: these rules would hold nothing")
    for package in formats:
        yield package, ours | {"tokio", "axum", "hyper", "rusqlite"}
    for package in dialects:
        yield package, dialects | {"pinakes-bench", "pinakes-site"}
    yield "pinakes-bench", ours
    yield "pinakes-store", dialects | {"pinakes-http", "pinakes-accounts", "pinakes-blobs", "pinakes-site", "axum"}
    yield "pinakes-blobs", dialects | {"pinakes-http", "pinakes-accounts", "pinakes-store", "axum"}
    yield "pinakes-accounts", dialects | {"pinakes-http", "axum"}
    yield "pinakes-http", dialects | {"pinakes-site"}
    # The pages ask dialects as clients do.
    yield "pinakes-site", dialects


def main():
    about = metadata()
    found = paths(about)
    wrong = [
        f"{package} must not depend on {other}: {' -> '.join(found[package][other])}"
        for package, others in rules(found, about)
        for other in sorted(others & set(found[package]))
    ]
    if wrong:
        sys.exit("\n".join(wrong))
    print("imports go one way")


main()
