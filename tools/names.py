"""Checks that a class name stands for one thing, that locals say what they are, and the glossary.

    python tools/names.py

No two public classes of ``src/`` share a name. The documents of the API (``SAME_AS``) are the exception: each
has the name of the value that it is made of. A local with a generic name (``GENERIC``) is used over a few
lines only. The glossary of ``docs/architecture.md`` names a class for each word.
Exit codes: 0 all holds, 1 something does not; each problem is printed with its place.
"""

from __future__ import annotations

import ast
import collections
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "paceline"
PAGE = ROOT / "docs" / "architecture.md"
#: Documents have the names of the values that they are made of.
SAME_AS = SOURCES / "surfaces" / "web" / "schemas"
#: Names that say nothing of a value: a reader has to look for where it comes from.
GENERIC = frozenset(("each", "found", "kept", "known", "made", "own", "told", "wanted", "what"))
#: The lines over which a function may use such a name.
MOST_LINES = 10
#: A row of the glossary: the word, its meaning, and its class with the module below ``paceline``.
_ROW = re.compile(r"^\| [^|]+ \| [^|]+ \| `([\w.]+)\.(\w+)` \|$", re.MULTILINE)


def main() -> int:
    """Check all classes and the glossary; return the exit code."""
    found = classes()
    problems = [*shared(found), *generic(), *unknown(PAGE.read_text(encoding="utf-8"), found)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


def classes() -> Mapping[str, Sequence[Path]]:
    """Return the files of ``src/`` in which each class is defined, by its name."""
    found = collections.defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path)
    return found


def shared(found: Mapping[str, Sequence[Path]]) -> Iterator[str]:
    """Yield each public name that several classes have."""
    for name, paths in sorted(found.items()):
        own = [path for path in paths if SAME_AS not in path.parents]
        if not name.startswith("_") and (len(own) > 1 or len(paths) - len(own) > 1):
            places = ", ".join(str(path.relative_to(SOURCES)) for path in paths)
            yield f"class {name} stands for several things: {places}"


def generic() -> Iterator[str]:
    """Yield each local and parameter with a generic name that a function uses over too many lines."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                for name, lines in _uses(node).items():
                    if lines[-1] - lines[0] >= MOST_LINES:
                        place = f"{path.relative_to(ROOT)}:{lines[0]}"
                        yield f"{place}: {name} is used until line {lines[-1]}: name what it is"


def _uses(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> Mapping[str, Sequence[int]]:
    """Return the lines on which a function itself, not one within it, uses generic names of its own."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    bound = {argument.arg for argument in arguments}
    lines = collections.defaultdict(list)
    nodes = list(ast.iter_child_nodes(function))
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.Name):
            lines[node.id].append(node.lineno)
            if isinstance(node.ctx, ast.Store):
                bound.add(node.id)
        nodes += ast.iter_child_nodes(node)
    return {name: sorted(lines[name]) for name in GENERIC & bound & lines.keys()}


def unknown(page: str, found: Mapping[str, Sequence[Path]]) -> Iterator[str]:
    """Yield each row of the glossary whose class is not where the row says."""
    rows = _ROW.findall(page)
    if not rows:
        yield f"{PAGE.relative_to(ROOT)} has no glossary"
    for module, name in rows:
        path = SOURCES.joinpath(*module.split(".")).with_suffix(".py")
        if path not in found.get(name, ()):
            yield f"{PAGE.relative_to(ROOT)}: there is no class {module}.{name}"


if __name__ == "__main__":
    sys.exit(main())
