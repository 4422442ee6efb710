"""Which runs a list is to show, in which order, page by page; and the answer, from runs that are at hand.

A store answers the same in SQL (`stores.runs`); a property test holds the two together.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import json
import math
from collections.abc import Iterable

from paceline.model.jobs.runs import RunSummary
from paceline.model.jobs.selectors import Selector
from paceline.model.jobs.statuses import JobPhase

MOST_RUNS = 500


class Order(enum.StrEnum):
    """What runs are sorted by; those without it come last in either direction."""

    SUBMITTED = "submitted"
    FINISHED = "finished"
    NAME = "name"
    SPEED = "speed"
    PROGRESS = "progress"
    IMBALANCE = "imbalance"


@dataclasses.dataclass(frozen=True, slots=True)
class Cursor:
    """The last run of a page: where the next one begins.

    Attributes:
        value: what it was sorted by; None: it has none.
        name: runs of the same value are sorted by their name.
    """

    value: float | str | None
    name: str

    def __str__(self) -> str:
        """Return it as clients carry it from page to page."""
        text = json.dumps([self.value, self.name])
        return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Return the cursor that was written so.

        Raises:
            ValueError: it was not.
        """
        try:
            data = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, binascii.Error, RecursionError) as error:
            raise ValueError(f"{text!r} is not where a page of jobs ends") from error
        match data:
            case [None | str() as value, str() as name]:
                return cls(value, name)
            case [bool(), _]:
                pass
            case [int() | float() as value, str() as name] if math.isfinite(value):
                return cls(float(value), name)
        raise ValueError(f"{text!r} is not where a page of jobs ends")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs, and which page of them.

    Attributes:
        phases: only runs in one of these; None: in any.
        search: only runs with this in their name, their model, the value of a label, their main finding or
            the codes of their causes, whatever its case; empty: any.
        model: only runs that train this one (`trained_models`); empty: any.
        finding: only runs in which a cause with this code was found; empty: any.
        selector: only runs with such labels.
        since: only runs that were submitted then or later (Unix seconds).
        until: only runs that were submitted before.
        order: what they are sorted by.
        descending: whether the largest, latest or last comes first.
        limit: how many a page has at most.
        after: the last run of the page before; None: the first page is wanted.
    """

    phases: tuple[JobPhase, ...] | None = None
    search: str = ""
    model: str = ""
    finding: str = ""
    selector: Selector = dataclasses.field(default_factory=Selector)
    since: float | None = None
    until: float | None = None
    order: Order = Order.SUBMITTED
    descending: bool = True
    limit: int = 50
    after: Cursor | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MOST_RUNS:
            raise ValueError(f"a page has 1 to {MOST_RUNS} jobs, not {self.limit}")
        wants_text = self.order is Order.NAME
        value = None if self.after is None else self.after.value
        if value is not None and isinstance(value, str) is not wants_text:
            raise ValueError(f"the page before was not sorted by {self.order}")

    def selects(self, run: RunSummary) -> bool:
        """Whether a run is on one of the pages."""
        text = self.search.lower()
        return (
            (self.phases is None or run.phase in self.phases)
            and (not text or any(text in each.lower() for each in _texts(run)))
            and (not self.model or run.model == self.model)
            and (not self.finding or (run.digest is not None and self.finding in run.digest.codes))
            and self.selector.matches(run.labels)
            and (self.since is None or run.submitted_at >= self.since)
            and (self.until is None or run.submitted_at < self.until)
        )

    def cursor(self, run: RunSummary) -> Cursor:
        """Return the cursor of a page that ends with a run."""
        return Cursor(_value(run, self.order), run.name)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A page of a list of runs.

    Attributes:
        total: how many all pages have together.
        after: where the next page begins; None: this is the last one.
    """

    runs: tuple[RunSummary, ...]
    total: int
    after: Cursor | None


def page(runs: Iterable[RunSummary], query: RunQuery) -> RunPage:
    """Return the page that a query asks for, of all runs that there are; each has another name."""
    found = {query.cursor(run): run for run in runs if query.selects(run)}
    ordered = _ordered({*found, *([query.after] if query.after else ())}, descending=query.descending)
    rest = ordered[ordered.index(query.after) + 1 :] if query.after else ordered
    return cut([found[each] for each in rest[: query.limit + 1]], len(found), query)


def _ordered(cursors: Iterable[Cursor], *, descending: bool) -> list[Cursor]:
    by_name = sorted(cursors, key=lambda each: each.name, reverse=descending)
    valued = [each for each in by_name if each.value is not None]
    valued.sort(key=lambda each: each.value, reverse=descending)  # type: ignore[arg-type, return-value]
    return valued + [each for each in by_name if each.value is None]


def cut(runs: list[RunSummary], total: int, query: RunQuery) -> RunPage:
    """Return a page of runs that are sorted, of which one too many says that there is another page."""
    shown = tuple(runs[: query.limit])
    return RunPage(runs=shown, total=total, after=query.cursor(shown[-1]) if len(runs) > len(shown) else None)


def _texts(run: RunSummary) -> tuple[str, ...]:
    found = (run.digest.finding or "", " ".join(run.digest.codes)) if run.digest else ()
    return run.name, run.model, *run.labels.values(), *found


def _value(run: RunSummary, order: Order) -> float | str | None:
    match order:
        case Order.SUBMITTED:
            return run.submitted_at
        case Order.FINISHED:
            return run.finished_at
        case Order.NAME:
            return run.name
        case Order.SPEED:
            return run.digest.examples_per_second if run.digest else None
        case Order.PROGRESS:
            return run.digest.progress if run.digest else None
        case Order.IMBALANCE:
            return run.digest.imbalance if run.digest else None
