"""Write the table of the tests that take longest: ``python tests/durations/longest.py XML... > before.md``.

Each XML is what pytest writes with ``--junitxml``; a time is that of set-up, call and tear-down together.
"""

from __future__ import annotations

import collections
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path

ROWS = 100


def times(path: Path) -> Iterator[tuple[str, str, float]]:
    """Yield the module, the name and the seconds of each test."""
    for case in ElementTree.parse(path).iter("testcase"):
        yield case.attrib["classname"], case.attrib["name"], float(case.attrib["time"])


def table(head: Sequence[str], rows: Sequence[tuple[str, float]]) -> Iterator[str]:
    """Yield the lines of a table of names with seconds."""
    yield "| " + " | ".join(head) + " |"
    yield "| --- | ---: |"
    yield from (f"| `{name}` | {seconds:.1f} |" for name, seconds in rows)


def page(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of the page."""
    tests = [found for path in paths for found in times(path)]
    modules: collections.Counter[str] = collections.Counter()
    for module, _, seconds in tests:
        modules[module] += seconds
    total = sum(seconds for _, _, seconds in tests)
    yield f"{len(tests)} tests, {total:.0f} s one after the other."
    yield ""
    yield "## Modules"
    yield ""
    yield from table(("module", "s"), modules.most_common(40))
    yield ""
    yield "## Tests"
    yield ""
    longest = sorted(tests, key=lambda test: -test[2])[:ROWS]
    yield from table(("test", "s"), [(f"{module}.{name}", seconds) for module, name, seconds in longest])


def main() -> None:
    """Write the page of the files that are named."""
    sys.stdout.writelines(f"{line}\n" for line in page([Path(name) for name in sys.argv[1:]]))


if __name__ == "__main__":
    main()
