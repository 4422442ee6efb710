"""Experiments with real processes, and simulated ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from support import paced_jobs

from paceline.model.explanations.causes import FieldChange
from paceline.model.studies.experiments import Experiment, Repeat, Variant
from paceline.model.studies.studies import TrialOutcome
from paceline.services.local import jobs
from paceline.services.studying import experiments
from paceline.services.studying.experiments import Runner
from paceline.services.studying.trials import LABEL
from paceline.stores import recordings
from paceline.tuning.comparisons import VariantVerdict, compared

RECORDINGS = Path(__file__).parents[3] / "benchmarks" / "diagnosis" / "recordings"


def variant(name: str, **values: object) -> Variant:
    changes = (FieldChange(path=("spec", "training", field), value=value) for field, value in values.items())
    return Variant(name=name, changes=tuple(changes))


def experiment(folder: Path, *variants: Variant, repeats: int = 2) -> Experiment:
    return Experiment(
        name="fusing",
        source=paced_jobs.source(folder),
        base=str(folder),
        variants=variants,
        baseline=variants[0].name,
        repeats=repeats,
        seconds=1.0,
    )


@pytest.mark.slow
def test_variants_are_run_compared_and_not_run_again(api: jobs.Jobs, tmp_path: Path) -> None:
    asked = experiment(
        tmp_path,
        variant("as it is"),
        variant("fused", fused_tables=True),
        variant("same", steps_per_exchange=6),
        variant("short", compute_precision="bfloat16"),
        repeats=1,
    )
    begun = experiments.begun(api.store, asked)
    done = Runner(store=api.store, measure=experiments.on_engine(api, begun)).run(begun)
    baseline, fused, same, short = compared(done)
    assert [each.verdict for each in (baseline, fused, short)] == [
        VariantVerdict.BASELINE, VariantVerdict.FASTER, VariantVerdict.FAILED,
    ]  # fmt: skip
    # What one run of each can tell of two that are the same is chance, but not as much as fusing brings.
    assert fused.times is not None
    assert same.times is not None
    assert same.times[0] < fused.times[1]
    assert "ended with code 1" in done.done[3].outcome.failure
    assert all(run.phase.is_final and run.labels[LABEL] == "fusing" for run in api.runs())
    more = experiments.begun(api.store, dataclasses.replace(asked, repeats=2))
    assert more.done == done.done
    assert len(more.left()) == 4
    other = dataclasses.replace(asked, source=asked.source + "# other\n")
    assert experiments.begun(api.store, other).done == ()


def test_a_simulated_experiment_runs_nothing(api: jobs.Jobs, tmp_path: Path) -> None:
    like = recordings.read(RECORDINGS / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet")
    small = Variant(name="small", changes=())
    large = Variant(name="large", changes=(FieldChange(path=("spec", "roles", "ps", "cpu"), value="500m"),))
    asked = dataclasses.replace(
        experiment(tmp_path, small, large), source=like.run.source, seconds=20.0, repeats=2
    )
    begun = experiments.begun(api.store, asked)
    done = Runner(store=api.store, measure=experiments.simulated(like, begun)).run(begun)
    first, then = compared(done)
    assert api.runs() == []
    # Its healthy twin, with 0.5 cores for each PS, is 4.2 times as fast in truth.
    assert then.times is not None
    assert 3.0 < then.times[0] < 5.5
    assert then.verdict is VariantVerdict.FASTER
    assert first.causes == ("ps-cpu-bound",)
    assert "ps-cpu-bound" not in then.causes


def test_what_is_simulated_and_what_is_run_are_not_mixed(api: jobs.Jobs, tmp_path: Path) -> None:
    asked = experiment(tmp_path, variant("as it is"))
    like = recordings.read(RECORDINGS / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet")
    repeat = Repeat(variant="as it is", number=0, run="fusing-0-0", outcome=TrialOutcome())
    places = (
        asked,
        experiments.as_simulated(asked, like),
        experiments.as_simulated(asked, like, apart=True),
        experiments.as_simulated(
            asked, dataclasses.replace(like, run=dataclasses.replace(like.run, name="a"))
        ),
    )
    for known in places:
        api.store.save_study(dataclasses.replace(known, done=(repeat,)), at=1.0)
        for now in places:
            assert experiments.begun(api.store, now).done == ((repeat,) if now is known else ())
