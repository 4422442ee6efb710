"""Who calls a server on a cluster, and what the caller may do: the API server decides both.

There are no users here and no table of rights: a user who may delete a TrainingJob with kubectl may delete it
here. Answers are cached for some seconds, so a revoked right or token stays valid a little longer.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from paceline.engines.kubernetes import reviews
from paceline.engines.kubernetes.clusters import Cluster
from paceline.engines.kubernetes.loops import Loop
from paceline.engines.kubernetes.reviews import Subject
from paceline.surfaces.web.gates import Caller, Credentials, Gate
from paceline.surfaces.web.memories import Memory
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.origins import Proxies

#: How long an answer of the API server is used.
REMEMBERED_SECONDS = 10.0
#: The longest token: those of Kubernetes have about 1000 characters, those with many groups 10 000.
MOST_CHARACTERS = 16_384
#: The header in which a proxy proves its identity, and the least length of its secret.
SECRET_HEADER = "x-paceline-proxy-secret"
LEAST_SECRET_CHARACTERS = 24
#: The group that the API server gives every authenticated user.
AUTHENTICATED = "system:authenticated"


class ReviewingGate(Gate):
    """Asks the API server what callers may do (SubjectAccessReview).

    Args:
        cluster: the API server, called in the server's own name.
        loop: the event loop that the cluster's client runs in.
        clock: a monotonic clock in seconds.
    """

    def __init__(self, cluster: Cluster, loop: Loop, clock: Callable[[], float]) -> None:
        self._cluster, self._loop = cluster, loop
        self._rights: Memory[tuple[Caller, ApiOperation, str | None], bool] = Memory(
            clock, REMEMBERED_SECONDS
        )

    def allows(self, caller: Caller, operation: ApiOperation, namespace: str | None) -> bool:
        """Whether a caller may do an operation in a namespace, or anywhere if it concerns no namespace.

        Raises:
            ClusterError: the API server does not answer.
        """
        right = operation.right
        if right is None:
            return True
        if right.is_namespaced and namespace is None:
            return False
        attributes = {
            "verb": right.verb,
            "group": right.group,
            "resource": right.resource,
            "subresource": right.subresource,
            "namespace": (namespace or "") if right.is_namespaced else "",
        }
        who = Subject(caller.name, caller.groups, caller.uid, caller.extra)
        return self._rights.get(
            (caller, operation, attributes["namespace"]),
            lambda: self._loop.run(reviews.allows(self._cluster, who, attributes)),
        )


class KubernetesGate(ReviewingGate):
    """Admits callers whose token the API server knows (TokenReview); arguments as for `ReviewingGate`."""

    def __init__(self, cluster: Cluster, loop: Loop, clock: Callable[[], float]) -> None:
        super().__init__(cluster, loop, clock)
        # The keys are hashes: a later reader of this process's memory finds no token here.
        # Wrong tokens are cached separately, so that many of them do not evict right ones.
        self._callers: Memory[bytes, Caller] = Memory(clock, REMEMBERED_SECONDS)
        self._wrong: Memory[bytes, bool] = Memory(clock, REMEMBERED_SECONDS)
        self._clock = clock

    def caller(self, credentials: Credentials) -> Caller | None:
        """Return the caller whose token it is.

        Raises:
            ClusterError: the API server does not answer.
        """
        token = credentials.token
        if not token or len(token) > MOST_CHARACTERS or not token.isascii() or not token.isprintable():
            return None
        key = hashlib.sha256(token.encode()).digest()
        known = self._callers.find(key)
        if known is not None or self._wrong.find(key):
            return known
        asked_at = self._clock()
        found = self._loop.run(reviews.subject(self._cluster, token))
        if found is None:
            self._wrong.keep(key, True, asked_at)
            return None
        caller = Caller(found.name, found.groups, found.uid, found.extra)
        self._callers.keep(key, caller, asked_at)
        return caller


class ProxyGate(ReviewingGate):
    """Believes a proxy that has authenticated the caller and names the caller in headers.

    Args:
        cluster: as for `ReviewingGate`.
        loop: as for `ReviewingGate`.
        clock: as for `ReviewingGate`.
        proxies: the proxies to believe; requests from other addresses have no caller.
        user: the header with the user's name.
        groups: the header with the names of the user's groups, separated by commas.
        secret: what the proxy sends in the header `SECRET_HEADER`: a cluster reuses the addresses of pods,
            so a request from the proxy's address may come from another pod.
    """

    believes_headers = True

    def __init__(
        self,
        cluster: Cluster,
        loop: Loop,
        clock: Callable[[], float],
        *,
        proxies: Proxies,
        user: str,
        groups: str,
        secret: str,
    ) -> None:
        super().__init__(cluster, loop, clock)
        self._proxies, self._user, self._groups = proxies, user.lower(), groups.lower()
        self._secret = secret.encode()

    def caller(self, credentials: Credentials) -> Caller | None:
        """Return the caller that the proxy names.

        Names that begin with ``system:`` are reserved by Kubernetes, for example for its administrators: an
        identity provider may not assign them.
        """
        if not self._proxies.include(credentials.peer):
            return None
        said = credentials.headers.get(SECRET_HEADER, "").encode()
        if not hmac.compare_digest(said, self._secret):
            return None
        name = credentials.headers.get(self._user, "").strip()
        if not name or not name.isprintable() or _is_reserved(name):
            return None
        named = (each.strip() for each in credentials.headers.get(self._groups, "").split(","))
        groups = tuple(each for each in named if each and each.isprintable() and not _is_reserved(each))
        return Caller(name, (*groups, AUTHENTICATED))


def _is_reserved(name: str) -> bool:
    return name.startswith("system:")
