"""Decisions on room: what begun jobs have not made yet counts, too."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from support.kubelets import node
from support.operator_scenes import job

from paceline.engines.kubernetes import cluster_states
from paceline.model.jobs.nodes import Quota
from paceline.model.jobs.statuses import JobPhase
from paceline.rendering import pods
from paceline.rendering.surroundings import Surroundings
from paceline.scheduling.queues import PATIENCE_SECONDS
from paceline.services.cluster import admissions, records
from paceline.services.cluster.admissions import Applicant, ClusterRoom, Growing
from paceline.services.cluster.records import JobRecord

FIRST, SECOND = job("first"), job("second")
NODES = tuple(cluster_states.node(node(f"n{number}", cpu="40")) for number in range(2))


def held(left: int, record: JobRecord, made: Sequence[Any] = (), namespace: str = "ads") -> str:
    """What a job of three pods is told that comes after one, if a quota has so many pods left."""
    quotas = {"ads": [Quota(name="team", left={"pods": left})]}
    room = ClusterRoom(nodes=NODES, without_jobs=NODES, quotas=quotas)
    applicant = Applicant(uid="2", key=("ads", "second"), spec=SECOND, since=0.0)
    begun = [(namespace, record, made)]
    return admissions.decide(room, [applicant], begun, [], now=1.0)["2"].held


def starting() -> JobRecord:
    record = records.new(FIRST)
    progress = record.progress
    state = dataclasses.replace(progress.state, phase=JobPhase.STARTING)
    return dataclasses.replace(record, progress=dataclasses.replace(progress, state=state))


def test_pods_that_are_still_to_be_made_take_from_the_quota() -> None:
    assert held(6, starting()) == ""
    assert held(5, starting()) == "it waits for room: quota team: 3 pods are asked for and 2 pods are left"
    assert held(5, starting(), namespace="other") == ""


def test_pods_that_are_there_are_counted_by_the_quota_itself() -> None:
    made = [pods.pod(FIRST, each, Surroundings(namespace="ads")) for each in FIRST.replicas()]
    assert held(3, starting(), made) == ""


@pytest.mark.parametrize("phase", [JobPhase.PENDING, JobPhase.SUCCEEDED])
def test_a_job_that_has_no_room_yet_or_has_ended_takes_nothing(phase: JobPhase) -> None:
    record = starting()
    state = dataclasses.replace(record.progress.state, phase=phase)
    over = dataclasses.replace(record, progress=dataclasses.replace(record.progress, state=state))
    assert held(3, over) == ""


@pytest.mark.parametrize(("namespace", "held"), [("ads", True), ("other", False)])
def test_a_job_that_its_quota_stops_keeps_only_its_namespace_from_growing(namespace: str, held: bool) -> None:
    room = ClusterRoom(
        nodes=NODES, without_jobs=NODES, quotas={"ads": [Quota(name="team", left={"pods": 2})]}
    )
    waiting = Applicant(uid="1", key=("ads", "second"), spec=SECOND, since=0.0)
    growing = Growing(uid="2", key=(namespace, "first"), record=starting(), pods=[], workers=3)
    found = admissions.decide(room, [waiting], [], [growing], now=PATIENCE_SECONDS + 1)["2"]
    assert (found.held == "a job that waits for long needs the room") is held
    assert (found.room is None) is held
