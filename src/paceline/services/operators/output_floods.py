"""Says whether a replica floods its output, from looks at it now and then.

Where output goes into a file the agent beside it knows the size (`agent.oddities`). In a container it is a
pipe of the runtime's, and nothing counts what goes through a pipe: descriptors of pipes have no position,
and ``wchar`` in ``/proc/PID/io`` counts all that a process writes, so also batches for another process and
files in memory. The agent could pass the output on; then the last lines would be lost when it is killed,
and a training would wait for it. But the operator reads the output in any case. So what it has read is
judged, which costs nothing more and is in nothing's way.

A look does not see all that was written: lines are read up to a limit, and of the kubelet's newest file
alone. But lines have the times of the runtime, so each look says how fast they came until then. A look may
meet a burst. So each of some looks in a row has to see a flood, and the slowest counts.
"""

from __future__ import annotations

from paceline.services.log_files import OutputPiece

#: What a flood is: as where output goes into files (`agent.oddities`).
FLOOD_BYTES = 50 << 20
FLOOD_BYTES_PER_SECOND = 256 << 10
#: A look meets a burst by chance; as many in a row do not.
LEAST_LOOKS = 4
_SHORTEST_SECONDS = 1e-3


class FloodWatch:
    """Judges the looks at one output, one after the other."""

    def __init__(self) -> None:
        self._looks = 0
        self._began = 0.0
        self._slowest = 0.0

    def look(self, piece: OutputPiece, now: float) -> str | None:
        """Return what was seen, if that is a flood.

        Args:
            piece: what was new.
            now: when it was asked for, in Unix seconds.
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
