"""Recognition of containers that train, only by their image, command, arguments and environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.linting.manifests import readings
from paceline.linting.manifests.readings import Manifest
from paceline.specs.yaml_text.documents import Scalar

_MOST_CHARACTERS = 20_000
#: Environment variables that describe the cluster to a replica.
_VARIABLES = frozenset(("TF_CONFIG", "PS_HOSTS", "WORKER_HOSTS", "CLUSTER_SPEC", "TF_CLUSTER_SPEC"))
_OPTIONS = re.compile(
    r"\b(?:ps|worker)_?hosts\b|\b(?:PS|WORKER)_HOSTS\b|\bTF_CONFIG\b|--?job_name[= ]?|--?task_(?:index|id)\b"
    r"|\btf\.distribute\b|\btensorflow_(?:mnist|train)"
)
_IMAGE = re.compile(r"(?:^|[/_.-])(?:tensorflow|tf)(?![a-z])", re.IGNORECASE)
#: Programs that run in TensorFlow images and are meant to run for ever.
_SERVICE = re.compile(
    r"serving|model[-_]?server|tensorboard|jupyter|notebook|flask|gunicorn|uvicorn|operator|controller|dashboard",
    re.IGNORECASE,
)


def trains(manifest: Manifest, container: Mapping[str, Any]) -> bool:
    """Return whether a container is a replica of a TensorFlow training."""
    image = _resolved(manifest, readings.scalar(container, "image"))
    words = " ".join(_words(manifest, container))[:_MOST_CHARACTERS]
    if _OPTIONS.search(words) or _VARIABLES & set(_variables(container)):
        return not _SERVICE.search(image)
    return _IMAGE.search(image) is not None and not _SERVICE.search(f"{image} {words}")


def _words(manifest: Manifest, container: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of the command and of the arguments of a container."""
    for key in ("command", "args"):
        listed = container.get(key)
        for word in listed if isinstance(listed, list) else ():
            yield _resolved(manifest, word)


def _variables(container: Mapping[str, Any]) -> Iterator[str]:
    listed = container.get("env")
    for each in listed if isinstance(listed, list) else ():
        name = readings.scalar(each, "name") if isinstance(each, Mapping) else None
        if name is not None:
            yield name.text


def _resolved(manifest: Manifest, value: Any) -> str:
    return manifest.template.resolved(value.text) if isinstance(value, Scalar) else ""
