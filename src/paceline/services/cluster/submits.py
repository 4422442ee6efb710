"""Creates the resource of a submitted job, once per submit key, and a config map for its folder of code."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Cluster, ClusterError, Object
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.run_names import free_name
from paceline.model.jobs.runs import Submit
from paceline.rendering import codes, manifests
from paceline.rendering.surroundings import Surroundings
from paceline.services import packed_folders
from paceline.specs.job_file import custom_resources

#: Annotations by which a repeated submit is recognized.
SUBMIT, FINGERPRINT = "paceline.dev/submit", "paceline.dev/submit-fingerprint"


class Made(NamedTuple):
    """The objects that a submit creates.

    Attributes:
        resource: the resource of the job.
        folder: the config map of its folder of code, which the operator ties to the job; None: it has none.
    """

    resource: Object
    folder: Object | None


def made(
    spec: JobSpec, base: Path, *, name: str, namespace: str, present: Sequence[Object], submit: Submit | None
) -> Made:
    """Return the objects that a submit creates.

    Args:
        spec: the job.
        base: the folder to which its paths are relative.
        name: the wanted name; a number is added if it is taken.
        namespace: the namespace of the job.
        present: the existing resources of the namespace.
        submit: the submit by which a repetition is recognized; None: repetitions are not recognized.

    Raises:
        InvalidInput: the job lacks what Kubernetes needs, or its folder of code cannot be carried.
    """
    packed, folder_name = packed_folders.of_job(spec, base), ""
    if packed is not None:
        # Each job has its own config map: the map of a job that was just deleted may still exist.
        folder_name = f"{name}-code-{secrets.token_hex(4)}"
        spec = codes.carried(spec, folder_name)
    manifests.check(spec)
    spec = dataclasses.replace(spec, name=free_name(name, {each["metadata"]["name"] for each in present}))
    resource = custom_resources.resource(spec, namespace)
    if submit is not None:
        resource["metadata"]["annotations"] = {
            **(resource["metadata"].get("annotations") or {}),
            SUBMIT: submit.key, FINGERPRINT: submit.fingerprint,
        }  # fmt: skip
    if packed is None:
        return Made(resource, folder=None)
    where = Surroundings(namespace=namespace)
    return Made(resource, folder=codes.config_map(spec, folder_name, packed, where))


def known(present: Sequence[Object], submit: Submit | None) -> Object | None:
    """Return the resource that an earlier submit of the same key created; None: there is none.

    A list from the API server contains every object whose creation it has acknowledged.

    Raises:
        Conflict: something else was submitted with the same key.
    """
    if submit is None:
        return None
    for each in present:
        annotations = each["metadata"].get("annotations") or {}
        if annotations.get(SUBMIT) == submit.key:
            if annotations.get(FINGERPRINT) != submit.fingerprint:
                raise submit.taken(each["metadata"]["name"])
            return each
    return None


async def create(cluster: Cluster, wanted: Made) -> Object:
    """Create the config map of a folder, if there is one, and then the job; return the job's resource.

    Raises:
        ClusterError: the cluster refuses one of the two, and neither exists; or it does not answer.
    """
    if wanted.folder is not None:
        await cluster.create(kinds.CONFIG_MAPS, wanted.folder)
    try:
        return await cluster.create(kinds.TRAINING_JOBS, wanted.resource)
    except ClusterError as error:
        if wanted.folder is not None and error.code is not None:  # Without a code the job may exist.
            metadata = wanted.folder["metadata"]
            await cluster.delete(kinds.CONFIG_MAPS, metadata["name"], metadata["namespace"])
        raise
