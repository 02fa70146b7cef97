#!/usr/bin/env python3
"""Writes what the program is built of, as a CycloneDX 1.5 document (JSON): `packaging/sbom.py >pinakes.cdx.json`.

Packages, versions, licences and sums come from `cargo metadata` and Cargo.lock, for the platform of this machine, without what only
tests and build scripts of the workspace use. The same sources give the same document: it holds no time and no random number.
"""
import json
import pathlib
import subprocess
import sys
import tomllib
import uuid

TOP = pathlib.Path(__file__).resolve().parent.parent
ROOT = "pinakes"


def metadata():
    host = next(
        line.split()[1]
        for line in subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout.splitlines()
        if line.startswith("host:")
    )
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
    return json.loads(subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True).stdout)


def needed(nodes, root):
    """Ids of what is linked into the program, each with the ids of what it uses itself."""
    uses, waiting = {}, [root]
    while waiting:
        at = waiting.pop()
        if at in uses:
            continue
        # `kind` is null for what is linked; build scripts and tests have one.
        uses[at] = sorted(
            dep["pkg"] for dep in nodes[at]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])
        )
        waiting.extend(uses[at])
    return uses


def component(package, sums, kind="library"):
    name, version = package["name"], package["version"]
    said = {"type": kind, "bom-ref": f"pkg:cargo/{name}@{version}", "name": name, "version": version,
            "purl": f"pkg:cargo/{name}@{version}"}
    if package.get("license"):
        said["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if sums.get((name, version)):
        said["hashes"] = [{"alg": "SHA-256", "content": sums[name, version]}]
    if package.get("repository"):
        said["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return said


def main():
    data = metadata()
    packages = {it["id"]: it for it in data["packages"]}
    lock = tomllib.loads((TOP / "Cargo.lock").read_text())
    sums = {(it["name"], it["version"]): it.get("checksum") for it in lock["package"]}
    root = next(it["id"] for it in data["packages"] if it["name"] == ROOT)
    uses = needed({it["id"]: it for it in data["resolve"]["nodes"]}, root)
    ref = {it: f"pkg:cargo/{packages[it]['name']}@{packages[it]['version']}" for it in uses}
    order = sorted(uses, key=ref.get)
    said = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(packages[root], sums, "application")},
        "components": [component(packages[it], sums) for it in order if it != root],
        "dependencies": [{"ref": ref[it], "dependsOn": sorted({ref[other] for other in uses[it]})} for it in order],
    }
    text = json.dumps(said, sort_keys=True)
    said["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, text)}"
    json.dump(said, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
