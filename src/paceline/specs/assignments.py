"""Changes of a job file as people write them on a command line: ``ps.replicas=4``."""

from __future__ import annotations

import yaml

from paceline.errors import InvalidInput
from paceline.model.causes import Change
from paceline.model.roles import Role

_EXAMPLE = "write it as ps.replicas=4, worker.cpu=500m or training.partitioning.strategy=none"


def change(text: str) -> Change:
    """Return the change that ``FIELD=VALUE`` asks for.

    A field is a path below ``spec``; one that begins with a role is of that role. A value is YAML; none at
    all leaves the field out.

    Raises:
        InvalidInput: it is not written like that.
    """
    field, sign, value = text.partition("=")
    path = tuple(part.strip() for part in field.split("."))
    if not sign or not all(path):
        raise InvalidInput(f"{text!r} is no change of a field", _EXAMPLE)
    if path[0] in {str(role) for role in Role}:
        path = ("roles", *path)
    if path[0] != "spec":
        path = ("spec", *path)
    try:
        data = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise InvalidInput(f"{value!r} is no value of {field}", _EXAMPLE) from error
    return Change(path=path, value=data)
