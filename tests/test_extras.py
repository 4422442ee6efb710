"""Extras that pages and messages tell people to install are those that the package has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
_NAMED = re.compile(r"(?:paceline|'\.)\[([a-z0-9, ]+)\]'")


def test_extras_that_are_named_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    sources = (ROOT / "src").rglob("*.py")
    wrong = {
        (str(path.relative_to(ROOT)), extra)
        for path in (*pages, *sources)
        for extras in _NAMED.findall(path.read_text(encoding="utf-8"))
        for extra in extras.replace(" ", "").split(",")
        if extra not in project["optional-dependencies"]
    }
    assert not wrong
    assert _NAMED.findall("pip install 'paceline[training]'") == ["training"]
