"""The offset between the clocks of two processes, from the messages between them.

No message arrives before it was made. If the trainer made a tensor at `t` (its clock) and the server had it
at `s` (its own clock), the server's clock is ahead by at most `s - t`. A tensor in the other direction says
at least how much. The truth lies between; the Network Time Protocol (RFC 5905) takes the middle. Where the
two bounds allow it we take 0: processes of one machine share its clock, and hosts whose clocks agree within
the time of a message agree well enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from paceline.tracing import dataflows


@dataclass(frozen=True)
class Offset:
    """How far the clock of a process is ahead, in microseconds, plus or minus `uncertainty`."""

    microseconds: float
    uncertainty: float


def between(flows: Iterable[dataflows.Dataflow], trainer: str, server: str) -> Offset | None:
    """Return how far a server's clock is ahead of the trainer's; None unless messages went both ways."""
    most, least = [], []
    for flow in flows:
        for message in flow.messages:
            made = flow.producer(message)
            if made is None or message.end is None:
                continue
            if (message.sender, message.receiver) == (trainer, server):
                most.append(message.end - made.end)
            elif (message.sender, message.receiver) == (server, trainer):
                least.append(made.end - message.end)
    if not most or not least:
        return None
    return estimate(max(least), min(most))


def estimate(least: float, most: float) -> Offset:
    """Return the offset between two bounds.

    The bounds may cross a little, as clocks are read to the microsecond.
    """
    if least <= 0 <= most:
        return Offset(0.0, max(-least, most))
    return Offset((least + most) / 2, abs(most - least) / 2)
