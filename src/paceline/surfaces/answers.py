"""The explanation of a job in words: the parts that web pages and Markdown texts share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

from paceline.diagnosing import catalogues, outlooks
from paceline.model.explanations.causes import Cause, Evidence, EvidenceSource, Explanation, Gain, Outlook
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.views import cells

#: At most this many of the replicas behind a number are named.
_NAMED = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEvidence:
    """An observation, and the sources of its numbers."""

    text: str
    sources: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReason:
    """A cause.

    Attributes:
        effects: other findings that follow from the cause, the most direct first, each with its code.
        change: the change of the job file, as rows (`Diffs.rows`).
        gain: the computed gain of the changes; empty if it is unknown.
    """

    code: str
    severity: str
    what: str
    is_past: bool
    seen: tuple[AnswerEvidence, ...]
    effects: tuple[str, ...]
    change: tuple[str, ...]
    next_steps: tuple[str, ...]
    risk: str
    gain: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """How the job scales.

    Attributes:
        uses: the name of each limit, the used share of it (0 to 1), and whether it is high enough to bind.
        options: other sizes of the job: the change, its gain, and the limit that would bind then.
        knee: a sentence about the number of workers beyond which more bring little; empty if it is unknown.
    """

    binds: str
    uses: tuple[tuple[str, float, bool], ...]
    options: tuple[tuple[str, str, str], ...]
    knee: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The whole explanation.

    Attributes:
        primary: the cause that matters most; None if there is no current cause.
        others: the other causes, by the gain of fixing them; past causes come last.
        site: the numbers that the site has set; empty: the defaults are used.
    """

    job: str
    summary: str
    primary: AnswerReason | None
    others: tuple[AnswerReason, ...]
    unknown: tuple[str, ...]
    outlook: Prospect | None
    site: str


def answer(found: Explanation, *, diffs: Diffs, say: Callable[[str], str] = str) -> Answer:
    """Return an explanation in words.

    Args:
        found: the explanation.
        diffs: shows the changes of causes.
        say: adds the options that locate the job to the commands in a text.
    """
    reasons = [_reason(cause, diffs, say) for cause in found.causes]
    has_primary = bool(reasons) and not reasons[0].is_past
    return Answer(
        job=found.job,
        summary=_sentence(found),
        primary=reasons[0] if has_primary else None,
        others=tuple(reasons[1:] if has_primary else reasons),
        unknown=tuple(say(each) for each in found.unknown),
        outlook=None if found.outlook is None else prospect(found.outlook, found.thresholds),
        site=site(found),
    )


def site(found: Explanation) -> str:
    """Return a sentence about the numbers that the site has set; empty: the defaults are used."""
    numbers = ", ".join(f"{name} {value:g}" for name, value in sorted(found.thresholds.items()))
    return f"judged by numbers of this site: {numbers} (paceline thresholds)" if numbers else ""


def _sentence(found: Explanation) -> str:
    """Return the summary as a sentence; a leading job name keeps its case."""
    summary = found.summary
    return f"{summary if summary.startswith(found.job) else summary[:1].upper() + summary[1:]}."


def _reason(cause: Cause, diffs: Diffs, say: Callable[[str], str]) -> AnswerReason:
    return AnswerReason(
        code=catalogues.topic(cause.name).code,
        severity=str(cause.severity),
        what=cause.what,
        is_past=cause.is_past,
        seen=tuple(_seen(each) for each in cause.evidence),
        effects=tuple(_effects(cause)),
        change=diffs.rows(cause.changes),
        next_steps=tuple(say(each) for each in cause.next_steps),
        risk=cause.risk,
        gain=f"{gain(cause.gain)} the examples per second (computed)" if cause.gain else "",
    )


def _effects(cause: Cause) -> Iterator[str]:
    for effect in cause.effects:
        yield f"{catalogues.topic(effect.name).code} {effect.what}"
        yield from _effects(effect)


def _seen(each: Evidence) -> AnswerEvidence:
    return AnswerEvidence(text=seen(each), sources="; ".join(map(origin, each.sources)))


def seen(each: Evidence) -> str:
    """Return evidence as a text, with its time and how often it was seen."""
    at = "" if each.at is None else f"{cells.moment(each.at)} "
    often = f" ({each.count} times)" if each.count > 1 else ""
    return f"{at}{each.text}{often}"


def origin(source: EvidenceSource) -> str:
    """Return the source of a number, such as ``cpu_cores, 60 samples (ps-0), 14:02:12 to 14:02:42 UTC``."""
    whose = [str(replica) for replica in source.replicas]
    more = f" and {len(whose) - _NAMED} more" if len(whose) > _NAMED else ""
    about = f" ({', '.join(whose[:_NAMED])}{more})" if whose else ""
    what = f"{source.field}, {counted(source)}{about}"
    if source.since is None or source.until is None:
        return what
    since, until = cells.clock(source.since), cells.clock(source.until)
    times = since if since == until else f"{since} to {until}"
    return f"{what}, {times} UTC"


def counted(source: EvidenceSource) -> str:
    """Return what a number is based on, with the count: ``60 samples``, ``1 trace``, ``job file``."""
    if source.count == 1:
        return f"1 {source.what.removesuffix('s')}" if source.what.endswith("s") else source.what
    return f"{source.count} {source.what}" if source.count else source.what


def gain(value: Gain) -> str:
    """Return a gain in words, such as ``1.4 to 1.8 times``."""
    low, high = f"{value.low:.1f}", f"{value.high:.1f}"
    return f"{low} times" if low == high else f"{low} to {high} times"


def prospect(outlook: Outlook, thresholds: Mapping[str, float]) -> Prospect:
    """Return how a job scales, in words; a bound that binds by the thresholds of the site is marked."""
    binding_use = outlooks.BINDING_USE.value(thresholds)
    knee = None if outlook.knee_workers is None else max(1, round(outlook.knee_workers))
    return Prospect(
        binds=outlook.binds,
        uses=tuple((name, share, share >= binding_use) for name, share in _bounds(outlook.uses)),
        options=tuple((option.what, gain(option.gain), option.binds) for option in outlook.options),
        knee="" if knee is None else f"From about {knee} workers on, more of them bring little.",
    )


def _bounds(uses: Sequence[tuple[str, float]], most: int = 8) -> tuple[tuple[str, float], ...]:
    """Return the most used limits; if there are too many, the rest is one entry."""
    if len(uses) <= most:
        return tuple(uses)
    rest = uses[most - 1 :]
    return (*uses[: most - 1], (f"{len(rest)} others, each at most", rest[0][1]))
