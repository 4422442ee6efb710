"""Other programs on the job's cores, with and without a fraction that keeps it there."""

from __future__ import annotations

import dataclasses
from typing import Any

from support import cases
from support.cases import START, found, on_kubernetes

from paceline.diagnosing import catalogues, chains
from paceline.diagnosing.cores.exclusive_cores import exclusive_not_got
from paceline.diagnosing.cores.fractional_cores import fractional_cores
from paceline.diagnosing.cores.noisy_neighbours import noisy_neighbour
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import CpuPolicy
from paceline.model.jobs.runs import SEEN, STANDING, JobEvent
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures.recordings import Recording

#: A machine of 2 cores: the job uses 0.9 of them, other programs 1.1.
SERVER = {
    "cpu_cores": 0.1, "cpu_limit_cores": 1.0, "neighbours_cpu_cores": 1.9, "run_delay_seconds": 1.0,
}  # fmt: skip
WORKER = {
    "cpu_cores": 0.4, "cpu_limit_cores": 1.0, "neighbours_cpu_cores": 1.6, "run_delay_seconds": 1.6,
}  # fmt: skip
LOADS = {"ps-0": SERVER, "worker-0": WORKER, "worker-1": WORKER}
ASKED: dict[str, dict[str, Any]] = {"ps": {"cpu_cores": 1.0}, "worker": {"cpu_cores": 1.0}}


def _recording(cores: int = 2, **more: Any) -> Recording:
    return cases.recording(**{"loads": LOADS, "roles": ASKED, "facts": (("cores", str(cores)),), **more})


def _alone(loads: dict[str, dict[str, Any]], others: float = 0.02) -> dict[str, dict[str, Any]]:
    """Return loads with so little from others."""
    used = sum(load["cpu_cores"] for load in loads.values())
    return {
        name: load | {"neighbours_cpu_cores": used - load["cpu_cores"] + others}
        for name, load in loads.items()
    }


def test_programs_that_fill_the_machine_are_told_of() -> None:
    (cause,) = found(noisy_neighbour, _recording())
    assert cause.what == (
        "Other programs use 1.10 cores of this machine, and ps-0, worker-0, worker-1 get less than they may "
        "use."
    )
    assert cause.severity is Severity.WARNING
    assert cause.subjects == ("ps-0", "worker-0", "worker-1")
    # Three replicas cannot have three of two cores.
    assert cause.changes == ()
    assert cause.next_steps[0].startswith("see who they are")
    assert cause.gain is not None
    # All three share the 1.1 cores that would be left to them, beside the 0.9 that they have.
    assert (cause.gain.low, round(cause.gain.high, 2)) == (1.0, 2.22)
    assert [each.text for each in cause.evidence] == [
        "this machine: the job uses 0.90 cores, others 1.10, of 2",
        "ps-0 gets 0.10 of the 1.00 cores that it may use",
        "for each second on a core its threads wait 5.50 s for one that others use",
    ]


def test_on_a_larger_machine_the_job_may_have_cores_of_its_own() -> None:
    loads = {name: load | {"neighbours_cpu_cores": 7.9} for name, load in LOADS.items()}
    (cause,) = found(noisy_neighbour, _recording(8, loads=loads))
    assert cause.changes == (
        FieldChange(path=("spec", "roles", "ps", "cpu_policy"), value="exclusive"),
        FieldChange(path=("spec", "roles", "worker", "cpu_policy"), value="exclusive"),
    )


def test_the_jobs_own_replicas_are_no_neighbours() -> None:
    loads = {"ps-0": SERVER, "worker-0": WORKER | {"cpu_cores": 0.85}, "worker-1": WORKER}
    assert not found(noisy_neighbour, _recording(loads=_alone(loads)))


def test_a_fellow_that_is_not_measured_is_no_neighbour() -> None:
    loads = LOADS | {"worker-1": WORKER | {"cpu_cores": None}}
    assert found(noisy_neighbour, _recording())
    assert not found(noisy_neighbour, _recording(loads=loads))
    gone = {"worker-1": {"phase": ReplicaPhase.SUCCEEDED}}
    assert found(noisy_neighbour, _recording(loads=loads, rows=gone)), "it uses nothing any more"


def test_busy_programs_beside_idle_cores_do_no_harm() -> None:
    content = {name: load | {"run_delay_seconds": 0.02} for name, load in LOADS.items()}
    assert not found(noisy_neighbour, _recording(16, loads=content))


def test_who_rests_and_waits_a_little_whenever_it_wakes_up_is_not_hurt() -> None:
    resting = {name: load | {"cpu_cores": 0.02, "run_delay_seconds": 0.2} for name, load in LOADS.items()}
    assert not found(noisy_neighbour, _recording(loads=resting))


def test_what_a_quota_takes_is_not_taken_by_others() -> None:
    cut = {name: load | {"throttled_seconds": load["run_delay_seconds"]} for name, load in LOADS.items()}
    assert not found(noisy_neighbour, _recording(loads=cut))


def test_replicas_at_their_own_limits_are_bound_by_these() -> None:
    loads = {name: load | {"cpu_cores": load["cpu_limit_cores"]} for name, load in LOADS.items()}
    assert not found(noisy_neighbour, _recording(loads=loads))


def test_beside_servers_at_their_limit_neighbours_are_a_remark() -> None:
    worker = WORKER | {"neighbours_cpu_cores": 3.0, "run_delay_seconds": 2.0}
    loads = {"ps-0": SERVER | {"cpu_cores": 0.98}, "worker-0": worker, "worker-1": worker}
    (cause,) = found(noisy_neighbour, _recording(loads=loads))
    assert (cause.severity, cause.gain) == (Severity.INFO, None)


