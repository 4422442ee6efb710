"""One job run for a short while, to see how it does."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline import specs
from paceline.diagnosing.cases import Case
from paceline.errors import EngineError, InvalidInput, NotFound
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.measures import rates
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import StepReport
from paceline.model.roles import ReplicaId, Role
from paceline.model.studies.tunings import Loss, TrialOutcome
from paceline.services.life_cycles import LifeCycle
from paceline.services.observing import recordings
from paceline.specs import JobFile

#: The label by which all runs of a study are found.
LABEL = "paceline.dev/study"
#: Into so many stretches what was measured is cut, to see how steady it was.
_STRETCHES = 5
#: A job of few steps is measured until it has made so many, but no longer than so many times as long.
_LEAST_STEPS, _MOST_TIMES = 50, 4.0
_POLL_SECONDS = 0.5
#: What was said before a moment is stored so long after it at the latest.
_STORED_SECONDS = 5.0
#: A script that goes on beyond so many times as many examples as it should learn from does not end by itself.
_MOST_EXAMPLES = 1.5
#: More passes over the examples than any trial makes.
_EPOCHS = 100_000.0
#: Until a trial that is waited for is stopped; one that learns may take longer.
_SPARE_SECONDS, _LEARNING_SECONDS = 60.0, 1800.0
#: Speed differs within a run: one that is to train for so long, and is measured meanwhile, gets so much more.
_SPARE = 1.5


#: What a trial does whose trainers all make steps.
MEASURED = "is measured"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialActivity:
    """What a trial does now.

    Attributes:
        what: in few words, as a sentence goes on behind the name of the trial.
        detail: how far that is; empty: there is nothing to count.
        seconds_left: until it is done; None: that cannot be known.
    """

    what: str
    detail: str = ""
    seconds_left: float | None = None


#: Is given what a trial does, at each look.
Tell = Callable[[TrialActivity], None]


def _silent(doing: TrialActivity) -> None:
    """Say nothing."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialTimes:
    """How long a trial takes.

    Attributes:
        start_seconds: until all trainers make steps, at most.
        settle_seconds: in which nothing is measured, as first steps are slower.
        window_seconds: in which it is measured, at least.
    """

    start_seconds: float = 300.0
    settle_seconds: float = 5.0
    window_seconds: float = 20.0

    @property
    def most_seconds(self) -> float:
        """Return how long a trial takes at most."""
        return self.start_seconds + self.settle_seconds + _MOST_TIMES * self.window_seconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrainedTrial:
    """A trial that was measured and goes on.

    Attributes:
        outcome: what was measured.
        run: None: it does not train.
        span: from when until when it was measured (Unix seconds).
        recording: what was known of it then, where that is not kept; None: it is.
    """

    outcome: TrialOutcome
    run: Run | None = None
    span: tuple[float, float] | None = None
    recording: Recording | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrialRunner:
    """Where trials of a study run.

    Attributes:
        jobs: of the home, or of the cluster.
        base: the folder that relative paths in job files start from.
        study: what the trials belong to.
        times: how long they take.
    """

    jobs: LifeCycle
    base: Path
    study: str
    times: TrialTimes

    def measure(self, source: str, name: str, tell: Tell = _silent) -> TrialOutcome:
        """Run a job file for a while; return what was measured (see `record`)."""
        return self.record(source, name, tell)[0]

    def record(self, source: str, name: str, tell: Tell = _silent) -> tuple[TrialOutcome, Recording | None]:
        """Run a job file for a while; return what was measured, and all that was known of the run when it
        trained (None: it did not). Its run stays, stopped.

        Args:
            source: the job file.
            name: of the run; one of that name that is there already is removed.
            tell: see `Tell`.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        with self.measuring(source, name, tell) as measured:
            pass
        if measured.span is None:
            return measured.outcome, None
        found = measured.recording or recordings.whole(self.jobs, name)
        return outcome(found, since=measured.span[0], until=measured.span[1]), found

    @contextlib.contextmanager
    def measuring(self, source: str, name: str, tell: Tell = _silent) -> Iterator[TrainedTrial]:
        """Run a job file for as long as this lasts, and at least until it was measured; stop it in the end.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        job = specs.parse_job(source)
        asked = job.spec.asked_cores
        # It must not end by itself while it is measured.
        with self._run(job, name, {"epochs": _EPOCHS, "max_steps": None}, tell) as run:
            if isinstance(run, str):
                yield TrainedTrial(outcome=TrialOutcome(asked_cores=asked, failure=run))
                return
            span = self._measured(run, tell)
            if span is None:
                failure = _reason(self.jobs.get(name))
                yield TrainedTrial(outcome=TrialOutcome(asked_cores=run.spec.asked_cores, failure=failure))
                return
            try:
                kept = None if self.jobs.keeps else recordings.whole(self.jobs, name)
            except EngineError as error:
                yield TrainedTrial(
                    outcome=TrialOutcome(asked_cores=run.spec.asked_cores, failure=error.message)
                )
                return
            found = outcome(kept or self.jobs.recording(name), since=span[0], until=span[1])
            yield TrainedTrial(outcome=found, run=run, span=span, recording=kept)

    def _measured(self, run: Run, tell: Tell) -> tuple[float, float] | None:
        """Wait until a run was measured; return between which moments. None: it does not train."""
        started = trained(self.jobs, run, self.times, tell=tell)
        if started is None:
            return None
        since = started + self.times.settle_seconds
        return since, measured(self.jobs, run, since, self.times, tell=tell)

    def learn(self, source: str, name: str, examples: int, tell: Tell = _silent) -> float | None:
        """Train on so many examples, evaluate and return the AUC; None: it was not evaluated.

        A script that takes no heed of ``training.max_steps`` is stopped a little later.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        return self._learn(source, name, examples, tell, is_measured=False)[1]

    def measure_and_learn(
        self, source: str, name: str, examples: int, tell: Tell = _silent
    ) -> tuple[TrialOutcome, float | None]:
        """Measure a run of so many examples while it trains; return that, and the AUC that it comes to.

        It has to train for long enough: see `outlasts`.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        return self._learn(source, name, examples, tell, is_measured=True)

    def outlasts(self, examples: int, speed: float, batch_size: int | None) -> bool:
        """Whether a run is measured in full before it has trained on so many examples.

        Args:
            examples: how many.
            speed: examples a second that it made before.
            batch_size: examples of a step; None: not known.
        """
        if batch_size is None or not speed:
            return False
        least = max(self.times.window_seconds, _LEAST_STEPS * batch_size / speed)
        return examples / speed >= _SPARE * (self.times.settle_seconds + least)

    def _learn(
        self, source: str, name: str, examples: int, tell: Tell, *, is_measured: bool
    ) -> tuple[TrialOutcome, float | None]:
        job = specs.parse_job(source)
        nothing = TrialOutcome(asked_cores=job.spec.asked_cores, failure="it did not train")
        size = batch_size(job.spec)
        if size is None:
            return nothing, None
        steps = max(1, round(examples / size))
        span = None
        with self._run(job, name, {"epochs": _EPOCHS, "max_steps": steps}, tell) as run:
            if isinstance(run, str):
                return nothing, None
            span = self._measured(run, tell) if is_measured else None
            _learnt(self.jobs, run, examples, tell)
        found = self.jobs.recording(name)
        auc = [each.auc for each in found.evaluations if each.auc is not None]
        speed = nothing if span is None else outcome(found, since=span[0], until=span[1])
        return speed, auc[-1] if auc else None

    @contextlib.contextmanager
    def _run(self, job: JobFile, name: str, training: Mapping[str, Any], tell: Tell) -> Iterator[Run | str]:
        """Run a job file with other values in its training section; stop it in the end.

        Gives the run, or why it could not be submitted.
        """
        spec = self._trial(job.spec, name, training)
        tell(TrialActivity(what="starts"))
        with contextlib.suppress(NotFound):
            self.jobs.delete(name, force=True)
        with contextlib.ExitStack() as stack:
            try:
                housed = stack.enter_context(self.jobs.housed(spec, self.study))
                run = self.jobs.submit(housed, source=job.text, base=self.base, name=name)
            except (InvalidInput, EngineError, NotFound) as error:  # So it is no better.
                yield error.message
                return
            stack.callback(_end, self.jobs, name, tell)
            yield run

    def _trial(self, spec: JobSpec, name: str, training: Mapping[str, Any]) -> JobSpec:
        learns = training["max_steps"] is not None
        if spec.training is not None:
            # What the job itself exports must stay as it is.
            values = {**spec.training, **training, "export_dir": None}
            if spec.role(Role.EVALUATOR) is None:
                # No run goes on from a trial, and to save large tables takes longer than to measure them.
                values["checkpoint"] = {**(spec.training.get("checkpoint") or {}), "keep": 0}
            training = {key: value for key, value in values.items() if value is not None}
        return dataclasses.replace(
            spec,
            name=name,
            labels={**spec.labels, LABEL: self.study},
            training=None if spec.training is None else training,
            # Should the process that waits for it be killed, it ends all the same.
            active_deadline_seconds=self.times.most_seconds
            + (_LEARNING_SECONDS if learns else _SPARE_SECONDS),
        )


