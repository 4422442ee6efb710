"""How a job file cuts and places variables, and the changes that cut or place them differently.

The training library uses Paceline's default way to cut and place unless keys of the job file say otherwise,
so the changes for it remove keys. For any other script the changes ask for a cure.
"""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import trainings
from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import FieldChange
from paceline.model.variables import cures

_TRAINING = ("spec", "training")
#: The next step for a user's own script, which the job file cannot change.
BY_HAND = (
    "in your script: tf.distribute.experimental.partitioners.MinSizePartitioner(max_shards={servers}), "
    "or tf.compat.v1.min_max_variable_partitioner({servers})"
)


def to_defaults(case: Case) -> tuple[FieldChange, ...]:
    """Return the changes to Paceline's default way of cutting and placing variables.

    By default, large variables are cut over all PS, rows are shuffled by hash, and the busiest shard is
    placed first. In a script without the training library, rows stay in order and the largest shard is placed
    first. Empty: there is nothing to change.
    """
    if trainings.is_seen(case):
        return (*trainings.cured(case, cures.PARTITIONING), *trainings.cured(case, cures.PLACEMENT))
    return tuple(
        _left_out(case, ("partitioning", "variable_placement", "variable_plan", "measured_variables"))
    )


def placement_to_default(case: Case) -> tuple[FieldChange, ...]:
    """Return the changes that place shards by their traffic, without cutting them differently.

    In a script without the training library, shards are placed by size.
    """
    if trainings.is_seen(case):
        return trainings.cured(case, cures.PLACEMENT)
    return tuple(_left_out(case, ("variable_placement", "variable_plan")))


def rows_hashed(case: Case) -> tuple[FieldChange, ...]:
    """Return the changes that shuffle the rows of tables before they are cut.

    Empty: the script is not written with the training library.
    """
    if trainings.is_seen(case):
        return ()
    training = case.spec.training or {}
    if "variable_plan" in training:
        return to_defaults(case)
    return (FieldChange(path=(*_TRAINING, "partitioning", "rows"), value="hashed"),)


def _left_out(case: Case, keys: tuple[str, ...]) -> Iterator[FieldChange]:
    training = case.spec.training or {}
    return (FieldChange(path=(*_TRAINING, key), value=None) for key in keys if key in training)
