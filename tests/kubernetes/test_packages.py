"""What is deployed, as a real API server takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support import charts
from support.real_clusters import kubectl, new_namespace

from paceline.model.jobs.job_specs import JobSpec, RoleSpec, Security, SecurityProfile
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import pods
from paceline.rendering.surroundings import Surroundings

BASE = Path(__file__).parents[2] / "deploy" / "kustomize"


@pytest.mark.parametrize("namespaced", [False, True], ids=["cluster", "namespaced"])
def test_the_chart_is_accepted(installed: None, namespaced: bool) -> None:
    objects = charts.rendered(namespaced=namespaced)
    made = kubectl("apply", "--dry-run=server", "-f", "-", given=yaml.safe_dump_all(objects))
    assert len(made.splitlines()) == len(objects) == 6
    crd = charts.CHART / "crds" / "trainingjobs.yaml"
    assert "trainingjobs.paceline.dev" in kubectl("apply", "--dry-run=server", "-f", str(crd))


def test_the_kustomize_base_is_accepted(installed: None) -> None:
    made = kubectl("apply", "--dry-run=server", "-k", str(BASE))
    assert "deployment.apps/paceline-operator" in made


@pytest.fixture(scope="module")
def guarded(installed: None) -> Iterator[str]:
    """A namespace that takes only pods that pass the restricted standard."""
    name = new_namespace("restricted", {"pod-security.kubernetes.io/enforce": "restricted"})
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("profile", SecurityProfile)
def test_namespaces_that_enforce_the_restricted_standard(guarded: str, profile: SecurityProfile) -> None:
    spec = JobSpec(
        name="clicks",
        image="localhost/work:1",
        command=("sleep", "3600"),
        roles=(RoleSpec(role=Role.WORKER),),
        security=Security(profile=profile),
    )
    made = json.dumps(pods.pod(spec, ReplicaId(Role.WORKER, 0), Surroundings(namespace=guarded)))
    if profile is SecurityProfile.RESTRICTED:
        kubectl("create", "--dry-run=server", "-f", "-", given=made)
        return
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        kubectl("create", "--dry-run=server", "-f", "-", given=made)


def test_a_wrong_deployment_is_not(installed: None) -> None:
    objects = charts.rendered()
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    deployment["spec"]["template"]["metadata"]["labels"] = {}
    with pytest.raises(AssertionError, match="selector"):
        kubectl("apply", "--dry-run=server", "-f", "-", given=yaml.safe_dump(deployment))
