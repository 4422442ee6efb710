"""TFRecord files of `tf.train.Example`, read by TensorFlow itself: records checked, parsed many at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from google.protobuf import message

from paceline.training import errors, features
from paceline.training.input import arrow_values, locations
from paceline.training.lazy_tensorflow import tf, tf1

_CHUNK_RECORDS = 8_192
_GZIP = b"\x1f\x8b\x08"
#: A record begins with its length (8 bytes) and a checksum of these bytes (4).
_HEADER_BYTES = 12
_CHECKED_BYTES = 1 << 16
# TensorFlow quotes the bytes that it cannot parse, which are often not text.
_DAMAGED = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, UnicodeDecodeError)
_TYPES = {"bytes_list": tf.string, "int64_list": tf.int64, "float_list": tf.float32}
_WORDS = {"bytes_list": "texts", "int64_list": "integers", "float_list": "floats"}
_ARROW = {tf.string: pa.binary(), tf.int64: pa.int64(), tf.float32: pa.float64()}


@dataclass(frozen=True)
class RecordFile:
    """A TFRecord file, which may be compressed as a whole by gzip or zlib."""

    url: str
    cache: locations.Cache | None

    def rows(self, kinds: Mapping[str, features.Kind]) -> int:
        """Return the number of records.

        Raises:
            InputError: a record is corrupt, or no record has one of the features.
        """
        with locations.local(self.url, self.cache) as path:
            reader = _Reader(path, self.url)
            if kinds:
                reader.types(kinds)
            return reader.count()

    def tables(self, kinds: Mapping[str, features.Kind], first: int) -> Iterator[pa.Table]:
        """Yield the features of those names as columns, from record `first` on.

        A column has lists if several values are wanted. A feature that a record lacks, or that is an empty
        list, is null.

        Raises:
            InputError: a record is corrupt or is not a `tf.train.Example`, holds values of another type than
                the records before, or several values where one is wanted.
        """
        if not kinds:
            return
        with locations.local(self.url, self.cache) as path:
            yield from _Reader(path, self.url).tables(kinds, first)

    def place(self, row: int) -> str:
        """Return where a record is, for messages: the file and the number of the record, from 1."""
        return f"{errors.shown(self.url)}: record {row + 1}"


class _Reader:
    """Reads a file that is on this machine."""

    def __init__(self, path: str, url: str) -> None:
        self._path = path
        self._url = url
        self._compression = _compression(path)

    def tables(self, kinds: Mapping[str, features.Kind], first: int) -> Iterator[pa.Table]:
        types = self.types(kinds)
        wanted = {name: tf.io.RaggedFeature(_TYPES[stored]) for name, stored in types.items()}

        def parsed(records: Any) -> Any:
            return (
                records.skip(first)
                .batch(_CHUNK_RECORDS)
                .map(
                    lambda chunk: _flat(tf.io.parse_example(chunk, wanted)),
                    num_parallel_calls=tf.data.AUTOTUNE,
                )
            )

        for chunk in self.run(parsed) if types else ():
            for name, kind in kinds.items():
                lengths = chunk[name][1]
                if not isinstance(kind, features.Lists) and lengths.max(initial=0) > 1:
                    row = first + int(np.argmax(lengths > 1))
                    self._refuse(row, f"feature {name!r} holds {lengths[row - first]} values, not one")
            yield pa.table(
                {
                    name: _column(*chunk[name], is_listed=isinstance(kind, features.Lists))
                    for name, kind in kinds.items()
                }
            )
            first += len(lengths)

    def count(self) -> int:
        found = sum(
            len(chunk) for chunk in self.run(lambda records: records.batch(_CHUNK_RECORDS).map(_lengths))
        )
        if not found and self._has_content():
            self._refuse(0, "it is corrupt or cut short: the file has no whole record")
        return found

    def _has_content(self) -> bool:
        """Return whether a file is not empty, though TensorFlow found its end at once."""
        with open(self._path, "rb") as stream:
            head = stream.read(_CHECKED_BYTES)
        if not self._compression:
            return bool(head)
        # 15 + 32: a window of any size, with the header of gzip or of zlib.
        try:
            return bool(zlib.decompressobj(wbits=15 + 32).decompress(head))
        except zlib.error:
            return True

    def types(self, kinds: Mapping[str, features.Kind]) -> dict[str, str]:
        """Return how each feature is stored, from the first records that have it; nothing without records."""
        stored_kinds: dict[str, str] = {}
        seen: set[str] = set()
        is_empty = True
        for number, record in enumerate(self.run(lambda records: records)):
            is_empty = False
            for name, feature in self._example(number, record).items():
                seen.add(name)
                stored = feature.WhichOneof("kind")
                if name in kinds and stored is not None:
                    stored_kinds.setdefault(name, stored)
            if len(stored_kinds) == len(kinds):
                break
        for name in kinds:
            if name not in stored_kinds and not is_empty:
                raise errors.InputError.of(
                    self._url, f"no record has a feature {name!r}{errors.did_you_mean(name, seen - {name})}"
                )
        return stored_kinds

    def _example(self, number: int, record: bytes) -> Mapping[str, Any]:
        try:
            features_: Mapping[str, Any] = tf.train.Example.FromString(record).features.feature
            return features_
        except message.DecodeError as error:
            self._refuse(number, f"it is no tf.train.Example: {error}", error)

    def run(self, steps: Any) -> Iterator[Any]:
        """Yield the elements of a data set over the records of the file.

        It has its own graph, so that it works whether or not the script has switched eager execution off.
        """
        with tf1.Graph().as_default() as graph, tf.device("/cpu:0"):
            element = tf1.data.make_one_shot_iterator(steps(self._records(1 << 20))).get_next()
        with tf1.Session(graph=graph) as session:
            following = session.make_callable(element) if not isinstance(element, dict) else None
            while True:
                try:
                    yield following() if following else session.run(element)
                except tf.errors.OutOfRangeError:
                    return
                except _DAMAGED as error:
                    self._explain(error)

    def _records(self, buffer_bytes: int) -> Any:
        return tf.data.TFRecordDataset(self._path, self._compression, buffer_size=buffer_bytes)

    def _explain(self, reason: Exception) -> NoReturn:
        """Find the record that could not be read or parsed, one by one, and raise the error."""
        stored: dict[str, str] = {}
        with tf1.Graph().as_default() as graph, tf.device("/cpu:0"):
            record = tf1.data.make_one_shot_iterator(self._records(1 << 16)).get_next()
        with tf1.Session(graph=graph) as session:
            number = 0
            while True:
                try:
                    example = self._example(number, session.run(record))
                except tf.errors.DataLossError as damage:
                    self._refuse(number, f"it is corrupt or cut short: {errors.reason(damage)}", reason)
                except tf.errors.OutOfRangeError:
                    break
                for name, feature in example.items():
                    kind = feature.WhichOneof("kind")
                    if kind is not None and stored.setdefault(name, kind) != kind:
                        self._refuse(
                            number,
                            f"feature {name!r} holds {_WORDS[kind]}, and {_WORDS[stored[name]]} before",
                            reason,
                        )
                number += 1
        why = errors.reason(reason)
        raise errors.InputError.of(self._url, f"its records cannot be parsed: {why}") from reason

    def _refuse(self, number: int, why: str, error: Exception | None = None) -> NoReturn:
        raise errors.InputError.of(self._url, f"record {number + 1}: {why}") from error


def _compression(path: str) -> str:
    """Return how a file is compressed, by its first bytes; a record may begin with the bytes of gzip."""
    with open(path, "rb") as stream:
        head = stream.read(_HEADER_BYTES)
    if len(head) < _HEADER_BYTES or _is_record(head):
        return "GZIP" if head.startswith(_GZIP) else ""
    if head.startswith(_GZIP):
        return "GZIP"
    # RFC 1950: deflate, and a checksum of the two bytes.
    is_zlib = head[0] & 0x0F == 8 and int.from_bytes(head[:2], "big") % 31 == 0
    return "ZLIB" if is_zlib and _is_zlib(head) else ""


def _is_record(head: bytes) -> bool:
    """Return whether a header has the correct checksum of its length."""
    masked = int.from_bytes(head[8:12], "little")
    crc = _crc32c(head[:8])
    return masked == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _is_zlib(head: bytes) -> bool:
    try:
        zlib.decompressobj().decompress(head)
    except zlib.error:
        return False
    return True


def _crc32c(data: bytes) -> int:
    """Return the CRC of Castagnoli (RFC 3720), bit by bit, which is fast enough for a few bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def _lengths(chunk: Any) -> Any:
    return tf.strings.length(chunk)


def _flat(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Return, for each ragged feature, its values and how many of them each record has."""
    return {name: (values.values, values.row_lengths()) for name, values in parsed.items()}


def _column(values: Any, lengths: Any, *, is_listed: bool) -> Any:
    """Return an Arrow array of values: lists of values, or at most one value for each record."""
    if values.dtype == object:
        array = arrow_values.binaries(values.tolist())
    else:
        array = arrow_values.array(values.astype(np.float64) if values.dtype == np.float32 else values)
    if is_listed:
        offsets = arrow_values.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        return pa.ListArray.from_arrays(offsets, array)
    if len(array) == len(lengths):
        return array
    places = np.where(lengths > 0, np.cumsum(lengths) - 1, 0)
    return (
        array.take(arrow_values.array(places, lengths > 0))
        if len(array)
        else pa.nulls(len(lengths), array.type)
    )
