"""Recordings that become jobs of a home, and those that do not."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import SHARED_FIXTURES, examples

from paceline.errors import Conflict, InvalidInput, NotFound, PacelineError, StoreError
from paceline.model.explanations.causes import Cause, Explanation
from paceline.model.explanations.conclusions import Conclusion
from paceline.model.jobs.runs import JobEvent, SpecChange
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase
from paceline.model.measures.recordings import OutputTail, Recording
from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId, Role
from paceline.services.local import jobs
from paceline.services.observing import recordings
from paceline.stores import recordings as files

RECORDED = Path(__file__).parents[3] / "benchmarks/diagnosis/recordings"
SLOW = RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet"
PS = ReplicaId(Role.PS, 0)


@pytest.fixture(scope="module")
def whole() -> Recording:
    return files.read(SLOW)


def kept(api: jobs.Jobs) -> list[str]:
    """Return all that a home has of runs: none without the other."""
    folders = [each.name for each in api.home.runs.iterdir()] if api.home.runs.exists() else []
    assert not list(api.home.path.glob(".import-*"))
    names = [run.name for run in api.runs()]
    assert sorted(folders) == sorted(names)
    return names


def test_a_job_is_what_it_was(api: jobs.Jobs, whole: Recording, tmp_path: Path) -> None:
    output = OutputTail(replica=PS, attempt=1, lines=("hello", "two\nlines \x1b[31m<b>"))
    change = SpecChange(
        id=9, asked_at=whole.at - 9, source="kind: a\n", before="kind: b\n", done_at=whole.at - 8
    )
    given = dataclasses.replace(whole, output=(output,), changes=(change,))
    files.write(tmp_path / "a.parquet", given)
    run = api.import_file(tmp_path / "a.parquet", name="again")
    found = recordings.exported(api, "again", most_rows=files.MOST_ROWS)
    assert run.phase.is_final
    assert found.traces == tuple(dataclasses.replace(each, events=()) for each in whole.traces)
    assert found.plan == whole.plan
    assert len(found.samples) == len(whole.samples)
    assert len(found.steps) == len(whole.steps)
    assert found.evaluations == list(whole.evaluations)
    assert [event.message for event in found.events[:-1]] == [event.message for event in whole.events]
    assert found.output[0].lines == ("hello", "two lines \x1b[31m<b>")
    assert [each.source for each in found.changes] == ["kind: a\n"]
    assert found.conclusion is not None
    (first, *_), (other, *_) = (
        each.causes for each in (found.conclusion.explanation, recordings.explain(api, "again", anew=True)[1])
    )
    assert (first.name, other.name) == ("ps-cpu-bound", "ps-cpu-bound")
    assert found.conclusion.explanation.job == "again"
    summary = api.store.diagnosis("again")
    assert summary is not None
    assert summary.code == "PS101"
    assert "imported from a.parquet, recorded" in run.notes[-1]
    assert kept(api) == ["again"]
    # What was exported becomes a job again, too.
    files.write(tmp_path / "b.parquet", found)
    assert api.import_file(tmp_path / "b.parquet").name == "again-2"
    api.delete("again-2")
    assert kept(api) == ["again"]


def test_what_ran_when_it_was_recorded_has_stopped_and_is_not_resumed(
    api: jobs.Jobs, whole: Recording, tmp_path: Path
) -> None:
    running = dataclasses.replace(whole.run, phase=JobPhase.RUNNING, finished_at=None)
    rows = [dataclasses.replace(row, phase=ReplicaPhase.RUNNING, pid=1) for row in whole.replicas]
    files.write(tmp_path / "a.parquet", dataclasses.replace(whole, run=running, replicas=rows))
    run = api.import_file(tmp_path / "a.parquet")
    assert (run.phase, run.message) == (JobPhase.STOPPED, "it was running when it was recorded")
    assert run.finished_at == whole.at
    assert {(row.phase, row.pid) for row in api.replicas(run.name)} == {(ReplicaPhase.STOPPED, None)}
    with pytest.raises(Conflict, match="came out of a recording"):
        api.resume(run.name)
    assert api.age() == []  # It is old, but was concluded when it came.


def refused(api: jobs.Jobs, recording: Recording, folder: Path) -> str:
    files.write(folder / "bad.parquet", recording)
    with pytest.raises(InvalidInput) as caught:
        api.import_file(folder / "bad.parquet")
    assert kept(api) == []
    return caught.value.message


def test_what_cannot_be_is_refused(api: jobs.Jobs, whole: Recording, tmp_path: Path) -> None:
    run, rows = whole.run, list(whole.replicas)
    strange = Sample(replica=ReplicaId(Role.PS, 77), attempt=1, at=5.0, interval_seconds=1.0)
    unknown = Explanation(job="a", summary="", causes=(Cause(name="no-such-cause", what=""),))
    nameless = [dataclasses.replace(run, name=name) for name in ("../../etc", "a\x1b[31m<b>", "")]
    backward = dataclasses.replace(rows[0], attempt=-1)
    bad: list[tuple[Recording, str]] = [
        *((dataclasses.replace(whole, run=each), "cannot be a job's name") for each in nameless),
        (dataclasses.replace(whole, run=dataclasses.replace(run, finished_at=1e300)), "is no time"),
        (dataclasses.replace(whole, at=-1.0), "is no time"),
        (dataclasses.replace(whole, replicas=[*rows, rows[0]]), "there twice"),
        (dataclasses.replace(whole, replicas=rows[1:]), "is missing"),
        (dataclasses.replace(whole, replicas=[backward, *rows[1:]]), "no number"),
        (dataclasses.replace(whole, samples=[strange]), "ps-77 was measured"),
        (
            dataclasses.replace(whole, samples=[dataclasses.replace(whole.samples[0], cpu_cores=math.nan)]),
            "cpu_cores is nan",
        ),
        (
            dataclasses.replace(whole, conclusion=Conclusion(at=1.0, version="9", explanation=unknown)),
            "no-such-cause",
        ),
        (
            dataclasses.replace(whole, events=[JobEvent(at=math.inf, kind="a", message="")]),
            "Infinity is no number",
        ),
        (
            dataclasses.replace(whole, events=[JobEvent(at=1.8e12, kind="a", message="")]),
            "1800000000000.0 is no time",
        ),
        (
            dataclasses.replace(
                whole, events=[JobEvent(at=5.0, kind="a", message="", replica=PS, attempt=10**30)]
            ),
            "no number",
        ),
        (
            dataclasses.replace(
                whole, traces=[dataclasses.replace(whole.traces[0], trainer="../../worker-0")]
            ) if whole.traces else dataclasses.replace(whole, at=math.nan),
            "is no",
        ),
        (
            dataclasses.replace(
                whole, run=dataclasses.replace(run, spec=dataclasses.replace(run.spec, command=()))
            ),
            "command",
        ),
    ]  # fmt: skip
    for recording, said in bad:
        assert said in refused(api, recording, tmp_path)


def test_files_that_are_none(api: jobs.Jobs, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        api.import_file(tmp_path / "none.parquet")
    for content in (b"", b"PAR1", b"<html>" * 100, SLOW.read_bytes()[:-100]):
        (tmp_path / "a.parquet").write_bytes(content)
        with pytest.raises(InvalidInput, match="the API is no recording"):
            api.import_file(tmp_path / "a.parquet", origin="the API")
    assert kept(api) == []


def test_nothing_is_left_of_what_the_store_refuses(
    api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_arguments: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(api.store, "import_run", full)
    with pytest.raises(StoreError, match="full"):
        api.import_file(SLOW)
    assert kept(api) == []


def test_nothing_is_left_of_what_the_store_cannot_hold(
    api: jobs.Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def too_large(*_arguments: object) -> None:
        raise OverflowError("int too large")

    monkeypatch.setattr(api.store, "import_run", too_large)
    with pytest.raises(InvalidInput, match="int too large"):
        api.import_file(SLOW)
    assert kept(api) == []


@settings(max_examples=examples(120), suppress_health_check=SHARED_FIXTURES)
@given(data=st.data())
def test_a_damaged_file_is_refused_whole(api: jobs.Jobs, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(SLOW.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        # The end has what is known of the job, and where everything else lies.
        place = data.draw(
            st.integers(0, len(content) - 1) | st.integers(len(content) - 4000, len(content) - 1)
        )
        content[place] = data.draw(st.integers(0, 255))
    (tmp_path / "broken.parquet").write_bytes(content)
    with contextlib.suppress(InvalidInput):
        api.delete(api.import_file(tmp_path / "broken.parquet").name)
    assert kept(api) == []


TEXTS = st.text(max_size=8) | st.sampled_from(["\0", "\ud800", "<script>", "../..", "\x1b[2J", "9" * 400])
NUMBERS = st.floats() | st.integers() | st.sampled_from([2**63, 10**30, -1, 1e300])
Change = Callable[[Recording, object], Recording]


def _of_run(field: str) -> Change:
    return lambda found, value: dataclasses.replace(
        found, run=dataclasses.replace(found.run, **{field: value})
    )


def _of_first(sequence: str, field: str) -> Change:
    def changed(found: Recording, value: object) -> Recording:
        first, *rest = getattr(found, sequence)
        return dataclasses.replace(found, **{sequence: [dataclasses.replace(first, **{field: value}), *rest]})

    return changed


CHANGES: list[tuple[Change, st.SearchStrategy[object]]] = [
    *((_of_run(field), TEXTS) for field in ("name", "source", "message", "engine", "directory")),
    *((_of_run(field), NUMBERS) for field in ("submitted_at", "started_at", "finished_at")),
    *((_of_first("replicas", field), NUMBERS) for field in ("attempt", "restarts", "memory_bytes", "pid")),
    *((_of_first("replicas", field), TEXTS) for field in ("host", "address")),
    *((_of_first("events", field), TEXTS) for field in ("kind", "message")),
    *((_of_first("events", field), NUMBERS) for field in ("at", "attempt")),
]


@settings(max_examples=examples(100), suppress_health_check=SHARED_FIXTURES)
@given(data=st.data())
def test_what_is_kept_of_hostile_values_can_be_looked_at(
    api: jobs.Jobs, whole: Recording, tmp_path: Path, data: st.DataObject
) -> None:
    short = dataclasses.replace(whole, samples=whole.samples[:50], steps=whole.steps[:50])
    for _ in range(data.draw(st.integers(1, 3))):
        change, values = data.draw(st.sampled_from(CHANGES))
        short = change(short, data.draw(values))
    try:
        files.write(tmp_path / "odd.parquet", short)
        run = api.import_file(tmp_path / "odd.parquet")
    except PacelineError:
        assert kept(api) == []
        return
    recordings.explain(api, run.name)
    api.snapshot(run.name)
    api.delete(run.name)
    assert kept(api) == []
