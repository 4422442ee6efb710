"""`docs/architecture.md` shows the packages as they import each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Set
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "paceline"


def imports() -> Mapping[str, Set[str]]:
    """Return the packages that each package imports."""
    found: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        package = path.relative_to(SOURCES).parts[0].removesuffix(".py")
        own = found.setdefault(package, set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("paceline"):
                names = [f"{node.module}.{alias.name}".split(".")[1] for alias in node.names]
                own |= {name for name in names if name != package and is_package(name)}
    del found["__init__"]  # It looks names up when they are used.
    return found


def is_package(name: str) -> bool:
    return (SOURCES / name).is_dir() or (SOURCES / f"{name}.py").exists()


def drawn() -> Mapping[str, Set[str]]:
    """Return the arrows of the diagram."""
    diagram = (ROOT / "docs" / "architecture.md").read_text().partition("```mermaid")[2].partition("```")[0]
    found: dict[str, set[str]] = {}
    for start, end in re.findall(r"^  (\w+) --> (\w+)$", diagram, re.MULTILINE):
        found.setdefault(start, set()).add(end)
    return found


def reached(arrows: Mapping[str, Set[str]], start: str) -> Set[str]:
    """Return what can be reached from a package over one or more arrows."""
    found: set[str] = set()
    ahead = list(arrows.get(start, ()))
    while ahead:
        package = ahead.pop()
        if package not in found:
            found.add(package)
            ahead += arrows.get(package, ())
    return found


def test_each_arrow_is_an_import_and_each_import_is_over_arrows() -> None:
    real, arrows = imports(), drawn()
    assert arrows, "there is no diagram"
    for start, ends in arrows.items():
        assert ends <= real[start], f"{start} does not import all of this"
    for start, ends in real.items():
        assert ends <= reached(arrows, start), f"the diagram does not let {start} import all of this"


def test_each_package_is_in_the_list() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    listed = set(re.findall(r"^  (\w+)(?:/|\.py) ", page, re.MULTILINE))
    assert listed == {name for name in imports()} | {"agent", "errors"}
