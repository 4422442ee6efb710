"""The interface of an engine: what a supervisor needs from the place where a job runs."""

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
    """Where an attempt of a replica was launched."""

    host: str
    address: str
    pid: int | None
    cores: tuple[int, ...] = ()


class Engine(Protocol):
    """Executes the commands of the state machine for one job; every method may be called repeatedly."""

    def prepare(self) -> Sequence[str]:
        """Set up what all replicas share, and return what cannot be limited or measured here.

        Raises:
            EngineError: the job cannot run here.
        """

    def adapt(
        self, spec: JobSpec, allowances: Sequence[Allowance], links: Mapping[str, int]
    ) -> Sequence[str]:
        """Adopt a changed job spec, and set the limits of the running replicas.

        Removed workers are not ended here: the supervisor terminates them one by one.

        Args:
            spec: the job from now on.
            allowances: the allowances of the running replicas.
            links: bits per second of each emulated host whose link is adjusted; other links follow the spec.

        Returns:
            What could not be done, one sentence each.
        """

    def launch(self, attempt: int, allowance: Allowance) -> Launched:
        """Start one attempt of a replica within its allowance.

        Raises:
            EngineError: the attempt cannot be started.
        """

    def terminate(self, replica: ReplicaId, attempt: int) -> None:
        """Ask a replica to end; its agent kills the command after the job's grace period."""

    def kill(self, replica: ReplicaId, attempt: int) -> None:
        """End every process of a replica now."""

    def poll(self, timeout_seconds: float) -> list[events.Event]:
        """Wait for at most ``timeout_seconds``, and return the exits seen."""

    def adopt(self, attempts: Mapping[ReplicaId, int]) -> events.SupervisorReplaced:
        """Take over an earlier supervisor's replicas; ``attempts`` are those that should be running."""

    def release(self) -> None:
        """Remove everything of the job except its folder.

        Raises:
            EngineError: something could not be removed; the caller tries again.
        """
