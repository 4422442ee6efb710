"""Names of runs."""

from __future__ import annotations

import re


def free_name(wanted: str, taken: set[str]) -> str:
    """Return ``wanted``; if it is taken, with a number from 2 that is above all numbers in use."""
    if wanted not in taken:
        return wanted
    numbers = (re.fullmatch(re.escape(wanted) + r"-(\d+)", name) for name in taken)
    return f"{wanted}-{max([1, *(int(match[1]) for match in numbers if match)]) + 1}"


def cluster_job(run: str) -> tuple[str, str]:
    """Return the namespace and the name of a cluster's job, from the name of its run in the store."""
    where, name, _ = run.split("/")
    return where.partition(".")[0], name
