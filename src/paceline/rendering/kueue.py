"""Pods that Kueue holds back until the quota of its queue admits all pods of the job.

Source: Kueue's documentation, "Run a group of Pods".
"""

from __future__ import annotations

from collections.abc import Iterable

from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering.labels import Object

_QUEUE, GROUP, _COUNT, RETRIABLE = (
    f"kueue.x-k8s.io/{name}"
    for name in ("queue-name", "pod-group-name", "pod-group-total-count", "retriable-in-group")
)


def queued(objects: Iterable[Object], spec: JobSpec, queue: str) -> list[Object]:
    """Return the objects of a job, with its pods as one group in a queue."""
    return [grouped(each, spec, queue) if each["kind"] == "Pod" else each for each in objects]


def group_name(job: str, resumes: int = 0) -> str:
    """Return the name of the group of pods of a job, and of its workload in Kueue.

    A group that has ended takes no pods, so a job that begins again is another group. No job has a dot in its
    name, so the group is not that of another job.
    """
    return f"{job}.{resumes}" if resumes else job


def grouped(pod: Object, spec: JobSpec, queue: str, resumes: int = 0) -> Object:
    """Return a pod as a member of its job's group; the pod of a later attempt replaces a failed pod.

    Args:
        pod: the pod.
        spec: its job.
        queue: the queue.
        resumes: how often the job began again.
    """
    metadata = pod["metadata"]
    labels = {**metadata["labels"], _QUEUE: queue, GROUP: group_name(spec.name, resumes)}
    annotations = {**metadata.get("annotations", {}), _COUNT: str(len(spec.replicas()))}
    return {**pod, "metadata": {**metadata, "labels": labels, "annotations": annotations}}
