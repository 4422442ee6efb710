"""A real cluster for tests, by kubectl, and the operator on it as a process."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

from paceline.model.jobs import JobSpec
from paceline.specs import custom_resources
from support import clusters, operator_processes
from support.rights import Right

NAMESPACE = "e2e"
PACELINE = operator_processes.PACELINE
#: As the API server words it (``ForbiddenStatusError`` of k8s.io/apiserver), whatever the kind.
_DENIED = re.compile(r'cannot (\w+) resource "([\w/]+)"')
#: The client reads no more than the status of a watch that is refused.
_UNWATCHED = re.compile(r"(\w+) cannot be watched: .*403 Forbidden")


def kubectl(*arguments: str, given: str | None = None) -> str:
    """Return what kubectl prints."""
    try:
        return clusters.kubectl(*arguments, given=given)
    except clusters.KubectlError as error:
        raise AssertionError(str(error)) from error


def found(*arguments: str) -> dict[str, Any]:
    """Return what kubectl gets."""
    return dict(json.loads(kubectl("get", *arguments, "-o", "json")))


class OperatorProcess(operator_processes.OperatorProcess):
    """The operator as it is shipped, in a process that can be killed."""

    def denied(self) -> set[Right]:
        """What the API server has refused it for want of rights, by its log."""
        told = self.log.read_text()
        unwatched = (Right("watch", resource) for resource in _UNWATCHED.findall(told))
        return {*(Right(*each) for each in _DENIED.findall(told)), *unwatched}


def submit(spec: JobSpec, **more: Any) -> None:
    """Make the resource of a job."""
    made = custom_resources.resource(spec, NAMESPACE)
    made["spec"].update(more)
    kubectl("create", "-f", "-", given=json.dumps(made))


def status(name: str) -> dict[str, Any]:
    return dict(found("trainingjob", name, "-n", NAMESPACE).get("status") or {})


def until(holds: Callable[[], Any], what: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.25)


def until_phase(name: str, phase: str, seconds: float = 60.0) -> None:
    until(lambda: status(name).get("phase") == phase, lambda: status(name), seconds)
