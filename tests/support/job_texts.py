"""Texts of YAML in the styles that people write, with what they say and whose each line is."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from hypothesis import strategies as st

Path = tuple[str, ...]

_KEYS = st.sampled_from(
    ["spec", "roles", "ps", "training", "metadata", "cpu", "a", "b", "c-d", "x.io/y", "no", "e f", "1", ""]
)
_TEXTS = st.sampled_from(
    [
        "500m", "1Gi", "no", "1.10", "~", "", " x ", "a: b", "- a", "#", "a #b", "1e-3", "<<", "{ps_hosts}",
        "'", '"', "[x", "a, b", "*a", "&a", "2001-01-01", "é\u2028\x85", "a\tb", "%", "---", "é 任务", "\\",
        "a\nb\n",
    ]
)  # fmt: skip
_LEAVES = st.one_of(
    st.integers(-(10**9), 10**20),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    _TEXTS,
    st.text(
        st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff\ufffe\uffff"), max_size=8
    ),
)
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=5,
)
MAPPINGS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    _KEYS,
    st.recursive(
        st.one_of(
            _LEAVES,
            st.none(),
            st.lists(_LEAVES, max_size=3),
            st.lists(st.dictionaries(_KEYS, _LEAVES), max_size=2),
        ),
        lambda inner: st.dictionaries(_KEYS, inner, max_size=4),
        max_leaves=12,
    ),
    min_size=1,
    max_size=5,
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Text:
    """A text, the plain values that it says, and its lines, each with the path that it is about."""

    text: str
    data: dict[str, Any]
    lines: tuple[tuple[Path, str], ...]


@st.composite
def texts(draw: st.DrawFn) -> Text:
    """Return mappings written in blocks and on lines, with comments, blank lines, quotes and line ends."""
    data = draw(MAPPINGS)
    writer = _Writer(draw)
    writer.block(data, (), 0)
    line_break = draw(st.sampled_from(["\n", "\r\n"]))
    text = line_break.join(line for _, line in writer.lines)
    is_open = writer.lines[-1][1].endswith(">>>")
    text = text.replace(">>>", "")
    lines = tuple((path, line.replace(">>>", "")) for path, line in writer.lines)
    return Text(text + (line_break if is_open or draw(st.booleans()) else ""), data, lines)


@st.composite
def json_texts(draw: st.DrawFn) -> Text:
    """Return the same as JSON, on a line or on several."""
    data = draw(MAPPINGS)
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    indent = draw(st.sampled_from([None, 1, 2, 4]))
    text = json.dumps(data, ensure_ascii=False, indent=indent, separators=separators)
    return Text(_escaped(text), data, ())


def _escaped(text: str) -> str:
    """Return JSON with everything escaped that YAML would not take as it is."""
    return "".join(
        each if each.isprintable() or each == "\n" or ord(each) > 0xFFFF else f"\\u{ord(each):04x}"
        for each in text
    )


class _Writer:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.step = draw(st.sampled_from([1, 2, 4]))
        self.item_step = draw(st.sampled_from([0, 2]))
        self.lines: list[tuple[Path, str]] = []
        self.comments = 0

    def block(self, data: dict[str, Any], path: Path, column: int) -> None:
        indent = " " * column
        for key, value in data.items():
            here = (*path, key)
            for _ in range(self.draw(st.integers(0, 2))):
                above = self.draw(st.sampled_from(["", f"{indent}# {self.comment()}", f"{indent}# cpu: 1"]))
                self.lines.append((here, above))
            head = f"{indent}{self.key(key)}:"
            if isinstance(value, dict) and value and self.draw(st.booleans()):
                self.lines.append((here, head + self.behind()))
                self.block(value, here, column + self.step)
            elif isinstance(value, list) and value and self.draw(st.booleans()):
                self.lines.append((here, head + self.behind()))
                items = " " * (column + self.item_step)
                self.lines += [(here, f"{items}- {self.flow(item)}{self.behind()}") for item in value]
            elif isinstance(value, str) and value == "a\nb\n" and self.draw(st.booleans()):
                self.lines += [(here, f"{head} |"), (here, f"{indent}  a"), (here, f"{indent}  b>>>")]
            elif value is None and self.draw(st.booleans()):
                self.lines.append((here, head + self.behind()))
            elif isinstance(value, dict) and value and self.draw(st.booleans()):
                self.wide(head, value, here, column)
            else:
                self.lines.append((here, f"{head} {self.flow(value)}{self.behind()}"))

    def wide(self, head: str, data: dict[str, Any], path: Path, column: int) -> None:
        """Write a flow mapping with a line for each field."""
        self.lines.append((path, f"{head} {{{self.behind()}"))
        for number, (key, value) in enumerate(data.items(), start=1):
            comma = "," if number < len(data) or self.draw(st.booleans()) else ""
            line = f"{' ' * (column + 2)}{self.key(key)}: {self.flow(value)}{comma}"
            self.lines.append(((*path, key), line + self.behind()))
        self.lines.append((path, " " * column + " }"))

    def flow(self, value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.key(key)}: {self.flow(item)}" for key, item in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.flow, value)) + "]"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float):
            text = repr(value)
            return text.replace("e", ".0e") if "e" in text and "." not in text else text
        return json.dumps(value)

    def key(self, key: str) -> str:
        return (
            key if key.replace("-", "").isalpha() and key != "no" and self.draw(st.booleans()) else f'"{key}"'
        )

    def text(self, text: str) -> str:
        if text in ("500m", "1Gi") and self.draw(st.booleans()):
            return text
        if text.isprintable() and self.draw(st.booleans()):
            return "'" + text.replace("'", "''") + "'"
        return _escaped(json.dumps(text, ensure_ascii=False))

    def comment(self) -> str:
        self.comments += 1
        return f"comment {self.comments}"

    def behind(self) -> str:
        return f"  # {self.comment()}" if self.draw(st.booleans()) else ""
