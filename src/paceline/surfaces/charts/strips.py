"""Small charts in the rows of a table."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

STRIP_WIDTH = 180.0
_EDGE = 6.0


@dataclasses.dataclass(frozen=True, slots=True)
class Strip:
    """The common scale of small charts in several rows of a table.

    Attributes:
        low, high: the ends of the scale.
        is_logarithmic: whether the scale is logarithmic, for ratios.
    """

    low: float
    high: float
    is_logarithmic: bool = False

    @classmethod
    def of(cls, values: Sequence[float], *, is_logarithmic: bool = False) -> Strip:
        """Return the scale that contains some values; it also contains 1 for ratios, and 0 for amounts."""
        if is_logarithmic:
            known = [each for each in values if 0 < each < math.inf]
            return cls(min((1 / 1.2, *known)), max((1.2, *known)), is_logarithmic=True)
        return cls(0.0, max((1e-9, *values)))

    def x(self, value: float) -> float:
        """Return the horizontal position of a value."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.is_logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        return round(_EDGE + (STRIP_WIDTH - 2 * _EDGE) * (at - low) / (high - low), 1)


def spark(trend: Sequence[float | None], width: float = 80.0, height: float = 20.0) -> list[str]:
    """Return a sparkline: the points of each measured stretch, in SVG's format."""
    values = [each for each in trend if each is not None]
    if len(values) < 2:
        return []
    top = max(values) or 1.0
    lines: list[list[str]] = [[]]
    for place, value in enumerate(trend):
        if value is None:
            lines.append([])
        else:
            x, y = place * width / (len(trend) - 1), height - 1 - value / top * (height - 2)
            lines[-1].append(f"{x:.1f},{y:.1f}")
    return [" ".join(line) for line in lines if len(line) > 1]
