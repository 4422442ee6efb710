"""Workers whose sessions see every other worker."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.scripts.device_filters import no_device_filters
from paceline.model.findings import Severity

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER, "worker-1": cases.TRAINER}
NONE, SOME = {"device_filters": False}, {"device_filters": True}


def test_workers_without_device_filters_are_told_of() -> None:
    recording = cases.asking(cases.recording(LOADS), {"worker-0": NONE, "worker-1": NONE, "ps-0": NONE})
    (cause,) = found(no_device_filters, recording)
    assert (cause.severity, cause.subjects, cause.gain) == (Severity.INFO, ("worker-0", "worker-1"), None)
    assert cause.evidence[0].text == "seen in the script of worker-0, worker-1: device_filters: no"


@pytest.mark.parametrize(
    "facts",
    [{}, {"worker-0": SOME, "worker-1": SOME}, {"worker-0": NONE, "worker-1": SOME}],
    ids=["not seen", "filters", "one graph for all"],
)
def test_who_has_them_or_is_alone_is_not(facts: dict[str, dict[str, bool]]) -> None:
    assert found(no_device_filters, cases.asking(cases.recording(LOADS), facts)) == ()
