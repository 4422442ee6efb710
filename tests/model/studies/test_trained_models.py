"""Which model a job trains."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.model.studies.trained_models import name_of

SPEC = JobSpec(
    name="a", roles=(RoleSpec(role=Role.WORKER, replicas=2),), command=("python", "jobs/train.py", "--lr=1")
)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("python", "jobs/Train_It.py"), "train-it"),
        (("python3.11", "-m", "paceline.examples.clicks.train"), "train"),
        (("python", "-u", "train.py"), "train"),
        (("./binary",), "model"),
        (("python", "-c", "print('<b>')\n"), "print-b"),
        (("python", "x" * 100), "x" * 40),
    ],
)
def test_its_name_is_for_people(command: tuple[str, ...], said: str) -> None:
    assert name_of(dataclasses.replace(SPEC, command=command)).rpartition("-")[0] == said


def test_layout_and_interpreter_make_no_other_model() -> None:
    same = dataclasses.replace(
        SPEC, name="b", roles=(RoleSpec(role=Role.WORKER, replicas=9),),
        command=("/venv/bin/python", *SPEC.command[1:]),
    )  # fmt: skip
    assert name_of(same) == name_of(SPEC)


def test_arguments_shape_and_label_do() -> None:
    others = [
        dataclasses.replace(SPEC, command=("python", "jobs/train.py", "--lr=2")),
        dataclasses.replace(SPEC, training={"embedding_dimension": 8}),
        dataclasses.replace(SPEC, labels={"model": "ctr"}),
        dataclasses.replace(SPEC, labels={"model": "ctr"}, training={"hidden_units": [1]}),
    ]
    assert len({name_of(each) for each in (SPEC, *others)}) == 5


def test_a_label_says_it_where_commands_differ() -> None:
    days = (
        dataclasses.replace(SPEC, command=("python", "train.py", f"--day={n}"), labels={"model": "CTR <1>"})
        for n in range(3)
    )
    (found,) = {name_of(each) for each in days}
    assert found.startswith("ctr-1-")
