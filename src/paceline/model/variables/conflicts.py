"""Settings of ``training:`` that do not go together: the job file and the training library refuse them."""

from __future__ import annotations

from paceline.model.variables.schedules import LearningRateSchedule


def of_schedule(optimizer: str, schedule: LearningRateSchedule) -> str | None:
    """Return why an optimizer cannot have a schedule, or None."""
    if optimizer == "ftrl" and not schedule.is_constant:
        return (
            "ftrl makes its weights anew from the rate of each step, so a schedule would scale them; "
            "use adagrad, which computes the same for weights that start from zero"
        )
    return None


def of_export(export_dir: str | None, checkpoints_kept: int) -> str | None:
    """Return why the model cannot be exported, or None."""
    if export_dir is not None and not checkpoints_kept:
        return "export_dir needs a checkpoint, and checkpoint.keep is 0"
    return None


def of_copies(mirror: str | None, restore_from: str | None, checkpoints_kept: int) -> str | None:
    """Return why checkpoints cannot be copied or begun from, or None."""
    if checkpoints_kept:
        return None
    if mirror is not None:
        return "checkpoint.mirror needs checkpoints, and checkpoint.keep is 0"
    if restore_from is not None:
        return "checkpoint.restore_from needs a place for checkpoints, and checkpoint.keep is 0"
    return None