def batch_size(spec: JobSpec) -> int | None:
    """Return how many examples a step of a trainer has; None: the job file does not say so."""
    size = (spec.training or {}).get("batch_size")
    return size if isinstance(size, int) else None


def trained(
    jobs: LifeCycle, run: Run, times: TrialTimes, *, after: float = 0.0, tell: Tell = _silent
) -> float | None:
    """Return the moment from which on all trainers make steps; None: they never do.

    Args:
        jobs: where it runs.
        run: of what.
        times: how long to wait.
        after: steps from before this moment do not count (Unix seconds).
        tell: see `Tell`.
    """
    wanted = {each for each in run.spec.replicas() if each.role.trains}
    deadline = time.monotonic() + times.start_seconds
    while time.monotonic() < deadline:
        if jobs.get(run.name).phase.is_final:
            return None
        steps = _steps(jobs, run, after or None)
        made = {each.replica for each in steps if each.steps and each.at > after}
        if wanted <= made:
            return jobs.clock()
        tell(
            TrialActivity(what="starts", detail=f"{len(wanted & made)} of {len(wanted)} trainers make steps")
        )
        time.sleep(_POLL_SECONDS)
    return None


def measured(jobs: LifeCycle, run: Run, since: float, times: TrialTimes, *, tell: Tell = _silent) -> float:
    """Wait until enough was measured from a moment on; return until when all of it is known."""
    while True:
        now = jobs.clock() - jobs.DELAY_SECONDS
        passed = now - since
        if jobs.get(run.name).phase.is_final:
            return now
        steps = [each for each in _steps(jobs, run, since) if each.at > since]
        is_long = passed >= times.window_seconds
        is_enough = is_long and sum(each.steps or 0 for each in steps) >= _LEAST_STEPS
        if is_enough or passed >= _MOST_TIMES * times.window_seconds:
            _stored(jobs, run, since, now)
            return now
        tell(_measuring(steps, passed, times))
        time.sleep(_POLL_SECONDS)


