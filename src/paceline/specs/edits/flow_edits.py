"""Edits of flow mappings (``{a: 1, b: 2}``), on one line or, as in JSON, with one line for each field."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import yaml

from paceline.specs.yaml_text import comments, syntax_trees, writings
from paceline.specs.yaml_text.documents import Scalar
from paceline.specs.yaml_text.splices import Splice
from paceline.specs.yaml_text.syntax_trees import KeyValue, Tree
from paceline.specs.yaml_text.writings import YamlStyle

_COLON = re.compile(r" *: +")
_COMMA = re.compile(r" *, *")


def insertion(tree: Tree, node: yaml.MappingNode, name: str, value: Any) -> Iterator[Splice]:
    """Yield the splices that add a new field at the end of a mapping."""
    pairs, style = tree.pairs(node), _style(tree, node)
    field = f"{writings.text(name, style)}{style.colon}{writings.line(value, style)}"
    close = syntax_trees.end(node) - 1
    if not pairs:
        opening = tree.text.index("{", syntax_trees.start(node))
        blank = not tree.text[opening + 1 : close].strip()
        yield Splice(opening + 1 if blank else close, close, field)
        return
    last = pairs[-1]
    comma = tree.comma_after(last.end)
    line_end = tree.line_end(last.end if comma is None else comma)
    indent = tree.before(last.start)
    if indent.strip():
        yield Splice(last.end, last.end, f"{style.comma}{field}")
    elif line_end > close:
        yield Splice(last.end, last.end, f",{tree.line_break}{indent}{field}")
    else:
        if comma is None:
            yield Splice(last.end, last.end, ",")
        yield Splice(line_end, line_end, f"{tree.line_break}{indent}{field}{'' if comma is None else ','}")


def setting(tree: Tree, node: yaml.MappingNode, pair: KeyValue, value: Any) -> Iterator[Splice]:
    """Yield the splices that give a field another value."""
    style = _style(tree, node)
    if pair.colon_end is None:
        yield Splice(pair.end, pair.end, f": {writings.line(value, style)}")
    elif pair.is_empty:
        yield Splice(pair.colon_end, pair.colon_end, f" {writings.line(value, style)}")
    else:
        yield Splice(syntax_trees.start(pair.value), pair.end, replacement(pair, value, style))


def replacement(pair: KeyValue, value: Any, style: YamlStyle) -> str:
    """Return a value on one line; a text keeps the kind of quotes of the text that it replaces."""
    quote = pair.value.style if isinstance(pair.value, yaml.ScalarNode) else None
    if isinstance(value, Scalar):
        return writings.scalar(value, style, quote if quote in ("'", '"') else None)
    return writings.line(value, style)


def removal(tree: Tree, node: yaml.MappingNode, pair: KeyValue) -> Iterator[Splice]:
    """Yield the splices that remove a field from a mapping that has others."""
    pairs = tree.pairs(node)
    is_last = pair.index == len(pairs) - 1
    comma = tree.comma_after(pair.end)
    behind = pair.end if comma is None else comma + 1
    has_lines = not tree.before(pair.start).strip() and tree.after_gap(behind) > tree.line_end(behind)
    before = tree.comma_after(pairs[pair.index - 1].end) if pair.index else None
    if is_last and comma is None and before is not None:
        yield Splice(before, before + 1)
    if has_lines:
        above = pairs[pair.index - 1].end if pair.index else syntax_trees.start(node)
        following = None if is_last else pairs[pair.index + 1].start
        yield Splice(comments.start_with(tree, pair.start, above, behind, following), tree.next_line(behind))
    elif not is_last:
        yield Splice(pair.start, pairs[pair.index + 1].start)
    elif before is not None and not tree.text[before + 1 : pair.start].strip():
        yield Splice(before + 1, behind)
    else:
        yield Splice(pair.start, behind)


def _style(tree: Tree, node: yaml.MappingNode) -> YamlStyle:
    """Return the style of a mapping; an empty mapping has the style of the whole file."""
    if not node.value and isinstance(tree.root, yaml.MappingNode) and tree.root.flow_style:
        node = tree.root
    pairs = tree.pairs(node)
    is_json = bool(pairs) and all(
        isinstance(each.key, yaml.ScalarNode) and each.key.style == '"' for each in pairs
    )
    colons = [tree.text[syntax_trees.end(each.key) : syntax_trees.start(each.value)] for each in pairs]
    colon = next((each for each in colons if _COLON.fullmatch(each) or (is_json and each == ":")), ": ")
    gaps = [tree.text[a.end : b.start] for a, b in itertools.pairwise(pairs)]
    comma = next((each for each in gaps if _COMMA.fullmatch(each)), "," if colon == ":" else ", ")
    return YamlStyle(is_json=is_json, colon=colon, comma=comma)
