"""The list of runs on unchanged scripts: what it promises of numbers, and that each is a job file."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.diagnosis import knowns, labels
from benchmarks.diagnosis.items import Item
from benchmarks.diagnosis.trials import Ending
from benchmarks.diagnosis_unchanged import bases, items, scores
from benchmarks.diagnosis_unchanged.bases import ScriptBase
from benchmarks.diagnosis_unchanged.faults import MAKERS
from paceline import specs
from paceline.diagnosing import catalogues
from paceline.model.roles import Role

EVERY = items.every()
FAULTY = [item for item in EVERY if item.makers]
UNSEEN = [item for item in EVERY if item.split == labels.UNSEEN]
HEALTHY = [item for item in EVERY if not item.makers]


def known(item: Item) -> knowns.Known:
    job = item.base.job()
    return knowns.Known(
        rates={str(each): 1000.0 for each in job.replicas() if each.role.trains},
        cores={Role.PS: 0.2, Role.WORKER: 0.5},
        memory_bytes={Role.PS: 100_000_000, Role.WORKER: 400_000_000},
        bits_per_second={Role.PS: 1e8, Role.WORKER: 1e8},
        plan=None,
    )


def test_every_run_has_a_name_of_its_own() -> None:
    assert len({item.name for item in EVERY}) == len(EVERY)


def test_there_are_as_many_runs_of_unseen_scripts_as_are_asked_for() -> None:
    assert len(UNSEEN) >= scores.LEAST_RUNS
    assert len([item for item in UNSEEN if not item.makers]) >= scores.LEAST_HEALTHY
    assert len({item.base.model for item in UNSEEN}) >= scores.LEAST_SCRIPTS
    for script in bases.UNSEEN:
        assert len({item.base.size for item in FAULTY if item.base.model == script}) >= scores.LEAST_VERSIONS


def test_scripts_that_rules_were_tried_on_do_not_count() -> None:
    assert {item.base.model for item in UNSEEN} == set(bases.UNSEEN)
    assert not set(bases.UNSEEN) & set(bases.FIT)


def test_a_job_that_loads_for_long_is_recorded_with_its_start_and_while_it_goes_on() -> None:
    kinds = {item.base.kind: item for item in HEALTHY}
    for kind in (bases.LATE, bases.LOADING):
        assert kinds[kind].is_whole
    loading = kinds[bases.LOADING]
    assert not loading.healthy_plan().starts
    assert loading.healthy_plan().ending is Ending.LIVE
    assert not kinds[bases.PLAIN].is_whole
    assert kinds[bases.PLAIN].healthy_plan().starts


def test_every_fault_has_one_healthy_twin_of_its_split() -> None:
    found = Counter((item.base, item.split) for item in HEALTHY)
    assert set(found.values()) == {1}
    assert {(item.base, item.split) for item in FAULTY} <= set(found)


@pytest.mark.parametrize("name", MAKERS)
def test_a_fault_is_of_a_cause_that_there_is(name: str) -> None:
    for item in FAULTY:
        fault = item.fault()
        assert fault is not None
        if item.makers[0][0] == name:
            for each in (fault.cause, *fault.also, *fault.accepted):
                assert catalogues.topic(each).name == each
            assert fault.cause not in (*fault.also, *fault.accepted)


@pytest.mark.parametrize("item", EVERY, ids=lambda item: item.name)
def test_a_run_is_a_job_that_reads_back_and_a_fault_makes_another(item: Item) -> None:
    job, fault = item.healthy_job(), item.fault()
    made = job if fault is None else fault.change(job, known(item))
    assert fault is None or made != job or fault.act is not None
    assert specs.parse_job(specs.dump_job(made)).spec == made


@pytest.mark.parametrize("item", UNSEEN, ids=lambda item: item.name)
def test_a_script_knows_each_option_that_it_gets(item: Item) -> None:
    """The scripts run under Pythons with TensorFlow, so their options are read from their text."""
    fault, job = item.fault(), item.healthy_job()
    command = job.command if fault is None else fault.change(job, known(item)).command
    folder = bases.SCRIPTS
    texts = [Path(command[1]).read_text(), (folder / "slips.py").read_text()]
    options = {name for text in texts for name in re.findall(r'add_argument\("(--[\w-]+)"', text)}
    given = {word.partition("=")[0] for word in command[2:] if word.startswith("--")}
    assert given <= options


def test_each_replica_of_a_healthy_job_has_a_host() -> None:
    for item in HEALTHY:
        job = item.healthy_job()
        assert len({host.name for host in job.hosts}) == len(job.replicas())


def test_a_job_does_not_ask_for_more_cores_than_there_are() -> None:
    for kind in (bases.PLAIN, bases.TRIO, bases.FOUR, bases.SOLO, bases.WIDE):
        job = ScriptBase(model=bases.WIDE_DEEP, size="1.15.5", kind=kind).job()
        on_hosts = sum(host.cpu_cores or 0.0 for host in job.hosts)
        assert 0 < (job.asked_cores or on_hosts) <= 2


def test_examples_are_the_same_each_time_and_their_labels_depend_on_them() -> None:
    first, again, other = bases.examples(0), bases.examples(0), bases.examples(1)
    assert (first == again).all()
    assert (first != other).any()
    sums = first[:, :2].astype(int).sum(1)
    assert (sums * 7919 % 13 < 5).astype(int).tolist() == first[:, -1].tolist()
