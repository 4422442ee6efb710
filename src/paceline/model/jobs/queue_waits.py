"""The wait of a job in a queue of Kueue or Volcano, which decides when the job begins."""

from __future__ import annotations

import dataclasses

from paceline.model.instants import UnixSeconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class QueueWait:
    """A job that its queue has not let in, or not let in again.

    Attributes:
        system: the system that the queue belongs to, as users know it.
        queue: the name of the queue.
        reason: why the job waits, in the words of the system; empty: it has not said.
        at: when the system said so.
        ahead: the jobs of the namespace that wait in this queue before it, in order.
        waiting: how many jobs of the namespace wait in this queue, itself included.
        holders: the jobs of the namespace that this queue has let in.
        was_evicted: whether the queue had let the job in before, and took its pods away again.
    """

    system: str
    queue: str
    reason: str = ""
    at: UnixSeconds | None = None
    ahead: tuple[str, ...] = ()
    waiting: int = 1
    holders: tuple[str, ...] = ()
    was_evicted: bool = False
