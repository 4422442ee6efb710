"""Forty TFJobs under Kubeflow's own operator and, converted, under ours, side by side on one cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
import yaml
from support.conformance import TFJOBS, JobOnCluster, KubeflowJob, PacelineJob, submit_tfjob
from support.real_clusters import NAMESPACE, OperatorProcess, kubectl, objects, submit, until
from support.tfjob_cases import CASES, KNOWN, TFJobCase, TFJobEnd

from paceline.engines.kubernetes import kinds
from paceline.specs.job_file import files
from paceline.specs.tfjob import tfjob_files


@pytest.fixture(scope="module", autouse=True)
def kubeflow(upstream: None) -> None:
    if kubectl("get", "namespace", "kubeflow", "--ignore-not-found") == "":
        pytest.skip("Kubeflow's operator is not on this cluster (make e2e-conformance)")


@pytest.fixture(autouse=True)
def _no_tfjob_left() -> Iterator[None]:
    yield
    kubectl("delete", TFJOBS.plural, "--all", "-n", NAMESPACE)
    until(
        lambda: objects(kinds.PODS, "training.kubeflow.org/job-name") == [],
        lambda: "the pods of the TFJob stay",
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_tfjob_and_what_it_is_converted_to(case: TFJobCase, operator: OperatorProcess) -> None:
    tfjob = submit_tfjob(case.name, case.spec)
    conversion = tfjob_files.convert_text(yaml.safe_dump(tfjob), "tfjob.yaml")
    submit(files.parse_job(conversion.text).spec)
    theirs, ours = KubeflowJob(case.name), PacelineJob(case.name)
    seen = _differences(case, theirs, ours)

    _run(theirs, case.exits)
    if case.is_touched:
        until(lambda: theirs.touch() or theirs.end() == case.end, lambda: theirs.end())  # type: ignore[func-returns-value]
    _until(theirs, case.end)
    _run(ours, [(name.replace("master", "chief"), code) for name, code in (*case.exits, *case.our_exits)])
    _until(ours, case.our_end or _as_ours(case.end))
    if case.our_end is not None:
        seen.add("end")

    assert seen == case.differences.keys()
    for aspect, reason in case.differences.items():
        if reason not in KNOWN:
            assert any(lost.startswith(reason) for lost in conversion.lost), (aspect, conversion.lost)


def _differences(case: TFJobCase, theirs: JobOnCluster, ours: JobOnCluster) -> set[str]:
    """Return which aspects of replicas differ, once all of them are there."""
    if case.end.phase == "suspended":
        return set()
    replicas = sum(role.get("replicas", 1) for role in case.spec["tfReplicaSpecs"].values())
    until(lambda: len(theirs.pods()) == replicas, lambda: theirs.pods())
    until(lambda: len(ours.pods()) == replicas, lambda: ours.pods())
    their_views, our_views = theirs.views(), ours.views()
    assert {name.replace("master", "chief") for name in their_views} == our_views.keys()
    return {
        field.name
        for name, view in their_views.items()
        for field in dataclasses.fields(view)
        if getattr(view, field.name) != getattr(our_views[name.replace("master", "chief")], field.name)
    }


def _run(job: JobOnCluster, exits: list[tuple[str, int]] | tuple[tuple[str, int], ...]) -> None:
    for replica, code in exits:
        until(lambda: job.ends(replica, code), lambda: (replica, job.end()))  # noqa: B023


def _until(job: JobOnCluster, end: TFJobEnd) -> None:
    until(lambda: job.end() == end, lambda: (job.name, job.end()))


def _as_ours(end: TFJobEnd) -> TFJobEnd:
    """Return an end with our names of roles."""
    renamed = {
        name: frozenset(each.replace("master", "chief") for each in getattr(end, name))
        for name in ("running", "ended")
    }
    return dataclasses.replace(end, **renamed)
