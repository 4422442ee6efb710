"""Checks job names that do not come from a job file."""

from __future__ import annotations

from paceline.errors import InvalidInput
from paceline.specs.job_file import fields
from paceline.specs.yaml_text import problems


def check(name: str) -> None:
    """Check that a job can have a name.

    Raises:
        InvalidInput: no job can have this name.
    """
    if not fields.is_name(name):
        raise InvalidInput(f"{problems.shown(name)} cannot be a job's name", f"Use {fields.NAME_RULE}.")
