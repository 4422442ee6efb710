"""What scripts that feed their batches do between their steps: each kind is told as what it is."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.inputs.python_inputs import python_input
from paceline.diagnosing.inputs.resting_scripts import resting_script
from paceline.diagnosing.inputs.slow_decoding import slow_decoding
from paceline.diagnosing.inputs.slow_storage import slow_storage
from paceline.diagnosing.rules import Rule
from paceline.model.explanations.findings import Severity
from paceline.model.measures.recordings import Recording

WORKERS = ("worker-0", "worker-1")
RULES = (slow_storage, slow_decoding, python_input, resting_script)
FED = 50_000


def fed(*, wait: float, python: float, reads: float | None, cores: float, limit: float = 1.0) -> Recording:
    """A job of two workers whose scripts feed their batches: shares of their time, bytes, cores."""
    steps = {name: {**cases.STEPS, "input_wait_seconds": wait} for name in WORKERS}
    load = {"cpu_cores": cores, "cpu_limit_cores": limit}
    loads = {"ps-0": cases.SERVER, **dict.fromkeys(WORKERS, load)}
    facts: dict[str, Any] = {"feeds_bytes_per_step": FED, "python_share": python}
    if reads is not None:
        facts["reads_bytes_per_step"] = reads
    return cases.asking(cases.recording(loads, steps=steps), dict.fromkeys(WORKERS, facts))


@pytest.mark.parametrize(
    ("recording", "named"),
    [
        # A script that sleeps between its steps: before, it was said to wait for storage.
        (fed(wait=0.6, python=0.03, reads=300, cores=0.2), resting_script),
        (fed(wait=0.6, python=0.03, reads=60_000, cores=0.2), slow_storage),
        # Where the kernel does not say what is read it stays what it was.
        (fed(wait=0.6, python=0.03, reads=None, cores=0.2), slow_storage),
        # One thread of Python on four cores: before, storage again.
        (fed(wait=0.6, python=0.55, reads=300, cores=0.9, limit=4.0), python_input),
        # And on one core: more cores were to help.
        (fed(wait=0.6, python=0.55, reads=300, cores=0.95), python_input),
        # Others of its threads decode.
        (fed(wait=0.6, python=0.03, reads=300, cores=0.95), slow_decoding),
        (fed(wait=0.04, python=0.04, reads=300, cores=0.6), None),
    ],
)
def test_one_rule_names_it(recording: Recording, named: Rule | None) -> None:
    assert [rule for rule in RULES if found(rule, recording)] == ([] if named is None else [named])


def test_python_that_could_work_beside_the_steps_gains_as_much_as_the_shorter_takes() -> None:
    (cause,) = found(python_input, fed(wait=0.6, python=0.55, reads=300, cores=0.9, limit=4.0))
    assert cause.severity is Severity.WARNING
    assert cause.gain is not None
    assert 1 < cause.gain.low <= cause.gain.high <= 1 / 0.6 + 0.01
    assert "feeds 48.8 KiB" in cause.evidence[1].text
    assert not cause.changes


def test_nothing_is_promised_where_no_core_is_free() -> None:
    (cause,) = found(python_input, fed(wait=0.6, python=0.55, reads=300, cores=0.95))
    assert (cause.gain, cause.severity) == (None, Severity.INFO)


def test_a_script_that_sleeps_is_a_remark() -> None:
    (cause,) = found(resting_script, fed(wait=0.6, python=0.03, reads=300, cores=0.2))
    assert (cause.severity, cause.gain, cause.subjects) == (Severity.INFO, None, WORKERS)
    assert cause.what.startswith("Between its steps the script rests: 60% of the time")
