"""``docs/figures.md`` and its plots: made from the committed results, never typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import protocols

PAGE = protocols.ROOT / "docs" / "figures.md"
#: Pages that have the table of a benchmark within their text, in each language, between two comments with its
#: name.
TABLES = {"unchanged": "instrumentation*.md"}


def number(value: float | None) -> str:
    """Return a number for people; ``not measured`` for None."""
    return "not measured" if value is None else f"{value:.4g}"


def interval(low: float | None, high: float | None) -> str:
    """Return an interval for people; a dash for a count, which has none."""
    return "-" if low is None and high is None else f"{number(low)} to {number(high)}"


def write() -> None:
    """Write the page, and draw the plots of all results."""
    PAGE.write_text(render())
    for name in TABLES:
        for page in pages_of(name):
            page.write_text(with_table(page.read_text(), name))
    for path in sorted(protocols.RESULTS.glob("*.json")):
        draw(path)


def pages_of(name: str) -> list[Path]:
    """Return the pages with the table of a benchmark, one for each language."""
    return sorted((protocols.ROOT / "docs").glob(TABLES[name]))


def with_table(page: str, name: str) -> str:
    """Return the text of a page with the table of a benchmark as its written result has it.

    Raises:
        ValueError: the page has no place for it.
    """
    begin, end = f"<!-- {name}: made by make docs -->\n", f"<!-- /{name} -->\n"
    before, _, rest = page.partition(begin)
    _, marker, after = rest.partition(end)
    if not marker:
        raise ValueError(f"the page has no place for the table of {name}")
    rows = protocols.written_rows(name)
    lines = protocols.module(name).table(rows) if rows else ["not measured"]
    return before + begin + "\n".join(lines) + "\n" + end + after


def draw(path: Path) -> None:
    """Draw the plot of a written result beside it."""
    result = protocols.read(path)
    protocols.module(result.name).draw(result, path.with_suffix(".svg"))


def render() -> str:
    """Return the page."""
    parts = [
        "# Figures\n",
        "Made by `make docs` from `benchmarks/results/`; measure them yourself with `make bench`. Intervals "
        "are 95 % bootstrap intervals over the repeats, or the range where every single run has to hold. "
        "Absolute times depend on the machine; ratios are between sides interleaved in one run.\n",
    ]
    for path in sorted(protocols.RESULTS.glob("*.json")):
        parts.append(_section(json.loads(path.read_text())))
    return "\n".join(parts)


def _section(result: dict[str, Any]) -> str:
    machine = result["machine"]
    gibibytes = machine["memory_bytes"] / 2**30
    lines = [
        f"## {result['name']}\n",
        f"{result['when']}, commit `{result['commit']}`, {machine['cores']} cores ({machine['cpu']}), "
        f"{gibibytes:.0f} GiB, Python {machine['python']}, {len(result['rows'])} repeats"
        + (", **quick run**" if result["quick"] else "")
        + ".\n",
        "| check | value | interval | target | holds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for check in result["checks"]:
        span = interval(check["low"], check["high"])
        holds = "yes" if check["holds"] else "**no**"
        lines.append(f"| {check['name']} | {number(check['value'])} | {span} | {check['target']} | {holds} |")
    details = getattr(protocols.module(result["name"]), "details", None)
    if details is not None:
        lines += ["", *details(result["rows"])]
    lines.append(f"\n![{result['name']}](../benchmarks/results/{result['name']}.svg)\n")
    return "\n".join(lines)
