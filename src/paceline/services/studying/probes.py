"""Probes running jobs: cuts one part after the other for some seconds, and measures the loss of speed.

A cut is always taken back, whatever happens to the probe: the supervisor or the operator knows the end of
each cut, and the probe itself takes it back before that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence

from paceline.errors import Conflict, NotFound
from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.runs import LOCAL, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures import rates
from paceline.model.measures.probes import Cut, CutPart, Probe
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import by_replica
from paceline.probing import estimates, occupations, plans, scopes, windows
from paceline.probing.occupations import Occupation
from paceline.probing.plans import Scope
from paceline.probing.scopes import ObservedReplica, ProbedJob
from paceline.services.life_cycles import LifeCycle
from paceline.services.studying.quiet_waits import QuietWait

#: The time before a probe whose samples and step reports give the speed without cuts.
HISTORY_SECONDS = 180.0
#: A cut is discarded if the rates before and after it differ by more than this multiple of the noise:
#: something else happened. A probe ends when it has discarded more than `_MOST_DISTURBED` cuts.
_DISTURBED = 5.0
_MOST_DISTURBED = 3
_TINY_SHARE = 0.002
#: The number of steps of all trainers together that a window should have, and the longest window in seconds.
_STEPS, _LONGEST_WINDOW = 20, 10.0
#: Within this time, what an agent has written is stored.
_SPOOL_SECONDS = 2.0
#: If trainers stand still during more cuts than this, they always do: it is part of what is measured.
_MOST_STOOD = 3
#: A probe waits for evaluations and checkpoints during at most this share of its time.
_GIVEN_SHARE = 0.25
ALL_KNOWN = "all that matters is known"
TIME_OVER = "its time is over"
TOO_DEAR = "more cuts would cost more than they may"
NO_MORE = "the job does not run any more"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTimes:
    """The times of a probe, in seconds.

    Attributes:
        window: how long a rate is measured.
        settle: how long nothing is measured after a cut begins, and after it is taken back.
        known: how long after a measurement it can be read.
        most: how long a probe takes at most.
    """

    window: float = 5.0
    settle: float = 1.5
    known: float = 3.5
    most: float = 120.0

    @classmethod
    def of(cls, jobs: LifeCycle, *, most: float) -> ProbeTimes:
        """Return the times for the engine of ``jobs``: on a cluster, measurements are known later."""
        return cls(known=max(cls().known, jobs.DELAY_SECONDS), most=most)

    @property
    def cut(self) -> float:
        """How long a part is cut."""
        return self.settle + self.window

    def suited_to(self, history: Recording) -> ProbeTimes:
        """Return times that suit a job whose steps, and therefore step reports, may take long.

        A report covers the time since the previous report: a report that begins before a cut covers both.
        """
        made = [(each.steps, each.interval_seconds) for each in history.steps if each.steps]
        intervals = [seconds for _, seconds in made if seconds]
        if not intervals:
            return self
        trainers = len({each.replica for each in history.steps if each.steps})
        per_second = sum(steps for steps, _ in made) * trainers / sum(intervals)
        report = statistics.median(intervals)
        return dataclasses.replace(
            self,
            window=min(_LONGEST_WINDOW, max(self.window, _STEPS / per_second)),
            settle=max(self.settle, report),
            known=max(self.known, _SPOOL_SECONDS + 1.5 * report),
        )


def _shuffled(parts: Sequence[CutPart]) -> Sequence[CutPart]:
    return random.sample(list(parts), len(parts))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prober:
    """Probes jobs.

    Attributes:
        jobs: where they run.
        times: see `ProbeTimes`.
        most_share: the most that a probe may cost, as a share of the work that the job does in
            ``times.most`` seconds.
        tell: called with the progress of a probe, and what it does next in a few words.
        shuffled: returns parts in random order.
    """

    jobs: LifeCycle
    times: ProbeTimes = dataclasses.field(default_factory=ProbeTimes)
    most_share: float = 0.05
    tell: Callable[[Probe, str], None] = lambda _, __: None
    shuffled: Callable[[Sequence[CutPart]], Sequence[CutPart]] = _shuffled

    @classmethod
    def of(
        cls,
        jobs: LifeCycle,
        *,
        seconds: float,
        most_share: float,
        tell: Callable[[Probe, str], None] = lambda _, __: None,
    ) -> Prober:
        """Return a prober whose probes take at most this long, with the times of where the jobs run."""
        times = ProbeTimes.of(jobs, most=seconds)
        return cls(jobs=jobs, times=times, most_share=most_share, tell=tell)

    def plan(self, name: str) -> Sequence[str]:
        """Return lines of text: what a probe would cut first, how long it takes and its highest cost.

        Raises:
            Conflict: as in `begin`.
        """
        session = _Session(self, self._running(name))
        return [
            f"{name} would be probed for at most {self.times.most:g} s, at the cost of "
            f"{self.most_share:.0%} of what it does in that time at most",
            *(f"{self._planned(each)} for {self.times.cut:g} s each time" for each in session.scope.parts),
            "what costs something is cut apart then, until the replica is known that binds",
        ]

    def _planned(self, part: CutPart) -> str:
        if part.knob in (Knob.PAUSE, Knob.WEIGHT):
            return part.doing
        return f"{part.name}: {1 - plans.FIRST:.0%} less"

    def _running(self, name: str) -> Run:
        run = self.jobs.get(name)
        if run.phase is not JobPhase.RUNNING:
            raise Conflict(
                f"{name} is {run.phase}, and only what runs can be probed",
                f"paceline wait {name} --for running",
            )
        self.jobs.check_returns(run)
        return run

    def probe(self, name: str) -> Probe:
        """Probe a job; return what was found (raises as `begin`)."""
        return self.begin(name)()

    def begin(self, name: str) -> Callable[[], Probe]:
        """Reserve a job for a probe; return the function that probes it and then releases it.

        Others cannot change the job until the returned function has ended, so the caller must call it.

        Raises:
            Conflict: the job does not run, makes no steps that can be counted, or is being changed; or it has
                no part that can be cut here, or a cut might not come back.
            EngineError: the engine cannot set what is to be cut.
        """
        run = self._running(name)
        with contextlib.ExitStack() as held:
            held.enter_context(self.jobs.changing(name, "probed"))
            session, kept = _Session(self, run), held.pop_all()

        def go() -> Probe:
            with kept:
                try:
                    return session.run()
                finally:
                    with contextlib.suppress(Conflict):  # The job has ended, and its cuts with it.
                        session.put_back()

        return go


def newest(jobs: LifeCycle, name: str) -> Probe:
    """Return the newest ended probe of a job.

    Raises:
        NotFound: there is no such job, or it has not been probed.
    """
    ended = [each for each in jobs.probes(name) if each.ended is not None]
    if not ended:
        raise NotFound(f"{name} has not been probed", f"paceline probe {name}")
    return ended[-1]


class _Session:
    """One probe."""

    def __init__(self, prober: Prober, run: Run) -> None:
        self._prober, self._run, self._times = prober, run, prober.times
        self._began_at = prober.jobs.clock()
        history = self._measured(self._began_at - HISTORY_SECONDS)
        self._unit = windows.unit(history.steps)
        self._input_wait_share = rates.rate(history.steps, lambda report: report.input_wait_seconds)
        self._times = prober.times.suited_to(history)
        self._baselines = self._history(history)
        if len(self._baselines) < plans.LEAST_CUTS:
            raise Conflict(
                f"{run.name} has not made steps, or sent bytes, for long enough to measure its speed",
                "try again in a minute",
            )
        self._scene = _scene(run, history, prober.jobs)
        parts, whole = scopes.parts(self._scene)
        if not parts:
            raise Conflict(
                f"nothing of {run.name} can be cut: " + ("; ".join(run.notes) or "no limits are known"),
                "give its roles a cpu",
            )
        self.scope = Scope(
            parts=parts, whole=whole, shuffled=prober.shuffled, use=functools.partial(scopes.use, self._scene)
        )
        self._cuts: list[Cut] = []
        self._lost = 0.0
        self._disturbed = self._stood = 0
        self._quiet = QuietWait(
            prober.jobs,
            run.name,
            known_seconds=self._times.known,
            most_seconds=_GIVEN_SHARE * self._times.most,
        )
        self._free_at = self._began_at  # Since when nothing is cut and the job has settled.
        self._part: CutPart | None = None

    def run(self) -> Probe:
        """Cut one part after the other until enough is known."""
        while True:
            known = estimates.known(self._cuts, self._baselines)
            wanted = plans.following(self.scope, known)
            part = next(filter(self._affords, wanted), None)
            ended = self._ended(wanted, part)
            if ended is not None or part is None:
                return self._told(ended or ALL_KNOWN, "")
            self._give_way()
            self._told(None, part.doing)
            try:
                cut = self._cut(part)
            except Conflict:
                if self._is_running():
                    raise
                return self._told(NO_MORE, "")
            if cut is None:
                return self._told(NO_MORE, "")
            self._keep(*cut)

    def _give_way(self) -> None:
        """Wait while an evaluation goes on or a checkpoint is saved, but not for long."""
        if self._quiet.run(functools.partial(self._told, None)):
            self._free_at = self._clock()

    def _ended(self, wanted: Sequence[CutPart], part: CutPart | None) -> str | None:
        """Return why the probe ends now; None: it goes on."""
        if part is None:
            return TOO_DEAR if wanted else ALL_KNOWN
        left = self._began_at + self._times.most - self._clock()
        if left < 2 * self._times.cut + self._times.known:
            return TIME_OVER
        if self._disturbed > _MOST_DISTURBED:
            return "too much else happens in the job to tell what a cut costs"
        return None

    def _affords(self, part: CutPart) -> bool:
        use = scopes.use(self._scene, part)
        expected = plans.expected_cost(part, self._factor(part), self._cuts, use)
        return self._share(expected * self._times.cut) <= self._prober.most_share

    def _factor(self, part: CutPart) -> float:
        """Return the share of its size to which a part is cut next."""
        deviation, degrees = estimates.noise(self._cuts, self._baselines)
        return scopes.factor_of(self._scene, part, plans.factor(deviation, degrees))

    def _cut(self, part: CutPart) -> tuple[Cut, bool] | None:
        """Cut a part, and take the cut back.

        Returns:
            The cut, and whether an evaluation or a standing trainer disturbed it; None if the job has ended.
        """
        factor = self._factor(part)
        self._sleep_until(self._free_at + self._times.window)
        before = self._clock()
        self._part = part
        at = self._set(part, factor, seconds=self._times.cut + self._times.known)
        self._sleep_until(at + self._times.cut)
        back = self.put_back()
        self._free_at = back + self._times.settle
        after = self._free_at + self._times.window
        self._sleep_until(after + self._times.known)
        if not self._is_running():
            return None
        recording = self._measured(before - self._times.window)
        spans = (
            (before - self._times.window, before),
            (at + self._times.settle, back),
            (self._free_at, after),
        )
        rates = [windows.rate(self._unit, recording.steps, recording.samples, *span) for span in spans]
        least = self._baselines[-1] * _TINY_SHARE  # A rate of nothing has no logarithm.
        first, rate, last = (max(each or 0.0, least) for each in rates)
        felt = at_limit = None
        if part.knob is Knob.CPU:
            felt = windows.held_back(recording.samples, part.targets, *spans[1])
            at_limit = windows.at_limit(recording.samples, part.targets, (spans[0], spans[2]))
        cut = Cut(
            part=part,
            factor=factor,
            since=spans[1][0],
            until=back,
            rate=rate,
            before=first,
            after=last,
            felt=felt,
            at_limit=at_limit,
        )
        return cut, self._is_disturbed(part, recording, spans)

    def _is_disturbed(self, part: CutPart, found: Recording, spans: Sequence[tuple[float, float]]) -> bool:
        """Return whether evaluations, or standing trainers, took more of one span than of another."""
        paused = part.targets if part.knob is Knob.PAUSE else ()
        difference = occupations.difference(found, spans, paused=paused)
        if difference is not Occupation.STAND:
            return difference is not None
        self._stood += 1
        return self._stood <= _MOST_STOOD

    def _is_running(self) -> bool:
        return self._prober.jobs.get(self._run.name).phase is JobPhase.RUNNING

    def _keep(self, cut: Cut, is_disturbed: bool) -> None:
        """Take a cut into account unless something else happened meanwhile."""
        self._lost += max(0.0, cut.base - cut.rate) * (cut.until - cut.since + self._times.settle)
        deviation, _ = estimates.noise(self._cuts, self._baselines)
        drifted = abs(math.log(cut.before / cut.after))
        if is_disturbed or drifted > _DISTURBED * max(deviation, estimates.LEAST_NOISE):
            self._disturbed += 1
            self._baselines += [cut.before, cut.after]
            return
        self._cuts.append(cut)
        self._baselines += [cut.before, cut.after]

    def put_back(self) -> float:
        """Take the current cut back; return when that was done (Unix seconds)."""
        part, self._part = self._part, None
        if part is None:
            return self._clock()
        return self._set(part, 1.0, seconds=None)

    def _set(self, part: CutPart, factor: float, *, seconds: float | None) -> float:
        until = 0.0 if seconds is None else self._clock() + seconds
        wanted = scopes.adjustments(self._scene, part, factor, until=until)
        return self._prober.jobs.adjust(self._run.name, wanted)

    def _told(self, ended: str | None, doing: str) -> Probe:
        known, now = estimates.known(self._cuts, self._baselines), self._clock()
        probe = Probe(
            run=self._run.name,
            began_at=self._began_at,
            unit=self._unit,
            cuts=tuple(self._cuts),
            elasticities=tuple(plans.ends(self.scope, known)),
            ended_at=None if ended is None else now,
            lost=self._lost,
            share=self._share(),
            ended=ended,
            input_wait_share=self._input_wait_share,
        )
        self._prober.jobs.keep_probe(probe)
        self._prober.tell(probe, doing)
        return probe

    def _share(self, more: float = 0.0) -> float:
        """Return the loss so far, plus ``more``, as a share of the job's work in ``times.most`` seconds."""
        return (self._lost + more) / (statistics.median(self._baselines) * self._times.most)

    def _history(self, history: Recording) -> list[float]:
        """Return the rates of windows before the probe, the oldest first."""
        end, found = self._began_at - self._times.known, list[float]()
        while end - self._times.window > self._began_at - HISTORY_SECONDS:
            rate = windows.rate(self._unit, history.steps, history.samples, end - self._times.window, end)
            if rate is None:
                break
            found.insert(0, rate)
            end -= self._times.window
        return found

    def _measured(self, since: float) -> Recording:
        return self._prober.jobs.recording(self._run.name, since=since)

    def _clock(self) -> float:
        return self._prober.jobs.clock()

    def _sleep_until(self, moment: float) -> None:
        time.sleep(max(0.0, moment - self._clock()))


