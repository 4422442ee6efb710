"""Writes a page for each kind of cause: ``python -m paceline.surfaces.cause_pages FOLDER``."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from paceline.diagnosing import catalogues
from paceline.diagnosing.rules import Rule
from paceline.diagnosing.topics import Topic

_HEAD = """\
# Causes

What `paceline why` names, made from the catalogue by `make docs`; change the rules, not these pages.
`paceline explain CODE` says the same in a terminal. An error keeps a job from its goal, a warning costs it a
good part of its speed, an info is worth knowing.

| code | name | severity | what |
| --- | --- | --- | --- |
"""
#: Constants with the comment lines above them.
_CONSTANT = re.compile(r"((?:^#: .*\n)+)^(\w+(?:, \w+)*)(?:: [^=\n]+)? = (.+)$", re.MULTILINE)
#: The package of the modules that rules share.
_SHARED = "paceline.diagnosing."


class Threshold(NamedTuple):
    """A number that a rule uses.

    Attributes:
        name: the name of the constant.
        value: the value, as it is written in the source.
        reason: the comment that explains the number and its origin.
    """

    name: str
    value: str
    reason: str


def thresholds(rule: Rule) -> Iterator[Threshold]:
    """Yield the constants of a rule's module, and of the modules that it shares with other rules.

    Each has the comment above it as its reason. Names from shared modules have the module's name as a prefix.
    """
    own = inspect.getmodule(rule.find)
    assert own is not None, "a rule is a function of a module"
    yield from _constants(own, "")
    topics = {inspect.getmodule(each.find) for each in catalogues.RULES}
    for module in dict.fromkeys(filter(inspect.ismodule, vars(own).values())):
        name = module.__name__
        if name.startswith(_SHARED) and module not in topics:
            yield from _constants(module, f"{name.rpartition('.')[2]}.")


def _constants(module: ModuleType, prefix: str) -> Iterator[Threshold]:
    for comment, names, values in _CONSTANT.findall(inspect.getsource(module)):
        reason = " ".join(line.removeprefix("#: ") for line in comment.splitlines())
        for name, value in zip(names.split(", "), values.split(", "), strict=False):
            found = getattr(module, name)
            if isinstance(found, int | float):
                shown = str(found) if value[:1].isalpha() else value  # A name stands for its value.
                yield Threshold(f"{prefix}{name}", shown, reason)


def pages() -> dict[str, str]:
    """Return all pages as Markdown, by the names of their files."""
    rules = {rule.topic.name: rule for rule in catalogues.RULES}
    lines = [
        f"| [{each.code}]({each.code}.md) | {each.name} | {each.severity} | {each.title} |\n"
        for each in catalogues.TOPICS
    ]
    made = {f"{each.code}.md": "\n".join(_page(each, rules.get(each.name))) for each in catalogues.TOPICS}
    return {"README.md": _HEAD + "".join(lines), **made}


def _page(topic: Topic, rule: Rule | None) -> Iterator[str]:
    yield f"# {topic.code}: {topic.title}\n"
    yield f"`{topic.name}`, {topic.severity}. [All causes](README.md)\n"
    yield f"## Why\n\n{topic.why}\n"
    yield f"## What to do\n\n{topic.fix}\n"
    if topic.risk:
        yield f"## Risk\n\n{topic.risk}\n"
    if rule is None:
        return
    yield "## What it needs to know\n"
    yield "\n".join(f"- {need.what}: {need.remedy.format(name='NAME')}" for need in rule.needs) + "\n"
    if rule.explains:
        names = [catalogues.topic(name) for name in rule.explains]
        yield "## What follows from it\n"
        yield "\n".join(f"- [{each.code}]({each.code}.md): {each.title}" for each in names) + "\n"
    numbers = tuple(thresholds(rule))
    if numbers:
        yield "## Thresholds\n\n| name | value | why |\n| --- | --- | --- |"
        yield "\n".join(f"| `{each.name}` | {each.value} | {each.reason} |" for each in numbers) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.md"):
        file.unlink()
    for name, text in pages().items():
        (folder / name).write_text(text)
