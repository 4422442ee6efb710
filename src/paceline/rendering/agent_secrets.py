"""The secret of a job's agents: who shows it may read more of them than metrics."""

from __future__ import annotations

from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import labels
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

#: Its key, and the name of the file with it.
TOKEN = "token"


def name(job: str) -> str:
    """Return what it is called."""
    return f"{job}-agent"


def secret(spec: JobSpec, where: Surroundings, token: str) -> Object:
    """Return it, with the token that was made for it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": labels.metadata(spec, name(spec.name), where),
        "type": "Opaque",
        "stringData": {TOKEN: token},
    }
