"""Writes a page for each cure: ``python -m paceline.surfaces.cure_pages FOLDER``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from paceline.model.variables.cures import CURES, Cure

_HEAD = """\
# Cures

A cure changes what a training script asks of TensorFlow, without a change of the script: while the script
builds its graph, because the job file's `training:` block asks for it. `make docs` makes these pages.

- Nothing is changed unless the job file asks for it. `instrumentation: "off"` switches all cures off.
- `paceline describe NAME` says under "Changed in the scripts" what each cure was applied to, or why not.
- `paceline tune NAME` proposes cures, tries them one at a time and keeps what is faster with a loss as good.
- A script that is written with [the training library](../training.md) obeys the block by itself.

| cure | key | what it is for |
| --- | --- | --- |
"""


def pages() -> dict[str, str]:
    """Return all pages as Markdown, by the names of their files."""
    rows = "".join(f"| [{cure.name}]({cure.name}.md) | `{cure.key}` | {cure.title} |\n" for cure in CURES)
    return {"README.md": _HEAD + rows, **{f"{cure.name}.md": "\n".join(_page(cure)) for cure in CURES}}


def _page(cure: Cure) -> Iterator[str]:
    yield f"# {cure.title}\n"
    yield f"`{cure.name}`, version {cure.version}. [All cures](README.md)\n"
    yield f"```yaml\n{_asking(cure)}```\n"
    yield f"## What it does\n\n{cure.does}\n"
    yield f"## Which scripts it fits\n\n{cure.fits}\n"
    yield f"## Risk\n\n{cure.risk}\n"
    yield f"## How to take it back\n\n{cure.undo}\n"


def _asking(cure: Cure) -> str:
    """Return the lines of a job file that ask for a cure."""
    value = str(cure.example).lower() if isinstance(cure.example, bool) else cure.example
    keys = ("spec", "training", *cure.path)
    lines = [f"{'  ' * depth}{key}:" for depth, key in enumerate(keys)]
    return "\n".join(lines) + f" {value}\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.md"):
        file.unlink()
    for name, text in pages().items():
        (folder / name).write_text(text)
