"""The operations that write parameters to files and read them back: each parameter server its own rows.

A shard is written in pieces of rows, one after the other. So a server needs memory for one piece only, and a
message holds only one piece if the chief has to write for a server that does not see the folder. Each piece
is a call of its own: within one call a single-threaded server would run no step before the last piece.
TensorFlow merges the pieces into one checkpoint in which each variable is whole.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.training import deadlines, parameters
from paceline.training.lazy_tensorflow import tf, tf1

PIECE_BYTES = 32 * 2**20
_WHOLE = 2**63
_NOT_THERE = (
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.UnimplementedError,  # the server's TensorFlow does not support this kind of URL
)


@dataclass(frozen=True)
class SavedRows:
    """Rows of a variable, and their place in the tensor `name` of a checkpoint.

    There are `count` rows from `first`, or all rows if `count` is None. The place is in TensorFlow's notation
    (`tf1.Variable.SaveSliceInfo.spec`).
    """

    variable: Any
    name: str
    place: str = ""
    first: int = 0
    count: int | None = None
    bytes: int = 0

    def value(self) -> Any:
        """Return the rows; to be called on the device of their server."""
        if self.count is None:
            return self.variable.read_value()
        return tf.gather(self.variable, tf.range(self.first, self.first + self.count))


def pieces(every: Iterable[parameters.Parameter], piece_bytes: int) -> Iterator[SavedRows]:
    """Yield shards and their slots in pieces of at most `piece_bytes`, but of at least one row."""
    for parameter in every:
        shard = parameter.shard
        rows = max(1, piece_bytes // shard.variable.row_bytes)
        for slot, variable in parameter.saved.items():
            for first in range(0, shard.rows, rows):
                count = min(rows, shard.rows - first)
                yield SavedRows(
                    variable,
                    parameters.stored_name(shard, slot),
                    parameters.stored_place(shard, first, count),
                    first,
                    None if count == shard.rows else count,
                    count * shard.variable.row_bytes,
                )


def parts(found: Iterable[SavedRows], part_bytes: int) -> list[list[SavedRows]]:
    """Group pieces by the file that they are written to.

    A file has at most `part_bytes`, but at least one piece.
    """
    made: list[list[SavedRows]] = []
    free = 0
    for piece in found:
        if not made or piece.bytes > free:
            made.append([])
            free = part_bytes
        made[-1].append(piece)
        free -= piece.bytes
    return made


class Saver:
    """Writes and reads all parameters and the global step; part of a graph, on the device that builds it.

    It also writes the variables `beside` them, which it does not read. `gathered` in its methods means that
    the chief writes and reads instead of the servers.
    """

    def __init__(self, every: Sequence[parameters.Parameter], step: Any, beside: Sequence[Any] = ()) -> None:
        self._prefix = tf1.placeholder(tf.string, ())
        self._temporary = tf1.placeholder(tf.string, ())
        single = SavedRows(step, step.op.name)
        others = [SavedRows(variable, variable.op.name) for variable in beside]
        self._writes = [
            _write(
                [single, *others, *pieces(every, PIECE_BYTES)],
                self._prefix,
                self._temporary,
                gathered=gathered,
            )
            for gathered in (False, True)
        ]
        self._reads = [
            _read([single, *pieces(every, _WHOLE)], self._prefix, gathered=gathered)
            for gathered in (False, True)
        ]
        self._note = tf1.placeholder(tf.string, ())
        self._answers = _answers({each.variable.device for each in every} - {""}, self._note)

    def save(self, session: Any, prefix: str, *, gathered: bool) -> None:
        """Write a checkpoint; trainers go on to update the parameters meanwhile."""
        temporary = f"{prefix}_temp{uuid.uuid4().hex}"  # unique: servers may still write for a killed chief
        feed = {self._prefix: prefix, self._temporary: temporary}
        for each in self._writes[gathered].rounds:
            session.run(each, feed)
        session.run(self._writes[gathered].joined, feed, options=deadlines.UNHURRIED)

    def restore(self, session: Any, prefix: str, *, gathered: bool) -> None:
        """Read a checkpoint whose rows are in the order of these shards."""
        session.run(self._reads[gathered], {self._prefix: prefix}, options=deadlines.UNHURRIED)

    def stranger(self, session: Any, prefix: str) -> str | None:
        """Return the first parameter server that does not share the folder with the chief; None if all do.

        Each server has to read what the chief has written there, and to write it where the chief reads it
        again.
        """
        if not self._answers:
            return None
        note, text = f"{prefix}_temp{uuid.uuid4().hex}", uuid.uuid4().hex
        with contextlib.ExitStack() as undo:
            undo.callback(_remove, note)
            with tf.io.gfile.GFile(note, "w") as file:
                file.write(text)
            for device, answer in self._answers.items():
                path = f"{note}-{_number(device)}"
                undo.callback(_remove, path)
                if not _answered(session, answer, {self._note: note}, path, text):
                    return device
        return None


@dataclass(frozen=True)
class _Writing:
    """Operations that write all parts: those of a round at once, one round after the other, then `joined`."""

    rounds: tuple[tuple[Any, ...], ...]
    joined: Any


def _write(found: Sequence[SavedRows], prefix: Any, temporary: Any, *, gathered: bool) -> _Writing:
    """Return the operations that write all parts.

    In each round every server writes one part; if `gathered`, the chief writes one part of any server.
    """
    names: list[Any] = []
    saves: list[list[Any]] = []
    for device, group in _by_device(found):
        saves.append([])
        for part in parts(group, PIECE_BYTES):
            names.append(tf.strings.join([temporary, f"/part-{len(names):05d}"]))
            with tf1.device(device):
                values = [piece.value() for piece in part]
            with tf1.device("" if gathered else device):
                save = tf.raw_ops.SaveV2(
                    prefix=names[-1],
                    tensor_names=[piece.name for piece in part],
                    shape_and_slices=[piece.place for piece in part],
                    tensors=values,
                )
            saves[-1].append(save)
    rounds = [[save] for group in saves for save in group] if gathered else itertools.zip_longest(*saves)
    joined = tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=tf.stack(names), destination_prefix=prefix, delete_old_dirs=True
    )
    return _Writing(tuple(tuple(filter(None, each)) for each in rounds), joined)


def _read(found: Sequence[SavedRows], prefix: Any, *, gathered: bool) -> Any:
    before: dict[str, Any] = {}
    reads = []
    for device, group in _by_device(found):
        place = "" if gathered else device
        for piece in group:
            with tf1.control_dependencies([before[place]] if place in before else []):
                with tf1.device(place):
                    (value,) = tf.raw_ops.RestoreV2(
                        prefix=prefix,
                        tensor_names=[piece.name],
                        shape_and_slices=[piece.place],
                        dtypes=[piece.variable.dtype.base_dtype],
                    )
                with tf1.device(device):
                    before[place] = piece.variable.assign(tf.ensure_shape(value, piece.variable.shape)).op
            reads.append(before[place])
    return tf.group(*reads)


def _by_device(found: Sequence[SavedRows]) -> list[tuple[str, list[SavedRows]]]:
    groups: dict[str, list[SavedRows]] = {}
    for piece in found:
        groups.setdefault(piece.variable.device, []).append(piece)
    return sorted(groups.items())


def _answers(devices: Iterable[str], note: Any) -> dict[str, Any]:
    answers = {}
    for device in sorted(devices):
        with tf1.device(device):
            answers[device] = tf.io.write_file(
                tf.strings.join([note, f"-{_number(device)}"]), tf.io.read_file(note)
            )
    return answers


def _answered(session: Any, answer: Any, feed: dict[Any, str], path: str, text: str) -> bool:
    try:
        session.run(answer, feed)
        with tf.io.gfile.GFile(path) as file:
            return bool(file.read() == text)
    except _NOT_THERE:
        return False


def _remove(path: str) -> None:
    with contextlib.suppress(tf.errors.OpError):
        tf.io.gfile.remove(path)


def _number(device: str) -> str:
    return device.rpartition(":")[2]
