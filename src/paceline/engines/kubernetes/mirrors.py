"""Local copies of objects in a cluster: listed once, then kept up to date by a watch.

A watch may end at any time, and the API server may have forgotten the changes since then (``410 Gone``). The
mirror then lists all objects again and compares them with its copy, so it also notices deleted objects.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from paceline.engines.kubernetes.clusters import WATCH_SECONDS, Cluster, ClusterError, Object
from paceline.engines.kubernetes.kinds import ResourceKind

#: After this time without any message the connection is dead: the server would have ended the watch before.
SILENCE_SECONDS = WATCH_SECONDS + 30.0
RETRY_SECONDS, MAX_RETRY_SECONDS = 0.2, 15.0

log = logging.getLogger(__name__)

Key = tuple[str, str]


def key_of(each: Object) -> Key:
    """Return the namespace (empty if it has none) and the name of an object."""
    metadata = each["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _whole(each: Object) -> Object:
    return each


class Mirror:
    """The objects of one kind, as they were a moment ago.

    Args:
        cluster: the cluster that has the objects.
        kind: the kind of the objects.
        namespace: only objects of this namespace; None means all namespaces.
        selector: only objects with this label.
        on_change: called with each object that is new, changed or deleted.
        trimmed: returns an object without the parts that are not needed, to save memory.
    """

    def __init__(
        self,
        cluster: Cluster,
        kind: ResourceKind,
        *,
        on_change: Callable[[Object], None],
        namespace: str | None = None,
        selector: str = "",
        trimmed: Callable[[Object], Object] = _whole,
    ) -> None:
        self._cluster = cluster
        self._kind = kind
        self._where: dict[str, Any] = {"namespace": namespace, "selector": selector}
        self._on_change = on_change
        self._trimmed = trimmed
        self._objects: dict[Key, Object] = {}
        self._wait_seconds = RETRY_SECONDS
        #: Set once all objects have been listed.
        self.is_filled = asyncio.Event()

    def get(self, key: Key) -> Object | None:
        """Return the object with this key; None if there is none."""
        return self._objects.get(key)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects.values())

    async def run(self) -> None:
        """Follow the objects until cancelled."""
        while True:
            try:
                await self._follow(await self._list())
                self._wait_seconds = RETRY_SECONDS
            except ClusterError as error:
                log.warning("%s are listed again: %s", self._kind.plural, error.message)
            except TimeoutError:
                log.warning("%s are listed again: the watch fell silent", self._kind.plural)
            await asyncio.sleep(self._wait_seconds)
            self._wait_seconds = min(2 * self._wait_seconds, MAX_RETRY_SECONDS)

    async def _list(self) -> str:
        listing = await self._cluster.list(self._kind, **self._where)
        found = {key_of(each): self._trimmed(each) for each in listing.objects}
        gone = [each for key, each in self._objects.items() if key not in found]
        changed = [each for key, each in found.items() if _version(self._objects.get(key)) != _version(each)]
        self._objects = found
        for each in (*gone, *changed):
            self._on_change(each)
        self.is_filled.set()
        return listing.version

    async def _follow(self, version: str) -> None:
        """Apply changes to the copy until the watch ends."""
        happenings = aiter(self._cluster.watch(self._kind, version, **self._where))
        while True:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    what, found = await anext(happenings)
            except StopAsyncIteration:
                return
            # The watch works, so the next listing need not wait long.
            self._wait_seconds = RETRY_SECONDS
            if what == "DELETED":
                self._objects.pop(key_of(found), None)
            else:
                self._objects[key_of(found)] = self._trimmed(found)
            self._on_change(found)


class Mirrors:
    """The objects of one kind in several namespaces, with a mirror for each namespace.

    Args:
        of: the mirror of each namespace; the key None stands for all namespaces together.
    """

    def __init__(self, of: Mapping[str | None, Mirror]) -> None:
        self._of = of

    def __getitem__(self, namespace: str | None) -> Mirror:
        return self._of[namespace]

    def get(self, key: Key) -> Object | None:
        """Return the object with this key; None if there is none."""
        mirror = self._of.get(key[0], self._of.get(None))
        return None if mirror is None else mirror.get(key)

    def __iter__(self) -> Iterator[Object]:
        return itertools.chain.from_iterable(self._of.values())


def _version(each: Object | None) -> str | None:
    return None if each is None else each["metadata"].get("resourceVersion")
