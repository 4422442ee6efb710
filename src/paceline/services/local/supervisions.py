"""Supervises one job from its first launch to its end: it turns events into commands and stores both.

The order of its steps makes it safe to kill the supervisor at any moment: an event changes the state, the
state is saved, then commands are executed. A new supervisor begins with the saved state and the living
processes (``SupervisorReplaced``).
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from paceline.control import allowances, commands, events, machines, resizings, states
from paceline.diagnosing.failures import known
from paceline.engines.engines import Engine
from paceline.engines.local import folders
from paceline.errors import Conflict, EngineError, StoreError
from paceline.model.jobs import adjustments
from paceline.model.jobs.runs import ADJUST, ADJUSTED, RESIZE, RESIZED, SCALE, JobEvent, RunRequest
from paceline.model.jobs.statuses import ExitKind, ExitReason, JobPhase, ReplicaPhase
from paceline.model.roles import ReplicaId
from paceline.services import log_files
from paceline.sources import spools
from paceline.stores import Store, encodings

#: How often requests and timers are checked; exits wake the supervisor at once.
POLL_SECONDS = 0.5
#: Agents write once a second; reading two lines at a time halves what storing them costs.
SPOOL_SECONDS = 2.0
#: Limits and links that the kernel has refused are set again after this time.
ADAPT_SECONDS = 10.0
#: The interval of checks while replicas start, until they report for the first time.
STARTING_SECONDS = 0.1
RELEASE_RETRY_SECONDS = 1.0

#: The events after which a job goes on only by beginning again.
_ENDS = (JobPhase.STOPPED, JobPhase.FAILED, JobPhase.SUCCEEDED)

log = logging.getLogger(__name__)


class Supervision:
    """The supervision of one job.

    Args:
        name: the run's name.
        store: where its state, events and samples are stored.
        engine: where it runs.
        folder: where its agents write.
        clock: Unix seconds, for times that are stored.
        stopwatch: monotonic seconds, for timers.
    """

    def __init__(
        self,
        name: str,
        *,
        store: Store,
        engine: Engine,
        folder: folders.RunFolder,
        clock: Callable[[], float],
        stopwatch: Callable[[], float],
    ) -> None:
        self._name = name
        self._store = store
        self._engine = engine
        self._folder = folder
        self._clock = clock
        self._stopwatch = stopwatch
        self._state = store.load_state(name)
        self._saved = True
        self._timers: list[tuple[float, int, events.Timer]] = []
        self._count = itertools.count()
        self._offsets: dict[tuple[ReplicaId, int], int] = {}
        #: The attempts whose spools could not be stored the last time.
        self._unread: set[tuple[ReplicaId, int]] = set()
        self._release_at: float | None = None
        self._spools_at = 0.0
        self._happened: list[JobEvent] = []
        self._source: str | None = None
        self._refused: Sequence[str] = ()
        self._adapt_at: float | None = None
        #: The requests that the state takes into account, and that the store still has.
        self._answered: list[int] = []

    def run(self) -> JobPhase:
        """Supervise the job until it is final; return its final phase."""
        if not self._state.phase.is_final:
            for event in self._take_over():
                self._apply(event)
        while not (self._state.phase.is_final and self._saved):
            for event in self._next_events():
                self._apply(event)
            for request in self._requests():
                self._answer(request)
            if self._adapt_at is not None and self._adapt_at <= self._stopwatch():
                self._adapt()
            self._keep()
        return self._state.phase

    def _take_over(self) -> list[events.Event]:
        """Return the first events: a fresh start, or the adoption of what an earlier supervisor left.

        Adjustments of the earlier supervisor are applied again, or restored if their time is over.

        Living replicas are adopted even if the engine fails, because their end has to be observed.
        """
        failures: list[events.Event] = []
        try:
            notes = tuple(self._engine.prepare())
            self._store.update_run(self._name, notes=notes)
        except EngineError as error:
            self._note("engine-failed", error.message)
            failures.append(events.EngineFailed(reason=error.message))
        if self._state.phase is JobPhase.PENDING:
            return failures or [events.Begin()]
        adopted = self._adopted()
        self._adapt()
        return [adopted, *failures]

    def _adopted(self) -> events.Event:
        known = (r for r in self._state.replicas if r.phase.is_live or self._state.spec.has(r.replica))
        attempts = {r.replica: r.attempt for r in known if r.attempt}
        replaced = self._engine.adopt(attempts)
        # What replicas that have ended wrote while no supervisor watched is still in their spools.
        for replica in attempts.keys() - replaced.live.keys():
            self._read_spool(replica, attempts[replica])
        self._note("supervisor-replaced", f"a new supervisor took over; {len(replaced.live)} replicas live")
        return events.SupervisorReplaced(
            live=replaced.live,
            exits=replaced.exits,
            active_seconds=self._clock() - self._began_at(),
        )

    def _began_at(self) -> float:
        """Return when the job began, or began again, the last time (Unix seconds)."""
        at = None
        for _, event in self._store.events(self._name):
            if event.replica is None and event.kind in _ENDS:
                at = None
            elif event.replica is None and event.kind == JobPhase.STARTING and at is None:
                at = event.at
        return self._clock() if at is None else at

    def _next_events(self) -> list[events.Event]:
        exits = self._engine.poll(self._patience_seconds())
        found = [*self._read_spools(), *exits]
        while self._timers and self._timers[0][0] <= self._stopwatch():
            found.append(events.TimerFired(timer=heapq.heappop(self._timers)[2]))
        if any(each.until <= self._clock() for each in self._state.adjustments):
            found.append(events.TimePassed(now=self._clock()))
        if self._release_at is not None and self._release_at <= self._stopwatch():
            found.extend(self._release())
        return found

    def _patience_seconds(self) -> float:
        """Return for how long only an exit needs attention."""
        wait = STARTING_SECONDS if self._is_starting else POLL_SECONDS
        due = [each.until - self._clock() for each in self._state.adjustments]
        due += [] if self._release_at is None else [self._release_at - self._stopwatch()]
        due += [self._timers[0][0] - self._stopwatch()] if self._timers else []
        return max(0.0, min((wait, *due)))

    @property
    def _is_starting(self) -> bool:
        return any(replica.phase is ReplicaPhase.STARTING for replica in self._state.replicas)

    def _requests(self) -> list[RunRequest]:
        """Return the requests that have not been answered."""
        try:
            requests = self._store.requests(self._name)
        except StoreError as error:
            log.warning("requests cannot be read, trying again: %s", error.message)
            return []
        return [each for each in requests if each.id not in self._answered]

    def _answer(self, request: RunRequest) -> None:
        """Apply a request. It stays in the store until a state is saved that takes it into account."""
        self._answered.append(request.id)
        try:
            event = _event(request)
        except StoreError as error:
            log.warning("a request is passed over: %s", error.message)
        else:
            self._apply(event)

    def _read_spools(self) -> list[events.Event]:
        if not self._is_starting and self._stopwatch() < self._spools_at:
            return []
        self._spools_at = self._stopwatch() + SPOOL_SECONDS
        found: list[events.Event] = []
        for replica in self._state.replicas:
            if replica.attempt and replica.phase.is_live:
                found.extend(self._read_spool(replica.replica, replica.attempt))
        for replica_id, attempt in [*self._unread]:
            self._read_spool(replica_id, attempt)
        return found

    def _read_spool(self, replica: ReplicaId, attempt: int) -> list[events.Event]:
        """Store what the agent has written since the last call.

        If the store fails, the records stay in the spool.
        """
        start_events: list[events.Event] = []
        path = Path(self._folder.files(replica, attempt).spool)
        try:
            offset = self._offset(replica, attempt)
            while True:
                reading = spools.read(path, replica=replica, attempt=attempt, offset=offset)
                if reading.offset == offset:
                    break
                self._store.append_from_spool(
                    self._name, replica, attempt,
                    previous_offset=offset, offset=reading.offset,
                    samples=reading.samples, steps=reading.steps,
                    evaluations=reading.evaluations, events=reading.events,
                )  # fmt: skip
                offset = self._offsets[replica, attempt] = reading.offset
                if reading.started:
                    start_events.append(events.ReplicaStarted(replica=replica, attempt=attempt))
                if reading.broken:
                    log.warning("%s.%d: %d spool lines are no records", replica, attempt, reading.broken)
            self._unread.discard((replica, attempt))
        except Conflict:
            # Another process has stored these lines; continue behind them.
            del self._offsets[replica, attempt]
        except StoreError as error:
            self._unread.add((replica, attempt))  # It may end before the store answers again.
            log.warning("samples of %s stay in its spool for now: %s", replica, error.message)
        return start_events

    def _offset(self, replica: ReplicaId, attempt: int) -> int:
        if (replica, attempt) not in self._offsets:
            self._offsets[replica, attempt] = self._store.spool_offset(self._name, replica, attempt)
        return self._offsets[replica, attempt]

    def _apply(self, event: events.Event) -> None:
        """Apply one event: advance the state, save it, then execute the resulting commands."""
        if isinstance(event, events.ReplicaExited):
            self._read_spool(event.replica, event.attempt)
            event = self._judged(event)
        before = self._state
        self._state, wanted = machines.advance(before, event)
        self._tell(before, event)
        self._saved = self._saved and self._state == before
        if isinstance(event, events.ResizeRequested) and self._state.spec != before.spec:
            self._source = event.source or None
        self._keep()
        if (self._state.spec, self._state.adjustments) != (before.spec, before.adjustments):
            self._adapt()
        for command in wanted:
            self._execute(command)

    def _adapt(self) -> None:
        """Have the engine apply spec and adjustments now, and again later what it refuses."""
        known = self._state.adjustments
        refused = self._engine.adapt(
            self._state.spec, allowances.allowances(self._state), allowances.links(known)
        )
        for each in refused:
            if each not in self._refused:
                self._note("engine-failed", each)
        self._refused = refused
        self._adapt_at = self._stopwatch() + ADAPT_SECONDS if refused else None

    def _judged(self, event: events.ReplicaExited) -> events.ReplicaExited:
        """Mark the exit of a failed command as lasting if its last output shows that it would fail again."""
        if event.reason.kind is not ExitKind.ERROR:
            return event
        output = log_files.tail(self._folder.log(event.replica, event.attempt))
        return dataclasses.replace(event, is_lasting=known.is_lasting(output))

    def _tell(self, before: states.JobState, event: events.Event) -> None:
        """Record the events of this transition that matter to people."""
        after = self._state
        if isinstance(event, events.ReplicaExited) and after != before:
            self._note("replica-exited", str(event.reason), event.replica, event.attempt)
        if isinstance(event, events.ScaleRequested) and after.spec != before.spec:
            self._note("scaled", f"{event.workers} workers are wanted")
        if isinstance(event, events.ResizeRequested) and after.spec != before.spec:
            self._note(RESIZED, "; ".join(resizings.differences(before.spec, after.spec)))
        for each in after.adjustments:
            if each not in before.adjustments and each.until > self._clock():
                self._note(ADJUSTED, adjustments.sentence(each, self._clock()))
        for each in before.adjustments:
            if adjustments.value(after.adjustments, each.knob, each.target) is None:
                self._note(ADJUSTED, adjustments.ended(each))
        if after.phase is not before.phase:
            self._note(str(after.phase), after.message)

    def _note(
        self, kind: str, message: str, replica: ReplicaId | None = None, attempt: int | None = None
    ) -> None:
        log.info("%s %s %s", kind, replica or "", message)
        self._happened.append(
            JobEvent(at=self._clock(), kind=kind, message=message, replica=replica, attempt=attempt)
        )

    def _keep(self) -> None:
        """Save state and events; if the disk is full, both stay in memory and are tried again."""
        try:
            if self._answered or not self._saved:
                # In one transaction: a reader that sees a job's end also finds the event that reports it, and
                # a request is answered once, whenever this process is killed.
                self._store.save_state(
                    self._name, self._state,
                    at=self._clock(), events=self._happened, resized=self._source, answered=self._answered,
                )  # fmt: skip
                self._saved, self._source, self._answered = True, None, []
            elif self._happened:
                self._store.append_events(self._name, self._happened)
            self._happened = []
        except StoreError as error:
            log.warning("the state cannot be saved, trying again: %s", error.message)

    def _execute(self, command: commands.Command) -> None:
        match command:
            case commands.Launch(replica=replica, attempt=attempt):
                self._launch(replica, attempt)
            case commands.Terminate(replica=replica, attempt=attempt):
                self._engine.terminate(replica, attempt)
            case commands.Kill(replica=replica, attempt=attempt):
                self._kill(replica, attempt)
            case commands.StartTimer(timer=timer, seconds=seconds):
                heapq.heappush(self._timers, (self._stopwatch() + seconds, next(self._count), timer))
            case commands.Release():
                self._release_at = self._stopwatch()

    def _kill(self, replica: ReplicaId, attempt: int) -> None:
        try:
            self._engine.kill(replica, attempt)
        except EngineError as error:
            log.warning("%s is not gone yet, trying again: %s", replica, error.message)

    def _launch(self, replica: ReplicaId, attempt: int) -> None:
        if self._state.phase is JobPhase.STOPPING:  # An earlier launch failed and ended the job.
            reason = machines.NOT_LAUNCHED
            self._apply(events.ReplicaExited(replica=replica, attempt=attempt, reason=reason))
            return
        try:
            launched = self._engine.launch(attempt, allowances.allowance(self._state, replica))
        except EngineError as error:
            # This machine would refuse the launch again; the code was fetched before.
            reason = ExitReason(kind=ExitKind.LAUNCH_FAILED, message=error.message)
            exited = events.ReplicaExited(replica=replica, attempt=attempt, reason=reason, is_lasting=True)
            self._apply(exited)
            return
        try:
            self._store.set_replica_facts(
                self._name, replica,
                host=launched.host, address=launched.address, pid=launched.pid, cores=launched.cores,
            )  # fmt: skip
        except StoreError as error:
            log.warning("where %s runs cannot be saved: %s", replica, error.message)

    def _release(self) -> list[events.Event]:
        try:
            self._engine.release()
        except EngineError as error:
            log.warning("not all is released, trying again: %s", error.message)
            self._release_at = self._stopwatch() + RELEASE_RETRY_SECONDS
            return []
        self._release_at = None
        return [events.Released()]


def _event(request: RunRequest) -> events.Event:
    kind, _, asked = request.kind.partition(" ")
    match kind:
        case _ if kind == SCALE:
            return events.ScaleRequested(workers=int(asked))
        case _ if kind == RESIZE:
            return encodings.decode(events.ResizeRequested, asked, what="a resize")
        case _ if kind == ADJUST:
            return encodings.decode(events.AdjustRequested, asked, what="an adjustment")
    return events.StopRequested()
