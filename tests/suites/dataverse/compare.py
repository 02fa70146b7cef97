"""compare.py KNOWN RESULTS...: compares the outcome of the cases with the list of known failures.

A line of KNOWN is `Class case`, `#` begins a comment; RESULTS are the suite's `results.tsv`. A case passes if it passes in one
of them: for cases with short timeouts, a second run distinguishes a busy machine from a fault. Prints `N passed, N failed` at the
end, where failures in the list do not count; exit status 1 if there is one.
"""
import sys


def outcome_of(path):
    """Returns whether each (class, case) passes, and its message if not; the parts of a parameterised case count as one."""
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
