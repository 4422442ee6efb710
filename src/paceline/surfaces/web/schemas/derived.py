"""Schemas of values of the model, derived from the fields of their types: each field is declared once.

A schema describes what `documents.plain` makes of a value: times are ISO 8601, replicas are their names, and
sequences are lists.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from pydantic import Field, create_model

from paceline.model.instants import UnixSeconds
from paceline.model.roles import ReplicaId
from paceline.surfaces.web.schemas.bases import Document, Instant, Schema

#: The meaning of a field, or of several, in the docstring of its type.
_ATTRIBUTE = re.compile(r"^ {4}(\w+(?:, \w+)*): (.+(?:\n {8}.+)*)", re.MULTILINE)


def schema(kind: type, word: str = "", /, *, omit: Collection[str] = (), **more: Any) -> type[Schema]:
    """Return the schema of values of a dataclass.

    Args:
        kind: the dataclass.
        word: the name of the schema; empty: that of the dataclass.
        omit: fields that the document does not have.
        more: the types of fields that the document has besides, or of another type.
    """
    return _made(kind, Schema, word or kind.__name__, omit, more)


def document(kind: type, word: str, /, *, omit: Collection[str] = (), **more: Any) -> type[Document]:
    """Return the schema of a whole answer that has the fields of a dataclass; ``word`` is its kind."""
    made = _made(kind, Document, word, omit, {"kind": (Literal[word], word), **more})
    return typing.cast(type[Document], made)


def listing(word: str, item: type[Schema], meaning: str, **more: Any) -> type[Document]:
    """Return the schema of a whole answer that is a list.

    Args:
        word: its kind.
        item: the schema of its items.
        meaning: what it lists, and in which order.
        more: the types of its other fields.
    """
    fields: dict[str, Any] = {"kind": (Literal[word], word), "items": (list[item], ...)}  # type: ignore[valid-type]
    fields |= {key: (value, ...) for key, value in more.items()}
    return create_model(word, __base__=Document, __doc__=meaning, __module__=__name__, **fields)


def _made(
    kind: type, base: type[Schema], name: str, omit: Collection[str], more: Mapping[str, Any]
) -> type[Schema]:
    hints = typing.get_type_hints(kind, include_extras=True)
    meanings = _meanings(kind)
    # A value may contain values of its own type: these have the same schema.
    of = functools.partial(_of, own={kind: name})
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name not in omit and field.name not in more:
            meaning = Field(description=meanings[field.name]) if field.name in meanings else Field()
            fields[field.name] = (of(hints[field.name]), meaning)
    fields |= {key: value if isinstance(value, tuple) else (value, ...) for key, value in more.items()}
    model = create_model(name, __base__=base, __doc__=_summary(kind), __module__=__name__, **fields)
    model.model_rebuild(_types_namespace={name: model})
    return model


@functools.cache
def _nested(kind: type) -> type[Schema]:
    return schema(kind)


def _of(hint: Any, own: Mapping[type, str]) -> Any:
    """Return the type of a document's field from that of a dataclass's field."""
    if hint == UnixSeconds:
        return Instant
    if hint is ReplicaId:
        return str
    if hint in own:
        return own[hint]
    if inspect.isclass(hint) and dataclasses.is_dataclass(hint):
        return _nested(hint)
    of: Callable[[Any], Any] = functools.partial(_of, own=own)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(map(of, arguments))]  # noqa: UP007 - of types that are only known here
    if origin is tuple and arguments[-1] is not ...:
        return tuple[tuple(map(of, arguments))]  # type: ignore[misc]
    if origin in (tuple, collections.abc.Sequence):
        return list[of(arguments[0])]  # type: ignore[misc]
    if origin is collections.abc.Mapping:
        return dict[str, of(arguments[1])]  # type: ignore[misc]
    return hint


def _summary(kind: type) -> str:
    """Return what a dataclass is, in the words of its docstring."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n\nAttributes:")[0]


def _meanings(kind: type) -> dict[str, str]:
    """Return what the docstring of a dataclass says of its fields."""
    _, _, attributes = inspect.cleandoc(kind.__doc__ or "").partition("\n\nAttributes:\n")
    meanings: dict[str, str] = {}
    for names, meaning in _ATTRIBUTE.findall(attributes):
        meanings |= dict.fromkeys(names.split(", "), " ".join(meaning.split()))
    return meanings
