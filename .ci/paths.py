"""Every path that the documents name is there: fails where one names a file or folder that the repository has not.

A path in backticks counts when it has a slash and ends like a file of ours or begins with a folder at the root; it may be written from the
root or from any folder below, as `files/add.rs` is. In ARCHITECTURE.md a name alone counts, too: elsewhere it may be a user's file. Links
count as well. `{…}`, `*`, `<…>` and capitals stand for something, and are passed over.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDES = sorted(str(it.relative_to(ROOT)) for it in ROOT.glob("docs/**/*.md"))
DOCUMENTS = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", *GUIDES]
ENDINGS = (".rs", ".py", ".sh", ".mjs", ".toml", ".http", ".out", ".tsv", ".yaml", ".md", ".html", ".css")
# A placeholder, an address, a variable or a path outside the repository.
ELSEWHERE = re.compile(r"[{}*<>$…]|\.\.\.|://|^/|^~|^\.\./|\s|[A-Z]{4,}(?!\.md)")


def tracked():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    files = said.stdout.split("\n")
    folders = {str(parent) for it in files if it for parent in Path(it).parents}
    return {it for it in files if it} | folders - {"."}


def named(document, text, roots):
    """What a document names, each with its line, and whether it is a link."""
    in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(("```", "    ")):
            in_code = not in_code if line.startswith("```") else in_code
            continue
        if in_code:
            continue
        for token in re.findall(r"`([^`]+)`", line):
            token = token.rstrip("/")
            is_path = token.endswith(ENDINGS) and ("/" in token or document == "ARCHITECTURE.md")
            is_path = is_path or token.split("/")[0] in roots and "/" in token
            if is_path and not ELSEWHERE.search(token):
                yield number, token, False
        for token in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", line):
            if not ELSEWHERE.search(token.replace("../", "")):
                yield number, token, True


def main():
    there = tracked()
    roots = {it.split("/")[0] for it in there if "/" in it}
    ends = {"/".join(parts[at:]) for parts in (it.split("/") for it in there) for at in range(len(parts))}
    wrong, n_named = [], 0
    for document in DOCUMENTS:
        for number, token, is_link in named(document, (ROOT / document).read_text(encoding="utf8"), roots):
            n_named += 1
            found = (ROOT / document).parent.joinpath(token).exists() if is_link else token in ends
            if not found:
                wrong.append(f"{document}:{number}: {token} is not there")
    if n_named < 100:
        wrong.append(f"only {n_named} paths were found in the documents: the patterns fit no more")
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"the documents name {n_named} paths, all are there")


main()
