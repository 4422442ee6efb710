"""The names that jobs can have, for names that come from elsewhere than a job file."""

from __future__ import annotations

from paceline.errors import InvalidInput
from paceline.specs.job_file import fields
from paceline.specs.yaml_text import problems


def check(name: str) -> None:
    """Refuse a name that no job can have.

    Raises:
        InvalidInput: it is none.
    """
    if not fields.is_name(name):
        raise InvalidInput(f"{problems.shown(name)} cannot be a job's name", f"Use {fields.NAME_RULE}.")
