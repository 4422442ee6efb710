"""Edits of block mappings, in which each field has a line or a block of lines."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import yaml

from paceline.specs.edits import flow_edits
from paceline.specs.yaml_text import comments, syntax_trees, writings
from paceline.specs.yaml_text.splices import Splice
from paceline.specs.yaml_text.syntax_trees import KeyValue, Tree
from paceline.specs.yaml_text.writings import YamlStyle


def insertion(tree: Tree, node: yaml.MappingNode, name: str, value: Any) -> Iterator[Splice]:
    """Yield the splices that add a new field below the last field of a mapping."""
    style, first, last = _style(tree), node.value[0][0], tree.pairs(node)[-1]
    column = syntax_trees.column(first)
    if _is_written_on_a_line(node, value):
        lines = [f"{' ' * column}{writings.text(name, style)}: {writings.line(value, style)}"]
    else:
        lines = list(writings.entry(name, value, column, style))
    at = tree.line_end(last.end)
    yield Splice(at, at, _below(tree, lines))


def setting(tree: Tree, node: yaml.MappingNode, pair: KeyValue, value: Any) -> Iterator[Splice]:
    """Yield the splices that give a field another value."""
    style, old = _style(tree), pair.value
    colon = pair.colon_end or pair.end
    lines = None if _is_inline(node, old, value) else _block(pair, value, style)
    at, key_line_end = syntax_trees.start(old), tree.line_end(colon)
    is_below = not pair.is_empty and (at > key_line_end or _is_block(old))
    if is_below:
        # A comment on the line of the key stays; comments between the lines of the value are removed with it.
        top = key_line_end if at > key_line_end else colon
        head = f" {writings.line(value, style)}" if lines is None else ""
        yield Splice(colon, colon, head)
        yield Splice(top, tree.line_end(pair.end), "" if lines is None else _below(tree, lines))
    elif lines is None:
        new = flow_edits.replacement(pair, value, style)
        yield Splice(colon, colon, f" {new}") if pair.is_empty else Splice(at, pair.end, new)
    else:
        yield Splice(colon, pair.end)
        line_end = tree.line_end(pair.end)
        yield Splice(line_end, line_end, _below(tree, lines))


def removal(tree: Tree, node: yaml.MappingNode, pair: KeyValue) -> Iterator[Splice]:
    """Yield the splices that remove a field from a mapping that has others."""
    pairs = tree.pairs(node)
    above = pairs[pair.index - 1].end if pair.index else 0
    following = pairs[pair.index + 1].start if pair.index + 1 < len(pairs) else None
    start = comments.start_with(tree, pair.start, above, pair.end, following)
    end = tree.next_line(pair.end)
    if end == tree.line_end(pair.end) and start:
        # The file has no line break at its end, and the edited file has none either.
        start = tree.line_end_above(start)
    yield Splice(start, end)


def _below(tree: Tree, lines: list[str]) -> str:
    return "".join(f"{tree.line_break}{line}" for line in lines)


def _is_block(node: yaml.Node) -> bool:
    return isinstance(node, yaml.CollectionNode) and not node.flow_style


def _is_inline(node: yaml.MappingNode, old: yaml.Node, value: Any) -> bool:
    """Return whether a value that replaces another is written on the line of its key."""
    if isinstance(value, list) and value and isinstance(old, yaml.SequenceNode):
        return bool(old.flow_style)
    return writings.is_leafy(value) or _is_written_on_a_line(node, value)


def _is_written_on_a_line(node: yaml.MappingNode, value: Any) -> bool:
    """Return whether a value is a flat mapping that goes on one line because all its siblings do."""
    beside = [each for _, each in node.value if isinstance(each, yaml.MappingNode) and each.value]
    is_flat = isinstance(value, dict) and all(map(writings.is_leafy, value.values()))
    return is_flat and bool(beside) and all(each.flow_style for each in beside)


def _block(pair: KeyValue, value: Any, style: YamlStyle) -> list[str]:
    column = syntax_trees.column(pair.key)
    if isinstance(value, dict):
        return list(writings.block(value, column + style.step, style))
    if _is_block(pair.value) and pair.value.start_mark.line > pair.key.start_mark.line:
        return list(writings.block(value, syntax_trees.column(pair.value), style))
    return list(writings.block(value, column + style.item_step, style))


def _style(tree: Tree) -> YamlStyle:
    """Return the style with the most frequent indentation of blocks in the file."""
    steps: collections.Counter[int] = collections.Counter()
    item_steps: collections.Counter[int] = collections.Counter()
    for node in tree.within(tree.root) if tree.root is not None else ():
        for key, value in node.value if isinstance(node, yaml.MappingNode) and not node.flow_style else ():
            if _is_block(value) and value.start_mark.line > key.start_mark.line:
                steps_of = steps if isinstance(value, yaml.MappingNode) else item_steps
                steps_of[syntax_trees.column(value) - syntax_trees.column(key)] += 1
    return YamlStyle(
        step=max(steps, key=steps.__getitem__, default=2),
        item_step=max(item_steps, key=item_steps.__getitem__, default=0),
    )
