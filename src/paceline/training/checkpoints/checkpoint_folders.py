"""The folder of a job's checkpoints: which checkpoints are finished, and which may be removed.

A checkpoint is finished when its checksum file, which is written last, is there, or when TensorFlow's own
file `checkpoint` names it. Only then are older checkpoints removed, so if a chief is killed halfway, the
previous checkpoint remains valid.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from paceline.training.checkpoints import checksums
from paceline.training.lazy_tensorflow import tf

#: The name of all checkpoints, and of the file in which TensorFlow looks for their names.
NAME = "model.ckpt"
STATE = "checkpoint"
_MEMBER = re.compile(rf"{re.escape(NAME)}-(\d+)(\..*|_temp.*)", re.ASCII)


@dataclass(frozen=True)
class Folder:
    """A folder of checkpoints, by URL."""

    path: str

    def prefix(self, step: int) -> str:
        """Return the common beginning of the names of a checkpoint's files."""
        return f"{self.path}/{NAME}-{step}"

    def finished(self) -> list[int]:
        """Return the global steps of all finished checkpoints, ascending."""
        sealed = {step for step, rest in self._members() if rest == checksums.SUFFIX}
        return sorted(sealed | set(self._named()))

    def unsealed(self) -> list[int]:
        """Return the steps of unfinished checkpoints that TensorFlow may be able to read, ascending.

        A chief was killed while it computed their checksums, or another program wrote them.
        """
        return sorted({step for step, rest in self._members() if rest == ".index"} - set(self.finished()))

    def has_state(self) -> bool:
        """Return whether TensorFlow's file that names the checkpoints is there, readable or not."""
        return bool(tf.io.gfile.exists(f"{self.path}/{STATE}"))

    def prepare(self) -> None:
        """Create the folder, and remove an earlier chief's files that no checkpoint needs."""
        tf.io.gfile.makedirs(self.path)
        self._remove_all_but({*self.finished(), *self.unsealed()})

    def seal(self, step: int, keep: int) -> None:
        """Finish a checkpoint whose data are written: write its checksums, name it, keep the newest `keep`.

        All other checkpoints are removed, also those of later steps: they were damaged, so training was set
        back to a step before them.
        """
        prefix = self.prefix(step)
        written = [
            f"{prefix}{rest}" for found, rest in self._members() if found == step and "temp" not in rest
        ]
        self._replace(f"{prefix}{checksums.SUFFIX}", checksums.render(checksums.measure(written)))
        kept = [each for each in self.finished() if each <= step][-keep:]
        self._replace(f"{self.path}/{STATE}", state(kept))
        self._remove_all_but(set(kept))

    def files(self, step: int) -> list[str]:
        """Return the names of a finished checkpoint's files; its checksum file is the last one."""
        rests = [rest for each, rest in self._members() if each == step and "temp" not in rest]
        rests.sort(key=lambda rest: rest == checksums.SUFFIX)
        return [f"{NAME}-{step}{rest}" for rest in rests]

    def remove(self, step: int) -> None:
        """Remove all files of a checkpoint, including half-written ones."""
        for found, rest in self._members():
            if found == step:
                self._remove(f"{self.prefix(step)}{rest}")

    def _members(self) -> list[tuple[int, str]]:
        """Return the step and the rest of the name of all files and folders that belong to checkpoints."""
        if not tf.io.gfile.exists(self.path):
            return []
        return members(name.rstrip("/") for name in tf.io.gfile.listdir(self.path))

    def _named(self) -> list[int]:
        try:
            known = tf.train.get_checkpoint_state(self.path)
        except ValueError:  # the file is not UTF-8, or names no checkpoint
            known = None
        paths: Iterable[str] = known.all_model_checkpoint_paths if known is not None else ()
        names = (path.rpartition("/")[2] for path in paths)
        return [int(match[1]) for name in names if (match := _MEMBER.fullmatch(f"{name}."))]

    def _remove_all_but(self, steps: set[int]) -> None:
        for step, rest in self._members():
            if step not in steps or "temp" in rest:
                self._remove(f"{self.prefix(step)}{rest}")

    def _remove(self, path: str) -> None:
        with contextlib.suppress(tf.errors.OpError):  # tried again when the next checkpoint is saved
            if tf.io.gfile.isdir(path):
                tf.io.gfile.rmtree(path)
            else:
                tf.io.gfile.remove(path)

    def _replace(self, path: str, text: str) -> None:
        temporary = f"{path}.temp{uuid.uuid4().hex}"
        with contextlib.ExitStack() as undo:
            undo.callback(self._remove, temporary)
            with tf.io.gfile.GFile(temporary, "w") as file:
                file.write(text)
            tf.io.gfile.rename(temporary, path, overwrite=True)
            undo.pop_all()


def members(names: Iterable[str]) -> list[tuple[int, str]]:
    """Return the step and the rest of the name of all names that belong to checkpoints."""
    return [(int(match[1]), match[2]) for name in names if (match := _MEMBER.fullmatch(name))]


def state(steps: Sequence[int]) -> str:
    """Return the text of TensorFlow's `checkpoint`, with names that stay valid if the folder is moved."""
    lines = [f'model_checkpoint_path: "{NAME}-{steps[-1]}"']
    lines += [f'all_model_checkpoint_paths: "{NAME}-{step}"' for step in steps]
    return "\n".join(lines) + "\n"
