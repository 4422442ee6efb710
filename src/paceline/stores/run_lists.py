"""Lists of runs: all runs, or a page of the runs that match a query."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from paceline.model.jobs import run_queries, runs, statuses
from paceline.model.jobs.run_queries import Order, RunPage, RunQuery
from paceline.model.jobs.selectors import Requirement
from paceline.stores import diagnosis_summaries, encodings, rows, tables

_COLUMNS = (
    tables.runs.c.name, tables.runs.c.phase, tables.runs.c.message, tables.runs.c.engine,
    tables.runs.c.directory, tables.runs.c.submitted_at, tables.runs.c.started_at, tables.runs.c.finished_at,
    tables.runs.c.ttl_after_finished_seconds, tables.runs.c.replicas, tables.runs.c.labels,
    tables.runs.c.model, tables.runs.c.detail,
)  # fmt: skip

_ORDERS: dict[Order, sa.ColumnElement[Any]] = {
    Order.SUBMITTED: tables.runs.c.submitted_at,
    Order.FINISHED: tables.runs.c.finished_at,
    Order.SPEED: tables.diagnosis_summaries.c.examples_per_second,
    Order.PROGRESS: tables.diagnosis_summaries.c.progress,
    Order.IMBALANCE: tables.diagnosis_summaries.c.imbalance,
}


class RunLists(rows.StorePart):
    """The lists of a store's runs."""

    def list_runs(
        self,
        *,
        phases: Collection[statuses.JobPhase] | None = None,
        engine: str | None = None,
        limit: int | None = None,
        newest_first: bool = True,
    ) -> list[runs.RunSummary]:
        """Return the summaries of runs, sorted by the time of submission.

        Args:
            phases: only runs in one of these phases; None: runs in any phase.
            engine: only runs of this engine; None: runs of all engines.
            limit: maximum number of runs; None: no maximum.
            newest_first: whether the latest submitted run comes first.

        Raises:
            StoreError: the store cannot be read.
        """
        columns = tables.runs.c
        order = (columns.submitted_at, columns.id)
        query = _listed().order_by(*(each.desc() if newest_first else each.asc() for each in order))
        if phases is not None:
            query = query.where(columns.phase.in_([phase.value for phase in phases]))
        if engine is not None:
            query = query.where(columns.engine == engine)
        if limit is not None:
            query = query.limit(limit)
        with self._database.reading() as connection:
            return [_summary(row) for row in connection.execute(query)]

    def run_page(self, run_query: RunQuery, *, engine: str | None = None) -> RunPage:
        """Return a page of runs, each with its summary.

        Args:
            run_query: the query for runs, with the run_query page.
            engine: only runs of this engine; None: runs of all engines.

        Raises:
            StoreError: the store cannot be read.
        """
        conditions = list(_conditions(run_query))
        if engine is not None:
            conditions.append(tables.runs.c.engine == engine)
        whole: sa.FromClause = tables.runs
        if run_query.search or run_query.finding:  # Both search the summary, too.
            whole = sa.outerjoin(tables.runs, tables.diagnosis_summaries)
        count = sa.select(sa.func.count()).select_from(whole).where(*conditions)
        with self._database.reading() as connection:
            total = connection.scalar(count) or 0
            query = self._sorted(_listed(), run_query).where(*conditions)
            found = [_summary(row) for row in connection.execute(query)]
        return run_queries.cut(found, total, run_query)

    def _sorted(self, query: sa.Select[Any], run_query: RunQuery) -> sa.Select[Any]:
        """Sort a query in the order of the page and start it after the previous page.

        The limit is one run more than the page, which shows whether there is a next page.
        """
        name = self._database.bytewise(tables.runs.c.name)
        value = name if run_query.order is Order.NAME else _ORDERS[run_query.order]
        # Sorting by IS NULL prevents the use of an index, so it is done only if the value may be missing.
        missing = [] if run_query.order in (Order.SUBMITTED, Order.NAME) else [value.is_(None)]
        directed = [each.desc() if run_query.descending else each.asc() for each in (value, name)]
        query = query.order_by(*missing, *directed).limit(run_query.limit + 1)
        if run_query.after is None:
            return query

        def follows(column: sa.ColumnElement[Any], last: float | str) -> sa.ColumnElement[bool]:
            return column < last if run_query.descending else column > last

        behind = follows(name, run_query.after.name)
        if run_query.after.value is None:
            return query.where(value.is_(None) & behind)
        last = run_query.after.value
        return query.where(value.is_(None) | follows(value, last) | ((value == last) & behind))


def _listed() -> sa.Select[Any]:
    """Return the query of all runs, each with its summary."""
    return sa.select(*_COLUMNS, *diagnosis_summaries.COLUMNS).join_from(
        tables.runs, tables.diagnosis_summaries, isouter=True
    )


def _summary(row: Sequence[Any]) -> runs.RunSummary:
    own, summary = row[: len(_COLUMNS)], row[len(_COLUMNS) :]
    values: dict[str, Any] = {column.name: each for column, each in zip(_COLUMNS, own, strict=True)}
    what = f"job {values['name']!r}"
    values["phase"] = encodings.member(statuses.JobPhase, values["phase"], what=what)
    values["detail"] = encodings.member(runs.Detail, values["detail"], what=what)
    values["labels"] = json.loads(values["labels"])
    return runs.RunSummary(**values, diagnosis=diagnosis_summaries.read(summary, values["name"]))


def _conditions(run_query: RunQuery) -> Iterator[sa.ColumnElement[bool]]:
    columns, labels = tables.runs.c, tables.labels.c
    if run_query.phases is not None:
        yield columns.phase.in_([phase.value for phase in run_query.phases])
    if run_query.search:
        summary = tables.diagnosis_summaries.c
        name, model, value, finding, codes = (
            column.icontains(run_query.search, autoescape=True)
            for column in (columns.name, columns.model, labels.value, summary.finding, summary.codes)
        )
        yield name | model | _labelled(value) | finding | codes
    if run_query.model:
        yield columns.model == run_query.model
    if run_query.finding:
        spaced_codes = sa.literal(" ") + tables.diagnosis_summaries.c.codes + " "
        yield spaced_codes.contains(f" {run_query.finding} ", autoescape=True)
    for requirement in run_query.selector.requirements:
        yield _required(requirement)
    if run_query.since is not None:
        yield columns.submitted_at >= run_query.since
    if run_query.until is not None:
        yield columns.submitted_at < run_query.until


def _labelled(*conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    return sa.exists().where(tables.labels.c.run_id == tables.runs.c.id, *conditions)


def _required(requirement: Requirement) -> sa.ColumnElement[bool]:
    labels = tables.labels.c
    conditions = [labels.key == requirement.key]
    if requirement.values is not None:
        conditions.append(labels.value.in_(sorted(requirement.values)))
    found = _labelled(*conditions)
    return ~found if requirement.is_negated else found
