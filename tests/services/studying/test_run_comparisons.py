"""Runs side by side."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from support import filled_homes

from paceline.errors import InvalidInput, NotFound
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import StepReport
from paceline.services.local import jobs
from paceline.services.observing.look_cache import LookCache
from paceline.services.studying import run_comparisons
from paceline.stores import recordings
from paceline.tuning.comparisons import VariantVerdict

RECORDINGS = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "recordings"
SLOW = "ps-cpu-bound.gross.deepfm-large-plain-4.parquet"


@pytest.fixture
def look_cache(api: jobs.Jobs) -> LookCache:
    return LookCache(api, lambda: 0.0)


def kept(api: jobs.Jobs, folder: Path, recording: Recording, name: str) -> str:
    run = dataclasses.replace(
        recording.run, name=name, spec=dataclasses.replace(recording.run.spec, name=name)
    )
    (folder / name).mkdir()
    return filled_homes.keep(api.store, dataclasses.replace(recording, run=run), folder / name)


def times_as_fast(recording: Recording, times: float) -> Recording:
    """Return what would have been recorded of a job that makes so many times as many examples."""
    steps = [_more(each, times) for each in recording.steps]
    return dataclasses.replace(recording, steps=steps)


def _more(report: StepReport, times: float) -> StepReport:
    return dataclasses.replace(report, examples=round((report.examples or 0) * times))


def test_what_is_as_fast_is_no_different_and_what_is_not_is(
    api: jobs.Jobs, look_cache: LookCache, tmp_path: Path
) -> None:
    slow = recordings.read(RECORDINGS / SLOW)
    for name, times in (("first", 1.0), ("same", 1.01), ("fast", 3.0), ("slow", 0.3)):
        kept(api, tmp_path, times_as_fast(slow, times), name)
    found = run_comparisons.compared(api, look_cache, ["first", "same", "fast", "slow", "same"])
    assert [each.verdict for each in found.sides] == [
        VariantVerdict.BASELINE, VariantVerdict.NOT_ENOUGH, VariantVerdict.FASTER, VariantVerdict.SLOWER,
    ]  # fmt: skip
    first, same, fast, _ = found.sides
    assert first.times is None
    assert first.speed is not None
    assert first.speed[1] < first.speed[0] < first.speed[2]
    assert same.times is not None
    assert same.times[1] < 1 < same.times[2]
    assert fast.times is not None
    assert fast.times[0] == pytest.approx(3.0, rel=0.01)
    assert same.diff == ""
    assert found.examples is not None
    assert first.loss_alike is not None
    assert [each.name for each in first.causes][:1] == ["ps-cpu-bound"]
    assert first.facts["engine"] == "local"


def test_a_run_that_made_no_steps_is_not_measured(
    api: jobs.Jobs, look_cache: LookCache, tmp_path: Path
) -> None:
    kept(api, tmp_path, recordings.read(RECORDINGS / SLOW), "first")
    filled_homes.fill(api.home, "census")
    found = run_comparisons.compared(api, look_cache, ["first", "census"]).sides[1]
    assert (found.speed, found.times, found.loss, found.auc) == (None, None, None, None)
    assert found.verdict is VariantVerdict.NOT_ENOUGH
    assert found.diff


def test_what_cannot_be_compared(api: jobs.Jobs, look_cache: LookCache) -> None:
    with pytest.raises(NotFound):
        run_comparisons.compared(api, look_cache, ["no-such-job"])
    with pytest.raises(InvalidInput, match="too many"):
        run_comparisons.compared(api, look_cache, [f"job-{number}" for number in range(7)])
