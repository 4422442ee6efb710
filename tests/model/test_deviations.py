from __future__ import annotations

import pytest

from paceline.model import deviations


@pytest.mark.parametrize("share", [0.90, 0.95])
def test_the_table_is_that_of_students_distribution(share: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    for degrees in range(1, 21):
        exact = stats.t.ppf((1 + share) / 2, degrees)
        assert deviations.students_t(share, degrees) == pytest.approx(exact, abs=6e-4)
    assert deviations.students_t(share, 0) == deviations.students_t(share, 1)
    for degrees in (21, 100, 10**6):
        exact = stats.t.ppf((1 + share) / 2, degrees)
        assert exact <= deviations.students_t(share, degrees) <= 1.065 * exact
    assert stats.norm.ppf(0.95) == pytest.approx(deviations.NORMAL_90, abs=6e-4)
