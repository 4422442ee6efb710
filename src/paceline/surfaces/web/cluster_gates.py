"""Who asks a server on a cluster, and what they may: the API server's word for both.

There are no users here and no table of rights: who may delete a TrainingJob with kubectl may delete it here.
Answers are kept for some seconds, so a right that is taken away, or a token, counts a little longer.
"""

from __future__ import annotations

import collections
import hashlib
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from paceline.engines.kubernetes import reviews
from paceline.engines.kubernetes.clusters import Cluster
from paceline.engines.kubernetes.loops import Loop
from paceline.engines.kubernetes.reviews import Subject
from paceline.surfaces.web.gates import Caller, Credentials, Gate
from paceline.surfaces.web.operations import Operation
from paceline.surfaces.web.origins import Proxies

K = TypeVar("K")
V = TypeVar("V")

#: How long answers count, and how many are kept.
REMEMBERED_SECONDS = 10.0
MOST_REMEMBERED = 4096
#: Longer ones are no tokens: those of Kubernetes have about 1000 characters, those with many groups 10 000.
MOST_CHARACTERS = 16_384
#: Of every user that is authenticated, as the API server has it.
AUTHENTICATED = "system:authenticated"


class Memory(Generic[K, V]):
    """Answers that are a few seconds old at most.

    Args:
        clock: seconds of any clock that only goes on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: collections.OrderedDict[K, tuple[float, V]] = collections.OrderedDict()

    def get(self, key: K, ask: Callable[[], V]) -> V:
        """Return the answer of a key, asked for anew when it is too old; an error is none."""
        asked_at = self._clock()
        with self._lock:
            found = self._known.get(key)
        if found is not None and asked_at < found[0]:
            return found[1]
        answer = ask()
        with self._lock:
            self._known[key] = asked_at + REMEMBERED_SECONDS, answer
            self._known.move_to_end(key)
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return answer


class ReviewingGate(Gate):
    """Asks the API server what callers may (SubjectAccessReview).

    Args:
        cluster: the API server, asked in the server's own name.
        loop: where its client lives.
        clock: seconds of any clock that only goes on.
    """

    def __init__(self, cluster: Cluster, loop: Loop, clock: Callable[[], float]) -> None:
        self._cluster, self._loop = cluster, loop
        self._rights: Memory[tuple[Caller, Operation, str | None], bool] = Memory(clock)

    def allows(self, caller: Caller, operation: Operation, namespace: str | None) -> bool:
        """Whether they may do that in a namespace; of what concerns none, anywhere.

        Raises:
            ClusterError: the API server does not say.
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
    """Lets those in whose token the API server knows (TokenReview); arguments as for `ReviewingGate`."""

    def __init__(self, cluster: Cluster, loop: Loop, clock: Callable[[], float]) -> None:
        super().__init__(cluster, loop, clock)
        # By their hashes: whoever reads this process's memory later finds no token here.
        self._callers: Memory[bytes, Caller | None] = Memory(clock)

    def caller(self, credentials: Credentials) -> Caller | None:
        """Return whose token it is.

        Raises:
            ClusterError: the API server does not say.
        """
        token = credentials.token
        if not token or len(token) > MOST_CHARACTERS or not token.isascii() or not token.isprintable():
            return None
        key = hashlib.sha256(token.encode()).digest()
        return self._callers.get(key, lambda: self._reviewed(token))

    def _reviewed(self, token: str) -> Caller | None:
        found = self._loop.run(reviews.subject(self._cluster, token))
        return None if found is None else Caller(found.name, found.groups, found.uid, found.extra)


class ProxyGate(ReviewingGate):
    """Believes a proxy that has authenticated whoever asks, and says so in headers.

    Args:
        cluster: as for `ReviewingGate`.
        loop: as there.
        clock: as there.
        proxies: whom to believe; requests that come from elsewhere have no caller.
        user: the header with the user's name.
        groups: the header with the names of their groups, with commas between them.
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
    ) -> None:
        super().__init__(cluster, loop, clock)
        self._proxies, self._user, self._groups = proxies, user.lower(), groups.lower()

    def caller(self, credentials: Credentials) -> Caller | None:
        """Return whom the proxy names.

        Names that begin with ``system:`` are Kubernetes' own, such as those of its administrators: an
        identity provider has no say about them.
        """
        if not self._proxies.include(credentials.peer):
            return None
        name = credentials.headers.get(self._user, "").strip()
        if not name or not name.isprintable() or _is_reserved(name):
            return None
        named = (each.strip() for each in credentials.headers.get(self._groups, "").split(","))
        groups = tuple(each for each in named if each and each.isprintable() and not _is_reserved(each))
        return Caller(name, (*groups, AUTHENTICATED))


def _is_reserved(name: str) -> bool:
    return name.startswith("system:")
