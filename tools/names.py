"""Checks that a class name stands for one thing, and that the glossary names what there is.

    python tools/names.py

No two public classes of ``src/`` share a name. The documents of the API (``SAME_AS``) are the exception: each
has the name of the value that it is made of. The glossary of ``docs/architecture.md`` names a class for each
word.
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
#: A row of the glossary: the word, its meaning, and its class with the module below ``paceline``.
_ROW = re.compile(r"^\| [^|]+ \| [^|]+ \| `([\w.]+)\.(\w+)` \|$", re.MULTILINE)


def main() -> int:
    """Check all classes and the glossary; return the exit code."""
    found = classes()
    problems = [*shared(found), *unknown(PAGE.read_text(encoding="utf-8"), found)]
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
