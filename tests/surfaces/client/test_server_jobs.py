"""Jobs through a server are what they are where they run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from support import filled_homes, paced_jobs

from paceline import specs
from paceline.errors import Conflict, InvalidInput, NotFound
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.run_queries import Order, RunQuery
from paceline.model.jobs.runs import Run, Submit
from paceline.model.jobs.selectors import parse
from paceline.model.jobs.statuses import JobPhase
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.tunings import Objective
from paceline.services.local import jobs, state_dirs
from paceline.services.observing import recordings, wait_conditions
from paceline.services.studying.live_changes import Changer
from paceline.services.studying.trials import TrialTimes
from paceline.stores import recordings as files
from paceline.surfaces import documents
from paceline.surfaces.client.connections import ServerConnection
from paceline.surfaces.client.server_jobs import ServerJobs
from paceline.surfaces.diffs import Diffs

RECORDED = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "recordings"

QUICK = TrialTimes(start_seconds=60.0, settle_seconds=0.3, window_seconds=1.5)
SLEEPING = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: sleepy, labels: {team: ads}}
spec:
  termination_grace: 2s
  roles:
    ps: {command: [sleep, "600"]}
    worker: {replicas: 2, max_replicas: 4, command: [sleep, "600"]}
"""


def rounded(run: Any) -> Any:
    """Return a run with moments as documents have them: to the millisecond."""
    moments = {
        name: None if getattr(run, name) is None else pytest.approx(getattr(run, name), abs=0.001)
        for name in ("submitted_at", "started_at", "finished_at")
    }
    return dataclasses.replace(run, **moments)


