"""Less detail of what was measured of finished runs, in each kind of database."""

from __future__ import annotations

import dataclasses

import pytest
import sqlalchemy as sa

from paceline.errors import Conflict, NotFound, StoreError
from paceline.model.jobs.runs import Detail
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.stores import packings, tables, thinnings

PS, WORKER = ReplicaId(Role.PS, 0), ReplicaId(Role.WORKER, 1)
SECONDS = 1500


@pytest.fixture
def ended(filled):
    """A store with a run of which 1500 seconds were measured, and which has ended."""
    at = [1000.0 + second for second in range(SECONDS)]
    filled.append_samples(
        "demo",
        [
            Sample(
                replica=each, attempt=1, at=t, interval_seconds=1.0, cpu_cores=0.5, network_sent_bytes=100,
                memory_bytes=int(t),
            )
            for each in (PS, WORKER) for t in at
        ],
    )  # fmt: skip
    filled.append_step_reports(
        "demo",
        [StepReport(replica=WORKER, attempt=1, at=t, interval_seconds=1.0, steps=2, examples=64) for t in at],
    )
    filled.append_evaluations("demo", [EvaluationReport(replica=WORKER, attempt=1, at=1000.0, auc=0.7)])
    end(filled)
    return filled


def end(store, phase=JobPhase.SUCCEEDED):
    store.save_state("demo", dataclasses.replace(store.load_state("demo"), phase=phase), at=3000.0)


def totals(store):
    return (
        sum(each.network_sent_bytes for each in store.samples("demo")),
        sum(each.interval_seconds for each in store.samples("demo")),
        sum(each.examples for each in store.step_reports("demo")),
    )


def test_a_minute_becomes_one_and_nothing_is_lost(ended):
    before, latest = totals(ended), ended.latest_samples("demo")
    ended.thin("demo", Detail.MINUTES)
    assert totals(ended) == pytest.approx(before, rel=0.005)
    assert ended.latest_samples("demo") == latest
    mine = ended.samples("demo", replica=PS)
    # 25 minutes, and the latest that are not packed.
    assert SECONDS / 60 < len(mine) < SECONDS / 60 + 65
    assert [each.cpu_cores for each in mine] == pytest.approx([0.5] * len(mine), rel=0.01)
    assert [each.at for each in mine] == sorted(each.at for each in mine)
    again = ended.samples("demo"), ended.step_reports("demo")
    ended.thin("demo", Detail.MINUTES)
    assert (ended.samples("demo"), ended.step_reports("demo")) == again


def test_the_summary_has_no_samples(ended):
    size = ended.size_bytes()
    ended.thin("demo", Detail.SUMMARY)
    assert ended.samples("demo") == ended.step_reports("demo") == []
    assert len(ended.evaluations("demo")) == 1
    # PostgreSQL gives room back later, and its catalogue may take a few pages meanwhile.
    assert 0 < ended.size_bytes() < size * 1.05
    with ended._database.reading() as connection:
        for packing in packings.PACKINGS.values():
            for table in (packing.rows, packing.pieces, packing.blocks):
                assert connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0


def test_killed_half_way_the_rest_is_found(ended, monkeypatch):
    before, calls = totals(ended), []
    insert = packings.insert

    def dies(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        insert(*arguments)

    monkeypatch.setattr(thinnings, "_TOGETHER", 1)
    monkeypatch.setattr(packings, "insert", dies)
    with pytest.raises(KeyboardInterrupt):
        ended.thin("demo", Detail.MINUTES)
    assert totals(ended) == pytest.approx(before, rel=0.005)
    monkeypatch.setattr(packings, "insert", insert)
    ended.thin("demo", Detail.MINUTES)
    assert totals(ended) == pytest.approx(before, rel=0.005)
    assert len(ended.samples("demo", replica=PS)) < SECONDS / 60 + 75


def test_what_goes_on_is_left_alone(ended):
    end(ended, JobPhase.RUNNING)
    for detail in (Detail.MINUTES, Detail.SUMMARY):
        with pytest.raises(Conflict, match="goes on"):
            ended.thin("demo", detail)
    with pytest.raises(Conflict, match="goes on"):
        ended.set_detail("demo", Detail.MINUTES, "")
    assert len(ended.samples("demo")) == 2 * SECONDS
    with pytest.raises(NotFound):
        ended.thin("other", Detail.MINUTES)
    ended.thin("demo", Detail.FULL)


def test_it_is_said_until_the_run_goes_on_again(ended):
    ended.set_detail("demo", Detail.MINUTES, "since today")
    run = ended.get_run("demo")
    assert (run.detail, run.notes) == (Detail.MINUTES, ("since today",))
    assert ended.list_runs()[0].detail is Detail.MINUTES
    end(ended, JobPhase.PENDING)
    assert ended.get_run("demo").detail is Detail.FULL


def test_what_is_damaged_stays(ended):
    table = tables.sample_blocks
    with ended._database.writing() as connection:
        first = connection.scalar(sa.select(sa.func.min(table.c.id)))
        connection.execute(sa.update(table).where(table.c.id == first).values(data=b"\x01damaged"))
    ended.thin("demo", Detail.MINUTES)
    with pytest.raises(StoreError, match="damaged"):
        ended.samples("demo")
    assert len(ended.samples("demo", replica=WORKER)) < SECONDS / 60 + 65
