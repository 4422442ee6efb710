"""How many examples a property is tried on: a fifth of its own number, all of them in ``make nightly``."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

CI, NIGHTLY = "ci", "nightly"
_WHOLE = 100
_SHARE = 5
#: A health check that depends on how fast the machine is.
_SPEED_CHECKS = (HealthCheck.too_slow,)
#: For a property whose fixture may serve all of its examples: pass it as ``suppress_health_check``.
SHARED_FIXTURES = (*_SPEED_CHECKS, HealthCheck.function_scoped_fixture)


def register() -> None:
    """Register both profiles.

    With ``ci`` a property sees the same examples on each run of the same code: a change is refused for what
    it does, not for a find of chance. Finding is for ``nightly``, whose examples differ from night to night.
    """
    settings.register_profile(
        CI,
        max_examples=_WHOLE // _SHARE,
        derandomize=True,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=_SPEED_CHECKS,
    )
    settings.register_profile(
        NIGHTLY,
        max_examples=_WHOLE,
        deadline=None,
        print_blob=True,
        suppress_health_check=_SPEED_CHECKS,
    )


def examples(whole: int, *, one_in: int = _SHARE) -> int:
    """Return how many of a property's ``whole`` examples the profile in force tries; at least one.

    Args:
        whole: all of them, for the night.
        one_in: of so many one is tried each time; more for a property whose examples take long.
    """
    return whole if settings.get_current_profile_name() == NIGHTLY else max(1, whole // one_in)
