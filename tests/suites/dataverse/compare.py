"""compare.py KNOWN RESULTS...: holds the outcome of the cases against the list of known failures.

A line of KNOWN is `Class case`, `#` begins a comment; RESULTS are the suite's `results.tsv`. A case passes that passes in one of
them: of cases that wait for a short time, a second run tells a busy machine from a fault. Ends with `N passed, N failed`, where
failed are those that are not in the list; exit status 1 when there is one.
"""
import sys


def outcome_of(path):
    """Whether each (class, case) passes, and what it said if not; the parts of a case with parameters count as one."""
    outcome, why = {}, {}
    with open(path, encoding="utf8") as lines:
        for line in lines:
            name, case, kind, *rest = line.rstrip("\n").split("\t")
            key = (name, case.split("(")[0].split("[")[0].split("{")[0] or "(class)")
            passes = kind in ("pass", "skip")
            outcome[key] = outcome.get(key, True) and passes
            if not passes:
                why[key] = rest[-1] if rest else kind
    return outcome, why


def main():
    with open(sys.argv[1], encoding="utf8") as lines:
        known = {tuple(line.split()[:2]) for line in lines if line.strip() and not line.startswith("#")}
    outcome, why = outcome_of(sys.argv[2])
    for path in sys.argv[3:]:
        again, said = outcome_of(path)
        outcome = {key: passes or again.get(key, False) for key, passes in outcome.items()}
        why.update(said)
    failed = sorted(key for key, passes in outcome.items() if not passes and key not in known)
    for key in failed:
        print("failed:", *key, why.get(key, ""))
    for key in sorted(key for key, passes in outcome.items() if passes and key in known):
        print("passes now, take it out of the list:", *key)
    n_passed = sum(outcome.values())
    print(f"{len(outcome) - n_passed - len(failed)} known failures; {len(known)} in the list")
    print(f"{n_passed} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


main()
