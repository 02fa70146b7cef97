"""Holds a run of the suite against what the original fails and what is known to fail here.

usage: outcome.py ENGINE mocha.json original-fails.json known-failures.txt N_FILES_CHOSEN failures.jsonl

Tells what is new on standard output, and writes `PASSED FAILED` to descriptor 3.
"""

import json
import os
import sys

engine, mocha, original, known_file, n_chosen, exchanges = sys.argv[1:7]
run = json.load(open(mocha, encoding="utf8"))


def name(case):
    return (case.get("file") or "").split("/test/")[-1], case["fullTitle"]


of_original = {(it["file"], it["title"]) for it in json.load(open(original, encoding="utf8"))}
known = set()
for line in open(known_file, encoding="utf8"):
    if line.strip() and not line.startswith("#"):
        known.add(tuple(line.rstrip("\n").split("\t", 1)))

failed = {name(it) for it in run["failures"]} - of_original
passed = {name(it) for it in run["passes"]}
new = sorted(failed - known)
# A title that comes twice is told of only when none of its cases fails.
stale = sorted(known & (passed - failed)) if n_chosen == "0" else []
told = {}
if os.path.exists(exchanges):
    for line in open(exchanges, encoding="utf8"):
        case = json.loads(line)
        told[case["file"], case["title"]] = case

n_passes = run["stats"]["passes"]
print(f"scicat on {engine}: {n_passes} pass, {len(failed & known)} known to fail, {len(new)} fail")
for case in new[:50]:
    print("  fails:", *case)
    last = (told.get(case, {}).get("exchanges") or [{}])[-1]
    if last:
        print("    ", last.get("method"), last.get("url"), last.get("status"), str(last.get("got"))[:200])
for case in stale:
    print("  passes, take it out of known-failures.txt:", *case)
os.write(3, f"{n_passes} {len(new) + len(stale)}".encode())
