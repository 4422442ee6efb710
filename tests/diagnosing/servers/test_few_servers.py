"""Parameter servers that are too few for their workers."""

from __future__ import annotations

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing.cases import Case
from paceline.diagnosing.diagnoses import judged
from paceline.diagnosing.servers.cpu_bound_servers import ps_cpu_bound
from paceline.diagnosing.servers.few_servers import too_few_ps
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity

FULL = {"cpu_cores": 0.95, "cpu_limit_cores": 1.0}
WAITING = {"cpu_cores": 0.4, "cpu_limit_cores": 1.0}
WORKERS = {f"worker-{number}": WAITING for number in range(4)}
LOADS = {"ps-0": FULL} | WORKERS
TRAINING = {"training": {"optimizer": {"name": "adagrad"}}}


def test_a_full_server_with_a_whole_core_gets_company() -> None:
    (cause,) = found(too_few_ps, cases.recording(LOADS, spec=TRAINING))
    assert cause.what == "1 PS is too few for 4 trainers: it uses 95% of 1 core."
    assert cause.severity is Severity.WARNING
    # Without waiting a step would take 0.47 of its time; 0.95 / 0.47 / 0.7 is 2.9.
    assert cause.changes == (FieldChange(path=("spec", "roles", "ps", "replicas"), value=3),)
    assert cause.next_steps == ()
    assert cause.gain is not None
    assert 1.5 < cause.gain.low <= cause.gain.high <= 1 / 0.42 + 1e-6
    assert not found(ps_cpu_bound, cases.recording(LOADS, spec=TRAINING))


def test_never_more_servers_than_trainers_unless_there_are_as_many() -> None:
    loads = {"ps-0": FULL, "ps-1": FULL, "worker-0": WAITING, "worker-1": WAITING}
    (cause,) = found(too_few_ps, cases.recording(loads, spec=TRAINING))
    assert cause.what == "2 PS are too few for 2 trainers: they use 95% of 1 core each."
    assert cause.changes[0].value == 3


def test_a_saved_plan_is_for_as_many_servers_as_there_were() -> None:
    spec = {"training": {"variable_plan": "plan.json", "partitioning": {"strategy": "none"}}}
    (cause,) = found(too_few_ps, cases.recording(LOADS, spec=spec))
    assert cause.changes[1] == FieldChange(path=("spec", "training", "variable_plan"), value=None)
    assert cause.next_steps[0].startswith("spec.training.partitioning: leave {strategy: none} out")


def test_a_script_of_the_users_own_has_to_cut_its_variables() -> None:
    (cause,) = found(too_few_ps, cases.recording(LOADS))
    assert "MinSizePartitioner" in cause.next_steps[0]


@pytest.mark.parametrize(
    "loads",
    [
        pytest.param({"ps-0": {"cpu_cores": 0.24, "cpu_limit_cores": 0.25}}, id="small limit"),
        pytest.param({"ps-1": {"cpu_cores": 0.05, "cpu_limit_cores": 1.0}}, id="one hot server"),
        pytest.param({"ps-1": {"cpu_limit_cores": 1.0}}, id="one may be idle"),
        pytest.param({"ps-0": {"cpu_cores": 0.7, "cpu_limit_cores": 1.0}}, id="busy, but not full"),
        pytest.param(dict.fromkeys(WORKERS, FULL), id="trainers compute all the time"),
        pytest.param({"ps-0": {"cpu_limit_cores": 1.0}}, id="servers not measured"),
    ],
)
def test_its_likes_are_not_it(loads: dict[str, dict[str, float]]) -> None:
    causes, _ = judged(Case.of(cases.recording(LOADS | loads)))
    assert "too-few-ps" not in [each.name for each in causes]
