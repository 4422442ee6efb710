"""Changes of a job file as users write them on a command line: ``ps.replicas=4``."""

from __future__ import annotations

import re

from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.model.roles import Role
from paceline.specs.job_file import plan_files
from paceline.specs.yaml_text import problems, writings

#: The most values in a comparison; users do not read more.
MOST_VALUES = 100
#: Enough for numbers, words and short lists.
MOST_CHARACTERS = 4096
_RANGE = re.compile(r"(\d{1,6})\.\.(\d{1,6})")
_EXAMPLE = "write it as ps.replicas=4, worker.cpu=500m or training.partitioning.strategy=none"


def change(text: str) -> FieldChange:
    """Return the change that ``FIELD=VALUE`` asks for.

    The field is a path below ``spec``; a path that begins with a role is below ``spec.roles``. The value is
    YAML; an empty value removes the field.

    Raises:
        InvalidInput: the text does not have this form, or the value is too long or too large.
    """
    field, sign, value = text.partition("=")
    if not sign:
        raise InvalidInput(f"{text!r} is no change of a field", _EXAMPLE)
    where = path(field)
    if len(value) > MOST_CHARACTERS:
        raise InvalidInput(
            f"{field} has a value of {len(value):,} characters, and {MOST_CHARACTERS:,} at most"
        )
    try:
        return FieldChange(path=where, value=writings.writable(plan_files.plain_text(value)))
    except problems.DocumentError as error:
        reason = error.problems[0].message
    except InvalidInput as error:
        reason = error.message
    raise InvalidInput(f"{problems.shown(value)} is no value of {problems.shown(field)}: {reason}", _EXAMPLE)


def path(field: str) -> tuple[str, ...]:
    """Return the path of a field as users write it, such as ``ps.replicas`` or ``training.batch_size``.

    Raises:
        InvalidInput: a part of the path is empty.
    """
    parts = tuple(part.strip() for part in field.split("."))
    if not all(parts):
        raise InvalidInput(f"{field!r} is no field", _EXAMPLE)
    if parts[0] in {str(role) for role in Role}:
        parts = ("roles", *parts)
    return parts if parts[0] == "spec" else ("spec", *parts)


def several(text: str) -> tuple[FieldChange, ...]:
    """Return the changes that ``FIELD=FIRST..LAST`` or ``FIELD=VALUE,VALUE`` asks for, one for each value.

    Raises:
        InvalidInput: the text does not have this form, or has more than `MOST_VALUES` values.
    """
    field, sign, values = text.partition("=")
    bounds = _RANGE.fullmatch(values.strip())
    if bounds is None:
        listed = values.split(",")
        if len(listed) > MOST_VALUES:
            raise InvalidInput(f"{field} has {len(listed):,} values to compare: at most {MOST_VALUES}")
        return tuple(change(f"{field}{sign}{value}") for value in listed)
    first, last = int(bounds[1]), int(bounds[2])
    if not 0 <= last - first < MOST_VALUES:
        raise InvalidInput(
            f"{values!r} are no values to compare: at most {MOST_VALUES}, the smallest first",
            "write it as worker.replicas=1..16 or ps.cpu=500m,1,2",
        )
    return tuple(change(f"{field}={value}") for value in range(first, last + 1))
