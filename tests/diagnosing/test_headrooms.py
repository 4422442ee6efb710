"""How much faster trainers could be."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import trace

from paceline.diagnosing import headrooms
from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import Gain
from paceline.model.jobs.job_specs import Host

LOADS = {"ps-0": cases.SERVER, "worker-0": {"cpu_cores": 0.25, "cpu_limit_cores": 1.0}}
STEPS = {"worker-0": cases.STEPS | {"input_wait_seconds": 0.25}}


def test_what_trainers_do_by_themselves_stays() -> None:
    case = Case.of(cases.recording(LOADS, steps=STEPS))
    assert headrooms.busy_share(case) == pytest.approx(0.5)
    assert headrooms.most_times(case) == pytest.approx(2.0)
    assert headrooms.most_times_fed(case) == pytest.approx(4.0)


def test_cores_that_others_use_are_busy_too() -> None:
    loads = {name: {"cpu_cores": 0.4} for name in ("worker-0", "worker-1")}
    hosts = {"hosts": (Host(name="a", cpu_cores=1.0),)}
    rows = {name: {"host": "a"} for name in loads}
    case = Case.of(cases.recording(loads, steps={}, spec=hosts, rows=rows))
    assert headrooms.busy_share(case) == pytest.approx(0.8)


def test_a_trace_knows_of_one_that_computes_on_one_of_its_cores() -> None:
    loads = LOADS | {"worker-0": {"cpu_cores": 0.25, "cpu_limit_cores": 4.0}}
    case = Case.of(cases.recording(loads, steps={}, traces=(trace({}, waiting=0.5),)))
    assert headrooms.busy_share(case) == pytest.approx(0.5)


def test_nothing_is_known_of_trainers_without_a_limit() -> None:
    case = Case.of(cases.recording(LOADS | {"worker-0": {"cpu_cores": 0.25}}))
    assert headrooms.most_times(case) is None
    assert headrooms.within(case, Gain(low=1.0, high=100.0)) == Gain(
        low=1.0, high=headrooms.MOST_TIMES.default
    )


def test_the_cores_of_the_machine_bound_a_gain_but_for_what_the_change_spares() -> None:
    facts = (("cores", "1"),)
    case = Case.of(cases.recording(LOADS, steps={}, facts=facts))
    gain = Gain(low=1.5, high=3.0)
    assert headrooms.within(case, gain) == Gain(low=1.5, high=pytest.approx(1 / 0.45))
    assert headrooms.within(case, gain, spared_cores=0.2) == gain
    emulated = cases.recording(LOADS, steps={}, facts=facts, spec={"hosts": (Host(name="a"),)})
    assert headrooms.within(Case.of(emulated), gain) == gain
