"""What the life of a job needs of the place where it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Protocol

from paceline.control import events
from paceline.model.jobs.adjustments import Allowance
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.roles import ReplicaId


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """Where an attempt of a replica was put."""

    host: str
    address: str
    pid: int | None
    cores: tuple[int, ...] = ()


class Engine(Protocol):
    """Executes the commands of the state machine for one job; every method may be called again."""

    def prepare(self) -> Sequence[str]:
        """Set up what all replicas share; return what cannot be limited or measured here.

        Raises:
            EngineError: the job cannot run here.
        """

    def adapt(
        self, spec: JobSpec, allowances: Sequence[Allowance], links: Mapping[str, int]
    ) -> Sequence[str]:
        """Take note of what the job is from now on, and let its replicas take what they may.

        Workers that it has no more are terminated one by one.

        Args:
            spec: the job.
            allowances: those of the replicas that live.
            links: bits a second of the emulated hosts whose links are adjusted; others are as the spec says.

        Returns:
            What could not be done, in a sentence each.
        """

    def launch(self, attempt: int, allowance: Allowance) -> Launched:
        """Start one attempt of a replica, with what it may take.

        Raises:
            EngineError: it cannot be started.
        """

    def terminate(self, replica: ReplicaId, attempt: int) -> None:
        """Ask a replica to end; its agent kills the command after the job's grace."""

    def kill(self, replica: ReplicaId, attempt: int) -> None:
        """End every process of a replica now."""

    def poll(self, timeout_seconds: float) -> list[events.Event]:
        """Wait for at most so long, and return the exits seen."""

    def adopt(self, attempts: Mapping[ReplicaId, int]) -> events.SupervisorReplaced:
        """Take over the replicas of an earlier supervisor; ``attempts`` are those that should live."""

    def release(self) -> None:
        """Leave nothing of the job behind but its folder.

        Raises:
            EngineError: something could not be removed; to be tried again.
        """
