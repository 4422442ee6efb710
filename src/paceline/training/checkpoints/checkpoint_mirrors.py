"""Copies of a job's finished checkpoints at any URL that fsspec understands.

The chief copies each checkpoint there after it is finished, in the thread that saved it. A folder that has no
checkpoint, as that of a new pod without a shared volume, is filled from there before anything is restored.
As in the folder itself, a checkpoint counts once its checksum file is there, which is written last.
"""

from __future__ import annotations

import contextlib
import logging
import tempfile
from pathlib import Path

from paceline.training import errors
from paceline.training.checkpoints import checkpoint_folders, checksums
from paceline.training.remote_folders import RemoteFolder

_log = logging.getLogger(__name__)


class CheckpointMirror:
    """The copies at a URL.

    Args:
        url: the folder of the copies.

    Raises:
        CheckpointError: a package that the URL needs is missing.
    """

    def __init__(self, url: str) -> None:
        self._folder = RemoteFolder(url, errors.CheckpointError)

    @property
    def url(self) -> str:
        """Return the folder of the copies."""
        return self._folder.url

    def finished(self) -> list[int]:
        """Return the global steps of all copies, ascending.

        Raises:
            CheckpointError: the place does not answer.
        """
        members = checkpoint_folders.members(self._folder.names())
        return sorted(step for step, rest in members if rest == checksums.SUFFIX)

    def put(self, folder: checkpoint_folders.Folder, step: int, keep: int) -> None:
        """Copy a finished checkpoint of a folder, and remove all copies but the newest ``keep`` up to it.

        Raises:
            CheckpointError: the copy cannot be written.
        """
        finished = self.finished()
        if step not in finished:
            for name in folder.files(step):  # Its checksum file is the last one.
                self._folder.put(Path(folder.path, name), name)
            finished = sorted({*finished, step})
        kept = [each for each in finished if each <= step][-keep:]
        with tempfile.TemporaryDirectory(prefix="paceline-") as temporary:
            state = Path(temporary, checkpoint_folders.STATE)
            state.write_text(checkpoint_folders.state(kept))
            self._folder.put(state, checkpoint_folders.STATE)
        for name in self._folder.names():
            match = checkpoint_folders.members([name.removeprefix(".")])
            if match and (match[0][0] not in kept or name.startswith(".")):
                self._folder.remove(name)

    def fetch(self, folder: checkpoint_folders.Folder) -> int | None:
        """Copy the newest whole checkpoint into a folder, if that has none that is as new.

        Returns:
            The step of the checkpoint; None if there was nothing to copy.

        Raises:
            CheckpointError: the place does not answer, or the folder cannot be written.
        """
        present = max(folder.finished(), default=-1)
        for step in reversed(self.finished()):
            if step <= present:
                break
            try:
                self._fetch(folder, step)
            except errors.DamagedError as error:
                _log.warning("%s; it is not fetched from %s", error, self.url)
                folder.remove(step)
                continue
            _log.info("fetched the checkpoint of step %d from %s", step, self.url)
            return step
        return None

    def _fetch(self, folder: checkpoint_folders.Folder, step: int) -> None:
        """Copy a checkpoint, its checksum file last.

        Raises:
            DamagedError: it is not what was written.
        """
        seal = f"{checkpoint_folders.NAME}-{step}{checksums.SUFFIX}"
        # A name that the folder removes if this is killed.
        Path(folder.path).mkdir(parents=True, exist_ok=True)  # Only the chief's folder is there for sure.
        unfinished = f"{folder.prefix(step)}_temp".rpartition("/")[2]
        with tempfile.TemporaryDirectory(prefix=unfinished, dir=folder.path) as temporary:
            fetched = Path(temporary)
            self._folder.get(seal, fetched / seal)
            try:
                expected = checksums.parse((fetched / seal).read_text(), seal.removesuffix(checksums.SUFFIX))
            except ValueError as error:
                raise errors.DamagedError(f"{self.url}/{seal} cannot be used: {error}") from error
            for name in expected:
                self._folder.get(name, fetched / name)
            checksums.check(str(fetched / seal.removesuffix(checksums.SUFFIX)))
            with contextlib.ExitStack() as undo:
                undo.callback(folder.remove, step)
                for name in (*expected, seal):
                    (fetched / name).replace(Path(folder.path, name))
                undo.pop_all()
