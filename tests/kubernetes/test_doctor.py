"""What ``paceline doctor`` says of a real API server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.real_clusters import NAMESPACE, PACELINE, OperatorProcess, kubectl, until, until_phase

from paceline.services.cluster.checkups import RIGHTS

ANALYST = "e2e-analyst"
JOB = """
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: clicks}
spec:
  image: localhost/work:1
  command: [train]
  roles:
    ps: {replicas: 1, cpu: 500m, memory: 1Gi}
    worker: {replicas: 2, cpu: 1, memory: 1Gi}
  placement: {node_selector: {paceline.dev/hollow: "true"}}
"""


def paceline(kubeconfig: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PACELINE, *arguments], capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "KUBECONFIG": kubeconfig, "PACELINE_ENGINE": "kubernetes"},
    )  # fmt: skip


def doctor(kubeconfig: str, *options: str) -> dict[str, dict[str, Any]]:
    done = paceline(kubeconfig, "doctor", "-n", NAMESPACE, "-o", "json", *options)
    return {each["name"]: each for each in json.loads(done.stdout)["items"]}


def test_an_administrator_sees_all(operator: OperatorProcess) -> None:
    until(lambda: doctor(os.environ["KUBECONFIG"])["Operator"]["state"] == "ok", operator.log.read_text)
    found = doctor(os.environ["KUBECONFIG"])
    for name in ("API server", "TrainingJob", "Operator", "Rights", "Nodes", "Beside it"):
        assert found[name]["state"] == "ok", found[name]
    # Hollow nodes have no kubelets to be asked; real ones answer.
    assert found["Exclusive cores"]["detail"]


def test_who_may_not_look_is_told_so(operator_kubeconfig: Path) -> None:
    """The operator itself makes no jobs, and asks no kubelets."""
    found = doctor(str(operator_kubeconfig))
    assert found["TrainingJob"]["state"] == "ok"
    assert found["Rights"]["state"] == "failed"
    assert "no create trainingjobs (submit)" in found["Rights"]["detail"]
    assert "no get nodes/proxy" in found["Rights"]["detail"]
    assert found["Nodes"]["state"] == "ok"
    assert found["Exclusive cores"]["detail"].startswith("not known of")
    assert "forbidden" in found["Exclusive cores"]["detail"]


@pytest.fixture
def analyst(installed: None) -> Iterator[str]:
    """A user with the rights that ``doctor`` asks for, and no others."""
    made: list[dict[str, Any]] = []
    for prefix, is_wide in (("", False), ("Cluster", True)):
        rules = [
            {"apiGroups": [each.kind.group], "resources": [each.resource], "verbs": [each.verb]}
            for each in RIGHTS
            if is_wide == (each.everywhere or not each.kind.is_namespaced)
        ]
        metadata = {"name": ANALYST, **({} if is_wide else {"namespace": NAMESPACE})}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{prefix}Role", "name": ANALYST}
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": ANALYST}
        common = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
        made.append({**common, "kind": f"{prefix}Role", "rules": rules})
        made.append({**common, "kind": f"{prefix}RoleBinding", "roleRef": role, "subjects": [subject]})
    text = yaml.safe_dump_all(made)
    kubectl("apply", "-f", "-", given=text)
    yield ANALYST
    kubectl("delete", "-f", "-", given=text)


def test_the_rights_are_all_that_the_verbs_need(
    operator: OperatorProcess, analyst: str, tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print()\n")
    file = tmp_path / "clicks.yaml"
    file.write_text(JOB)
    on_it = ("-n", NAMESPACE, "--as", analyst)

    def said(*arguments: str) -> str:
        done = paceline(os.environ["KUBECONFIG"], *arguments, *on_it)
        # Hollow pods have no agents: what is asked of those fails, but not for want of a right.
        assert "forbidden" not in (done.stdout + done.stderr).lower(), (arguments, done.stderr)
        return done.stdout + done.stderr

    until(lambda: doctor(os.environ["KUBECONFIG"], "--as", analyst)["Rights"]["state"] == "ok", str)
    said("fit", str(file))
    said("submit", str(file))
    # No image here brings an agent that could fetch code, but the config map that carries it is made.
    with_code = tmp_path / "with-code.yaml"
    with_code.write_text(f"{JOB}  code: {{folder: src}}\n".replace("clicks", "with-code"))
    said("submit", str(with_code))
    assert "with-code" in kubectl("get", "configmaps", "-n", NAMESPACE)
    until_phase("clicks", "running")
    for verb in ("get", "describe", "logs", "why"):
        said(verb, "clicks")
    said("trace", "clicks", "--timeout", "1s")
    said("report", "clicks", "-o", str(tmp_path / "page.html"))
    assert "pods/clicks-" in said("top", "clicks", "--once")
    assert "clicks" in paceline(os.environ["KUBECONFIG"], "list", "-A", "--as", analyst).stdout
    said("scale", "clicks", "--workers", "1")
    said("stop", "clicks")
    until_phase("clicks", "stopped")
    said("resume", "clicks")
    said("delete", "clicks", "--force")
    assert doctor(os.environ["KUBECONFIG"], "--as", analyst)["Operator"]["state"] == "ok"
