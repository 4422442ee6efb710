"""The output of ``paceline why``: a summary, and each cause with its evidence and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from paceline.diagnosing import catalogues
from paceline.model.explanations.causes import Cause, EvidenceSource, Explanation
from paceline.surfaces import answers
from paceline.surfaces.answers import Prospect
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.views import cells, styles
from paceline.surfaces.views.paragraphs import Paragraphs

_INDENT = 11
_SECTION_INDENT = 9
_DAY_SECONDS = 86_400


def explanation(found: Explanation, *, diffs: Diffs, say: Callable[[str], str], width: int | None) -> Text:
    """Return the explanation of a job.

    Args:
        found: the explanation.
        diffs: shows the changes of causes.
        say: adds the options that locate the job to the commands in a text.
        width: the width of the terminal; None means unlimited.
    """
    page = _Page(diffs, say, width)
    parts = [page.filled("", (found.summary, "bold"), indent=0)]
    for number, cause in enumerate(found.causes, start=1):
        parts += [Text(), *page.cause(number, cause)]
    if found.outlook is not None:
        parts += [Text(), *page.outlook(answers.prospect(found.outlook, found.thresholds))]
    unknown = [page.filled("unknown", (each, "yellow"), indent=_SECTION_INDENT) for each in found.unknown]
    if unknown:
        parts += [Text(), *unknown]
    site = answers.site(found)
    if site:
        parts += [Text(), page.filled("site", (site, "dim"), indent=_SECTION_INDENT)]
    return Text("\n").join(parts)


class _Page:
    """Builds the lines of an explanation, no wider than the terminal."""

    def __init__(self, diffs: Diffs, say: Callable[[str], str], width: int | None) -> None:
        self._diffs = diffs
        self._say = say
        self._paragraphs = Paragraphs(width)

    def cause(self, number: int, cause: Cause) -> Iterator[Text]:
        """Yield a cause: its headline, evidence, effects, change, gain, risk and next steps."""
        yield self.filled(f"{number}.", *_headline(cause), indent=3)
        for evidence in cause.evidence:
            yield self.filled("   seen", (answers.seen(evidence), ""), (_sources(evidence.sources), "dim"))
        yield from self._effects(cause, 0)
        rows = self._diffs.rows(cause.changes)
        yield from self._paragraphs.diff("   change", rows, indent=_INDENT)
        if cause.gain is not None:
            yield self.filled("   gain", (f"{answers.gain(cause.gain)} the examples/s, computed", ""))
        if cause.risk:
            yield self.filled("   risk", (cause.risk, ""))
        for step in cause.next_steps:
            yield self.filled("   next", (self._say(step), "cyan"))

    def outlook(self, prospect: Prospect) -> Iterator[Text]:
        """Yield how the job scales: the binding limit, and the gains of other sizes."""
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

    def filled(self, label: str, *parts: tuple[str, str], indent: int = _INDENT) -> Text:
        """Return a paragraph (see `Paragraphs`)."""
        return self._paragraphs.filled(label, *parts, indent=indent)


def _headline(cause: Cause) -> tuple[tuple[str, str], ...]:
    """Return the code, severity and description of a cause; past causes are grey."""
    past = "dim" if cause.is_past else ""
    severity = past or styles.of_severity(cause.severity)
    return (catalogues.topic(cause.name).code, past), (str(cause.severity), severity), (cause.what, past)


def _sources(sources: Sequence[EvidenceSource]) -> str:
    """Return what numbers are based on, such as ``(60 samples, 14:03:10 to 14:03:40)``."""
    said = "; ".join(dict.fromkeys(filter(None, map(_source, sources))))
    return f"({said})" if said else ""


def _source(source: EvidenceSource) -> str:
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
