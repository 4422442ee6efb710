"""An interface to the part of the Kubernetes API that Paceline needs.

`clients` implements it for real clusters; tests implement it in memory. Objects are plain mappings in the
API's format, so code that uses them works with both.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from paceline.engines.kubernetes.kinds import ResourceKind
from paceline.errors import EngineError

#: The server ends a watch after this time.
WATCH_SECONDS = 300
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
#: Size limits of a short answer, and of a list of names.
WORDS_BYTES, NAMES_BYTES = 1 << 16, 1 << 22

Object = Mapping[str, Any]


class ClusterError(EngineError):
    """The API refused something, or could not be reached.

    Attributes:
        code: the HTTP status; None if the API was not reached.
        reason: the API's reason code, such as ``AlreadyExists``.
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
        """Whether the user lacks the permission."""
        return self.code == 403

    @property
    def is_taken(self) -> bool:
        """Whether an object of that name already exists."""
        return self.reason == "AlreadyExists"

    @property
    def is_conflict(self) -> bool:
        """Whether another client changed the object meanwhile."""
        return self.code == 409 and not self.is_taken

    @property
    def is_refusal(self) -> bool:
        """Whether the object is invalid, so that trying again is useless."""
        return self.code in (400, 413, 422)


@contextlib.contextmanager
def missing_is_fine() -> Iterator[None]:
    """Go on after the block if the cluster says that there is no such object, or no such kind."""
    try:
        yield
    except ClusterError as error:
        if not error.is_missing:
            raise


class Listing(NamedTuple):
    """Objects, and the resource version of the listing, from which a watch can continue."""

    objects: list[Object]
    version: str


class OutputLine(NamedTuple):
    """A line of a container's output, with its time in the API's format, which sorts as text.

    Messages of the kubelet itself have no time (for example that it cannot read an output). The last line may
    be incomplete: when it is read again, it has the same time and more text.
    """

    at: str
    text: str
    has_ended: bool = True

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts that a terminal shows one after the other in this line, as for a progress bar."""
        return tuple(self.text.rstrip("\r").split("\r"))


class Cluster(Protocol):
    """The operations on a cluster; every method may raise `ClusterError`."""

    async def list(self, kind: ResourceKind, *, namespace: str | None = None, selector: str = "") -> Listing:
        """Return all objects of a kind, of one namespace or of all."""

    def watch(
        self, kind: ResourceKind, version: str, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yield the type and object of each change after a version; the watch may end at any time.

        Types are ``ADDED``, ``MODIFIED`` and ``DELETED``.
        """

    async def get(self, kind: ResourceKind, name: str, namespace: str | None = None) -> Object:
        """Return one object."""

    async def create(self, kind: ResourceKind, made: Object, *, dry_run: bool = False) -> Object:
        """Create an object and return it as stored; with ``dry_run``, return it as it would be stored."""

    async def replace(self, kind: ResourceKind, made: Object) -> Object:
        """Replace the object of the same name; if ``made`` names a version, only in that version."""

    async def patch(
        self, kind: ResourceKind, name: str, namespace: str | None, changes: Object, *, status: bool = False
    ) -> Object:
        """Merge changes into an object or its status (RFC 7386).

        If the changes name a version, they apply only to that version.
        """

    async def resize(self, pod: str, namespace: str, container: str, resources: Object) -> Object:
        """Change the requests and limits of a container in a running pod; unnamed resources stay the same."""

    async def delete(
        self, kind: ResourceKind, name: str, namespace: str | None = None, *, grace_seconds: int | None = None
    ) -> None:
        """Request the deletion of an object; a pod gets ``grace_seconds``, or its own grace period."""

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
        """Return the output of a container so far.

        The kubelet starts a new log file from time to time and reads only the newest.

        Args:
            pod: the pod.
            namespace: the namespace of the pod.
            container: the container in the pod.
            tail: at most this many lines, from the end.
            since_seconds: only lines of this many last seconds.
            last_bytes: only the last lines, with at most this many bytes in total, including their times.
        """

    async def read(self, path: str, *, limit_bytes: int, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return what the API server answers to a GET of a path.

        Args:
            path: the path; it may lead to a port of a pod.
            limit_bytes: a longer answer is refused as soon as it exceeds this size.
            headers: additional headers; the API server itself consumes ``Authorization``.
        """

    def stream(
        self, path: str, *, limit_bytes: int, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncGenerator[bytes]:
        """Yield what `read` returns, in pieces of at most about 64 KiB."""

    async def post(self, path: str, *, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return the API server's short answer to a POST without a body."""
