"""Compares runs of the suite with the failures of the original and the known failures here. A case fails if it fails in all
runs: for cases with short timeouts, a second run distinguishes a busy machine from a fault.

usage: outcome.py ENGINE original-fails.json known-failures.txt N_FILES_CHOSEN OUT ...

Each OUT contains a run's mocha.json and failures.jsonl. Prints what is new on standard output, and writes `PASSED FAILED` to
descriptor 3.
"""

import json
import os
import sys

engine, original, known_file, n_chosen, *outs = sys.argv[1:]


def load(*path):
    with open(os.path.join(*path), encoding="utf8") as file:
        return json.load(file)


def name(case):
    return (case.get("file") or "").split("/test/")[-1], case["fullTitle"]


def exchanges(out):
    """Returns the requests and answers of each failed case of a run, by its name."""
    path = os.path.join(out, "failures.jsonl")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf8") as lines:
        return {(case["file"], case["title"]): case for case in map(json.loads, lines)}


of_original = {(it["file"], it["title"]) for it in load(original)}
known = set()
with open(known_file, encoding="utf8") as lines:
    for line in lines:
        if line.strip() and not line.startswith("#"):
            known.add(tuple(line.rstrip("\n").split("\t", 1)))

runs = [load(out, "mocha.json") for out in outs]
failed = set.intersection(*({name(it) for it in run["failures"]} for run in runs)) - of_original
passed = {name(it) for run in runs for it in run["passes"]}
new = sorted(failed - known)
# A title that occurs twice is reported only if none of its cases fails.
stale = sorted(known & (passed - failed)) if n_chosen == "0" else []
told = exchanges(outs[-1])

n_passes = max(run["stats"]["passes"] for run in runs)
print(f"scicat on {engine}: {n_passes} pass, {len(failed & known)} known to fail, {len(new)} fail")
for case in new[:50]:
    print("  fails:", *case)
    last = (told.get(case, {}).get("exchanges") or [{}])[-1]
    if last:
        print("    ", last.get("method"), last.get("url"), last.get("status"), str(last.get("got"))[:200])
for case in stale:
    print("  passes now, take it out of the list:", *case)
os.write(3, f"{n_passes} {len(new)}".encode())