def test_on_a_node_whose_size_is_not_known_waiting_tells() -> None:
    content = {name: load | {"run_delay_seconds": 0.01} for name, load in LOADS.items()}
    loads = content | {"worker-1": WORKER | {"neighbours_cpu_cores": 40.0}}
    rows = {name: {"host": f"node-{name}"} for name in loads}
    (cause,) = found(noisy_neighbour, on_kubernetes(cases.recording(loads, rows=rows)))
    assert cause.subjects == ("worker-1",)
    assert cause.what == (
        "Other programs use 40.00 cores of host node-worker-1, and worker-1 gets less than it may use."
    )


def test_what_was_not_measured_is_not_judged() -> None:
    loads = {name: load | {"cpu_limit_cores": None} for name, load in LOADS.items()}
    assert not found(noisy_neighbour, _recording(loads=loads, roles=None, facts=()))
    unknown = {"neighbours_cpu_cores": None, "run_delay_seconds": None}
    lacking = {name: load | unknown for name, load in LOADS.items()}
    case = cases.Case.of(_recording(loads=lacking))
    assert [need.what for need in noisy_neighbour.lacks(case)] == [
        "what other programs use of the same cores",
        "how long threads wait for a core",
    ]


def test_a_fraction_is_what_keeps_a_role_on_shared_cores() -> None:
    loads = LOADS | dict.fromkeys(("worker-0", "worker-1"), WORKER | {"cpu_limit_cores": 1.5})
    recording = _recording(loads=loads, roles=ASKED | {"worker": {"cpu_cores": 1.5}})
    (cause,) = found(fractional_cores, recording)
    assert cause.what == (
        "A fraction of a core is asked for (each worker for 1500m), so cores are shared, and other programs "
        "disturb worker-0, worker-1."
    )
    assert cause.evidence[0].text == "spec.roles.worker.cpu: 1500m; only whole cores can be exclusive"
    # That others disturb the parameter server, which asks for a whole core, does not follow from it.
    first, second = chains.chained([*found(noisy_neighbour, recording), cause], catalogues.EXPLAINS)
    roots = {root.name: root for root in (first, second)}
    assert roots["noisy-neighbour"].subjects == ("ps-0",)
    (effect,) = roots["fractional-cores"].effects
    assert (effect.name, effect.subjects) == ("noisy-neighbour", ("worker-0", "worker-1"))


def test_on_a_cluster_the_fraction_is_made_whole() -> None:
    loads = _alone(LOADS) | {"worker-1": WORKER | {"neighbours_cpu_cores": 40.0}}
    recording = cases.recording(
        loads,
        rows={name: {"host": f"node-{name}"} for name in loads},
        steps={"worker-0": cases.STEPS, "worker-1": cases.STEPS | {"steps": 20}},
        roles={"worker": {"cpu_cores": 1.5}},
    )
    (cause,) = found(fractional_cores, on_kubernetes(recording))
    assert cause.changes == (
        FieldChange(path=("spec", "roles", "worker", "cpu"), value=2),
        FieldChange(path=("spec", "roles", "worker", "cpu_policy"), value="exclusive"),
    )


def test_whole_cores_and_quiet_cores_are_not_to_blame() -> None:
    assert not found(fractional_cores, _recording())
    quiet = _alone(LOADS)
    assert not found(fractional_cores, _recording(loads=quiet, roles={"worker": {"cpu_cores": 1.5}}))


def test_exclusive_cores_that_were_not_given_come_first() -> None:
    asked = ASKED | {"worker": {"cpu_cores": 1.0, "cpu_policy": CpuPolicy.EXCLUSIVE}}
    recording = _recording(roles=asked)
    causes = [*found(noisy_neighbour, recording), *found(exclusive_not_got, recording)]
    (root,) = chains.chained(causes, catalogues.EXPLAINS)
    assert root.name == "exclusive-not-got"
    assert root.gain is not None
    assert [each.name for each in root.effects] == ["noisy-neighbour"]


def test_nothing_is_said_of_a_job_that_starts() -> None:
    """It imports TensorFlow and builds its graph, which takes all cores."""
    for rule, roles in ((noisy_neighbour, ASKED), (fractional_cores, {"worker": {"cpu_cores": 1.5}})):
        assert not found(rule, _recording(steps={}, roles=roles))
        (cause,) = found(rule, _recording(roles=roles))
        assert (cause.severity, cause.gain is None) == (Severity.WARNING, False)


def test_a_gain_needs_steps_that_were_measured() -> None:
    (cause,) = found(noisy_neighbour, _recording(steps={}, seconds=150))
    assert (cause.severity, cause.gain) == (Severity.WARNING, None)


def test_nothing_is_said_of_a_job_whose_first_step_would_be_seen_or_that_waits() -> None:
    long = _recording(steps={}, seconds=150)
    assert found(noisy_neighbour, long)
    worker = next(row.replica for row in long.replicas if row.replica.role.trains)
    seen = JobEvent(at=START, kind=SEEN, message="TensorFlow 2.15.1", replica=worker, attempt=1)
    assert not found(noisy_neighbour, dataclasses.replace(long, events=(seen,)))
    waits = tuple(
        JobEvent(at=long.at, kind=STANDING, message="input: ", replica=row.replica, attempt=1)
        for row in long.replicas
    )
    assert not found(noisy_neighbour, dataclasses.replace(_recording(), events=waits))
