"""A job as Kubernetes objects, for each program that can run it."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from paceline.errors import InvalidInput
from paceline.model.jobs.job_specs import Framework, JobSpec
from paceline.model.roles import ReplicaId
from paceline.rendering import codes, config_maps, kueue, network_policies, pods, services, tfjobs, vcjobs
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings


class Target(enum.StrEnum):
    """The program that runs the job."""

    PODS = "pods"  # plain pods without a controller
    TFJOB = "tfjob"  # Kubeflow's training operator
    VCJOB = "vcjob"  # Volcano
    KUEUE = "kueue"  # plain pods in a queue of Kueue


def rendered(
    spec: JobSpec, target: Target, where: Surroundings, *, packed: bytes | None = None
) -> list[Object]:
    """Return all objects of a job for a target, in the order in which to create them.

    Args:
        spec: the job.
        target: the program that runs the job.
        where: the job's surroundings in the cluster.
        packed: the packed code folder of the job, if it has one.

    Raises:
        InvalidInput: the job does not meet a requirement of Kubernetes or of the target.
        EngineError: the job is too large for Kubernetes.
    """
    if packed is None:
        check(spec)
        return _rendered(spec, target, where)
    name = f"{spec.name}-code"
    spec = codes.carried(spec, name)
    check(spec)
    return [codes.config_map(spec, name, packed, where), *_rendered(spec, target, where)]


def _rendered(spec: JobSpec, target: Target, where: Surroundings) -> list[Object]:
    match target:
        case Target.PODS:
            return bare(spec, where, places={})
        case Target.TFJOB:
            if spec.framework is not Framework.TENSORFLOW:
                raise InvalidInput(
                    f"a TFJob is for TensorFlow, and {spec.name} says framework: {spec.framework}",
                    "take another target: pods, vcjob, kueue",
                )
            return tfjobs.objects(spec, where)
        case Target.VCJOB:
            return vcjobs.objects(spec, where)
        case Target.KUEUE:
            if spec.scheduling.queue is None:
                raise InvalidInput(
                    "Kueue takes jobs in through a queue", "name it: spec.scheduling.queue, or --queue NAME"
                )
            return kueue.queued(bare(spec, where, places={}), spec, spec.scheduling.queue)


def bare(spec: JobSpec, where: Surroundings, *, places: Mapping[ReplicaId, str]) -> list[Object]:
    """Return the objects of a job without a controller, with the pods of the first attempts.

    Args:
        spec: the job.
        where: the job's surroundings in the cluster.
        places: the nodes of the replicas whose node is decided already.

    Raises:
        EngineError: the job is too large for Kubernetes.
    """
    return [
        services.service(spec, where),
        network_policies.policy(spec, where),
        config_maps.config_map(spec, where, services.cluster(spec, where)),
        *(pods.pod(spec, each, where, node=places.get(each)) for each in spec.replicas()),
    ]


def check(spec: JobSpec) -> None:
    """Check that a job can run in containers on Kubernetes.

    Raises:
        InvalidInput: the job cannot run there; the message says why.
    """
    if spec.name[:1].isdigit():
        raise InvalidInput(
            f"{spec.name} begins with a digit, which the name of a Service may not (RFC 1035)",
            f"write metadata.name: job-{spec.name}",
        )
    if spec.image is None:
        raise InvalidInput(f"{spec.name} has no image to run in a container", "write spec.image: NAME:TAG")
    if spec.code is not None and spec.code.folder is not None:
        raise InvalidInput(
            f"the folder {spec.code.folder!r} of spec.code is not on the cluster: a resource cannot carry it",
            "paceline submit FILE --engine kubernetes takes it along; or name it by git or archive",
        )
    if spec.code is None and spec.working_dir is not None and not spec.working_dir.startswith("/"):
        raise InvalidInput(
            f"spec.working_dir is {spec.working_dir!r}; in a container it has to be absolute",
            "write the folder of the image in which the command starts",
        )
