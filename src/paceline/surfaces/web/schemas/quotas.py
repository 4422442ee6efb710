"""What bounds a team on a cluster, as the API has it."""

from __future__ import annotations

from typing import Literal

from paceline.model.jobs.quotas import QuotaUnit
from paceline.surfaces.web.schemas.bases import Document, Schema


class Use(Schema):
    """How much of a resource is taken.

    Attributes:
        resource: as Kubernetes calls it, such as ``requests.cpu``.
        used: null: the cluster has not said it yet.
        hard: what may be taken at most; null: it is bounded elsewhere, or not at all.
        share: of what may be taken; null: that is not known.
    """

    resource: str
    unit: QuotaUnit
    used: float | None
    hard: float | None
    share: float | None


class QuotaUse(Schema):
    """A ResourceQuota, or a queue of Kueue (LocalQueue), and what is taken of it.

    Attributes:
        pending, admitted: workloads of a queue; null: it is a quota, or the cluster has not said it yet.
    """

    kind: str
    name: str
    uses: list[Use]
    pending: int | None
    admitted: int | None


class QuotaList(Document):
    """All that bounds a namespace.

    Attributes:
        unknown: what could not be looked at, and why.
    """

    kind: Literal["QuotaList"] = "QuotaList"
    items: list[QuotaUse]
    unknown: list[str]
