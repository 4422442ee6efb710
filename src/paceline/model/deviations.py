"""How far a mean may be from what it stands for, in standard deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Of a normal distribution 90 % and 95 % lie within so many deviations.
NORMAL_90 = 1.645
NORMAL_95 = 1.960
#: Student's t for 1, 2, ... degrees of freedom, by the share that lies within so many deviations.
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
    """Return within how many standard deviations, known from so many degrees of freedom, a share lies.

    That of no degree is that of one, and that of more than the table has is that of its last: too wide by
    6 % at most.

    Args:
        share: 0.90 or 0.95.
        degrees: at least 0.
    """
    table = _STUDENTS_T[share]
    return table[min(max(degrees, 1), len(table)) - 1]
