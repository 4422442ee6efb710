"""Runs experiments: every variant of a job several times, in turn, saving each run when it is done.

An experiment that was killed continues with the first run that is not in the store; a run that was under way
ends by itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from paceline import specs
from paceline.diagnosing import diagnoses
from paceline.diagnosing.cases import Case
from paceline.errors import NotFound
from paceline.model.measures.recordings import Recording
from paceline.model.studies.experiments import Experiment, Repeat, Variant
from paceline.model.studies.studies import TrialOutcome
from paceline.services import machine_facts
from paceline.services.life_cycles import LifeCycle
from paceline.services.studying import trials
from paceline.services.studying.trials import TrialRunner, TrialTimes
from paceline.specs.edits import edits
from paceline.stores import Store

#: Called with the progress of an experiment, and in a few words what its current run does; empty: it is done.
Tell = Callable[[Experiment, str], None]
#: Called with the name of a run, a job file with a variant's changes, the number of the repeat, and a
#: function that reports what the run does; returns what was measured, and the cause that limits the speed.
Measure = Callable[[str, str, int, Callable[[str], None]], tuple[TrialOutcome, str]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """Makes the runs of an experiment.

    Attributes:
        store: where the experiment is kept.
        measure: see `Measure`.
        tell: see `Tell`.
    """

    store: Store
    measure: Measure
    tell: Tell = lambda _, __: None

    def run(self, experiment: Experiment) -> Experiment:
        """Make all missing runs; return the experiment with them.

        Raises:
            StoreError: the store cannot be read or written.
        """
        now = self._saved(experiment)
        for variant, number in experiment.left():
            found = self._repeat(now, variant, number)
            now = self._saved(dataclasses.replace(now, done=(*now.done, found)))
            self.tell(now, "")
        return now

    def _repeat(self, now: Experiment, variant: Variant, number: int) -> Repeat:
        place = [each.name for each in now.variants].index(variant.name)
        run = f"{now.name}-{place}-{number}"
        source = edits.edited(now.source, variant.changes)
        said = f"{variant.name}, {number + 1} of {now.repeats}"
        outcome, cause = self.measure(run, source, number, lambda text: self.tell(now, f"{said} {text}"))
        return Repeat(variant=variant.name, number=number, run=run, outcome=outcome, cause=cause)

    def _saved(self, experiment: Experiment) -> Experiment:
        self.store.save_study(experiment, at=time.time())
        return experiment


def begun(store: Store, experiment: Experiment, *, anew: bool = False) -> Experiment:
    """Return an experiment with its stored runs if the stored experiment is the same, unless ``anew`` is set.

    A simulated experiment (`as_simulated`) is not the same as one that runs.

    Raises:
        StoreError: the store cannot be read.
    """
    fresh = dataclasses.replace(experiment, facts=machine_facts.facts())
    if anew:
        return fresh
    with contextlib.suppress(NotFound):
        known = store.experiment(experiment.name)
        same = ("source", "base", "variants", "seconds", "origin")
        if all(getattr(known, name) == getattr(experiment, name) for name in same):
            return dataclasses.replace(fresh, done=known.done, facts=known.facts)
    return fresh


def as_simulated(experiment: Experiment, like: Recording, *, apart: bool = False) -> Experiment:
    """Return an experiment whose runs are `simulated` with these arguments."""
    hosts = ", each host a machine" if apart else ""
    return dataclasses.replace(experiment, origin=f"simulated like {like.run.name}{hosts}")


def on_engine(jobs: LifeCycle, experiment: Experiment) -> Measure:
    """Return the measure that runs variants as jobs."""
    bed = TrialRunner(jobs=jobs, base=Path(experiment.base), study=experiment.name, times=_times(experiment))

    def measure(run: str, source: str, _: int, tell: Callable[[str], None]) -> tuple[TrialOutcome, str]:
        found, recording = bed.record(source, run, lambda doing: tell(doing.what))
        return found, primary(recording) if found.speed and recording is not None else ""

    return measure


def simulated(like: Recording, experiment: Experiment, *, apart: bool = False) -> Measure:
    """Return the measure that simulates variants, with the costs of steps in a measured job.

    Args:
        like: the recording of the measured job.
        experiment: the experiment.
        apart: whether each host is a machine of its own; else the hosts share the measured machine.

    Raises:
        InvalidInput: the job was not measured.
    """
    from paceline.services.studying import predictions, simulations

    model, scene, times = predictions.model(like), simulations.SimulatedScene(apart=apart), _times(experiment)

    def measure(_: str, source: str, number: int, tell: Callable[[str], None]) -> tuple[TrialOutcome, str]:
        tell("is simulated")
        seconds = times.settle_seconds + times.window_seconds
        at = like.at + seconds
        job = specs.parse_job(source)
        made = simulations.recording(model, job, seconds=seconds, seed=number, at=at, scene=scene)
        return trials.outcome(made, since=like.at + times.settle_seconds, until=at), primary(made)

    return measure


def _times(experiment: Experiment) -> TrialTimes:
    return TrialTimes(window_seconds=experiment.seconds)


def primary(recording: Recording) -> str:
    """Return the name of the primary cause that slows a job; empty: there is none."""
    return next((each.name for each in diagnoses.slowing(Case.of(recording))), "")
