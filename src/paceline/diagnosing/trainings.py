"""What the training section of a job file says, where rules go by it or change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.diagnosing.cases import Case
from paceline.model.causes import Change
from paceline.model.roles import Role

#: What the training library takes where the job file says nothing: `training.settings.Settings`.
_DEFAULTS = {"optimizer": "adagrad", "wide_optimizer": "ftrl"}


def section(case: Case, *path: str) -> Mapping[str, Any]:
    """Return a section below ``training``, or that itself; empty: the job file does not have it."""
    found: Any = case.spec.training
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def optimizer(case: Case, key: str) -> str | None:
    """Return the optimizer under a key (``optimizer``, ``wide_optimizer``); None: there is no such section.

    A script of a user's own may have the section and not obey it.
    """
    if case.spec.training is None:
        return None
    return str(section(case, key).get("name") or _DEFAULTS[key])


def servers(case: Case, count: int) -> tuple[Change, ...]:
    """Return the changes that give a job so many parameter servers: a saved plan is for those that it had."""
    return (
        Change(path=("spec", "roles", str(Role.PS), "replicas"), value=count),
        *(
            (Change(path=("spec", "training", "variable_plan"), value=None),)
            if "variable_plan" in section(case)
            else ()
        ),
    )


def uncut(case: Case) -> Iterator[str]:
    """Yield what to do by hand where more servers help only if variables are cut over them."""
    if case.spec.training is None:
        yield (
            "see that your script cuts large variables over all PS: "
            "tf.distribute.experimental.partitioners.MinSizePartitioner"
        )
    elif section(case, "partitioning").get("strategy") == "none":
        yield "spec.training.partitioning: leave {strategy: none} out, or large variables stay whole"
