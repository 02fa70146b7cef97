"""Which source files of a crate use which, and the circles among them.

Reads tokens, not meaning: the tree of modules by `mod`, then every path in the code, followed through `use` to the file that
defines what it names. So a re-export neither hides an arrow nor makes one, and `mod x;` makes none. Comments, texts and what is
built for tests alone do not count. Methods are not followed: whose they are takes types.
"""

import re
from pathlib import Path

TOKEN = re.compile(
    r"""(?P<skip>\s+ | //[^\n]* | b?r(?P<hashes>\#*)".*?"(?P=hashes) | b?c?"(?:[^"\\]|\\.)*" | b?'(?:[^'\\]|\\(?:u\{[^}]*\}|x..|.))')
      | (?P<open>/\*) | (?P<life>'\w+) | (?P<name>(?:r\#)?[A-Za-z_]\w*) | (?P<path>::) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text):
    """Names, `::` and marks of a source, without comments and texts."""
    at, found = 0, []
    while at < len(text):
        match = TOKEN.match(text, at)
        at = match.end()
        if match["open"]:
            depth = 1
            while depth and (mark := re.compile(r"/\*|\*/").search(text, at)):
                depth += 1 if mark[0] == "/*" else -1
                at = mark.end()
        elif not match["skip"]:
            found.append(match[0].removeprefix("r#"))
    return found


def closing(source, at):
    """Where the bracket that opens at `at` is closed."""
    depth = 0
    for here in range(at, len(source)):
        depth += (source[here] in "([{") - (source[here] in ")]}")
        if depth == 0:
            return here
    return len(source) - 1


def without_tests(source):
    """The tokens without attributes, visibilities and items that `#[cfg(test)]` or `#[test]` stands before."""
    kept, at = [], 0
    while at < len(source):
        if source[at] == "#" and source[at + 1 : at + 2] in (["["], ["!"]):
            start = at + 1 + (source[at + 1] == "!")
            end = closing(source, start)
            attribute, at = source[start + 1 : end], end + 1
            if attribute[:1] == ["test"] or attribute[:3] == ["cfg", "(", "test"] or attribute[:5] == ["cfg", "(", "all", "(", "test"]:
                if source[start - 1] == "!":
                    return []
                while source[at] not in (";", "{", ",", "}"):
                    at = (closing(source, at) if source[at] in ("(", "[") else at) + 1
                at = closing(source, at) + 1 if source[at] == "{" else at + (source[at] != "}")
        elif source[at] == "pub" and source[at + 1 : at + 2] == ["("] and source[at + 2] in ("crate", "super", "self", "in"):
            kept.append("pub")
            at = closing(source, at + 1) + 1
        else:
            kept.append(source[at])
            at += 1
    return kept


def use_tree(source, at, before):
    """The paths of the tree at `at`, each with the name it is known by; and where the tree ends."""
    path, found = list(before), []
    while True:
        it = source[at]
        if it == "{":
            at += 1
            while source[at] != "}":
                more, at = use_tree(source, at, path)
                found += more
                at += source[at] == ","
            return found, at + 1
        if it == "::":
            at += 1
            continue
        if it == "*":
            return [(path, "*")], at + 1
        if it == "self" and path:
            name = path[-1]
        else:
            path, name = [*path, it], it
        at += 1
        if source[at] == "as":
            name, at = source[at + 1], at + 2
        if source[at] != "::":
            return [(path, name)], at


class Module:
    """One module: its file, the modules below it, what it knows by `use`, and the paths in its code."""

    def __init__(self, file, parent):
        self.file, self.parent = file, parent
        self.children, self.uses, self.globs, self.paths, self.defines = {}, {}, [], [], set()

    def read(self, source, folder):
        """Takes what stands in `source`; `folder` is where the files of modules below lie."""
        at = 0
        while at < len(source):
            it, next_two = source[at], source[at + 1 : at + 3]
            if it == "mod" and len(next_two) == 2 and next_two[1] in (";", "{"):
                name, at = next_two[0], at + 2
                if source[at] == "{":
                    end = closing(source, at)
                    self.children[name] = child = Module(self.file, self)
                    child.read(source[at + 1 : end], folder / name)
                    at = end
                else:
                    self.children[name] = of_file(next(it for it in (folder / f"{name}.rs", folder / name / "mod.rs") if it.exists()), self)
            elif it == "use" and source[at - 1 : at] != ["::"]:
                here = at
                found, at = use_tree(source, at + 1 + (next_two[:1] == ["::"]), [])
                for path, name in found:
                    if name == "*":
                        self.globs.append(path)
                    elif name == "_":
                        self.paths.append(path)
                    else:
                        self.uses[name] = path
                        if source[here - 1 : here] != ["pub"]:
                            self.paths.append(path)
                continue
            elif next_two[:1] == ["::"] and re.match(r"[A-Za-z_]", it) and source[at - 1 : at] != ["::"]:
                path = [it]
                while source[at + 1] == "::" and re.match(r"[A-Za-z_]", source[at + 2]):
                    path.append(source[at + 2])
                    at += 2
                self.paths.append(path)
            elif it in ("fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules") and next_two:
                self.defines.add(next_two[1] if next_two[0] in ("!", "mut", "fn", "unsafe", "async") and len(next_two) == 2 else next_two[0])
            at += 1

    def root(self):
        return self.parent.root() if self.parent else self

    def find(self, path, seen=()):
        """The module that defines what `path` names here, and the name; the name is None where a module itself is named; None where it
        is of another crate."""
        here, at = self, 0
        if path[0] in ("crate", "$crate"):
            here, at = self.root(), 1
        else:
            while at < len(path) and path[at] in ("self", "super"):
                here = here if path[at] == "self" else here.parent
                at += 1
            if at == 0 and path[0] not in self.children:
                if path[0] in self.uses and (self, path[0]) not in seen:
                    if self.uses[path[0]] == path[:1]:
                        return None
                    return self.find(self.uses[path[0]] + path[1:], (*seen, (self, path[0])))
                return self.of_globs(path, seen)
        for place, name in enumerate(path[at:], at):
            if name in here.children:
                here = here.children[name]
            elif name in here.defines or (here, name) in seen:
                return here, name
            elif name in here.uses:
                return here.find([*here.uses[name], *path[place + 1 :]], (*seen, (here, name)))
            else:
                return here.of_globs(path[place:], seen) or (here, name)
        return here, None

    def of_globs(self, path, seen):
        """What the path is by a `use …::*` of this module."""
        for glob in self.globs:
            if (self, *glob) not in seen:
                found = self.find(glob, (*seen, (self, *glob)))
                if found and found[1] is None:
                    more = found[0].find(["self", *path], (*seen, (self, *glob)))
                    if more and (more[1] is None or more[1] in more[0].defines):
                        return more
        return None

    def all(self):
        yield self
        for child in self.children.values():
            yield from child.all()


def of_file(file, parent):
    module = Module(file, parent)
    folder = file.parent if parent is None or file.name == "mod.rs" else file.with_suffix("")
    module.read(without_tests(tokens(file.read_text(encoding="utf8"))), folder)
    return module


def arrows(root):
    """For each file of the crate whose first file is `root`: the files that it uses, each with the names."""
    found = {}
    for module in of_file(root, None).all():
        uses = found.setdefault(module.file, {})
        for path in [*module.paths, *module.globs]:
            end = module.find(path)
            if end and end[1] and end[0].file != module.file:
                uses.setdefault(end[0].file, set()).add(end[1])
            elif end and path in module.globs and end[0].file != module.file:
                uses.setdefault(end[0].file, set()).add("*")
    return found


def circles(found):
    """Sets of files each of which is reached from each other of its set."""
    number, low, stack, sets = {}, {}, [], []

    def visit(file):
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in found.get(file, ()):
            if other not in number:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == number[file]:
            at = stack.index(file)
            if len(stack) - at > 1:
                sets.append(set(stack[at:]))
            del stack[at:]

    for file in found:
        if file not in number:
            visit(file)
    return sets
