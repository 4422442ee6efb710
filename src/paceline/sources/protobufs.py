"""Builds classes for TensorFlow's protobuf messages from declarations of the few fields that are read.

So TensorFlow, which defines the messages, need not be installed. Needs protobuf.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "int32": _FIELD.TYPE_INT32,
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
    "double": _FIELD.TYPE_DOUBLE,
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
}
#: Prefixes of a type: a list of it, a map from integers to it, a member of a oneof group.
LIST, MAP, ONE_OF = "list ", "map ", "one "

Messages = Mapping[str, Mapping[str, tuple[int, str]]]
"""Messages by name, and their fields: name, number, type; the name of a message stands for what is nested."""


def message_class(messages: Messages, name: str) -> Any:
    """Return the class of a message.

    Args:
        messages: the message and the messages that it contains; their fields with ``ONE_OF`` form the oneof
            group ``value``.
        name: the name of the message.
    """
    package = f"paceline.{name}"
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for each, fields in messages.items():
        declared = file.message_type.add(name=each)
        for field, (number, kind) in fields.items():
            _declare(declared, package, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


def _declare(
    message: descriptor_pb2.DescriptorProto, package: str, name: str, number: int, kind: str
) -> None:
    if kind.startswith(MAP):
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        _declare(entry, package, "key", 1, "int64")
        _declare(entry, package, "value", 2, kind.removeprefix(MAP))
        kind = f"{LIST}{message.name}.{entry.name}"
    field = message.field.add(name=name, number=number, label=_FIELD.LABEL_OPTIONAL)
    if kind.startswith(LIST):
        field.label = _FIELD.LABEL_REPEATED
    elif kind.startswith(ONE_OF):
        if not message.oneof_decl:
            message.oneof_decl.add(name="value")
        field.oneof_index = 0
    kind = kind.removeprefix(LIST).removeprefix(ONE_OF)
    if kind in _TYPES:
        field.type = _TYPES[kind]
    else:
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".{package}.{kind}"
