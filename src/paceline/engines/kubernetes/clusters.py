"""The Kubernetes API as far as Paceline needs it: a port, filled by `clients` and, in tests, from memory.

Objects are plain mappings, as the API has them. So what reads and writes them is the same for a real cluster
and for one in memory.
"""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from paceline.engines.kubernetes.kinds import ResourceKind
from paceline.errors import EngineError

#: After so long without a word the server ends a watch.
WATCH_SECONDS = 300
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
#: The answer to a question that takes a few words, or a list of names.
WORDS_BYTES, NAMES_BYTES = 1 << 16, 1 << 22

Object = Mapping[str, Any]


class ClusterError(EngineError):
    """The API refused something, or could not be reached.

    Attributes:
        code: the HTTP status; None: it was not reached.
        reason: the API's word for it, such as ``AlreadyExists``.
    """

    def __init__(
        self, message: str, *, code: int | None = None, reason: str = "", hint: str | None = None
    ) -> None:
        super().__init__(message, hint)
        self.code = code
        self.reason = reason

    @property
    def is_missing(self) -> bool:
        """Whether there is no such object."""
        return self.code == 404

    @property
    def is_forbidden(self) -> bool:
        """Whether the right to do it is lacking."""
        return self.code == 403

    @property
    def is_taken(self) -> bool:
        """Whether there is an object of that name already."""
        return self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """Whether another client changed the object meanwhile."""
        return self.code == 409 and not self.is_taken

    @property
    def is_refusal(self) -> bool:
        """Whether the object is wrong, so that trying again is no use."""
        return self.code in (400, 413, 422)


class Listing(NamedTuple):
    """Objects, and the version of the cluster at which they were so: a watch goes on from there."""

    objects: list[Object]
    version: str


class OutputLine(NamedTuple):
    """A line of a container's output, and when it was written as the API writes times: they sort as text.

    What the kubelet says itself, as that it cannot read an output, has no time. The last line may go on: then
    it has the same time and more text when it is read again.
    """

    at: str
    text: str
    has_ended: bool = True

    @property
    def texts(self) -> tuple[str, ...]:
        """Return what a terminal shows one after the other in this line, such as a bar of progress."""
        return tuple(self.text.rstrip("\r").split("\r"))


class Cluster(Protocol):
    """What is done with a cluster; every method raises `ClusterError`."""

    async def list(self, kind: ResourceKind, *, namespace: str | None = None, selector: str = "") -> Listing:
        """Return all objects of a kind, of one namespace or of all."""

    def watch(
        self, kind: ResourceKind, version: str, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yield what is ``ADDED``, ``MODIFIED`` and ``DELETED`` after a version; it may end at any time."""

    async def get(self, kind: ResourceKind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""

    async def create(self, kind: ResourceKind, made: Object, *, dry_run: bool = False) -> Object:
        """Make an object, and return it as it is then; or with ``dry_run`` as it would be."""

    async def replace(self, kind: ResourceKind, made: Object) -> Object:
        """Put an object in the place of the one of its name; of its version, if it names one."""

    async def patch(
        self, kind: ResourceKind, name: str, namespace: str | None, changes: Object, *, status: bool = False
    ) -> Object:
        """Merge changes into an object or into its status (RFC 7386); of a version, if they name one."""

    async def resize(self, pod: str, namespace: str, container: str, resources: Object) -> Object:
        """Give a container of a pod that runs other requests and limits; what these do not name stays."""

    async def delete(
        self, kind: ResourceKind, name: str, namespace: str | None = None, *, grace_seconds: int | None = None
    ) -> None:
        """Ask for an object's end; of a pod after so long, or after its own grace."""

    async def logs(
        self,
        pod: str,
        namespace: str,
        container: str,
        *,
        tail: int | None = None,
        since_seconds: int | None = None,
        last_bytes: int,
    ) -> builtins.list[OutputLine]:
        """Return what a container has written so far.

        The kubelet begins a new file now and then, and reads no other than the newest.

        Args:
            pod: the pod.
            namespace: that of the pod.
            container: which of its containers.
            tail: only so many lines of the end.
            since_seconds: only what was written in the last seconds.
            last_bytes: only the last lines that have at most so many bytes together, with their times.
        """

    async def read(self, path: str, *, limit_bytes: int, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return what the API server answers to a GET of a path.

        Args:
            path: the path, which may lead to a port of a pod.
            limit_bytes: more than that is refused, and not kept meanwhile.
            headers: what else is said; the server itself takes ``Authorization``.
        """

    def stream(
        self, path: str, *, limit_bytes: int, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncGenerator[bytes]:
        """Yield the same piece by piece, each of some 64 KiB at most."""

    async def post(self, path: str, *, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return what the API server answers to a POST of a path with nothing in it: a few words."""
