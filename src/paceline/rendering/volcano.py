"""Pods that Volcano's scheduler starts only when there is room for all of them.

Source: ``KubeGroupNameAnnotationKey`` and ``PodGroupSpec`` of volcano-sh/apis (``scheduling/v1beta1``).
"""

from __future__ import annotations

from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import labels
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

SCHEDULER = "volcano"
_GROUP = "scheduling.k8s.io/group-name"


def pod_group(spec: JobSpec, where: Surroundings, queue: str) -> Object:
    """Return the PodGroup of all replicas of a job, in a queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": labels.metadata(spec, spec.name, where),
        "spec": labels.given(
            {
                "minMember": len(spec.replicas()),
                "queue": queue,
                "priorityClassName": spec.scheduling.priority_class,
            }
        ),
    }


def grouped(pod: Object, spec: JobSpec) -> Object:
    """Return a pod as a member of its job's PodGroup."""
    annotations = {**pod["metadata"].get("annotations", {}), _GROUP: spec.name}
    metadata = {**pod["metadata"], "annotations": annotations}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "schedulerName": SCHEDULER}}
