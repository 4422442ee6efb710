"""Delivery of a job's code to its replicas: the config of the fetcher, and a folder as a config map."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

from paceline.model.jobs.code_sources import Code
from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import labels
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

#: The key of a packed folder in its config map.
PACKED = "code.tar.gz"
#: The size limit of a config map (``MaxSecretSize`` of Kubernetes).
MAX_PACKED_BYTES = 1 << 20


def fetch_config(code: Code, working_dir: str | None, packed: str) -> dict[str, Any]:
    """Return the config of the fetcher (``paceline.agent.fetch``).

    Args:
        code: the code.
        working_dir: working directory of the job; a relative one has to be within the code.
        packed: path at which the fetcher finds a packed folder.
    """
    inside = None if working_dir is not None and working_dir.startswith("/") else working_dir
    start = {"start": code.start("", inside)}
    if code.git is not None:
        return {"git": dataclasses.asdict(code.git), **start}
    if code.archive is not None:
        return {"archive": dataclasses.asdict(code.archive), **start}
    return {"packed": packed, **start}


def config_map(spec: JobSpec, name: str, packed: bytes, where: Surroundings) -> Object:
    """Return the config map of a packed folder; immutable, because the code of a submitted job is fixed."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": labels.metadata(spec, name, where),
        "immutable": True,
        "binaryData": {PACKED: base64.b64encode(packed).decode()},
    }


def carried(spec: JobSpec, name: str) -> JobSpec:
    """Return the job with the config map ``name`` in place of its code folder."""
    assert spec.code is not None, "there is a folder to carry"
    return dataclasses.replace(spec, code=dataclasses.replace(spec.code, folder=None, config_map=name))
