"""Detects whether a replica floods its output, from occasional looks at it.

Where output goes into a file, the agent beside it knows its size (`agent.oddities`). In a container, output
goes into a pipe of the runtime, and nothing counts what passes a pipe: descriptors of pipes have no position,
and ``wchar`` in ``/proc/PID/io`` counts everything that a process writes, including batches for another
process and files in memory. The agent could relay the output, but then the last lines would be lost when it
is killed, and training would wait for the agent. The operator reads the output anyway, so this module judges
what the operator has read: this costs nothing more and does not get in the way.

A look does not see everything that was written: lines are read up to a limit, and only from the kubelet's
newest file. But lines carry the runtime's times, so each look shows how fast they came. A single look may
meet a burst, so several looks in a row must see a flood, and the slowest counts.
"""

from __future__ import annotations

from paceline.services.log_files import OutputPiece

#: The definition of a flood, the same as for output in files (`agent.oddities`).
FLOOD_BYTES = 50 << 20
FLOOD_BYTES_PER_SECOND = 256 << 10
#: One look may meet a burst by chance; this many in a row do not.
LEAST_LOOKS = 4
_SHORTEST_SECONDS = 1e-3


class FloodWatch:
    """Judges consecutive looks at one output."""

    def __init__(self) -> None:
        self._looks = 0
        self._began = 0.0
        self._slowest = 0.0

    def look(self, piece: OutputPiece, now: float) -> str | None:
        """Return a description of the flood if there is one.

        Args:
            piece: the new output.
            now: when it was requested (Unix seconds).
        """
        until = max(now, piece.until)  # The node's clock may be ahead.
        speed = piece.size_bytes / max(until - piece.since, _SHORTEST_SECONDS)
        if speed < FLOOD_BYTES_PER_SECOND:
            self._looks = 0
            return None
        if self._looks == 0:
            self._began, self._slowest = piece.since, speed
        self._looks += 1
        self._slowest = min(self._slowest, speed)
        seconds = until - self._began
        if self._looks < LEAST_LOOKS or self._slowest * seconds < FLOOD_BYTES:
            return None
        return (
            f"{self._slowest / 2**20:.1f} MiB of output a second, or more, at each of {self._looks} looks "
            f"within {seconds:.0f} s"
        )
