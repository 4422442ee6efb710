"""The input of the rules about phases: what is known about a job at one moment, on either engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from paceline.model.explanations.causes import Evidence
from paceline.model.instants import UnixSeconds
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.obstacles import Obstacle
from paceline.model.jobs.queue_waits import QueueWait
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import OutputTail
from paceline.model.roles import ReplicaId
from paceline.scheduling.fits import Fit


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Whether a waiting job fits on the cluster now, and which jobs are ahead of it.

    Attributes:
        fit: whether the job fits on the nodes as they are.
        ahead: the waiting jobs that come before it, in order.
        running: the jobs that occupy the cluster.
    """

    fit: Fit
    ahead: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The state of a job at one moment.

    Attributes:
        engine: ``local`` or ``kubernetes``.
        message: the message of the supervisor or the operator.
        now: the moment that the situation describes.
        spec: the job's spec; None: it cannot be read, and the message says what is wrong with it.
        events: the job's events, in order.
        is_suspended: whether the spec asks for the job not to run.
        left_alone: why the operator does not act on the job; empty: the operator acts on it.
        unattended: evidence that no supervisor or operator watches the job; empty: one does.
        room: None: the job does not wait for room, or this is not known.
        queue_wait: the job's wait in the queue of another system; None: it does not wait there, or this is
            not known.
        obstacles: what the local machine or the cluster reports about the replicas.
        output: the last lines that failed replicas printed.
        has_checkpoint: whether the job's checkpoint folder contains anything; None: it cannot be read.
        unknown: what could not be examined, and why.
    """

    name: str
    engine: str
    phase: JobPhase
    message: str
    submitted_at: UnixSeconds
    started_at: UnixSeconds | None
    finished_at: UnixSeconds | None
    now: UnixSeconds
    spec: JobSpec | None
    replicas: Sequence[ReplicaRow] = ()
    events: Sequence[JobEvent] = ()
    is_suspended: bool = False
    left_alone: str = ""
    unattended: tuple[Evidence, ...] = ()
    room: Room | None = None
    queue_wait: QueueWait | None = None
    obstacles: Sequence[Obstacle] = ()
    output: Sequence[OutputTail] = ()
    has_checkpoint: bool | None = None
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        run: Run,
        replicas: Sequence[ReplicaRow],
        events: Sequence[JobEvent],
        *,
        now: float,
        **more: Any,
    ) -> Situation:
        """Return the situation of a run; the caller gives the attributes that the run does not have."""
        return cls(
            name=run.name,
            engine=run.engine,
            phase=run.phase,
            message=run.message,
            submitted_at=run.submitted_at,
            started_at=run.started_at,
            finished_at=run.finished_at,
            now=now,
            spec=run.spec,
            replicas=replicas,
            events=events,
            **more,
        )

    @property
    def since(self) -> float:
        """The time since which the job has been in its phase."""
        told = [event.at for event in self.events if event.kind == self.phase and event.replica is None]
        if told:
            return told[-1]
        by_phase = self.finished_at if self.phase.is_final else self.started_at
        return by_phase if by_phase is not None else self.submitted_at

    @property
    def resume_step(self) -> str:
        """The command that resumes the job, and the point from which training continues."""
        begins = {
            True: "goes on from its last checkpoint",
            False: "starts it from the beginning: there is no checkpoint in its folder",
            None: "goes on from its last checkpoint, if its script has saved one",
        }
        return f"paceline resume {self.name} {begins[self.has_checkpoint]}"

    def exits(self, replica: ReplicaId, message: str) -> list[JobEvent]:
        """Return the exit events of a replica that have a given message."""
        return [
            event
            for event in self.events
            if event.kind == "replica-exited" and event.replica == replica and event.message == message
        ]
