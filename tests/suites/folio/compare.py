"""compare.py KNOWN OUT...: compares karate's reports with the list of known failures. A scenario passes if it passes in one of
the folders: for cases with short timeouts, a second run distinguishes a busy machine from a fault.

A line of KNOWN is `MODULE FEATURE:LINE`, then any explanation; `#` begins a comment. Prints `N passed, N failed` at the end,
where failures in the list do not count; exit status 1 if there is one, or if nothing ran.
"""
import json
import pathlib
import sys


def results(out):
    """Yields (name, whether it passed, title) of each scenario."""
    for path in sorted(out.glob("reports/*/*/karate-reports/*.karate-json.txt")):
        module = path.relative_to(out / "reports").parts[0]
        feature = path.name.replace(".karate-json.txt", "").split("features.")[-1]
        for scenario in json.loads(path.read_text(encoding="utf8"))["scenarioResults"]:
            yield f"{module} {feature}:{scenario['line']}", not scenario["failed"], scenario["name"].strip()


def main():
    known, outcomes = set(), {}
    for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf8").splitlines():
        if line.strip() and not line.startswith("#"):
            known.add(" ".join(line.split()[:2]))
    for out in sys.argv[2:]:
        for name, is_passed, title in results(pathlib.Path(out)):
            outcomes[name] = (is_passed or outcomes.get(name, (False,))[0], title)
    passed, failed, unexpected = 0, 0, []
    for name, (is_passed, title) in outcomes.items():
        if is_passed:
            passed += 1
            if name in known:
                print(f"passes now, take it out of the list: {name} {title}")
        elif name in known:
            failed += 1
        else:
            unexpected.append(f"{name} {title}")
    for line in unexpected:
        print(f"FAILED {line}")
    print(f"{failed} known failures; {len(known)} in the list")
    is_empty = passed + failed + len(unexpected) == 0
    if is_empty:
        print("no scenario ran")
    print(f"{passed} passed, {len(unexpected) + is_empty} failed")
    sys.exit(1 if unexpected or is_empty else 0)


main()
