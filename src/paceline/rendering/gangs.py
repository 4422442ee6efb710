"""Pods that the scheduler of Kubernetes itself places all at once or not at all.

Source: ``PodGroupSpec`` of ``scheduling.k8s.io/v1beta1`` and ``PodSchedulingGroup`` of ``v1`` (Kubernetes
1.37, feature GenericWorkload).
"""

from __future__ import annotations

from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import labels
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings


def pod_group(spec: JobSpec, where: Surroundings) -> Object:
    """Return the PodGroup of all replicas of a job; one of higher priority takes all of it or nothing."""
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": labels.metadata(spec, spec.name, where),
        "spec": labels.given(
            {
                "schedulingPolicy": {"gang": {"minCount": len(spec.replicas())}},
                "disruptionMode": {"all": {}},
                "priorityClassName": spec.scheduling.priority_class,
            }
        ),
    }


def grouped(pod: Object, spec: JobSpec) -> Object:
    """Return a pod as a member of its job's PodGroup."""
    return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": spec.name}}}