@pytest.fixture
def recorded(api: jobs.Jobs, tmp_path: Path) -> str:
    """The name of a job in the store that was slow for want of CPU on its PS, and has ended."""
    found = files.read(RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet")
    return filled_homes.keep(api.store, found, tmp_path)


def test_lists_and_pages(home: state_dirs.Home, api: jobs.Jobs, served: ServerJobs) -> None:
    for place in range(7):
        phase = JobPhase.FAILED if place % 2 else JobPhase.SUCCEEDED
        filled_homes.fill(home, f"job-{place}", phase=phase, submitted_at=1e9 + place, message="\x1b[31m<b>")
    assert served.runs() == [rounded(run) for run in api.runs()]
    failed = [JobPhase.FAILED]
    assert [run.name for run in served.runs(phases=failed)] == ["job-5", "job-3", "job-1"]
    query = RunQuery(order=Order.NAME, descending=False, limit=3, selector=parse("team in (ads, x),!old"))
    first, same = served.page(query), api.page(query)
    assert first == dataclasses.replace(same, runs=tuple(map(rounded, same.runs)))
    rest = served.page(dataclasses.replace(query, after=first.after, limit=500))
    assert [run.name for run in rest.runs] == ["job-3", "job-4", "job-5", "job-6"]
    assert served.page(RunQuery(search="JOB-4")).total == 1


def test_more_jobs_than_a_page_has(
    home: state_dirs.Home, served: ServerJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in range(5):
        filled_homes.fill(home, f"job-{place}", submitted_at=1e9 + place)
    monkeypatch.setattr("paceline.surfaces.client.server_jobs.MOST_RUNS", 2)
    assert [run.name for run in served.runs()] == [f"job-{place}" for place in (4, 3, 2, 1, 0)]


def test_a_job_with_all_that_is_known_of_it(api: jobs.Jobs, served: ServerJobs, recorded: str) -> None:
    run = api.get(recorded)
    assert served.get(recorded) == rounded(run)
    assert served.replicas(recorded) == api.replicas(recorded)
    assert [(number, event.kind) for number, event in served.events(recorded)] == [
        (number, event.kind) for number, event in api.events(recorded)
    ]
    last = api.events(recorded)[-1][0]
    assert served.events(recorded, since_id=last) == []
    here, there = (documents.snapshot(jobs.snapshot(recorded)) for jobs in (served, api))
    assert here.pop("elapsed_seconds") == pytest.approx(there.pop("elapsed_seconds"), abs=0.01)
    assert here == there
    known, brought = recordings.whole(api, recorded), recordings.whole(served, recorded)
    assert dataclasses.replace(brought, at=known.at) == files_equal(known)
    assert brought.plan is not None
    assert len(served.recording(recorded, since=run.finished_at).samples) < len(brought.samples)


def test_findings_and_steps_are_waited_for(served: ServerJobs, recorded: str) -> None:
    run = served.get(recorded)
    made = wait_conditions.FindingMade(served, recorded, ["PS101"])
    assert made.is_met(run)
    assert made.outcome(run).startswith("PS101 warning: ")
    assert not wait_conditions.FindingMade(served, recorded, ["PS001"]).is_met(run)
    last = served.snapshot(recorded).step
    assert last is not None
    steps = (last, last + 1)
    assert [wait_conditions.StepReached(served, step).is_met(run) for step in steps] == [True, False]


def files_equal(recording: Any) -> Any:
    """Return a recording with sequences as those of a file are."""
    names = [field.name for field in dataclasses.fields(recording)]
    lists = {name: getattr(recording, name) for name in names if isinstance(getattr(recording, name), list)}
    return dataclasses.replace(recording, **{name: tuple(found) for name, found in lists.items()})


def test_causes_are_the_same(api: jobs.Jobs, served: ServerJobs, recorded: str) -> None:
    (first, here), (second, there) = recordings.explain(served, recorded), recordings.explain(api, recorded)
    assert first is not None
    assert second is not None
    told, known = (
        documents.explanation(found, Diffs.of(of.run)) for found, of in ((here, first), (there, second))
    )
    assert told["causes"] == known["causes"]
    assert told["causes"][0]["code"]


def test_a_lost_job_is_lost(home: state_dirs.Home, served: ServerJobs) -> None:
    filled_homes.fill(home, "census", phase=JobPhase.STARTING)
    ((run, lost),) = served.listed()
    assert (run.phase, lost, served.is_lost(run)) == (JobPhase.STARTING, True, True)
    assert served.get("census").phase is JobPhase.STARTING
    assert served.snapshot("census").lost
    assert served.situation("census").unattended
    with pytest.raises(Conflict, match="census is lost: its supervisor died"):
        served.wait("census")


def submit(served: ServerJobs, key: str | None = None, **more: Any) -> Run:
    job = specs.parse_job(SLEEPING, file="sleepy.yaml")
    made = None if key is None else Submit(key=key, fingerprint="")
    return served.submit(job.spec, source=job.text, base=Path.cwd(), submit=made, **more)


def test_the_life_of_a_job(api: jobs.Jobs, served: ServerJobs) -> None:
    run = submit(served, "one")
    assert (run.name, run.source) == ("sleepy", SLEEPING)
    assert submit(served, "one").name == "sleepy"
    with pytest.raises(Conflict, match="another job was submitted with the key"):
        submit(served, "one", name="other")
    served.wait("sleepy", timeout_seconds=300, until=lambda run: run.phase is JobPhase.RUNNING)
    with pytest.raises(Conflict, match="sleepy is running"):
        served.delete("sleepy")
    served.scale("sleepy", 3)
    with pytest.raises(Conflict, match="4 workers at most"):
        served.scale("sleepy", 9)
    served.stop("sleepy")
    assert served.wait("sleepy", timeout_seconds=300).phase is JobPhase.STOPPED
    with pytest.raises(Conflict):
        served.stop("sleepy")
    served.resume("sleepy")
    served.delete("sleepy", force=True)
    assert api.runs() == []
    assert [each.action for _, each in api.store.audits(limit=50)][-1] == "jobs.submit"


@pytest.mark.slow
@pytest.mark.nightly
def test_a_change_is_tried_out(api: jobs.Jobs, served: ServerJobs, tmp_path: Path) -> None:
    source = paced_jobs.source(tmp_path)
    served.submit(specs.parse_job(source).spec, source=source, base=tmp_path)
    changer = Changer(jobs=served, objective=Objective(), times=QUICK)
    done = changer.change("paced", proposal(("spec", "training", "fused_tables"), True))
    assert done.judgement.kept
    assert done.after.speed == pytest.approx(2 * done.before.speed, rel=0.2)
    (change,) = served.spec_changes("paced")
    (made,) = api.spec_changes("paced")
    moments = {"asked_at": pytest.approx(made.asked_at, abs=0.001), "done_at": ANY}
    assert change == dataclasses.replace(made, **moments)
    assert served.get("paced").source == change.source != source
    # What does not fit is refused, and the job goes on as it is.
    with pytest.raises(Conflict, match=r"paced was not changed: .*900"):
        changer.change("paced", proposal(("spec", "roles", "worker", "memory"), "900Ti"))
    assert served.get("paced").source == change.source
    assert served.spec_changes("paced") == [change]
    served.delete("paced", force=True)


def proposal(path: tuple[str, ...], value: object) -> Proposal:
    return Proposal(
        name="a change", what="", changes=(FieldChange(path=path, value=value),), gain=None, basis=""
    )


def test_a_recording_becomes_a_job(api: jobs.Jobs, served: ServerJobs, tmp_path: Path) -> None:
    file = RECORDED / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet"
    run = served.import_file(file, name="mine")
    assert run == rounded(api.get("mine"))
    assert run.phase is JobPhase.STOPPED
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(file.read_bytes()[:1000])
    for path in (broken, tmp_path):
        with pytest.raises(InvalidInput):
            served.import_file(path)
    with pytest.raises(NotFound):
        served.import_file(tmp_path / "nothing")
    assert [run.name for run in api.runs()] == ["mine"]


def test_old_jobs_are_pruned(home: state_dirs.Home, served: ServerJobs) -> None:
    for name in ("census", "clicks"):
        filled_homes.fill(home, name)
    assert served.prune(older_than_seconds=10, dry_run=True) == ["clicks", "census"]
    assert served.prune(older_than_seconds=10) == ["clicks", "census"]
    assert served.runs() == []


def test_whether_a_job_fits(api: jobs.Jobs, served: ServerJobs) -> None:
    small = specs.parse_job(SLEEPING, file="sleepy.yaml").spec
    large = dataclasses.replace(
        small, roles=tuple(dataclasses.replace(each, memory_bytes=1 << 60) for each in small.roles)
    )
    for spec in (small, large):
        assert served.fit(spec) == api.fit(spec)
    assert served.fit(small).fits
    assert not served.fit(large).fits


@pytest.mark.parametrize("name", ["missing", "..", "a/b", "a?x=1", "", "ä", "a" * 300, "\x1b[31m"])
def test_what_is_not_there(home: state_dirs.Home, served: ServerJobs, name: str) -> None:
    filled_homes.fill(home, "missin")
    for ask in (served.get, served.events, served.stop, served.situation, served.recording, served.snapshot):
        with pytest.raises(NotFound, match="no job") as caught:
            ask(name)
        assert caught.value.exit_code == 3
    if name == "missing":
        assert "missin" in str(caught.value.message) + str(caught.value.hint)


def test_a_server_elsewhere_has_no_files_of_this_machine(
    connection: ServerConnection, tmp_path: Path
) -> None:
    elsewhere = ServerJobs(connection, tmp_path, shares_files=False)
    job = specs.parse_job(SLEEPING + "  code: {folder: src}\n", file="sleepy.yaml")
    with pytest.raises(InvalidInput, match="folder is on this machine"):
        elsewhere.submit(job.spec, source=job.text, base=tmp_path)


def test_every_selector_reaches_the_server(home: state_dirs.Home, served: ServerJobs) -> None:
    filled_homes.fill(home, "census")
    wanted: list[Callable[[], int]] = [
        lambda text=text: served.page(RunQuery(selector=parse(text))).total  # type: ignore[misc]
        for text in ("team=ads", "team!=ads", "team in (ads,b)", "team notin (ads)", "team", "!team")
    ]
    assert [ask() for ask in wanted] == [1, 0, 1, 0, 1, 0]
