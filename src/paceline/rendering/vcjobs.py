"""A job as a Volcano Job; Volcano starts all of its pods or none.

The ``svc`` plugin gives every pod a DNS name, and the ``env`` plugin gives it an index. Source:
``pkg/controllers/job/plugins`` of volcano-sh/volcano.
"""

from __future__ import annotations

from paceline.model.jobs import job_specs
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import Role
from paceline.rendering import config_maps, labels, network_policies, pods, services
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

_INDEX_VARIABLE = "VC_TASK_INDEX"


def objects(spec: JobSpec, where: Surroundings) -> list[Object]:
    """Return the network policy, the config map of the agents and the Volcano job."""
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": labels.metadata(spec, spec.name, where),
        "spec": labels.given(
            {
                "schedulerName": "volcano",
                "queue": spec.scheduling.queue,
                "priorityClassName": spec.scheduling.priority_class,
                "minAvailable": len(spec.replicas()),
                "maxRetry": labels.restart_limit(spec),
                "ttlSecondsAfterFinished": labels.whole(spec.ttl_after_finished_seconds),
                "plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true"]},
                "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
                "tasks": [_task(spec, role, where) for role in spec.roles],
            }
        ),
    }
    told = config_maps.config_map(spec, where, services.cluster(spec, where))
    return [network_policies.policy(spec, where), told, job]


def _task(spec: JobSpec, role: RoleSpec, where: Surroundings) -> Object:
    template = pods.template(spec, where, role, _INDEX_VARIABLE)
    restart = "Never" if role.restart.when is job_specs.RestartWhen.NEVER else "OnFailure"
    return labels.given(
        {
            "name": str(role.role),
            "replicas": role.replicas,
            "template": {**template, "spec": {**template["spec"], "restartPolicy": restart}},
            "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}] if _decides(spec, role) else [],
        }
    )


def _decides(spec: JobSpec, role: RoleSpec) -> bool:
    """Return whether the job is complete when all replicas of a role are."""
    chief = spec.role(Role.CHIEF) is not None
    by_chief = chief and spec.success is job_specs.SuccessPolicy.CHIEF
    return role.role is (Role.CHIEF if by_chief else Role.WORKER)
