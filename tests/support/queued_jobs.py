"""What tests of jobs in queues share, whosever queues these are."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from paceline.engines.kubernetes import kinds
from paceline.model.jobs.job_specs import SchedulingSpec
from support.operator_scenes import job
from support.real_clusters import NAMESPACE, PACELINE, kubectl, objects, pods, submit, until

#: The pods of a job and its cores: a server and two workers of a core each.
JOB_PODS = JOB_CORES = 3


def apply(made: list[dict[str, Any]]) -> None:
    """Make objects, or change them."""
    kubectl("apply", "-f", "-", given=_listed(made))


def delete(made: list[dict[str, Any]]) -> None:
    """Delete objects that are there, and return when they are gone."""
    kubectl("delete", "--ignore-not-found", "-f", "-", given=_listed(made))


def _listed(made: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": made})


def submit_to(queue: str, name: str, priority: str | None = None, **more: Any) -> None:
    """Submit a job of `JOB_PODS` pods, or of more, to a queue."""
    scheduling = SchedulingSpec(queue=queue, priority_class=priority)
    submit(job(name, scheduling=scheduling, termination_grace_seconds=1.0, **more))


def why(name: str) -> dict[str, Any]:
    """Return what ``paceline why`` says of a job."""
    command = [*PACELINE, "why", name, "--engine", "kubernetes", "-n", NAMESPACE, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def in_queue(name: str) -> dict[str, Any] | None:
    """Return the cause that a job waits in its queue, if that is why it does not run."""
    return next((each for each in why(name)["causes"] if each["name"] == "in-queue"), None)


def until_it_waits(name: str, word: str) -> dict[str, Any]:
    """Wait until a job waits for a reason with this word; return that cause."""
    until(lambda: word in str((in_queue(name) or {}).get("evidence")), lambda: why(name))
    cause = in_queue(name)
    assert cause is not None
    return cause


def bound() -> dict[str, int]:
    """Return for each job how many of its pods have a node; pods that are leaving make room already."""
    counts: dict[str, int] = {}
    for pod in objects(kinds.PODS, "paceline.dev/job"):
        if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
            name = pod["metadata"]["labels"]["paceline.dev/job"]
            counts[name] = counts.get(name, 0) + 1
    return counts


def complete(name: str) -> None:
    """Have the workers of a job end as if their command had completed."""
    for pod in pods(name):
        if pod["metadata"]["labels"]["paceline.dev/role"] == "worker":
            own = ("pod", pod["metadata"]["name"], "-n", NAMESPACE)
            set_phase(own, "Succeeded", {"terminated": {"exitCode": 0, "reason": "Completed"}})


def set_phase(pod: tuple[str, ...], phase: str, state: dict[str, Any]) -> None:
    """Set the phase of a pod, named as for kubectl, and the state of its container, as a kubelet does."""
    container = {
        "name": "training",
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": state,
    }
    patch = json.dumps({"status": {"phase": phase, "containerStatuses": [container]}})
    kubectl("patch", *pod, "--subresource=status", "-p", patch)
