"""Writes a page for each kind of cause: ``python -m paceline.surfaces.cause_pages FOLDER``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from paceline.diagnosing import catalogues
from paceline.diagnosing.rules import Rule
from paceline.diagnosing.thresholds import Threshold
from paceline.diagnosing.topics import Topic
from paceline.surfaces import site_numbers

_HEAD = """\
# Causes

What `paceline why` names, made from the catalogue by `make docs`; change the rules, not these pages.
`paceline explain CODE` says the same in a terminal. An error keeps a job from its goal, a warning costs it a
good part of its speed, an info is worth knowing. [Thresholds](thresholds.md) are numbers that a site can
set.

| code | name | severity | what |
| --- | --- | --- | --- |
"""
_THRESHOLDS_HEAD = """\
# Thresholds

The numbers that the rules of `paceline why` compare with. They are measured, reasoned or taken from what
others have published. A site that knows better sets its own, in the file `thresholds.yaml` of its state
folder (`PACELINE_HOME`, or `~/.local/state/paceline`):

```yaml
apiVersion: paceline.dev/v1alpha1
kind: Thresholds
spec:
  links.full: 0.6
  hangs.least-seconds: 60
```

All that reads this state folder judges by these numbers: the verbs, the server and its pages, autoscaling. An
explanation names the numbers that the site has set. A recording (`paceline record`) carries them. A name that
is not there, or a number that cannot be, is an error with line and column.

`paceline thresholds` lists all with their values; `paceline thresholds NAME` says what one means. This page
is made from the rules by `make docs`.

| name | default | unit | meaning | from |
| --- | --- | --- | --- | --- |
"""


def pages() -> dict[str, str]:
    """Return all pages as Markdown, by the names of their files."""
    rules = {rule.topic.name: rule for rule in catalogues.RULES}
    lines = [
        f"| [{each.code}]({each.code}.md) | {each.name} | {each.severity} | {each.title} |\n"
        for each in catalogues.TOPICS
    ]
    made = {f"{each.code}.md": "\n".join(_page(each, rules.get(each.name))) for each in catalogues.TOPICS}
    return {"README.md": _HEAD + "".join(lines), "thresholds.md": _thresholds(), **made}


def _thresholds() -> str:
    rows = map(_row, catalogues.THRESHOLDS.values())
    return _THRESHOLDS_HEAD + "".join(f"{row}\n" for row in rows)


def _row(each: Threshold) -> str:
    return (
        f"| `{each.name}` | {site_numbers.shown(each.default)} | {each.unit} | {each.means} | {each.source} |"
    )


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
    thresholds = catalogues.thresholds(rule)
    if thresholds:
        yield "## Thresholds\n\nA site can [set its own](thresholds.md).\n"
        yield "| name | default | unit | meaning | from |\n| --- | --- | --- | --- | --- |"
        yield "\n".join(_row(each) for each in thresholds) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for file in folder.glob("*.md"):
        file.unlink()
    for name, text in pages().items():
        (folder / name).write_text(text)
