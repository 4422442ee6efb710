"""Queries for pages of a list of runs, and their answers from runs in memory.

A store answers the same queries in SQL (`stores.run_lists`); a property test compares the two.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import enum
import json
import sys
from collections.abc import Iterable

from paceline.model.jobs.runs import RunSummary
from paceline.model.jobs.selectors import Selector
from paceline.model.jobs.statuses import JobPhase

MOST_RUNS = 500


class Order(enum.StrEnum):
    """What runs are sorted by; runs without a value come last in either direction."""

    SUBMITTED = "submitted"
    FINISHED = "finished"
    NAME = "name"
    SPEED = "speed"
    PROGRESS = "progress"
    IMBALANCE = "imbalance"


@dataclasses.dataclass(frozen=True, slots=True)
class Cursor:
    """The last run of a page, after which the next page begins.

    Attributes:
        value: the value by which the run was sorted; None: it has none.
        name: the name of the run; runs of the same value are sorted by their names.
    """

    value: float | str | None
    name: str

    def __str__(self) -> str:
        """Return the cursor as text that clients pass on from page to page."""
        text = json.dumps([self.value, self.name])
        return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Return the cursor that a text stands for.

        Raises:
            ValueError: the text is not the text of a cursor.
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
            case [int() | float() as value, str() as name] if abs(value) <= sys.float_info.max:
                return cls(float(value), name)
        raise ValueError(f"{text!r} is not where a page of jobs ends")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RunQuery:
    """Which runs are wanted, and which page of them.

    Attributes:
        phases: only runs in one of these phases; None: in any phase.
        search: only runs with this text in their name, their model, the value of a label, their main finding
            or the codes of their causes, ignoring case; empty: all runs.
        model: only runs that train this model (`trained_models`); empty: any model.
        finding: only runs in which a cause with this code was found; empty: all runs.
        selector: only runs whose labels it selects.
        since: only runs submitted at this time or later (Unix seconds).
        until: only runs submitted before this time (Unix seconds).
        order: what the runs are sorted by.
        descending: whether the largest, latest or last comes first.
        limit: the most runs on a page.
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
        """Whether a run belongs to the result, on whichever page."""
        text = self.search.lower()
        return (
            (self.phases is None or run.phase in self.phases)
            and (not text or any(text in each.lower() for each in _texts(run)))
            and (not self.model or run.model == self.model)
            and (not self.finding or (run.diagnosis is not None and self.finding in run.diagnosis.codes))
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
        total: the number of runs on all pages together.
        after: the cursor for the next page; None: this is the last page.
    """

    runs: tuple[RunSummary, ...]
    total: int
    after: Cursor | None


def page(runs: Iterable[RunSummary], query: RunQuery) -> RunPage:
    """Return the page that a query asks for; ``runs`` are all runs, with distinct names."""
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
    """Return a page of sorted runs; one run more than the limit means that there is another page."""
    shown = tuple(runs[: query.limit])
    return RunPage(runs=shown, total=total, after=query.cursor(shown[-1]) if len(runs) > len(shown) else None)


def _texts(run: RunSummary) -> tuple[str, ...]:
    found = (run.diagnosis.finding or "", " ".join(run.diagnosis.codes)) if run.diagnosis else ()
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
            return run.diagnosis.examples_per_second if run.diagnosis else None
        case Order.PROGRESS:
            return run.diagnosis.progress if run.diagnosis else None
        case Order.IMBALANCE:
            return run.diagnosis.imbalance if run.diagnosis else None
