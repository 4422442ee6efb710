"""Checkpoints of all parameters and the global step: written beside training, verified when they are read.

The chief saves in a thread while its steps go on. Each parameter server writes its own rows into the folder
(`savers`); if a server does not see the folder, the chief writes for all. Then the chief's thread computes
the checksums: the bytes are still in the page cache of a shared disk, and no step waits. A checkpoint counts
when its checksum file is there (`checkpoint_folders`), so if a chief is killed halfway, the previous
checkpoint remains valid.

A restore takes the newest checkpoint that is whole (`checksums`), and logs which ones it passed over, and
why.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Sequence
from concurrent import futures
from dataclasses import dataclass
from typing import Any

from paceline.training import errors, parameters
from paceline.training.checkpoints import checkpoint_folders, checksums, restores, savers
from paceline.training.checkpoints.checkpoint_mirrors import CheckpointMirror
from paceline.training.input import shared_queues
from paceline.training.lazy_tensorflow import tf

_log = logging.getLogger(__name__)
_DISK_FAULTS = (
    tf.errors.ResourceExhaustedError,
    tf.errors.PermissionDeniedError,
    tf.errors.DataLossError,
    tf.errors.UnknownError,
    OSError,
)


@dataclass(frozen=True)
class Contents:
    """What a checkpoint holds: the parameters and the global step, with the operations for them.

    `keep` is how many checkpoints stay. `renewed` is the operation that, after a restore, sets what a
    checkpoint does not hold. `queue` records which examples are trained; a replica that does not train has
    none.
    """

    parameters: tuple[parameters.Parameter, ...]
    step: Any
    saver: savers.Saver
    keep: int
    renewed: Any
    queue: shared_queues.Variables | None


def contents(
    created: Sequence[parameters.Parameter],
    step: Any,
    keep: int,
    renewed: Sequence[Any] = (),
    queue: shared_queues.Variables | None = None,
) -> Contents:
    """Add to the graph what saves and restores these parameters and the queue of shards.

    `renewed` are operations that run after a restore.
    """
    return Contents(
        parameters=tuple(created),
        step=step,
        saver=savers.Saver(created, step, () if queue is None else queue.saved),
        keep=keep,
        renewed=tf.group(*renewed),
        queue=queue,
    )


class Checkpoints:
    """The checkpoints in a folder, and their copies elsewhere; without a folder nothing is saved or restored.

    Args:
        directory: the folder; None: there is none.
        contents: what checkpoints hold.
        every_seconds: how often to save.
        mirror: the URL to which finished checkpoints are copied; None: they are not.

    Raises:
        CheckpointError: a package that the URL needs is missing.
    """

    def __init__(
        self, directory: str | None, contents: Contents, every_seconds: float, mirror: str | None = None
    ) -> None:
        self._folder = None if directory is None else checkpoint_folders.Folder(directory)
        self._mirror = None if directory is None or mirror is None else CheckpointMirror(mirror)
        self._contents = contents
        self._every_seconds = every_seconds
        self._fetched: int | None = None
        self._tried_at = time.monotonic()
        self._stranger: str | None = None
        self._thread = futures.ThreadPoolExecutor(1, "checkpoints")
        self._saving: futures.Future[None] | None = None

    def prepare(self, *, is_first: bool = True, restore_from: str | None = None) -> None:
        """Create the folder, remove half-written files of an earlier chief, and fetch what is to be restored.

        Args:
            is_first: whether this is the first chief of the run; a later one fetches the newest copy.
            restore_from: the URL of a folder from which a run begins that has no checkpoint; None: none.

        Raises:
            CheckpointError: a folder does not answer, has no checkpoint to begin from, or has copies of
                another run.
        """
        if self._folder is None:
            _log.info("no checkpoint is kept: checkpoint.keep is 0, or PACELINE_CHECKPOINT_DIR is not set")
            return
        self._folder.prepare()
        if not is_first:
            self.fetch()
        if self._folder.finished():
            return
        source = None if restore_from is None else CheckpointMirror(restore_from)
        if self._mirror is not None and is_first and (source is None or source.url != self._mirror.url):
            self._check_free(self._mirror)
        if source is not None and source.fetch(self._folder) is None:
            raise errors.CheckpointError.of(source.url, "there is no checkpoint to begin from")

    def _check_free(self, mirror: CheckpointMirror) -> None:
        """Refuse a place with copies of another run: they would be removed, or be taken for this run's."""
        copies = mirror.finished()
        if copies:
            raise errors.CheckpointError.of(
                mirror.url,
                f"it has checkpoints of another run, up to step {copies[-1]}; name another folder for "
                "checkpoint.mirror, or name this one for checkpoint.restore_from, too, to go on from them",
            )

    def fetch(self) -> None:
        """Fetch the newest copy if the folder has no checkpoint that is as new.

        The copy that was fetched before it is removed from the folder: an evaluator without the chief's
        folder would keep them all.

        Raises:
            CheckpointError: the place of the copies does not answer, or the folder cannot be written.
        """
        if self._folder is None or self._mirror is None:
            return
        step = self._mirror.fetch(self._folder)
        if step is not None:
            if self._fetched is not None:
                self._folder.remove(self._fetched)
            self._fetched = step

    def latest(self) -> str | None:
        """Return the newest finished checkpoint, or None; it may have been damaged since."""
        finished = [] if self._folder is None else self._folder.finished()
        return self._folder.prefix(finished[-1]) if self._folder and finished else None

    def restore(self, session: Any, checkpoint: str | None = None) -> str | None:
        """Give all variables the values of a checkpoint, and return its name.

        The newest whole checkpoint is restored if none is given. Returns None if there is none.

        Raises:
            DamagedError: the given checkpoint is damaged.
            CheckpointError: the checkpoint belongs to another model, or there are checkpoints and all are
                damaged.
        """
        if self._folder is None:
            return None
        if checkpoint is not None:
            self._restore(session, checkpoint)
            return checkpoint
        damages = []
        for step in reversed([*self._folder.unsealed(), *self._folder.finished()]):
            prefix = self._folder.prefix(step)
            try:
                self._restore(session, prefix)
            except errors.DamagedError as error:
                damages.append(str(error))
                continue
            for damage in damages:
                _log.warning("%s; %s is used instead", damage, prefix)
            return prefix
        if damages or self._folder.has_state():
            raise errors.CheckpointError(
                f"no checkpoint in {self._folder.path} can be used: "
                f"{'; '.join(damages) or 'the files that its list names are not there'}. "
                "Bring one back from a copy, or delete the folder to start anew"
            )
        return None

    def _restore(self, session: Any, checkpoint: str) -> None:
        checksums.check(checkpoint)
        try:
            reader = tf.train.load_checkpoint(checkpoint)
            stored_names = restores.stored(
                self._contents.parameters, reader.get_variable_to_shape_map(), checkpoint
            )
        except (tf.errors.OpError, ValueError) as error:
            raise errors.DamagedError(f"{checkpoint} cannot be read: {errors.reason(error)}") from error
        try:
            with session.graph.as_default():
                if self._contents.queue is not None:
                    self._contents.queue.restore(session, reader)
                if restores.are_in_order(stored_names):
                    gathered = self._is_gathered(session, checkpoint)
                    self._contents.saver.restore(session, checkpoint, gathered=gathered)
                else:
                    _log.info("%s has its rows in another order: putting them in this one", checkpoint)
                    restores.reorder(session, reader, stored_names)
                    self._contents.step.load(reader.get_tensor(self._contents.step.op.name), session)
                session.run(self._contents.renewed)
        # The files may also disappear while they are read: the chief keeps only the newest checkpoints.
        except (tf.errors.DataLossError, tf.errors.OutOfRangeError, tf.errors.NotFoundError) as error:
            raise errors.DamagedError(f"{checkpoint} cannot be read: {errors.reason(error)}") from error
        except tf.errors.InvalidArgumentError as error:
            raise restores.unfit(checkpoint, errors.reason(error)) from error

    def save_if_due(self, session: Any, step: int) -> None:
        """Begin to save if no save is under way and the last one is long enough ago; do not wait.

        A failure is logged and the save is tried again the next time: training goes on.
        """
        is_over = self._saving is None or self._saving.done()
        if self._folder is not None and is_over and time.monotonic() - self._tried_at >= self._every_seconds:
            self.settle()
            self._saving = self._thread.submit(self._try, session, self._folder, step)

    def save(self, session: Any, step: int) -> None:
        """Save and return when the checkpoint is finished.

        Raises:
            CheckpointError: the checkpoint cannot be written, or not be copied.
        """
        if self._folder is None:
            return
        self.settle()
        try:
            self._save(session, self._folder, step)
        except _DISK_FAULTS as error:
            raise errors.CheckpointError(
                f"step {step} could not be saved to {self._folder.path}: {errors.reason(error)}; the last "
                f"checkpoint there is {self.latest()}. Make room or give rights, then resume the job"
            ) from error

    def settle(self) -> None:
        """Wait for a save that is under way."""
        if self._saving is not None:
            self._saving.result()
            self._saving = None

    def _try(self, session: Any, folder: checkpoint_folders.Folder, step: int) -> None:
        try:
            self._save(session, folder, step)
        except errors.CheckpointError as error:  # of the copies
            _log.warning("step %d is saved, but not copied (%s); training goes on", step, error)
        except (tf.errors.OpError, OSError, RuntimeError) as error:  # RuntimeError: the session was closed
            _log.warning(
                "step %d could not be saved (%s); training goes on, the last checkpoint is %s, "
                "the next try is in %.0f s",
                step,
                errors.reason(error),
                self.latest(),
                self._every_seconds,
            )

    def _save(self, session: Any, folder: checkpoint_folders.Folder, step: int) -> None:
        start = time.monotonic()
        try:
            if self._is_whole(folder, step):
                self._copy(folder, step)
                return
            with contextlib.ExitStack() as undo:
                undo.callback(folder.remove, step)
                folder.remove(step)
                prefix = folder.prefix(step)
                if self._contents.queue is not None:
                    self._contents.queue.keep(session)
                self._contents.saver.save(session, prefix, gathered=self._is_gathered(session, prefix))
                written = time.monotonic()
                folder.seal(step, self._contents.keep)
                undo.pop_all()
        finally:
            self._tried_at = time.monotonic()
        _log.info(
            "saved step %d in %.1f s and its checksums in %.1f s",
            step,
            written - start,
            self._tried_at - written,
        )
        self._copy(folder, step)

    def _copy(self, folder: checkpoint_folders.Folder, step: int) -> None:
        """Copy a finished checkpoint; a later one is copied even if this one cannot be."""
        if self._mirror is None:
            return
        start = time.monotonic()
        self._mirror.put(folder, step, self._contents.keep)
        _log.info("copied step %d to %s in %.1f s", step, self._mirror.url, time.monotonic() - start)

    def _is_whole(self, folder: checkpoint_folders.Folder, step: int) -> bool:
        """Return whether this step is saved already, by this chief or an earlier one that was lost later."""
        if step not in folder.finished():
            return False
        try:
            checksums.check(folder.prefix(step))
        except errors.CheckpointError:
            return False
        return True

    def _is_gathered(self, session: Any, prefix: str) -> bool:
        """Return whether the chief has to write and read for the servers: one does not see the folder."""
        stranger = self._contents.saver.stranger(session, prefix)
        if stranger is not None and self._stranger is None:
            _log.warning(
                "%s does not share %s with the chief, so parameters are saved through the chief; "
                "give all replicas a folder that they share",
                stranger,
                prefix.rpartition("/")[0],
            )
        self._stranger = stranger
        return stranger is not None


def step_of(checkpoint: str) -> int:
    """Return the global step in the name of a checkpoint."""
    return int(checkpoint.rpartition("-")[2])
