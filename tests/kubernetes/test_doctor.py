"""What ``paceline doctor`` says of a real API server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.real_clusters import NAMESPACE, OperatorProcess, until

MAIN = "from paceline.surfaces.cli.main import main; main()"


def doctor(kubeconfig: str) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-c", MAIN, "doctor", "--engine", "kubernetes", "-n", NAMESPACE, "-o", "json"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "KUBECONFIG": kubeconfig},
    )  # fmt: skip
    return {each["name"]: each for each in json.loads(done.stdout)["items"]}


def test_an_administrator_sees_all(operator: OperatorProcess) -> None:
    until(lambda: doctor(os.environ["KUBECONFIG"])["Operator"]["state"] == "ok", operator.log.read_text)
    found = doctor(os.environ["KUBECONFIG"])
    for name in ("API server", "TrainingJob", "Operator", "Rights", "Nodes", "Beside it"):
        assert found[name]["state"] == "ok", found[name]
    # Hollow kubelets speak no TLS, so the API server cannot ask them; real ones answer.
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
