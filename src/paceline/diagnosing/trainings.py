"""The training section of a job file, as far as rules read it or propose changes to it.

A script that is written with the training library obeys the whole section. In any other script the section
changes only what a cure can change (`model.variables.cures`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.diagnosing import sayings
from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import Framework
from paceline.model.jobs.runs import CURED, SEEN, STEPS_SEEN
from paceline.model.roles import Role
from paceline.model.variables import cures, optimizers
from paceline.model.variables.cures import Cure


def is_seen(case: Case) -> bool:
    """Return whether the instrumentation sees the script's steps, so the script does not use the library."""
    return any(event.message.startswith(STEPS_SEEN) for event in sayings.of(case, SEEN))


def is_of_sessions(case: Case) -> bool:
    """Return whether TensorFlow sessions make the steps that the instrumentation sees."""
    made = f"{STEPS_SEEN} made by"
    is_tensorflow = case.spec.framework is Framework.TENSORFLOW
    return is_tensorflow and any(event.message.startswith(made) for event in sayings.of(case, SEEN))


def by_library(case: Case) -> bool:
    """Return whether the job's script obeys the whole training section."""
    return case.spec.training is not None and not is_seen(case)


def is_applied(case: Case, cure: Cure) -> bool:
    """Return whether a cure was applied in any replica."""
    found = (cures.parse(event.message) for event in sayings.of(case, CURED))
    return any(each is not None and each.cure == cure.name and each.is_applied for each in found)


def cured(case: Case, cure: Cure) -> tuple[FieldChange, ...]:
    """Return the change that asks for a cure; empty: the script is not seen, or the job file has the cure."""
    if not is_seen(case) or cure.is_asked(case.spec.training or {}):
        return ()
    return (FieldChange(path=("spec", "training", *cure.path), value=cure.example),)


def section(case: Case, *path: str) -> Mapping[str, Any]:
    """Return a section below ``training``, or ``training`` itself; empty: the job file does not have it."""
    found: Any = case.spec.training
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def optimizer(case: Case, key: str) -> str | None:
    """Return the optimizer of a key (``optimizer``, ``wide_optimizer``); None: the script sets its own."""
    if not by_library(case):
        return None
    return str(section(case, key).get("name") or optimizers.DEFAULTS[key])


def servers(case: Case, count: int) -> tuple[FieldChange, ...]:
    """Return the changes that give a job a number of parameter servers.

    They remove a saved variable plan, which is made for the old number.
    """
    return (
        FieldChange(path=("spec", "roles", str(Role.PS), "replicas"), value=count),
        *(
            (FieldChange(path=("spec", "training", "variable_plan"), value=None),)
            if "variable_plan" in section(case)
            else ()
        ),
    )


def uncut(case: Case) -> Iterator[str]:
    """Yield manual steps that make more servers useful: they help only if variables are cut over them."""
    if not by_library(case):
        yield (
            "see that your script cuts large variables over all PS: "
            "tf.distribute.experimental.partitioners.MinSizePartitioner"
        )
    elif section(case, "partitioning").get("strategy") == "none":
        yield "spec.training.partitioning: leave {strategy: none} out, or large variables stay whole"
