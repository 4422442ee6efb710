"""The list of the corpus: what it promises of numbers and splits, and that each of its jobs is a job file."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.diagnosis import items, knowns, labels, models
from benchmarks.diagnosis.items import Item
from benchmarks.diagnosis.makers import MAKERS
from benchmarks.diagnosis.trials import Ending
from paceline import specs
from paceline.model.roles import Role
from paceline.model.variables import variable_plans
from paceline.model.variables.variables import Variable

EVERY = items.every()
FAULTY = [item for item in EVERY if item.makers]
_TABLE = Variable(
    name="deep/vectors", shape=(10_000, 16), sparse=True, slots=1, step_bytes=1e5, row_shares=(0.9, 0.1)
)
_WEIGHT = Variable(name="deep/layer0/kernel", shape=(100, 64), slots=1, step_bytes=1e5)


def known(item: Item) -> knowns.Known:
    job = item.base.job()
    servers = job.role(Role.PS)
    assert servers is not None
    return knowns.Known(
        rates={str(each): 1000.0 for each in job.replicas() if each.role is Role.WORKER},
        cores={Role.PS: 0.2, Role.WORKER: 0.5},
        memory_bytes={Role.PS: 100_000_000, Role.WORKER: 400_000_000},
        bits_per_second={Role.PS: 1e8, Role.WORKER: 1e8},
        plan=variable_plans.plan(
            (_TABLE, _WEIGHT),
            servers=servers.replicas,
            cut=variable_plans.RowPartitioning(),
            rule=variable_plans.PlacementRule.BALANCED,
        ),
    )


def test_every_run_has_a_name_of_its_own() -> None:
    assert len({item.name for item in EVERY}) == len(EVERY)


def test_there_are_enough_runs_that_no_threshold_is_set_by() -> None:
    unseen = [item for item in EVERY if item.split == labels.UNSEEN]
    healthy = [item for item in unseen if not item.makers]
    causes = {name for item in unseen for name, _ in item.makers}
    assert len(unseen) >= 160
    assert len(unseen) - len(healthy) >= 120
    assert len(healthy) >= 40
    assert len(causes) >= 20
    assert {item.base.model for item in unseen} == set(models.MODELS)
    assert {item.base.size for item in unseen} == set(models.SIZES)


def test_what_is_unseen_differs_in_seed_or_model_from_what_is_not() -> None:
    fit = {(item.base.model, item.base.seed) for item in EVERY if item.split == labels.FIT}
    unseen = {(item.base.model, item.base.seed) for item in EVERY if item.split == labels.UNSEEN}
    assert not fit & unseen
    assert not {seed for _, seed in fit} & {seed for _, seed in unseen}
    assert models.UNSEEN_MODEL not in {model for model, _ in fit}


def test_every_fault_is_seen_and_unseen_in_every_severity() -> None:
    found = Counter((item.makers[0], item.split) for item in FAULTY if len(item.makers) == 1)
    for name in MAKERS:
        own = {severity for (maker, severity), split in found if maker == name and split == labels.UNSEEN}
        assert {str(severity) for severity in own} == {"mild", "medium", "gross"}
        assert any(maker == name and split == labels.FIT for (maker, _), split in found)


def test_every_fault_has_a_healthy_twin_of_its_split() -> None:
    healthy = {(item.base, item.split) for item in EVERY if not item.makers}
    assert {(item.base, item.split) for item in FAULTY} <= healthy


@pytest.mark.parametrize("item", FAULTY, ids=lambda item: item.name)
def test_a_fault_makes_another_job_that_reads_back(item: Item) -> None:
    fault = item.fault()
    assert fault is not None
    assert fault.cause not in fault.also
    healthy = item.base.job()
    made = fault.change(healthy, known(item))
    assert made != healthy or fault.act is not None
    assert specs.parse_job(specs.dump_job(made)).spec == made


def test_a_healthy_job_that_is_to_finish_has_a_last_step() -> None:
    finishing = [item for item in EVERY if not item.makers and item.ending is Ending.FINISHED]
    assert finishing
    for item in finishing:
        assert (item.healthy_job().training or {})["max_steps"] > 0
