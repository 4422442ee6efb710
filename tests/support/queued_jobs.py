"""What tests of jobs in queues share, whosever queues these are."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from paceline.engines.kubernetes import kinds
from paceline.model.jobs.job_specs import SchedulingSpec
from support.clusters import apply, as_list
from support.operator_scenes import job
from support.real_clusters import (
    NAMESPACE,
    PACELINE,
    OperatorProcess,
    change,
    kubectl,
    objects,
    pods,
    remove,
    submit,
    until,
    until_phase,
)

#: The pods of a job and its cores: a server and two workers of a core each.
JOB_PODS = JOB_CORES = 3


#: The rights in queues that an administrator gives to the operator and to users.
RIGHTS = Path(__file__).parents[2] / "deploy" / "kustomize" / "queues.yaml"


@contextlib.contextmanager
def queue_rights(*more: dict[str, Any]) -> Iterator[None]:
    """Give what is shipped for queues, and more objects that an administrator makes once."""
    shipped = [*yaml.safe_load_all(RIGHTS.read_text()), *more]
    apply(shipped)
    yield
    delete(shipped)


def delete(objects_there: Sequence[dict[str, Any]]) -> None:
    """Delete objects that are there, and return when they are gone."""
    kubectl("delete", "--ignore-not-found", "-f", "-", given=as_list(objects_there))


def priority_class(name: str, value: int) -> dict[str, Any]:
    """Return a PriorityClass."""
    api = "scheduling.k8s.io/v1"
    return {"apiVersion": api, "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


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


def submit_a_hundred(queue: str, operator: OperatorProcess) -> list[str]:
    """Submit a hundred jobs to a queue; the operator is killed in the middle. Returns their names."""
    names = [f"gang-{number:03}" for number in range(100)]
    for name in names:
        submit_to(queue, name)
        if name == names[50]:
            operator.kill()
            operator.start()
    return names


def until_each_ran(names: Sequence[str], check: Callable[[dict[str, int]], None]) -> None:
    """Wait until each job has had all of its pods on nodes at once; it is removed then.

    Args:
        names: of the jobs.
        check: what must hold of the bound pods of each job, at each look.
    """
    ran: set[str] = set()

    def look() -> bool:
        counts = bound()
        check(counts)
        running = {name for name, count in counts.items() if count == JOB_PODS}
        ran.update(running)
        for name in running:
            remove(kinds.TRAINING_JOBS, name)
        return ran == set(names)

    until(look, lambda: sorted(set(names) - ran), seconds=900.0)


def bound() -> dict[str, int]:
    """Return for each job that is there how many of its pods have a node.

    What leaves makes room already: a queue gives the room of a deleted job away before its pods are marked.
    """
    counts: dict[str, int] = {}
    for pod in objects(kinds.PODS, "paceline.dev/job"):
        if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
            name = pod["metadata"]["labels"]["paceline.dev/job"]
            counts[name] = counts.get(name, 0) + 1
    # The jobs are asked for after their pods, so that none whose pods are counted has been deleted before.
    jobs = {each["metadata"]["name"] for each in objects(kinds.TRAINING_JOBS)}
    return {name: count for name, count in counts.items() if name in jobs}


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


def begin_again(name: str, *, workers: int) -> None:
    """Stop a job that runs, and have it begin again with another number of workers."""
    change(name, suspend=True)
    until_phase(name, "stopped")
    change(name, suspend=False, roles={"worker": {"replicas": workers}})
