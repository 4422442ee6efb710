"""The explanation of a job in Markdown, for pull requests and chats."""

from __future__ import annotations

import re
from collections.abc import Iterator

from paceline.surfaces.answers import Answer, AnswerReason, Prospect
from paceline.surfaces.views import cells

#: Characters with a meaning in Markdown or HTML; an underscore within a word has none.
_SPECIAL = re.compile(r"([\\`*\[\]<>#|~]|(?<![^\W_])_|_(?![^\W_]))")


def text(answer: Answer) -> str:
    """Return the explanation: headings, lists, a diff of the job file for each change, outlook tables."""
    return "\n".join(_lines(answer))


def _lines(answer: Answer) -> Iterator[str]:
    yield f"## Why {_plain(answer.job)} is as it is"
    yield ""
    yield _plain(answer.summary)
    for reason in (answer.primary, *answer.others):
        if reason is not None:
            yield from _reason(reason)
    if answer.unknown:
        yield from ("", "### What is not known", "")
        yield from (f"- {_plain(each)}" for each in answer.unknown)
    if answer.outlook is not None:
        yield from _outlook(answer.outlook)
    if answer.site:
        yield from ("", _plain(answer.site[:1].upper() + answer.site[1:]) + ".")


def _reason(reason: AnswerReason) -> Iterator[str]:
    past = " (over)" if reason.is_past else ""
    yield from ("", f"### {reason.code} {_plain(reason.what)}{past}")
    if reason.seen or reason.effects:
        yield ""
    yield from (f"- {_plain(each.text)}" for each in reason.seen)
    yield from (f"- What follows: {_plain(each)}" for each in reason.effects)
    if reason.change:
        yield from ("", "Change in the job file:", "", "```diff")
        yield from (cells.clean_line(row).replace("```", "'''") for row in reason.change)
        yield "```"
    if reason.next_steps:
        yield from ("", "Or:" if reason.change else "What to do:", "")
        yield from (f"- {_plain(step)}" for step in reason.next_steps)
    if reason.gain:
        yield from ("", f"**Gain:** {_plain(reason.gain)}.")
    if reason.risk and (reason.change or reason.next_steps):
        yield from ("", f"**Risk:** {_plain(reason.risk)}")


def _outlook(outlook: Prospect) -> Iterator[str]:
    yield from ("", "### How it scales", "", f"What binds now: **{_plain(outlook.binds)}**.", "")
    yield from ("| Bound | Used |", "| --- | ---: |")
    yield from (f"| {_plain(name)} | {share:.0%} |" for name, share, _ in outlook.uses)
    if outlook.options:
        yield from ("", "| With | Examples/s (computed) | Then binds |", "| --- | ---: | --- |")
        yield from (
            f"| {_plain(what)} | {_plain(gain)} | {_plain(binds)} |" for what, gain, binds in outlook.options
        )
    if outlook.knee:
        yield from ("", _plain(outlook.knee))


def _plain(words: str) -> str:
    """Return text with Markdown and HTML escaped, and without mentions."""
    return _SPECIAL.sub(r"\\\1", cells.clean(words)).replace("@", "@\N{ZERO WIDTH SPACE}")
