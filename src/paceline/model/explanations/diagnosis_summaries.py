"""The result of a job's last diagnosis, in the few numbers that a list of jobs shows."""

from __future__ import annotations

import dataclasses

from paceline.model.explanations.findings import Severity
from paceline.model.instants import UnixSeconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisSummary:
    """A job in one line of a list; values that were not measured are None.

    Attributes:
        at: when it was diagnosed.
        examples_per_second: examples of all trainers together.
        trend: the same for equal parts of the diagnosed time, the oldest first.
        progress: the share of the steps that is done, between 0 and 1.
        eta_seconds: how long the rest takes at the present rate.
        imbalance: the CPU use of the busiest PS over their mean.
        used_cores: the mean number of cores that all replicas use together.
        auc, log_loss: the results of the last evaluation.
        code: the code of the primary cause; None: no cause was found.
        severity: the severity of the primary cause.
        finding: the primary cause in one line.
        codes: the codes of all causes that are not over and of their effects, for searching.
    """

    at: UnixSeconds
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
