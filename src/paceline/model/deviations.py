"""Quantiles: within how many standard deviations a value lies with a given probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: 90 % and 95 % of a normal distribution lie within this many standard deviations.
NORMAL_90 = 1.645
NORMAL_95 = 1.960
#: Student's t for 1, 2, ... degrees of freedom, by the share that lies within that many standard deviations.
_STUDENTS_T: Mapping[float, Sequence[float]] = {
    0.90: (
        6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761,
        1.753, 1.746, 1.740, 1.734, 1.729, 1.725,
    ),
    0.95: (
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    ),
}  # fmt: skip


def students_t(share: float, degrees: int) -> float:
    """Return within how many standard deviations a share lies, if these have a number of degrees of freedom.

    For 0 degrees the value of 1 is returned, and for more degrees than the table has its last value, which is
    too wide by 6 % at most.

    Args:
        share: 0.90 or 0.95.
        degrees: the degrees of freedom, at least 0.
    """
    table = _STUDENTS_T[share]
    return table[min(max(degrees, 1), len(table)) - 1]
