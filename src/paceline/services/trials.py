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
from paceline.model import rates
from paceline.model.jobs import JobSpec
from paceline.model.recordings import Recording
from paceline.model.roles import ReplicaId
from paceline.model.runs import Run
from paceline.model.samples import StepReport
from paceline.model.tunings import Loss, Outcome
from paceline.services import recordings
from paceline.services.life_cycles import LifeCycle
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
#: More passes over the examples than anybody waits for.
_EPOCHS = 100_000.0
#: Until whoever waits for a trial stops it.
_SPARE_SECONDS = 60.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Times:
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
class Bed:
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
    times: Times

    def measure(self, source: str, name: str, tell: Callable[[str], None] = lambda _: None) -> Outcome:
        """Run a job file for a while; return what was measured (see `record`)."""
        return self.record(source, name, tell)[0]

    def record(
        self, source: str, name: str, tell: Callable[[str], None] = lambda _: None
    ) -> tuple[Outcome, Recording | None]:
        """Run a job file for a while; return what was measured, and all that was known of the run when it
        trained (None: it did not). Its run stays, stopped.

        Args:
            source: the job file.
            name: of the run; one of that name that is there already is removed.
            tell: is told what goes on, in few words.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        job = specs.parse_job(source)
        # It must not end by itself while it is measured.
        with self._run(job, name, {"epochs": _EPOCHS, "max_steps": None}, tell) as run:
            if isinstance(run, str):
                return Outcome(asked_cores=job.spec.asked_cores, failure=run), None
            started = trained(self.jobs, run, self.times)
            if started is None:
                return Outcome(asked_cores=run.spec.asked_cores, failure=_reason(self.jobs.get(name))), None
            tell("is measured")
            since = started + self.times.settle_seconds
            until = measured(self.jobs, run, since, self.times)
            try:
                found = None if self.jobs.keeps else recordings.whole(self.jobs, name)
            except EngineError as error:
                return Outcome(asked_cores=run.spec.asked_cores, failure=error.message), None
        found = found or recordings.whole(self.jobs, name)
        return outcome(found, since=since, until=until), found

    def learn(
        self, source: str, name: str, examples: int, tell: Callable[[str], None] = lambda _: None
    ) -> float | None:
        """Train on so many examples, evaluate and return the AUC; None: it was not evaluated.

        A script that takes no heed of ``training.max_steps`` is stopped a little later.

        Raises:
            InvalidInput: the job file is wrong.
            StoreError: the store cannot be read or written.
        """
        job = specs.parse_job(source)
        size = (job.spec.training or {}).get("batch_size")
        if size is None:
            return None
        steps = max(1, round(examples / size))
        with self._run(job, name, {"epochs": _EPOCHS, "max_steps": steps}, tell) as run:
            if isinstance(run, str):
                return None
            tell(f"learns from {examples:,} examples")
            _learnt(self.jobs, run, _MOST_EXAMPLES * examples)
        found = [each.auc for each in self.jobs.recording(name).evaluations if each.auc is not None]
        return found[-1] if found else None

    @contextlib.contextmanager
    def _run(
        self, job: JobFile, name: str, training: Mapping[str, Any], tell: Callable[[str], None]
    ) -> Iterator[Run | str]:
        """Run a job file with other values in its training section; stop it in the end.

        Gives the run, or why it could not be submitted.
        """
        spec = self._trial(job.spec, name, training)
        with contextlib.suppress(NotFound):
            self.jobs.delete(name, force=True)
        tell("starts")
        with contextlib.ExitStack() as stack:
            try:
                housed = stack.enter_context(self.jobs.housed(spec, self.study))
                run = self.jobs.submit(housed, source=job.text, base=self.base, name=name)
            except (InvalidInput, EngineError, NotFound) as error:  # So it is no better.
                yield error.message
                return
            stack.callback(_end, self.jobs, name)
            yield run

    def _trial(self, spec: JobSpec, name: str, training: Mapping[str, Any]) -> JobSpec:
        if spec.training is not None:
            # What the job itself exports must stay as it is.
            values = {**spec.training, **training, "export_dir": None}
            training = {key: value for key, value in values.items() if value is not None}
        return dataclasses.replace(
            spec,
            name=name,
            labels={**spec.labels, LABEL: self.study},
            training=None if spec.training is None else training,
            # Should whoever waits for it be killed, it ends all the same.
            active_deadline_seconds=self.times.most_seconds + _SPARE_SECONDS,
        )


def trained(jobs: LifeCycle, run: Run, times: Times, *, after: float = 0.0) -> float | None:
    """Return the moment from which on all trainers make steps; None: they never do.

    Args:
        jobs: where it runs.
        run: of what.
        times: how long to wait.
        after: steps from before this moment do not count (Unix seconds).
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
        time.sleep(_POLL_SECONDS)
    return None


def measured(jobs: LifeCycle, run: Run, since: float, times: Times) -> float:
    """Wait until enough was measured from a moment on; return until when all of it is known."""
    while True:
        now = jobs.clock() - jobs.DELAY_SECONDS
        passed = now - since
        if jobs.get(run.name).phase.is_final:
            return now
        is_long = passed >= times.window_seconds
        is_enough = is_long and sum(each.steps or 0 for each in _steps(jobs, run, since)) >= _LEAST_STEPS
        if is_enough or passed >= _MOST_TIMES * times.window_seconds:
            _stored(jobs, run, since, now)
            return now
        time.sleep(_POLL_SECONDS)


def _stored(jobs: LifeCycle, run: Run, since: float, until: float) -> None:
    """Wait until all is stored that was said before a moment: whoever has said something since another one
    has said more after it, or says nothing any more. Else the last stretch would look slower than it was.
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


def _learnt(jobs: LifeCycle, run: Run, most_examples: float) -> None:
    """Wait until a run has ended, or has taken no heed of where it should end."""
    while not jobs.get(run.name).phase.is_final:
        if sum(each.examples or 0 for each in _steps(jobs, run, None)) > most_examples:
            return
        time.sleep(_POLL_SECONDS)


def _reason(run: Run) -> str:
    """Return why a run does not train."""
    return run.message or ("it ended" if run.phase.is_final else "not all trainers made steps in time")


def _end(jobs: LifeCycle, name: str) -> None:
    run = jobs.get(name)
    if not run.phase.is_final:
        jobs.stop(name)
    jobs.wait(name)


def outcome(recording: Recording, *, since: float, until: float) -> Outcome:
    """Return what was measured of a run between two moments (Unix seconds)."""
    spec = recording.run.spec
    case = Case.of(recording)
    made = speeds(recording.steps, since, until)
    return Outcome(
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