def _scene(run: Run, history: Recording, jobs: LifeCycle) -> ProbedJob:
    """Return the state of a job before anything is cut."""
    knobs, spec = jobs.knobs(run), run.spec
    emulated = {host.name for host in spec.hosts}
    measured = by_replica(history.samples)
    machine = _machine_cores(run, jobs)
    replicas = []
    for row in jobs.replicas(run.name):
        if not row.phase.is_live or not spec.has(row.replica):
            continue
        limit, used = scopes.last_seen(measured.get(row.replica, ()))
        own = limit or spec.role_of(row.replica).cpu_cores
        replicas.append(
            ObservedReplica(
                replica=row.replica,
                cores=own if Knob.CPU in knobs and own is not None else None,
                used_cores=used,
                host=row.host if row.host in emulated else None,
            )
        )
    links = {
        host.name: host.bandwidth_bits_per_second
        for host in spec.hosts
        if Knob.LINK in knobs and host.bandwidth_bits_per_second is not None
    }
    return ProbedJob(
        replicas=replicas,
        machine_cores=machine if Knob.WEIGHT in knobs else None,
        links=links,
        may_pause=Knob.PAUSE in knobs and scopes.may_pause(spec),
    )


def _machine_cores(run: Run, jobs: LifeCycle) -> float | None:
    """Return the cores of the machine that all replicas share; None: they run on a cluster."""
    return sum(each.allocatable.millicores for each in jobs.nodes()) / 1000 if run.engine == LOCAL else None
