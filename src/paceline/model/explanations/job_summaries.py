"""How a job did when it was last diagnosed, in the few numbers that a list of jobs shows of each."""

from __future__ import annotations

import dataclasses

from paceline.model.explanations.findings import Severity


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """A job in a line; what was not measured is None.

    Attributes:
        at: when it was looked at (Unix seconds).
        examples_per_second: all trainers together.
        trend: the same over equal stretches of the time that was looked at, the oldest first.
        progress: the part of the steps that is done, between 0 and 1.
        eta_seconds: how long the rest takes at the present rate.
        imbalance: the CPU of the busiest PS over their mean.
        used_cores: by all replicas together, on average.
        auc: of the last evaluation; so is ``log_loss``.
        code: of the primary cause; None: none was found.
        severity: of it.
        finding: what it says, in a line.
        codes: of all causes that are not over, and of what follows from them, to search by.
    """

    at: float
    examples_per_second: float | None = None
    trend: tuple[float | None, ...] = ()
    progress: float | None = None
    eta_seconds: float | None = None
    imbalance: float | None = None
    used_cores: float | None = None
    auc: float | None = None
    log_loss: float | None = None
    code: str | None = None
    severity: Severity | None = None
    finding: str | None = None
    codes: tuple[str, ...] = ()
