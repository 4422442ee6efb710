"""What a team may take of a cluster, and what it has taken: a namespace's quotas and queues."""

from __future__ import annotations

import dataclasses
import enum


class QuotaUnit(enum.StrEnum):
    """What amounts are counted in."""

    CORES = "cores"
    BYTES = "bytes"
    COUNT = "count"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """How much of a resource is taken.

    Attributes:
        resource: as Kubernetes calls it, such as ``requests.cpu``.
        used: None: not reported yet.
        hard: what may be taken at most; None: it is bounded elsewhere, or not at all.
    """

    resource: str
    unit: QuotaUnit
    used: float | None
    hard: float | None

    @property
    def share(self) -> float | None:
        """Return which part of what may be taken is taken; None: that is not known."""
        return self.used / self.hard if self.used is not None and self.hard else None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """A ResourceQuota, or a queue of Kueue (LocalQueue), and what is taken of it.

    Attributes:
        kind: which of the two.
        uses: resource by resource, by their names.
        pending, admitted: workloads of a queue; None: it is a quota, or they are not reported yet.
    """

    kind: str
    name: str
    uses: tuple[Use, ...]
    pending: int | None = None
    admitted: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUses:
    """All that bounds a namespace.

    Attributes:
        items: quotas, then queues, by their names.
        unknown: what could not be looked at, and why.
    """

    items: tuple[QuotaUse, ...] = ()
    unknown: tuple[str, ...] = ()
