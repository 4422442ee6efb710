"""Runs scripts with cures, and without the instrumentation, and reads what they and the cures have said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support import ports
from support.interpreters import with_tensorflow_or_skip

SCRIPTS = Path(__file__).parents[1] / "scripts" / "cured"


def result(
    runner: Any,
    version: str | None,
    script: str,
    *arguments: str,
    training: Mapping[str, Any] | None = None,
    servers: int = 0,
) -> Any:
    """Run a script, and return what it printed as its result.

    Args:
        runner: of the test.
        version: of TensorFlow; None: that of the tests.
        script: its name in ``scripts/cured``.
        arguments: the script's.
        training: the block of the job file; None: nothing is instrumented.
        servers: parameter servers of the cluster, which the script starts.
    """
    more = {"PACELINE_INSTRUMENTATION": "off"}
    if training is not None:
        more = {"PACELINE_TRAINING": json.dumps(training)}
    if servers:
        more["TF_CONFIG"] = json.dumps({"cluster": cluster(servers)})
    python = str(with_tensorflow_or_skip(version))
    done = runner.run(
        str(SCRIPTS / script), *arguments, python=python, environment=runner.environment(**more)
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"^result (.*)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    return json.loads(found.group(1))


def cluster(servers: int) -> dict[str, list[str]]:
    """Return the addresses of a chief, some parameter servers and a worker."""
    addresses = ports.addresses(servers + 2, "localhost")
    return {"chief": addresses[:1], "worker": addresses[1:2], "ps": addresses[2:]}


def said(runner: Any) -> list[tuple[str, str, str]]:
    """Return what cures said: name, outcome, message."""
    return [(each["name"], each["outcome"], each["message"]) for each in runner.reports("cure")]
