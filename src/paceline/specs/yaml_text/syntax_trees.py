"""The exact place of each part of a YAML text, which edits need.

PyYAML's nodes know where they begin. They do not know where the content of a block ends, and which values
have anchors or are aliases; this module adds both. Offsets count characters from 0.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import yaml

from paceline.specs.yaml_text import documents

_BLANKS = re.compile(r"\s*")
_GAP = re.compile(r"(?:\s|#[^\n\r\x85\u2028\u2029]*)*")


class Alias(yaml.Node):
    """The node of an alias (``*name``) in the text; `value` is the node that it refers to."""

    id = "alias"


class _Loader(documents.Loader):
    """Keeps aliases as nodes and records the anchors that they refer to."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.names: dict[int, str] = {}
        self.aliased: set[str] = set()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        is_alias = isinstance(event, yaml.AliasEvent)
        node = super().compose_node(parent, index)
        if is_alias and node is not None:
            self.aliased.add(event.anchor)
            return Alias(node.tag, node, event.start_mark, event.end_mark)
        if event.anchor is not None:
            self.names[id(node)] = event.anchor
        return node


@dataclasses.dataclass(frozen=True)
class KeyValue:
    """A key of a mapping and its value.

    Attributes:
        index: index of the pair in its mapping, from 0.
        colon_end: offset behind the colon; None without a colon, as for ``a`` in ``{a, b: 1}``.
        end: offset at which the content ends, without comments and blank lines behind it.
    """

    index: int
    key: yaml.Node
    value: yaml.Node
    colon_end: int | None
    end: int

    @property
    def start(self) -> int:
        """The offset at which the key begins."""
        return start(self.key)

    @property
    def is_empty(self) -> bool:
        """Whether the text has nothing for the value."""
        return start(self.value) == end(self.value)

    @property
    def is_null(self) -> bool:
        """Whether the value is null, either missing or written out."""
        value = self.value
        return (
            isinstance(value, yaml.ScalarNode)
            and documents.scalar_of(value).kind is documents.ScalarKind.NULL
        )


@dataclasses.dataclass(frozen=True)
class Tree:
    """A text and its nodes; ``shared`` has the anchor of each node with aliases, by the node's ``id()``."""

    text: str
    root: yaml.Node | None
    shared: dict[int, str]

    @property
    def line_break(self) -> str:
        r"""The line break of the first line; ``\n`` if the text has only one line."""
        found = documents.BREAKS.search(self.text)
        return found[0] if found else "\n"

    def pairs(self, node: yaml.MappingNode) -> list[KeyValue]:
        """Return the keys of a mapping with their values, including merge keys (``<<``)."""
        return [self._pair(index, key, value) for index, (key, value) in enumerate(node.value)]

    def pair(self, node: yaml.MappingNode, name: str) -> KeyValue | None:
        """Return the pair of a key in the mapping itself, merged mappings excluded; None if there is none."""
        for index, (key, value) in enumerate(node.value):
            own = key.value if isinstance(key, Alias) else key
            if isinstance(own, yaml.ScalarNode) and own.tag != documents.MERGE and own.value == name:
                return self._pair(index, key, value)
        return None

    def _pair(self, index: int, key: yaml.Node, value: yaml.Node) -> KeyValue:
        blanks = _BLANKS.match(self.text, end(key))
        after = blanks.end() if blanks else end(key)
        colon_end = after + 1 if self.text.startswith(":", after) else None
        last = self.content_end(value) if start(value) < end(value) else colon_end or end(key)
        return KeyValue(index, key, value, colon_end, last)

    def content_end(self, node: yaml.Node) -> int:
        """Return the end of the content of a node, without comments and blank lines behind it."""
        if isinstance(node, yaml.MappingNode) and not node.flow_style:
            return self._pair(len(node.value) - 1, *node.value[-1]).end
        if isinstance(node, yaml.SequenceNode) and not node.flow_style:
            return self.content_end(node.value[-1])
        if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
            return self._block_end(node)
        return end(node)

    def _block_end(self, node: yaml.ScalarNode) -> int:
        """Return the end of a block scalar; blank lines belong to it if its header has a ``+``."""
        text = self.text[start(node) : end(node)]
        head = text[: self.line_end(start(node)) - start(node)]
        if "+" not in head:
            return start(node) + len(text.rstrip())
        breaks = list(documents.BREAKS.finditer(text))
        return start(node) + (breaks[-1].start() if breaks and breaks[-1].end() == len(text) else len(text))

    def line_start(self, offset: int) -> int:
        """Return the start of the line that contains an offset."""
        starts = [found.end() for found in documents.BREAKS.finditer(self.text, 0, offset)]
        return starts[-1] if starts else 0

    def line_end(self, offset: int) -> int:
        """Return the end of the line that contains an offset, before its line break."""
        found = documents.BREAKS.search(self.text, offset)
        return found.start() if found else len(self.text)

    def next_line(self, offset: int) -> int:
        """Return the start of the next line, or the end of the text."""
        found = documents.BREAKS.search(self.text, offset)
        return found.end() if found else len(self.text)

    def line_end_above(self, line_start: int) -> int:
        """Return the end of the line above the line that starts at an offset."""
        return line_start - (2 if self.text.startswith("\r\n", line_start - 2) else 1)

    def before(self, offset: int) -> str:
        """Return the part of the line that is before an offset."""
        return self.text[self.line_start(offset) : offset]

    def comma_after(self, offset: int) -> int | None:
        """Return the offset of the comma that follows blanks and comments; None if no comma follows."""
        after = self.after_gap(offset)
        return after if self.text.startswith(",", after) else None

    def after_gap(self, offset: int) -> int:
        """Return the offset of the next text that is neither blank nor a comment."""
        found = _GAP.match(self.text, offset)
        return found.end() if found else offset

    def within(self, node: yaml.Node) -> Iterator[yaml.Node]:
        """Yield a node and all below it."""
        yield node
        below = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else []
        for each in node.value if isinstance(node, yaml.SequenceNode) else below:
            yield from self.within(each)


def tree(text: str, file: str) -> Tree:
    """Return the tree of a text.

    Raises:
        problems.DocumentError: the text is not YAML, or is beyond the limits.
    """
    loader, root = documents.composed(_Loader, text, file, first_line=1, lines=documents.split_lines(text))
    shared = {key: name for key, name in loader.names.items() if name in loader.aliased}
    return Tree(text, root, shared)


def start(node: yaml.Node) -> int:
    """Return the offset at which a node begins, including its anchor and its tag."""
    offset: int = node.start_mark.index
    return offset


def end(node: yaml.Node) -> int:
    """Return the offset at which a node ends according to PyYAML (see `Tree.content_end`)."""
    offset: int = node.end_mark.index
    return offset


def column(node: yaml.Node) -> int:
    """Return how many characters are before a node on its line."""
    count: int = node.start_mark.column
    return count
