"""Exact conversion of values of the model to JSON and back.

Every field is written, defaults included, so a later change of a default does not change stored values. An
unknown field was written by a newer program. Ignoring it could lose information, so it is an error. A missing
field means that an older program wrote the value; the field gets its default. The JSON is ASCII.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from paceline import errors
from paceline.model import roles
from paceline.model.instants import UnixSeconds

T = TypeVar("T")
E = TypeVar("E", bound=enum.Enum)

_NEWER = "It may have been written by a newer Paceline: pip install --upgrade paceline"


def encode(value: object) -> str:
    """Return a value of the model as JSON.

    Raises:
        TypeError: a part of the value has a type that cannot be stored.
    """
    return json.dumps(_plain(value), separators=(",", ":"))


def decode(kind: type[T], text: str, *, what: str) -> T:
    """Return the value that ``encode`` turned into JSON.

    Args:
        kind: type of the value, such as ``JobState`` or ``tuple[str, ...]``.
        text: the JSON that ``encode`` returned.
        what: name of the value in error messages, such as ``the state of run 'demo'``.

    Raises:
        StoreError: the text is damaged or was written by a newer program.
    """
    try:
        return value(kind, json.loads(text))
    except (json.JSONDecodeError, RecursionError) as error:
        raise errors.StoreError(f"{what} is damaged in the store: {error}") from error
    except ValueError as error:
        raise errors.StoreError(f"{what} cannot be read from the store: {error}", _NEWER) from error


def value(kind: type[T], data: object) -> T:
    """Return the value of a type from plain data, in the form of the JSON of ``encode``.

    Raises:
        ValueError: the data do not describe a value of this type.
    """
    return typing.cast(T, _decoder(typing.cast(Any, kind))(data, ""))


def member(kind: type[E], text: str, *, what: str) -> E:
    """Return the member of an enumeration that a column holds.

    Raises:
        StoreError: the column holds an unknown word, perhaps written by a newer program.
    """
    try:
        return kind(text)
    except ValueError as error:
        raise errors.StoreError(
            f"{what} cannot be read from the store: unknown {kind.__name__} {text!r}", _NEWER
        ) from error


class _Unreadable(ValueError):
    """A piece of data does not match its type."""


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, roles.ReplicaId):
        return str(value)
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot be stored")


def _key(key: object) -> str:
    if isinstance(key, str | roles.ReplicaId):
        return str(key)
    raise TypeError(f"a key of a mapping must be text to be stored, not {type(key).__name__}")


_Decoder = Callable[[Any, str], Any]


@functools.cache
def _decoder(kind: Any) -> _Decoder:
    """Return the function that makes a value of a type from plain data.

    Its second argument says where in the whole value the data are, for error messages.
    """
    if kind is Any:
        return lambda data, where: data
    if kind is roles.ReplicaId:
        return _named(roles.ReplicaId.parse, "a replica")
    if kind == UnixSeconds:
        return _named(_moment, "a time")
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return _optional(_decoder(inner))
    if origin is tuple and arguments[-1] is not ...:
        return _fixed(tuple(map(_decoder, arguments)))
    if origin in (tuple, Sequence):
        return _sequence(_decoder(arguments[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_decoder(arguments[0]), _decoder(arguments[1]))
    if dataclasses.is_dataclass(kind):
        return _fields(typing.cast(type, kind))
    if issubclass(kind, enum.Enum):
        return _named(kind, " or ".join(str(member.value) for member in kind))
    return _scalar({float: (int, float)}.get(kind, (kind,)))


def _optional(inner: _Decoder) -> _Decoder:
    return lambda data, where: None if data is None else inner(data, where)


def _moment(data: Any) -> float:
    """Return a moment in Unix seconds; documents have it in ISO 8601."""
    if isinstance(data, str):
        return datetime.datetime.fromisoformat(data).timestamp()
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise ValueError
    return data


def _scalar(kinds: tuple[type, ...]) -> _Decoder:
    def decoded(data: Any, where: str) -> Any:
        if not isinstance(data, kinds) or (isinstance(data, bool) and bool not in kinds):
            raise _Unreadable(f"{where} is {data!r}, not of type {kinds[-1].__name__}")
        return data

    return decoded


def _named(parse: Callable[[Any], Any], expected: str) -> _Decoder:
    def decoded(data: Any, where: str) -> Any:
        try:
            return parse(data)
        except (ValueError, AttributeError) as error:
            raise _Unreadable(f"{where} is {data!r}, not {expected}") from error

    return decoded


def _sequence(inner: _Decoder) -> _Decoder:
    def decoded(data: Any, where: str) -> Any:
        if not isinstance(data, list):
            raise _Unreadable(f"{where} is {data!r}, not a list")
        return tuple(inner(item, f"{where}[{index}]") for index, item in enumerate(data))

    return decoded


def _fixed(inner: tuple[_Decoder, ...]) -> _Decoder:
    def decoded(data: Any, where: str) -> Any:
        if not isinstance(data, list) or len(data) != len(inner):
            raise _Unreadable(f"{where} is {data!r}, not a list of {len(inner)}")
        each = zip(inner, data, strict=True)
        return tuple(decode(item, f"{where}[{index}]") for index, (decode, item) in enumerate(each))

    return decoded


def _mapping(key: _Decoder, inner: _Decoder) -> _Decoder:
    def decoded(data: Any, where: str) -> Any:
        if not isinstance(data, dict):
            raise _Unreadable(f"{where} is {data!r}, not a mapping")
        return {key(name, where): inner(item, f"{where}.{name}") for name, item in data.items()}

    return decoded


def _fields(kind: type) -> _Decoder:
    hints = typing.get_type_hints(kind, include_extras=True)
    names = {field.name for field in dataclasses.fields(kind)}
    required = {
        field.name
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }

    @functools.cache
    def inner(name: str) -> _Decoder:  # Resolved lazily, because a type may contain itself.
        return _decoder(hints[name])

    def decoded(data: Any, where: str) -> Any:
        if not isinstance(data, dict):
            raise _Unreadable(f"{where or 'it'} is {data!r}, not a {kind.__name__}")
        prefix = f"{where}." if where else ""
        if unknown := data.keys() - names:
            raise _Unreadable(f"unknown field {prefix}{min(unknown)}")
        if missing := required - data.keys():
            raise _Unreadable(f"field {prefix}{min(missing)} is missing")
        return kind(**{name: inner(name)(item, f"{prefix}{name}") for name, item in data.items()})

    return decoded
