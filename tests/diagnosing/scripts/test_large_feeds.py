"""Arrays that are fed to each step."""

from __future__ import annotations

from support import cases
from support.cases import found

from paceline.diagnosing.scripts.large_feeds import large_feeds
from paceline.model.explanations.findings import Severity

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}


def test_who_feeds_much_a_second_is_told_of() -> None:
    facts = {"worker-0": {"feeds_bytes_per_step": 8 << 20}, "worker-1": {"feeds_bytes_per_step": 8 << 10}}
    (cause,) = found(large_feeds, cases.asking(cases.recording(LOADS), facts))
    assert (cause.severity, cause.subjects, cause.gain) == (Severity.INFO, ("worker-0",), None)
    assert cause.what == "worker-0 feeds 8.0 MiB to each step."
    assert cause.evidence[0].text == "that is up to 320 MiB a second of a trainer"


def test_what_is_small_or_not_seen_is_not() -> None:
    small = {name: {"feeds_bytes_per_step": 100_000} for name in ("worker-0", "worker-1")}
    assert found(large_feeds, cases.asking(cases.recording(LOADS), small)) == ()
    assert found(large_feeds, cases.recording(LOADS)) == ()
