"""What ``paceline why`` shows: where a job stands, and each cause with what was seen and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.cells import chop_cells
from rich.text import Text

from paceline.diagnosing import catalogues
from paceline.model.causes import Cause, Evidence, Explanation, Source
from paceline.surfaces import answers
from paceline.surfaces.answers import Prospect
from paceline.surfaces.proposals import Proposals
from paceline.surfaces.views import cells, styles

_INDENT = 11
_SECTION_INDENT = 9
_ANY_WIDTH = 10**6
_DIFF_STYLES = {"+": "green", "-": "red", "@": "dim"}
_DAY_SECONDS = 86_400


def explanation(
    found: Explanation, *, proposals: Proposals, say: Callable[[str], str], width: int | None
) -> Text:
    """Return the answer.

    Args:
        found: the answer.
        proposals: shows what causes change.
        say: puts the options that say where the job is into commands.
        width: of the terminal; None: as wide as it takes.
    """
    page = _Page(proposals, say, width)
    parts = [page.filled("", (found.summary, "bold"), indent=0)]
    for number, cause in enumerate(found.causes, start=1):
        parts += [Text(), *page.cause(number, cause)]
    if found.outlook is not None:
        parts += [Text(), *page.outlook(answers.prospect(found.outlook))]
    unknown = [page.filled("unknown", (each, "yellow"), indent=_SECTION_INDENT) for each in found.unknown]
    if unknown:
        parts += [Text(), *unknown]
    return Text("\n").join(parts)


class _Page:
    """Lines of an answer, no wider than the terminal."""

    def __init__(self, proposals: Proposals, say: Callable[[str], str], width: int | None) -> None:
        self._proposals = proposals
        self._say = say
        self._width = width

    def cause(self, number: int, cause: Cause) -> Iterator[Text]:
        """Yield a cause: what it is, what was seen, what follows from it, what to change and to do."""
        yield self.filled(f"{number}.", *_headline(cause), indent=3)
        for evidence in cause.evidence:
            yield self.filled("   seen", (_seen(evidence), ""), (_sources(evidence.sources), "dim"))
        yield from self._effects(cause, 0)
        yield from self._changes(cause)
        if cause.gain is not None:
            yield self.filled("   gain", (f"{answers.gain(cause.gain)} the examples/s, computed", ""))
        if cause.risk:
            yield self.filled("   risk", (cause.risk, ""))
        for step in cause.next_steps:
            yield self.filled("   next", (self._say(step), "cyan"))

    def outlook(self, prospect: Prospect) -> Iterator[Text]:
        """Yield how the job scales: what binds now, and what other sizes would bring."""
        used = {name: share for name, share, _ in prospect.uses}.get(prospect.binds)
        lead = f"{prospect.binds} binds now" + ("" if used is None else f", used to {cells.percent(used)}")
        more = "; examples/s of other sizes, computed:" if prospect.options else ""
        yield self.filled("scales", (lead + more, ""), indent=_SECTION_INDENT)
        for what, gain, binds in prospect.options:
            yield self.filled("", (f"{what}: {gain}; then {binds} binds", ""), indent=_SECTION_INDENT)
        if prospect.knee:
            yield self.filled("", (prospect.knee, ""), indent=_SECTION_INDENT)

    def _effects(self, cause: Cause, depth: int) -> Iterator[Text]:
        for effect in cause.effects:
            yield self.filled("   so", *_headline(effect), indent=_INDENT + 2 * depth)
            yield from self._effects(effect, depth + 1)

    def _changes(self, cause: Cause) -> Iterator[Text]:
        for number, row in enumerate(self._proposals.rows(cause)):
            pieces = chop_cells(cells.clean_line(row), self._room(_INDENT)) or [""]
            label = "" if number else "   change"
            body = f"\n{' ' * _INDENT}".join(pieces)
            yield Text.assemble((f"{label:<{_INDENT}}", "dim"), (body, _DIFF_STYLES.get(row[:1], "")))

    def filled(self, label: str, *parts: tuple[str, str], indent: int = _INDENT) -> Text:
        """Return texts, each with its style, one behind the other; what is too long goes on below."""
        cleaned = [(cells.clean(text), style) for text, style in parts]
        lines = cells.wrapped(" ".join(text for text, _ in cleaned if text), self._room(indent))
        body = Text(f"\n{' ' * indent}".join(lines))
        # Lines are broken at blanks or within words, so other characters keep their order.
        inked = [offset for offset, char in enumerate(body.plain) if not char.isspace()]
        done = 0
        for text, style in cleaned:
            length = sum(not char.isspace() for char in text)
            if length:
                body.stylize(style, inked[done], inked[done + length - 1] + 1)
            done += length
        return Text.assemble((f"{label:<{indent}}", "dim"), body)

    def _room(self, indent: int) -> int:
        return _ANY_WIDTH if self._width is None else max(20, self._width - indent)


def _headline(cause: Cause) -> tuple[tuple[str, str], ...]:
    """Return code, severity and what is the case; what is over is told in grey."""
    past = "dim" if cause.is_past else ""
    severity = past or styles.of_severity(cause.severity)
    return (catalogues.topic(cause.name).code, past), (str(cause.severity), severity), (cause.what, past)


def _seen(each: Evidence) -> str:
    at = "" if each.at is None else f"{cells.moment(each.at)} "
    often = f" ({each.count} times)" if each.count > 1 else ""
    return f"{at}{each.text}{often}"


def _sources(sources: Sequence[Source]) -> str:
    """Return what numbers rest on: ``(60 samples, 14:03:10 to 14:03:40)``."""
    said = "; ".join(dict.fromkeys(filter(None, map(_source, sources))))
    return f"({said})" if said else ""


def _source(source: Source) -> str:
    if not source.count:
        return ""
    what = answers.counted(source)
    since, until = source.since, source.until
    if since is None or until is None:
        return what
    if since == until:
        return f"{what}, {cells.clock(since)}"
    show = cells.clock if since // _DAY_SECONDS == until // _DAY_SECONDS else cells.moment
    return f"{what}, {show(since)} to {show(until)}"
