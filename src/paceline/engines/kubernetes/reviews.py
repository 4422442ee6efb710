"""Asks the API server whose a token is, and what a user may do.

Source: Kubernetes' API reference, TokenReview (authentication.k8s.io/v1) and SubjectAccessReview
(authorization.k8s.io/v1).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Cluster, Object
from paceline.engines.kubernetes.kinds import ResourceKind


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """Who is known to the API server, with all that it judges them by.

    Attributes:
        uid: tells a user apart from a later one of the same name; empty: there is none.
        extra: what else their authenticator has said, such as the scopes of their token.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


async def subject(cluster: Cluster, token: str) -> Subject | None:
    """Return whose token it is; None: it is no user's, or not for this API server.

    Raises:
        ClusterError: the API server does not say.
    """
    answered = await cluster.create(kinds.TOKEN_REVIEWS, _review(kinds.TOKEN_REVIEWS, {"token": token}))
    status = answered.get("status") or {}
    user = status.get("user") or {}
    if status.get("authenticated") is not True or not user.get("username"):
        return None
    return Subject(
        name=str(user["username"]),
        groups=tuple(map(str, user.get("groups") or ())),
        uid=str(user.get("uid") or ""),
        extra=tuple(
            (str(key), tuple(map(str, values or ()))) for key, values in (user.get("extra") or {}).items()
        ),
    )


async def allows(cluster: Cluster, who: Subject, attributes: Mapping[str, str]) -> bool:
    """Whether a user may do something.

    Args:
        cluster: where.
        who: the user.
        attributes: ``resourceAttributes`` of the review.

    Raises:
        ClusterError: the API server does not say.
    """
    spec: dict[str, Any] = {
        "user": who.name,
        "groups": list(who.groups),
        "uid": who.uid,
        "extra": {key: list(values) for key, values in who.extra},
        "resourceAttributes": dict(attributes),
    }
    answered = await cluster.create(kinds.SUBJECT_REVIEWS, _review(kinds.SUBJECT_REVIEWS, spec))
    status = answered.get("status") or {}
    return status.get("allowed") is True and status.get("denied") is not True


def _review(kind: ResourceKind, spec: Mapping[str, Any]) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {}, "spec": spec}
