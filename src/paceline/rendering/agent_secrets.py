"""The Secret with the token of a job's agents: a client that presents it may read more than metrics."""

from __future__ import annotations

from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import labels
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

#: The key of the token in the Secret, and the name of the file that holds it.
TOKEN = "token"


def name(job: str) -> str:
    """Return the name of the Secret of a job."""
    return f"{job}-agent"


def secret(spec: JobSpec, where: Surroundings, token: str) -> Object:
    """Return the Secret of a job with its token."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": labels.metadata(spec, name(spec.name), where),
        "type": "Opaque",
        "stringData": {TOKEN: token},
    }
