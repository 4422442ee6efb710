"""The resource of a job as a submit makes it: one for each key, with its folder of code beside it."""

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

#: Annotations by which a submit that is made twice is known as one.
SUBMIT, FINGERPRINT = "paceline.dev/submit", "paceline.dev/submit-fingerprint"


class Made(NamedTuple):
    """What a submit makes.

    Attributes:
        resource: of the job.
        folder: the config map of its folder of code, which the operator ties to the job; None: it has none.
    """

    resource: Object
    folder: Object | None


def made(
    spec: JobSpec, base: Path, *, name: str, namespace: str, present: Sequence[Object], submit: Submit | None
) -> Made:
    """Return what a submit makes.

    Args:
        spec: the job.
        base: where its relative paths begin.
        name: what it is to be called; with a number when that is taken.
        namespace: where it is to be.
        present: the resources that there are.
        submit: by which it is known again; None: by nothing.

    Raises:
        InvalidInput: the job lacks what Kubernetes needs, or its folder of code cannot be carried.
    """
    packed, folder_name = packed_folders.of_job(spec, base), ""
    if packed is not None:
        # Each job its own: that of a job which was deleted a moment ago may still be there.
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
    """Return what a submit made before; the API server's own lists lack nothing that it has answered.

    Raises:
        Conflict: something else was submitted with its key.
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
    """Make the config map of a folder, if there is one, and then the job; return its resource.

    Raises:
        ClusterError: the cluster refuses one of them, so neither is there; or it does not answer.
    """
    if wanted.folder is not None:
        await cluster.create(kinds.CONFIG_MAPS, wanted.folder)
    try:
        return await cluster.create(kinds.TRAINING_JOBS, wanted.resource)
    except ClusterError as error:
        if wanted.folder is not None and error.code is not None:  # else the job may be there all the same
            metadata = wanted.folder["metadata"]
            await cluster.delete(kinds.CONFIG_MAPS, metadata["name"], metadata["namespace"])
        raise
