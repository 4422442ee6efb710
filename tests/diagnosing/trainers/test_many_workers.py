"""More workers than the parameter servers can serve."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.diagnoses import diagnose
from paceline.diagnosing.servers.cpu_bound_servers import ps_cpu_bound
from paceline.diagnosing.servers.few_servers import too_few_ps
from paceline.diagnosing.situations import Situation
from paceline.diagnosing.trainers.many_workers import too_many_workers
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity

FULL = {"cpu_cores": 0.95, "cpu_limit_cores": 1.0}
SMALL = {"cpu_cores": 0.2, "cpu_limit_cores": 0.2}
WAITING = {"cpu_cores": 0.08, "cpu_limit_cores": 1.0}


def loads(servers: int, workers: int, worker: dict[str, Any] = WAITING) -> dict[str, dict[str, Any]]:
    return {f"ps-{each}": FULL for each in range(servers)} | {
        f"worker-{each}": worker for each in range(workers)
    }


def test_twelve_workers_that_mostly_wait_are_told_how_many_would_do() -> None:
    (cause,) = found(too_many_workers, cases.recording(loads(2, 12)))
    # From 12 * 0.1 / 0.95 + 1 = 2.3 trainers on; half as many again are 4.
    assert cause.what == "12 trainers are more than 2 PS can serve: 4 would train as fast."
    assert (cause.severity, cause.subjects) == (Severity.WARNING, ("ps-0", "ps-1"))
    assert cause.changes == (FieldChange(path=("spec", "roles", "worker", "replicas"), value=4),)
    assert cause.next_steps == (
        "or spec.roles.ps.replicas: 5, up to 2.5 times as many examples a second",
    )  # fmt: skip
    assert cause.evidence[-1].text == (
        "a step takes 5.6 times as long as that of a trainer alone would; from 2.3 trainers on the PS bound "
        "the speed"
    )


def test_too_few_servers_follow_from_it() -> None:
    recording = cases.recording(loads(2, 12))
    situation = Situation.of(recording.run, recording.replicas, recording.events, now=recording.at)
    first = diagnose(recording, situation).causes[0]
    assert first.name == "too-many-workers"
    assert [each.name for each in first.effects] == ["too-few-ps", "waiting-for-ps"]


def test_the_chief_trains_as_well() -> None:
    with_chief = {"chief-0": WAITING} | loads(2, 11)
    (cause,) = found(too_many_workers, cases.recording(with_chief))
    assert cause.changes[0].value == 3


@pytest.mark.parametrize(
    ("given", "other"),
    [
        pytest.param(loads(1, 4), too_few_ps, id="few servers rather than many workers"),
        pytest.param(loads(2, 12, {"cpu_cores": 0.7, "cpu_limit_cores": 1.0}), too_few_ps, id="all work"),
        pytest.param(
            loads(2, 12) | dict.fromkeys(("ps-0", "ps-1"), SMALL),
            ps_cpu_bound,
            id="small servers",
        ),
        pytest.param(
            loads(2, 12) | {"ps-1": {"cpu_cores": 0.01, "cpu_limit_cores": 1.0}}, None, id="one hot"
        ),
        pytest.param(loads(2, 12) | dict.fromkeys(("ps-0", "ps-1"), cases.SERVER), None, id="servers rest"),
        pytest.param(loads(2, 12, {"cpu_cores": 0.1}), too_few_ps, id="the cores of trainers are not known"),
    ],
)
def test_its_likes_are_not_it(given: dict[str, dict[str, Any]], other: Any) -> None:
    recording = cases.recording(given)
    assert not found(too_many_workers, recording)
    if other is not None:
        assert found(other, recording)
