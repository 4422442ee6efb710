"""All that the rules look at: what is known of a job at one moment, wherever it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from paceline.model.explanations.causes import Evidence
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.obstacles import Obstacle
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import OutputTail
from paceline.model.roles import ReplicaId
from paceline.scheduling.fits import Fit


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Whether a job that waits fits on the cluster now, and who stands before it.

    Attributes:
        fit: the answer for the nodes as they are.
        ahead: the jobs that wait and are served before it, the first first.
        running: the jobs that take room.
    """

    fit: Fit
    ahead: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is known of a job; times are Unix seconds.

    Attributes:
        engine: ``local`` or ``kubernetes``.
        message: what its supervisor or the operator says.
        now: when all of this was so.
        spec: None: it cannot be read, and the message says what is wrong with it.
        events: what happened, in order.
        is_suspended: whether its spec asks that it does not run.
        left_alone: why its operator does nothing about it; empty: it does.
        unattended: what shows that no supervisor or operator watches it; empty: one does.
        room: None for a job that does not wait for room, or where that is not known.
        obstacles: what the place where it runs says of its replicas.
        output: the last lines that replicas which have failed have printed.
        has_checkpoint: whether anything lies in its folder of checkpoints; None: that cannot be looked into.
        unknown: what could not be looked at, and why not.
    """

    name: str
    engine: str
    phase: JobPhase
    message: str
    submitted_at: float
    started_at: float | None
    finished_at: float | None
    now: float
    spec: JobSpec | None
    replicas: Sequence[ReplicaRow] = ()
    events: Sequence[JobEvent] = ()
    is_suspended: bool = False
    left_alone: str = ""
    unattended: tuple[Evidence, ...] = ()
    room: Room | None = None
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
        """Return the situation of a run: what it says itself, and other attributes as they are given."""
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
        """Return since when it is in its phase."""
        told = [event.at for event in self.events if event.kind == self.phase and event.replica is None]
        if told:
            return told[-1]
        by_phase = self.finished_at if self.phase.is_final else self.started_at
        return by_phase if by_phase is not None else self.submitted_at

    @property
    def resume_step(self) -> str:
        """Return the command that brings it back, and where it goes on then."""
        begins = {
            True: "goes on from its last checkpoint",
            False: "starts it from the beginning: there is no checkpoint in its folder",
            None: "goes on from its last checkpoint, if its script has saved one",
        }
        return f"paceline resume {self.name} {begins[self.has_checkpoint]}"

    def exits(self, replica: ReplicaId, message: str) -> list[JobEvent]:
        """Return the ends of a replica that were told with a message."""
        return [
            event
            for event in self.events
            if event.kind == "replica-exited" and event.replica == replica and event.message == message
        ]
