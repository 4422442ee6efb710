"""Atomic checkpoints of all parameters and the global step, written by the chief alone.

The saver gathers the variables at the chief, so only the chief needs to see the folder. It writes to
temporary names, renames, and then replaces the file `checkpoint` that names the newest: a chief that is
killed half-way leaves the one before in force. Older ones are removed after that, and what a killed chief
left behind at the next start.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import tensorflow as tf

from paceline.training import errors

_log = logging.getLogger(__name__)
_NAME = "model.ckpt"


class Checkpoints:
    """The checkpoints in a folder (or none, when the folder is None: then nothing is saved or restored)."""

    def __init__(self, directory: str | None, saver: Any, every_seconds: float) -> None:
        self._directory = directory
        self._saver = saver
        self._every_seconds = every_seconds
        self._saved_at = time.monotonic()
        self._saved_step: int | None = None

    def prepare(self) -> None:
        """Makes the folder, removes half-written files of an earlier chief and takes over its finished
        ones.
        """
        if self._directory is None:
            _log.info("no checkpoint folder is given (PACELINE_CHECKPOINT_DIR): nothing will be saved")
            return
        tf.io.gfile.makedirs(self._directory)
        for name in tf.io.gfile.listdir(self._directory):
            if name.startswith(_NAME) and ".tempstate" in name:
                tf.io.gfile.remove(f"{self._directory}/{name}")
        state = tf.train.get_checkpoint_state(self._directory)
        if state is not None:
            self._saver.recover_last_checkpoints(state.all_model_checkpoint_paths)

    def latest(self) -> str | None:
        """The newest whole checkpoint, or None."""
        newest: str | None = tf.train.latest_checkpoint(self._directory) if self._directory else None
        return newest

    def restore(self, session: Any, checkpoint: str | None = None) -> str | None:
        """Gives all variables the values of a checkpoint, the newest if none is given; None when there is
        none.

        Raises:
            CheckpointError: it belongs to another model, or cannot be read.
        """
        checkpoint = checkpoint or self.latest()
        if checkpoint is None:
            return None
        try:
            _check_fits(session.graph, checkpoint)
            with session.graph.as_default():
                self._saver.restore(session, checkpoint)
        except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError, tf.errors.DataLossError) as error:
            raise _unfit(checkpoint, str(error).strip().splitlines()[0]) from error
        return checkpoint

    def save_if_due(self, session: Any, step: int) -> None:
        """Saves when the last time is long enough ago."""
        if time.monotonic() - self._saved_at >= self._every_seconds:
            self.save(session, step)

    def save(self, session: Any, step: int) -> None:
        """Saves now, unless this very step was saved last."""
        if self._directory is None or step == self._saved_step:
            return
        start = time.monotonic()
        with session.graph.as_default():  # outside of a graph the saver takes the variables for eager ones
            self._saver.save(session, f"{self._directory}/{_NAME}", global_step=step, write_meta_graph=False)
        self._saved_at, self._saved_step = time.monotonic(), step
        _log.info("saved step %d in %.1f s", step, self._saved_at - start)


def step_of(checkpoint: str) -> int:
    """The global step in the name of a checkpoint."""
    return int(checkpoint.rpartition("-")[2])


def _check_fits(graph: Any, checkpoint: str) -> None:
    """Compares names and shapes: TensorFlow itself would let a variable take on another shape."""
    stored = tf.train.load_checkpoint(checkpoint).get_variable_to_shape_map()
    for variable in graph.get_collection(tf.compat.v1.GraphKeys.GLOBAL_VARIABLES):
        cut = variable._get_save_slice_info()  # a shard of a table is stored under the whole table's name
        name, shape = (
            (cut.full_name, list(cut.full_shape)) if cut else (variable.op.name, variable.shape.as_list())
        )
        if name not in stored:
            raise _unfit(checkpoint, f"it has no variable {name!r}")
        if list(stored[name]) != shape:
            raise _unfit(
                checkpoint, f"its {name!r} has the shape {list(stored[name])}, the model's has {shape}"
            )


def _unfit(checkpoint: str, why: str) -> errors.CheckpointError:
    return errors.CheckpointError(
        f"{checkpoint} does not fit this model: {why}; "
        "use another checkpoint folder, or delete this one to start anew"
    )
