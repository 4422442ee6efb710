"""Checks the words of all that people read: code, tests, benchmarks, docs and manifests.

    python tools/words.py

Texts name who acts: the user, the operator, the supervisor. `FORBIDDEN` are the words that hide it. Exit
codes: 0 none occurs, 1 some do; each is printed with its file, its line and what to write.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "benchmarks", "docs", "deploy", "examples", "tools")
SUFFIXES = frozenset((".css", ".html", ".js", ".json", ".md", ".py", ".sh", ".svg", ".toml", ".yaml", ".yml"))
FORBIDDEN = {
    "anybody": "name who is meant, or say that it is not limited",
    "nobody": "name who does not do it: no process, no user, no supervisor",
    "somebody": "name who does it: the user, another process, the operator",
    "the one that": "repeat the noun: 'the file that', 'the worker that'",
    "whoever": "name who does it: the caller, the client, the reader",
}
#: What was measured is data.
DATA = ("benchmarks/results", "benchmarks/unfinished", "tests/durations")
#: A word counts within names, too, and words where a line ends between them.
_BLANK = r"[\s#*>]+"
_PATTERNS = {
    re.compile(rf"(?<![a-z]){_BLANK.join(words.split())}(?![a-z])", re.IGNORECASE): advice
    for words, advice in FORBIDDEN.items()
}


def main() -> int:
    """Check all files; return the exit code."""
    found = list(problems())
    for problem in found:
        print(problem)
    return 1 if found else 0


def problems() -> Iterator[str]:
    """Yield each forbidden word with its place and what to write."""
    for path in files():
        text = path.read_text(encoding="utf-8")
        for pattern, advice in _PATTERNS.items():
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path.relative_to(ROOT)}:{line}: {match.group()!r}: {advice}"


def files() -> Iterator[Path]:
    """Yield the files that are checked, in order."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in SUFFIXES and path != Path(__file__) and not name.startswith(DATA):
                yield path


if __name__ == "__main__":
    sys.exit(main())
