"""One run of the corpus: a job trains, something is done to it meanwhile, and it is recorded."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import time
from collections.abc import Callable, Collection
from pathlib import Path

from support import kills, leftovers

from benchmarks import trials
from benchmarks.diagnosis import quiet
from benchmarks.diagnosis.sites import TRAINERS, Site
from benchmarks.protocols import ROOT
from paceline import specs
from paceline.engines.local import engine, machines
from paceline.engines.local.folders import RunFolder
from paceline.errors import Conflict, PacelineError
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.measures.recordings import Recording
from paceline.services.local.jobs import Jobs
from paceline.services.observing import recordings, traces

START_SECONDS = 120.0
#: Of training, from when all trainers have steps and limits hold.
TRAINING_SECONDS = 22.0
#: A job that ends by itself may take so long.
PATIENCE_SECONDS = 40.0
_SETTLE_SECONDS = 1.0
#: What a fault does is felt by then; later samples count.
FELT_SECONDS = 4.0
_TRACE_AFTER_SECONDS = 7.0
_TRACE_SECONDS = 8.0
_POLL_SECONDS = 0.2
_END_SECONDS = 60.0
#: A job that is not to train is given so long to load what it needs.
_LOAD_SECONDS = 12.0

Act = Callable[[Site], contextlib.AbstractContextManager[None]]


class Ending(enum.StrEnum):
    """When a run is recorded."""

    LIVE = "live"  # while it runs
    STOPPED = "stopped"  # after it was stopped
    FINISHED = "finished"  # after it has ended by itself


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a job is run.

    Attributes:
        act: what is done to it from when it trains.
        ending: when it is recorded.
        steps_from: the trainers to wait for; None: all.
        seconds: of training before it is recorded or stopped.
        starts: whether it comes to train at all; if not, it is recorded after ``seconds`` of trying.
        traced: whether a trace can be taken.
    """

    act: Act | None = None
    ending: Ending = Ending.LIVE
    steps_from: Collection[str] | None = None
    seconds: float = TRAINING_SECONDS
    starts: bool = True
    traced: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """A recording, when (Unix seconds) the job trained under its limits, and what was taken meanwhile."""

    recording: Recording
    began_at: float
    stolen_cores: float = 0.0


class TrialError(RuntimeError):
    """A run came to nothing, and why."""


def run(spec: JobSpec, plan: Plan) -> Outcome:
    """Run a job and return its recording; nothing of it is left.

    Raises:
        TrialError: it did not start, or ended too early.
        PacelineError: it could not be run at all.
    """
    with trials.service() as api:
        started = api.submit(spec, source=specs.dump_job(spec), base=ROOT)
        site = Site.of(api, started)
        try:
            return _train(site, plan)
        finally:
            end_job(api, started)


def _train(site: Site, plan: Plan) -> Outcome:
    if plan.starts:
        wait_for_steps(site, plan.steps_from)
        time.sleep(_SETTLE_SECONDS)
        site.limit()
        began = time.time()
    else:
        began = time.time()
        _lift_for(site, _LOAD_SECONDS)
    stolen = quiet.stolen()
    with plan.act(site) if plan.act else contextlib.nullcontext():
        end = began + plan.seconds
        if plan.traced and plan.starts:
            _sleep_until(began + min(_TRACE_AFTER_SECONDS, plan.seconds / 2))
            with contextlib.suppress(PacelineError):
                traces.take(site.api, site.run.name, timeout_seconds=_TRACE_SECONDS)
        if plan.ending is Ending.FINISHED:
            with contextlib.suppress(PacelineError):
                site.api.wait(site.run.name, timeout_seconds=PATIENCE_SECONDS)
        else:
            _sleep_until(end)
        stolen_cores = stolen()
        if plan.ending is not Ending.LIVE:
            end_job(site.api, site.run)
        return Outcome(recordings.whole(site.api, site.run.name), began, stolen_cores)


def _sleep_until(at: float) -> None:
    time.sleep(max(0.0, at - time.time()))


def wait_for_steps(
    site: Site, names: Collection[str] | None, *, patience_seconds: float = START_SECONDS
) -> None:
    """Return when these trainers have reported steps; until then no CPU quota holds.

    Raises:
        TrialError: the job ended, or it takes too long.
    """
    wanted = [each for each in site.replicas(*TRAINERS) if names is None or str(each) in names]
    deadline = time.monotonic() + patience_seconds
    while True:
        site.lift()
        if all(site.steps_of(each) for each in wanted):
            return
        now = site.api.get(site.run.name)
        if now.phase.is_final or time.monotonic() > deadline:
            raise TrialError(f"{now.name} did not start ({now.phase}: {now.message})\n{_last_words(site)}")
        time.sleep(_POLL_SECONDS)


def _lift_for(site: Site, seconds: float) -> None:
    """Let a job that is not to train start without quotas, and give them back."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        site.lift()
        time.sleep(_POLL_SECONDS)
    site.limit()


def _last_words(site: Site) -> str:
    """Return the ends of the logs of all replicas."""
    paths: list[Path] = sorted(site.folder.logs.glob("*.log"))
    return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-600:]}" for path in paths)


def end_job(api: Jobs, run: Run) -> None:
    """Stop a job, or what is left of it when that fails."""
    try:
        with contextlib.suppress(Conflict):
            api.stop(run.name)
        api.wait(run.name, timeout_seconds=_END_SECONDS)
    except PacelineError:
        folder = RunFolder.of(run)
        kills.kill(leftovers.supervisor_pids(folder))
        engine.release(folder, machines.read())
