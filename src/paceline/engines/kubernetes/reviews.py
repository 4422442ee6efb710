"""Asks the API server who owns a token, and what a user may do.

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
    """A user known to the API server, with all attributes that authorization depends on.

    Attributes:
        uid: distinguishes the user from a later user of the same name; empty if there is none.
        extra: further attributes from the authenticator, such as the scopes of the token.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


async def subject(cluster: Cluster, token: str) -> Subject | None:
    """Return the owner of a token; None if it belongs to no user or is not for this API server.

    Raises:
        ClusterError: the API server refuses or does not answer.
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
    """Return whether a user may perform an action.

    Args:
        cluster: the cluster whose API server decides.
        who: the user.
        attributes: the action, as ``resourceAttributes`` of the review.

    Raises:
        ClusterError: the API server refuses or does not answer.
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
