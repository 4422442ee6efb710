"""The Python API, over a filled store and over a real job."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pandas as pd
import pytest
from support.filled_homes import fill

import paceline
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.samples import Sample
from paceline.services.local import state_dirs
from paceline.surfaces import api


def test_all_is_what_is_visible() -> None:
    code = "import paceline; print(sorted(n for n in dir(paceline)) == sorted(paceline.__all__))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
    assert all(getattr(paceline, name) is not None for name in paceline.__all__)
    with pytest.raises(AttributeError):
        paceline.no_such_thing  # noqa: B018


def test_frames_have_units_in_names_and_times(home: state_dirs.Home) -> None:
    fill(home, "clicks", loads=[0.9, 0.1], steps=3)
    job = paceline.get("clicks")
    samples = job.samples()
    assert list(samples.columns[:4]) == ["at", "replica", "role", "index"]
    means = samples.groupby("replica").cpu_cores.mean().to_dict()
    assert means == pytest.approx({"ps-0": 0.9, "ps-1": 0.1})
    assert str(samples["at"].dt.tz) == "UTC"
    assert samples["network_sent_bytes"].isna().all()
    assert list(job.steps().step) == [10, 20, 30]
    assert list(job.evaluations().auc) == [0.75]
    assert isinstance(job.samples(as_frame=False)[0], Sample)


def test_frames_of_nothing_have_their_columns(home: state_dirs.Home) -> None:
    fill(home, "clicks")
    frame = paceline.get("clicks").samples()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 0
    assert "cpu_cores" in frame.columns


def test_without_pandas_it_says_what_to_do(home: state_dirs.Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home, "clicks", loads=[1.0])
    monkeypatch.setitem(sys.modules, "pandas", None)
    job = paceline.get("clicks")
    with pytest.raises(paceline.PacelineError, match="pandas") as caught:
        job.samples()
    assert "paceline[data]" in str(caught.value.hint)
    assert len(job.samples(as_frame=False)) == 3


def test_list_get_and_repr(home: state_dirs.Home) -> None:
    fill(home, "old", phase=JobPhase.FAILED, message="worker-0: exit code 3")
    fill(home, "new", phase=JobPhase.RUNNING, submitted_at=2e9)
    assert [job.name for job in paceline.list()] == ["new", "old"]
    assert [job.name for job in paceline.list(phases=["failed"])] == ["old"]
    assert repr(paceline.get("old")) == "<JobHandle 'old': failed, worker-0: exit code 3>"
    assert repr(paceline.get("new")) == "<JobHandle 'new': lost>"
    with pytest.raises(paceline.NotFound, match="odl") as caught:
        paceline.get("odl")
    assert "old" in str(caught.value.hint)
    assert "no job" in repr(api.JobHandle("gone", home))


def test_name_is_checked(home: state_dirs.Home, job_file: Callable[..., str]) -> None:
    with pytest.raises(paceline.InvalidInput, match="No Name"):
        paceline.submit(job_file("pass"), name="No Name")


def test_life_of_a_job(home: state_dirs.Home, job_file: Callable[..., str]) -> None:
    job = paceline.submit(job_file("print('hello', flush=True)", replicas=2), name="lived")
    assert job.wait(timeout=240, check=True) is JobPhase.SUCCEEDED
    assert sorted((str(line.replica), line.text) for line in job.logs()) == [
        ("worker-0", "hello"), ("worker-1", "hello"),
    ]  # fmt: skip
    assert [line.text for line in job.logs(role="worker", index=1)] == ["hello"]
    assert job.snapshot().run.phase is JobPhase.SUCCEEDED
    with pytest.raises(paceline.Conflict):
        job.resume()
    again = paceline.submit(job.run.spec)
    assert again.name == "lived-2"
    again.wait(timeout=240)
    job.delete()
    assert [left.name for left in paceline.list()] == ["lived-2"]


def test_failed_job_raises_when_asked(home: state_dirs.Home, job_file: Callable[..., str]) -> None:
    job = paceline.submit(job_file("raise SystemExit(3)"))
    assert job.wait(timeout=240) is JobPhase.FAILED
    with pytest.raises(paceline.JobFailed, match="failed"):
        job.wait(check=True)


def test_wait_stop_and_follow(home: state_dirs.Home, job_file: Callable[..., str]) -> None:
    job = paceline.submit(job_file("import time; print('up', flush=True); time.sleep(600)"))
    line = next(iter(job.logs(follow=True)))
    assert line.text == "up"
    with pytest.raises(paceline.WaitTimeout):
        job.wait(timeout=0.1)
    assert not job.is_lost
    job.stop()
    assert job.phase is JobPhase.STOPPED
