"""The quotas and queues of a namespace: what a team may use of a cluster, and what it uses."""

from __future__ import annotations

import dataclasses
import enum


class QuotaUnit(enum.StrEnum):
    """The unit of an amount."""

    CORES = "cores"
    BYTES = "bytes"
    COUNT = "count"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How much of a resource is used.

    Attributes:
        resource: Kubernetes' name of it, such as ``requests.cpu``.
        used: the amount in use; None: not reported yet.
        hard: the most that may be used; None: it is bounded elsewhere, or not at all.
    """

    resource: str
    unit: QuotaUnit
    used: float | None
    hard: float | None

    @property
    def share(self) -> float | None:
        """Return the used share of what may be used; None: not known."""
        return self.used / self.hard if self.used is not None and self.hard else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """A ResourceQuota, or a queue of Kueue (LocalQueue), and what is used of it.

    Attributes:
        kind: which of the two it is.
        uses: the use of each resource, sorted by name.
        pending, admitted: the numbers of workloads of a queue; None: it is a quota, or not reported yet.
    """

    kind: str
    name: str
    uses: tuple[Use, ...]
    pending: int | None = None
    admitted: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUses:
    """All quotas and queues of a namespace.

    Attributes:
        items: quotas, then queues, each sorted by name.
        unknown: what could not be read, and why.
    """

    items: tuple[QuotaUse, ...] = ()
    unknown: tuple[str, ...] = ()
