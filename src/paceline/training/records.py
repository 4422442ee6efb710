"""TFRecord files of `tf.train.Example`, read by TensorFlow itself: records checked, parsed many at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import message

from paceline.training import errors, features
from paceline.training.lazy_tensorflow import tf, tf1

_CHUNK_RECORDS = 8_192
_LOOKED_AT = 100
_GZIP = b"\x1f\x8b"
# TensorFlow quotes the bytes that it cannot parse, which are often no text.
_DAMAGED = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, UnicodeDecodeError)


def count(path: str, url: str) -> int:
    """The number of records in a file.

    Raises:
        InputError: a record is corrupt.
    """
    return sum(
        len(chunk) for chunk in _run(path, url, lambda records: records.batch(_CHUNK_RECORDS).map(_lengths))
    )


def tables(path: str, url: str, kinds: Mapping[str, features.Kind], first: int) -> Iterator[pa.Table]:
    """The features of those names as columns, from record `first` (of 0) on.

    Numbers that a record lacks are NaN or -1; a text that it lacks, or an empty one, is null.

    Raises:
        InputError: a record is corrupt or no `tf.train.Example`, or does not hold one value of that kind.
    """
    if not kinds:
        return
    types = _types(path, url, kinds)
    known = {name: tf.io.FixedLenFeature([], kind, _missing(kind)) for name, kind in types.items()}

    def parsed(records: Any) -> Any:
        chunks = records.skip(first).batch(_CHUNK_RECORDS)
        return chunks.map(
            lambda chunk: tf.io.parse_example(chunk, known), num_parallel_calls=tf.data.AUTOTUNE
        )

    for columns in _run(path, url, parsed):
        yield pa.table({name: _column(columns[name]) for name in kinds})


def _lengths(chunk: Any) -> Any:
    return tf.strings.length(chunk)


def _column(values: Any) -> Any:
    if values.dtype != object:
        return pa.array(values)
    texts = pc.cast(pa.array(values, pa.binary()), pa.string())
    return pc.if_else(pc.equal(texts, ""), None, texts)


def _missing(kind: Any) -> Any:
    return {tf.string: b"", tf.int64: -1, tf.float32: np.nan}[kind]


def _types(path: str, url: str, kinds: Mapping[str, features.Kind]) -> dict[str, Any]:
    """How each feature is stored, from the first records that have it."""
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for number, record in enumerate(_run(path, url, lambda records: records.take(_LOOKED_AT)), start=1):
        try:
            stored = tf.train.Example.FromString(record).features.feature
        except message.DecodeError as error:
            _refuse(url, number, f"it is no tf.train.Example: {error}", error)
        for name, feature in stored.items():
            seen.add(name)
            kind = feature.WhichOneof("kind")
            if name in kinds and kind is not None and name not in found:
                found[name] = {"bytes_list": tf.string, "int64_list": tf.int64, "float_list": tf.float32}[
                    kind
                ]
        if len(found) == len(kinds):
            break
    for name in kinds:
        if name not in found:
            raise errors.InputError(
                f"{url}: the first records have no feature {name!r}{errors.did_you_mean(name, seen)}"
            )
    return found


def _run(path: str, url: str, steps: Any) -> Iterator[Any]:
    """What a data set over the records of a file gives, one element after the other.

    In a graph of its own, so that it works whether the script has switched eager execution off or not.
    """
    with open(path, "rb") as stream:
        compression = "GZIP" if stream.read(2) == _GZIP else ""
    with tf1.Graph().as_default() as graph, tf.device("/cpu:0"):
        records = tf.data.TFRecordDataset(path, compression, buffer_size=1 << 20)
        element = tf1.data.make_one_shot_iterator(steps(records)).get_next()
    with tf1.Session(graph=graph) as session:
        following = session.make_callable(element) if not isinstance(element, dict) else None
        while True:
            try:
                yield following() if following else session.run(element)
            except tf.errors.OutOfRangeError:
                return
            except _DAMAGED as error:
                _explain(path, url, compression, error)


def _explain(path: str, url: str, compression: str, error: Exception) -> NoReturn:
    """Finds the record that could not be read or parsed, one by one."""
    number = 0
    with tf1.Graph().as_default() as graph, tf.device("/cpu:0"):
        record = tf1.data.make_one_shot_iterator(tf.data.TFRecordDataset(path, compression)).get_next()
    with tf1.Session(graph=graph) as session:
        while True:
            number += 1
            try:
                session.run(record)
            except tf.errors.DataLossError as damage:
                _refuse(url, number, f"it is corrupt or cut short: {damage.message}", error)
            except tf.errors.OutOfRangeError:
                break
    raise errors.InputError(f"{url}: a record does not hold what is expected: {error}") from error


def _refuse(url: str, number: int, why: str, error: Exception) -> NoReturn:
    raise errors.InputError(f"{url}: record {number}: {why}") from error
