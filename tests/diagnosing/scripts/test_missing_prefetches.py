"""Pipelines without prefetch, of which a trace says that they are waited for."""

from __future__ import annotations

import dataclasses

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.scripts.missing_prefetches import no_prefetch
from paceline.model.measures.recordings import Recording

LOADS = {"ps-0": cases.SERVER, "worker-0": cases.TRAINER}


def traced(share: float | None, *, prefetches: bool | None = False) -> Recording:
    """A job whose traced step waited for its input for a share of its time."""
    trace = cases.trace({("ps-0", "table"): 1000})
    (split,) = trace.splits
    waited = None if share is None else split.total_microseconds * share / (1 - share)
    split = dataclasses.replace(split, input_wait_microseconds=waited)
    recording = cases.recording(LOADS, traces=(dataclasses.replace(trace, splits=(split,)),))
    return (
        recording if prefetches is None else cases.asking(recording, {"worker-0": {"prefetches": prefetches}})
    )


def test_a_step_that_waits_for_a_batch_that_is_made_only_then_is_told_of() -> None:
    (cause,) = found(no_prefetch, traced(0.4))
    assert cause.what == "worker-0 waits up to 40% of a step for a batch that is made only then."
    assert cause.evidence[0].text == "seen in the script of worker-0: prefetches: no"
    assert cause.gain is None


@pytest.mark.parametrize(
    "recording",
    [traced(0.02), traced(0.4, prefetches=True), traced(0.4, prefetches=None), traced(None)],
    ids=["not waited for", "it prefetches", "not seen", "not measured"],
)
def test_nothing_else_is(recording: Recording) -> None:
    assert found(no_prefetch, recording) == ()