def _measuring(steps: Sequence[StepReport], passed: float, times: TrialTimes) -> TrialActivity:
    """Return how far a measurement is: how fast the job is so far."""
    done = sum(each.steps or 0 for each in steps)
    if passed <= 0 or not done:
        return TrialActivity(what=MEASURED)
    left = max(times.window_seconds - passed, (_LEAST_STEPS - done) * passed / done)
    return TrialActivity(
        what=MEASURED,
        detail=f"{sum(each.examples or 0 for each in steps) / passed:,.0f} examples/s",
        seconds_left=max(0.0, min(left, _MOST_TIMES * times.window_seconds - passed)),
    )


def _stored(jobs: LifeCycle, run: Run, since: float, until: float) -> None:
    """Wait until all reports from before ``until`` are stored: each replica that has reported after ``since``
    has also reported after ``until``, or reports no more. Else the last stretch would look too slow.
    """
    deadline = time.monotonic() + _STORED_SECONDS
    while time.monotonic() < deadline and not jobs.get(run.name).phase.is_final:
        latest: dict[ReplicaId, float] = {}
        for each in _steps(jobs, run, since):
            latest[each.replica] = max(each.at, latest.get(each.replica, each.at))
        if all(at >= until for at in latest.values()):
            return
        time.sleep(_POLL_SECONDS)


def _steps(jobs: LifeCycle, run: Run, since: float | None) -> Sequence[StepReport]:
    """Return the step reports of a run that are known now: agents that begin, or end, do not answer."""
    with contextlib.suppress(EngineError):
        return jobs.recording(run.name, since=since).steps
    return ()


def _learnt(jobs: LifeCycle, run: Run, examples: int, tell: Tell) -> None:
    """Wait until a run has ended, or has taken no heed of where it should end."""
    while not jobs.get(run.name).phase.is_final:
        steps = _steps(jobs, run, None)
        done = sum(each.examples or 0 for each in steps)
        if done > _MOST_EXAMPLES * examples:
            return
        if done < examples:
            tell(TrialActivity(what="learns", detail=f"{done:,} of {examples:,} examples"))
        else:
            tell(TrialActivity(what="is evaluated", detail=f"after {examples:,} examples"))
        time.sleep(_POLL_SECONDS)


def _reason(run: Run) -> str:
    """Return why a run does not train."""
    return run.message or ("it ended" if run.phase.is_final else "not all trainers made steps in time")


def _end(jobs: LifeCycle, name: str, tell: Tell) -> None:
    run = jobs.get(name)
    tell(TrialActivity(what="ends"))
    if not run.phase.is_final:
        jobs.stop(name)
    jobs.wait(name)


def outcome(recording: Recording, *, since: float, until: float) -> TrialOutcome:
    """Return what was measured of a run between two moments (Unix seconds)."""
    spec = recording.run.spec
    case = Case.of(recording)
    made = speeds(recording.steps, since, until)
    return TrialOutcome(
        examples_per_second=made if any(made) else (),
        asked_cores=spec.asked_cores,
        used_cores=rates.total(each.cpu_cores for each in case.snapshot.replicas),
        losses=tuple(_losses(recording.steps)),
        failure="" if any(made) else "it made no steps while it was measured",
    )


def speeds(reports: Sequence[StepReport], since: float, until: float) -> tuple[float, ...]:
    """Return the examples a second of each stretch of a time; none of one that is no time at all."""
    if until <= since:
        return ()
    seconds = (until - since) / _STRETCHES
    ends = [since + seconds * number for number in range(_STRETCHES + 1)]
    return tuple(
        sum(each.examples or 0 for each in reports if first < each.at <= last) / seconds
        for first, last in itertools.pairwise(ends)
    )


def _losses(reports: Sequence[StepReport]) -> Iterator[Loss]:
    examples = 0
    for each in sorted(reports, key=lambda report: report.at):
        examples += each.examples or 0
        if each.loss is not None:
            yield Loss(examples=examples, value=each.loss)
