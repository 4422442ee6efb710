"""What past runs of a model tell."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.model.studies.tunings import Goal, Objective
from paceline.tuning import memories
from paceline.tuning.memories import PastRun


def spec(command: str = "train.py", cores: float = 1.0, **training: object) -> JobSpec:
    roles = (RoleSpec(role=Role.PS, cpu_cores=cores), RoleSpec(role=Role.WORKER, cpu_cores=cores))
    return JobSpec(name="clicks", command=("python", command), roles=roles, training=training)


def run(
    name: str, speed: float, *, at: float = 0.0, cores: float = 1.0, used: float | None = 1.0, **settings: Any
) -> PastRun:
    return PastRun(
        name=name,
        spec=spec(cores=cores),
        settings={"spec": {"roles": {"ps": {"replicas": 1, **settings}}}},
        submitted_at=at,
        examples_per_second=speed,
        used_cores=used,
        auc=None,
    )


def test_the_same_command_and_shape_are_the_same_model() -> None:
    assert memories.is_alike(spec(), spec(cores=4.0, batch_size=9, optimizer={"name": "adam"}))
    assert not memories.is_alike(spec(), spec("other.py"))
    assert not memories.is_alike(spec(), spec(embedding_dimension=64))


def test_the_best_is_that_for_what_is_asked() -> None:
    runs = [run("fast", 300.0, cores=4.0), run("lean", 200.0, cores=1.0), run("slow", 100.0, cores=1.0)]

    def best(objective: Objective) -> str | None:
        found = memories.best(runs, objective)
        return None if found is None else found.name

    assert best(Objective()) == "fast"
    assert best(Objective(goal=Goal.CHEAPEST)) == "lean"
    assert best(Objective(most_cores=2.0)) == "lean"
    assert best(Objective(least_examples_per_second=1e9)) is None


def test_only_settings_that_decide_the_speed_are_taken_over() -> None:
    before = {
        "metadata": {"name": "a"},
        "spec": {
            "command": ["python"],
            "roles": {"ps": {"replicas": 1, "restart": {"when": "never"}}, "worker": {"cpu": 1}},
            "training": {"batch_size": 512, "epochs": 2, "partitioning": {"strategy": "none"}},
        },
    }
    after = {
        "metadata": {"name": "b"},
        "spec": {
            "command": ["python3"],
            "roles": {"ps": {"replicas": 4, "restart": {"when": "always"}}, "worker": {"cpu": 1}},
            "training": {"batch_size": 512, "epochs": 9, "optimizer": {"name": "lazy-adam"}},
        },
    }
    assert memories.differences(before, after) == (
        FieldChange(path=("spec", "roles", "ps", "replicas"), value=4),
        FieldChange(path=("spec", "training", "partitioning"), value=None),
        FieldChange(path=("spec", "training", "optimizer", "name"), value="lazy-adam"),
    )
    assert memories.differences(before, before) == ()


def test_what_a_user_chooses_for_each_job_stays_when_a_block_goes() -> None:
    own = {"epochs": 2, "checkpoint": {"keep": 3}, "inputs": {"train": ["a"], "batch": 4}}
    before = {
        "spec": {"roles": {"ps": {}}, "training": {**own, "batch_size": 512, "optimizer": {"name": "a"}}}
    }
    assert memories.differences(before, {"spec": {"roles": {"ps": {}}}}) == (
        FieldChange(path=("spec", "training", "batch_size"), value=None),
        FieldChange(path=("spec", "training", "optimizer"), value=None),
    )


def test_no_role_is_added_or_removed() -> None:
    few = {"spec": {"roles": {"ps": {"replicas": 1}, "worker": {"cpu": 1}}}}
    many = {"spec": {"roles": {"ps": {"replicas": 2}, "worker": {"cpu": 1}, "chief": {"cpu": 1}}}}
    assert memories.differences(few, many) == (
        FieldChange(path=("spec", "roles", "ps", "replicas"), value=2),
    )
    assert memories.differences(many, few) == (
        FieldChange(path=("spec", "roles", "ps", "replicas"), value=1),
    )


def test_runs_with_other_roles_are_not_compared() -> None:
    runs = [run("a", 100.0, at=1.0), run("b", 104.0, at=2.0), run("c", 60.0, at=3.0)]
    others = [
        dataclasses.replace(each, settings={"spec": {"roles": {"ps": {"replicas": 1}, "chief": {}}}})
        for each in runs[:2]
    ]
    assert memories.regressions(runs)
    assert memories.regressions([*others, runs[2]]) == ()


def test_a_run_that_does_less_with_its_cores_than_before_is_pointed_out() -> None:
    runs = [
        run("a", 100.0, at=1.0), run("b", 104.0, at=2.0), run("c", 98.0, at=3.0), run("d", 60.0, at=4.0),
        run("other", 10.0, at=5.0, cpu=4), run("unknown", 10.0, at=6.0, used=None),
    ]  # fmt: skip
    (found,) = memories.regressions(runs)
    assert (found.run.name, found.before) == ("d", ("c", "b", "a"))
    assert found.times == pytest.approx(0.6)
    assert found.low < 0.6 < found.high < 0.7
    assert found.measure is memories.Measure.WORK


def test_what_noise_explains_is_no_regression() -> None:
    wild = [run("a", 100.0, at=1.0), run("b", 50.0, at=2.0), run("c", 150.0, at=3.0), run("d", 60.0, at=4.0)]
    assert memories.regressions(wild) == ()


def test_a_run_that_learns_worse_is_pointed_out_too() -> None:
    told = (0.80, 0.801, 0.799, 0.79)
    runs = [
        dataclasses.replace(run(name, 100.0, at=at), auc=auc)
        for at, (name, auc) in enumerate(zip("abcd", told, strict=True))
    ]
    (found,) = memories.regressions(runs)
    assert (found.run.name, found.measure) == ("d", memories.Measure.QUALITY)
    assert found.high < 1


def test_two_runs_do_not_show_what_is_usual() -> None:
    assert memories.regressions([run("a", 100.0, at=1.0), run("b", 10.0, at=2.0)]) == ()


_PLAIN = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from(["roles", "training", "ps", "cpu", "a"]), inner, max_size=3
    ),
    max_leaves=12,
)


@given(_PLAIN, _PLAIN)
def test_changes_lead_from_one_file_to_the_other(before: Any, after: Any) -> None:
    made = _applied({"spec": {"training": before}}, memories.differences(_spec(before), _spec(after)))
    assert memories.differences(made, _spec(after)) == ()


def _spec(training: Any) -> dict[str, Any]:
    return {"spec": {"training": training}}


def _applied(data: dict[str, Any], changes: tuple[FieldChange, ...]) -> dict[str, Any]:
    for change in changes:
        place: Any = data
        for name in change.path[:-1]:
            if not isinstance(place.get(name), dict):
                place[name] = {}
            place = place[name]
        if change.value is None:
            place.pop(change.path[-1], None)
        else:
            place[change.path[-1]] = change.value
    return data
