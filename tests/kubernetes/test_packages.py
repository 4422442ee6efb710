"""What is deployed, as a real API server takes it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support import charts
from support.real_clusters import kubectl

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


def test_a_wrong_deployment_is_not(installed: None) -> None:
    objects = charts.rendered()
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    deployment["spec"]["template"]["metadata"]["labels"] = {}
    with pytest.raises(AssertionError, match="selector"):
        kubectl("apply", "--dry-run=server", "-f", "-", given=yaml.safe_dump(deployment))
