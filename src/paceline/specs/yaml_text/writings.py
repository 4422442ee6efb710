"""Writing of values as YAML in the style of the text around them: on one line, or in a block.

Values are those of `documents`: mappings, lists and `Scalar` leaves. A text that needs quotes gets double
quotes in a form that is also valid JSON.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from paceline.errors import InvalidInput
from paceline.specs.yaml_text import documents, plain_texts, problems
from paceline.specs.yaml_text.documents import Scalar, ScalarKind


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class YamlStyle:
    """How values are written.

    Attributes:
        is_json: whether every text has quotes.
        colon: text between a key and its value.
        comma: text between two values.
        step: indentation of a block mapping within its parent, in columns.
        item_step: indentation of a block list within its parent, in columns.
    """

    is_json: bool = False
    colon: str = ": "
    comma: str = ", "
    step: int = 2
    item_step: int = 0


def data(value: Any, depth: int = 0) -> Any:
    """Return a plain value in the form of `documents`.

    Args:
        value: text, a number, a boolean, or lists or mappings of these.
        depth: how many lists and mappings it stands in.

    Raises:
        InvalidInput: the value has another type, is an infinite number, NaN or an integer of more than 64
            bits, or is nested too deeply.
    """
    if depth > documents.MAX_DEPTH:
        raise InvalidInput(f"the nesting is deeper than {documents.MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        return {str(key): data(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [data(item, depth + 1) for item in value]
    if isinstance(value, str):
        return Scalar(str(value))
    if isinstance(value, bool):
        return Scalar(str(value).lower(), ScalarKind.BOOLEAN)
    if isinstance(value, int):
        if abs(value) >= 2**63:
            raise InvalidInput("the number is too large: it must fit in 64 bits")
        return Scalar(str(int(value)), ScalarKind.INTEGER)
    if isinstance(value, float) and math.isfinite(value):
        return Scalar(_float(value), ScalarKind.FLOAT)
    raise InvalidInput(f"{problems.shown(str(value))} is no plain value of a job file")


def writable(value: Any) -> Any:
    """Return a value that a job file can hold, or None, which removes a field.

    Raises:
        InvalidInput: no job file can hold the value (see `data`).
    """
    if value is not None:
        data(value)
    return value


def _float(value: float) -> str:
    """Return a number in a form that is also valid in YAML 1.1, which requires a point before an exponent."""
    text = repr(float(value))
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def is_leafy(value: Any) -> bool:
    """Return whether a value is a leaf, a list of leaves, or empty; users write such values on one line."""
    if isinstance(value, dict):
        return not value
    return not isinstance(value, list) or all(isinstance(each, Scalar) for each in value)


def line(value: Any, style: YamlStyle) -> str:
    """Return a value on one line, such as ``{cpu: 1, command: [python, train.py]}``."""
    if isinstance(value, dict):
        pairs = (f"{text(key, style)}{style.colon}{line(item, style)}" for key, item in value.items())
        return "{" + style.comma.join(pairs) + "}"
    if isinstance(value, list):
        return "[" + style.comma.join(line(item, style) for item in value) + "]"
    return scalar(value, style)


def block(value: Any, column: int, style: YamlStyle) -> Iterator[str]:
    """Yield the lines of a mapping or a list, indented by ``column`` columns."""
    indent = " " * column
    if isinstance(value, list):
        for item in value:
            yield f"{indent}- {line(item, style)}"
        return
    for key, item in value.items():
        yield from entry(key, item, column, style)


def entry(key: str, value: Any, column: int, style: YamlStyle) -> Iterator[str]:
    """Yield the lines of a field: one line for leaves and lists of leaves, else a block."""
    head = f"{' ' * column}{text(key, style)}:"
    if is_leafy(value):
        yield f"{head} {line(value, style)}"
        return
    yield head
    yield from block(value, column + (style.item_step if isinstance(value, list) else style.step), style)


def scalar(leaf: Scalar, style: YamlStyle, quote: str | None = None) -> str:
    """Return the text of a leaf; if possible, it has the kind of quotes of the text that it replaces."""
    if leaf.kind is not ScalarKind.TEXT:
        return leaf.text
    if quote == "'" and leaf.text.isprintable():
        return "'" + leaf.text.replace("'", "''") + "'"
    return _quoted(leaf.text) if quote else text(leaf.text, style)


def text(value: str, style: YamlStyle) -> str:
    """Return a text, with quotes if it would be read as something else without them."""
    return value if not style.is_json and _is_plain(value) else _quoted(value)


def _is_plain(value: str) -> bool:
    """Return whether all YAML readers read a text back unchanged if it has no quotes, in any context."""
    node = yaml.ScalarNode("tag:yaml.org,2002:str", value)
    if not value.isprintable() or documents.scalar_of(node).kind is not ScalarKind.TEXT:
        return False
    if plain_texts.is_ambiguous(value):
        return False
    written = yaml.dump(
        [value], Dumper=yaml.SafeDumper, default_flow_style=True, allow_unicode=True, width=10**9
    )
    return bool(written == f"[{value}]\n")


def _quoted(value: str) -> str:
    escaped = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() or ord(c) > 0xFFFF else f"\\u{ord(c):04x}" for c in escaped)
