"""How a job file has its variables cut and placed, and the changes that cut or place them otherwise.

The training library cuts and places as Paceline does by itself unless keys say otherwise, so its changes
leave keys out; in any other script a cure has to be asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import trainings
from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import FieldChange
from paceline.model.variables import cures

_TRAINING = ("spec", "training")
#: What a user's own script can do, where the job file has no say.
BY_HAND = (
    "in your script: tf.distribute.experimental.partitioners.MinSizePartitioner(max_shards={servers}), "
    "or tf.compat.v1.min_max_variable_partitioner({servers})"
)


def to_defaults(case: Case) -> tuple[FieldChange, ...]:
    """Return the changes that have variables cut, rows shuffled and parts placed as Paceline does by itself:
    large ones over all PS, rows by hash, the busiest part first. In a script without the training library
    rows stay in order, and the largest part is placed first. Empty: the job file says nothing of it.
    """
    if trainings.is_seen(case):
        return (*trainings.cured(case, cures.PARTITIONING), *trainings.cured(case, cures.PLACEMENT))
    return tuple(
        _left_out(case, ("partitioning", "variable_placement", "variable_plan", "measured_variables"))
    )


def placement_to_default(case: Case) -> tuple[FieldChange, ...]:
    """Return the changes that have parts placed by what they move, cut as they are.

    A script without the training library has them placed by their sizes.
    """
    if trainings.is_seen(case):
        return trainings.cured(case, cures.PLACEMENT)
    return tuple(_left_out(case, ("variable_placement", "variable_plan")))


def rows_hashed(case: Case) -> tuple[FieldChange, ...]:
    """Return the changes that have the rows of tables shuffled before they are cut.

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
