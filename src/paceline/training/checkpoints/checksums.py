"""The size and checksum of each file of a checkpoint, in a file beside it: they show that it is whole.

`model.ckpt-7.checksums.json` names `model.ckpt-7.index` and its data files, each with its bytes and CRC-32
(zlib's, at some 2 GB/s and outside of Python's lock). It detects files that were truncated, lost or changed
by accident, before anything is read into parameters. It is no protection against an attacker.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from collections.abc import Mapping
from concurrent import futures
from dataclasses import dataclass

from paceline.training import errors
from paceline.training.lazy_tensorflow import tf

_log = logging.getLogger(__name__)
SUFFIX = ".checksums.json"
_CHUNK_BYTES = 8 * 2**20
_MEMBER = re.compile(r"\.(index|data-\d{5}-of-\d{5})", re.ASCII)


@dataclass(frozen=True)
class Checksum:
    """The expected size and checksum of a file."""

    bytes: int
    crc32: int


def render(checksums: Mapping[str, Checksum]) -> str:
    """Return the text of a checksum file; the checksums are keyed by file name, without the folder."""
    files = {
        name: {"bytes": each.bytes, "crc32": f"{each.crc32:08x}"} for name, each in sorted(checksums.items())
    }
    return json.dumps({"files": files}, indent=1) + "\n"


def parse(text: str, checkpoint: str) -> dict[str, Checksum]:
    """Read a checksum file; `checkpoint` is the name of its checkpoint, without the folder.

    Raises:
        ValueError: the text is not a checksum file, or names a file of another checkpoint or folder.
    """
    try:
        files = json.loads(text)["files"]
        found = {name: _checksum(name, each, checkpoint) for name, each in files.items()}
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is no checksum file: {error!r}") from error
    if f"{checkpoint}.index" not in found or len(found) < 2:
        raise ValueError("it does not name the index and the data of its checkpoint")
    return found


def _checksum(name: str, raw: Mapping[str, object], checkpoint: str) -> Checksum:
    if not name.startswith(checkpoint) or not _MEMBER.fullmatch(name.removeprefix(checkpoint)):
        raise ValueError(f"it names {name!r}, which is no file of {checkpoint}")
    size, crc32 = raw["bytes"], raw["crc32"]
    if type(size) is not int or size < 0:
        raise ValueError(f"it gives {name} {size!r} bytes")
    if not isinstance(crc32, str) or not re.fullmatch("[0-9a-f]{8}", crc32):
        raise ValueError(f"it gives {name} the CRC-32 {crc32!r}")
    return Checksum(size, int(crc32, 16))


def measure(paths: list[str]) -> dict[str, Checksum]:
    """Read files, several at a time; return their checksums by file name, without the folder.

    Raises:
        tf.errors.OpError: a file cannot be read.
    """
    with futures.ThreadPoolExecutor(thread_name_prefix="checksums") as pool:
        return {
            path.rpartition("/")[2]: each for path, each in zip(paths, pool.map(_read, paths), strict=True)
        }


def _read(path: str) -> Checksum:
    size = crc32 = 0
    with tf.io.gfile.GFile(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            size += len(chunk)
            crc32 = zlib.crc32(chunk, crc32)
    return Checksum(size, crc32)


def check(prefix: str) -> None:
    """Compare the files of a checkpoint with their checksums, sizes first.

    A checkpoint without a checksum file, written by another program, passes; this is logged.

    Raises:
        DamagedError: a file is missing or is not what was written.
        CheckpointError: the files cannot be reached.
    """
    folder, _, checkpoint = prefix.rpartition("/")
    try:
        with tf.io.gfile.GFile(prefix + SUFFIX) as file:
            expected = parse(file.read(), checkpoint)
    except tf.errors.NotFoundError:
        _log.info("%s has no checksum file: only TensorFlow's own checks are made", prefix)
        return
    except (ValueError, tf.errors.OpError) as error:
        raise errors.DamagedError(f"{prefix}{SUFFIX} cannot be used: {error}") from error
    paths = [f"{folder}/{name}" for name in expected]
    for path, checksum in zip(paths, expected.values(), strict=True):
        _check_size(path, checksum.bytes)
    try:
        measured = measure(paths)
    except (tf.errors.PermissionDeniedError, tf.errors.UnavailableError) as error:
        raise errors.CheckpointError(f"{prefix} cannot be reached: {error.message}") from error
    except tf.errors.OpError as error:
        raise errors.DamagedError(f"{prefix} cannot be read: {error.message}") from error
    for name, checksum in expected.items():
        if measured[name] != checksum:
            raise errors.DamagedError(
                f"{folder}/{name} has the CRC-32 {measured[name].crc32:08x}, "
                f"but {checksum.crc32:08x} was written"
            )


def _check_size(path: str, expected: int) -> None:
    try:
        size = tf.io.gfile.stat(path).length
    except tf.errors.NotFoundError as error:
        raise errors.DamagedError(f"{path} is missing") from error
    if size != expected:
        raise errors.DamagedError(f"{path} has {size} bytes, but {expected} were written")
