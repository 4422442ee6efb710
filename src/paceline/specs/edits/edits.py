"""Changes in the text of a job file that preserve everything else: comments, order, quotes, line ends.

Each change is a few splices at the places that `syntax_trees` knows. The resulting text is parsed again: if
it does not say what it should, nothing is changed and an error gives the reason. Rules:

- A new field goes to the end of its mapping, in the style of its neighbours. If a mapping replaces another
  mapping, only the fields that differ are changed.
- A removed field disappears with all its lines and with the comment lines directly above it that have the
same
  indentation. These comments stay if another field follows on the very next line, because they may describe
  both. A comment that looks like a field (``# gpu: 1``) is a field that the user has disabled, and stays.
- A mapping that becomes empty is removed too, unless it means something when it is empty.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import yaml

from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.specs.edits import block_edits, flow_edits
from paceline.specs.yaml_text import documents, problems, syntax_trees, writings
from paceline.specs.yaml_text.documents import Scalar, ScalarKind
from paceline.specs.yaml_text.splices import spliced
from paceline.specs.yaml_text.syntax_trees import Alias, KeyValue
from paceline.specs.yaml_text.writings import YamlStyle

_FILE = "job.yaml"
#: Mappings that mean something when they are empty; the mapping of each role does too.
_NEEDED = ((), ("metadata",), ("spec",), ("spec", "roles"), ("spec", "training"))
_BY_HAND = "change it by hand"

Path = tuple[str, ...]


def edited(source: str, changes: Sequence[FieldChange], file: str = _FILE) -> str:
    """Return the text of a job file after changes, which are made one after the other.

    Args:
        source: the text: one YAML document, or JSON.
        changes: the changes. A value is text, a number, a boolean, or lists and mappings of these.
        file: name of the file, for positions.

    Raises:
        problems.DocumentError: the text cannot be read, or a change cannot be made without changing something
            else; the message says where and why.
        InvalidInput: a value is none that a job file can hold, or a path is too long.
    """
    document = _read(source, file)
    mark = "\ufeff" if source.startswith("\ufeff") else ""
    text = source.removeprefix(mark)
    for change in _ordered(changes):
        if len(change.path) > documents.MAX_DEPTH:
            raise InvalidInput(f"the nesting is deeper than {documents.MAX_DEPTH} levels")
        value = None if change.value is None else writings.data(change.value)
        text, document = _Edit(text, document).verified(change.path, value)
    return mark + text


def diff(source: str, changes: Sequence[FieldChange], file: str = _FILE) -> str:
    """Return the changes of `edited` as a unified diff with two lines of context; empty if nothing changes.

    Raises:
        InvalidInput: a change cannot be made (see `edited`).
    """
    return difference(source, edited(source, changes, file), file)


def difference(before: str, after: str, file: str = _FILE) -> str:
    """Return the difference of two texts of a file, in the format of `diff`."""
    name = problems.visible(file)
    lines = difflib.unified_diff(_lines(before), _lines(after), name, name, n=2)
    return "".join(
        each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n" for each in lines
    )


def listed(source: str, changes: Sequence[FieldChange], file: str = _FILE) -> tuple[str, ...]:
    """Return a line for each change, such as ``spec.roles.ps.cpu: 500m -> 1``.

    Raises:
        problems.DocumentError: the text cannot be read.
        InvalidInput: a value is none that a job file can hold.
    """
    data = _read(source, file).data
    lines = []
    for change in changes:
        old = _value_at(data, change.path)
        new = None if change.value is None else writings.data(change.value)
        lines.append(f"{problems.dotted(change.path)}: {_said(old)} -> {_said(new)}")
    return tuple(lines)


def _lines(text: str) -> list[str]:
    """Return the lines of a text as the ``patch`` tool counts them."""
    *whole, rest = text.split("\n")
    return [*(f"{each}\n" for each in whole), *filter(None, (rest,))]


def _read(source: str, file: str) -> documents.Document:
    document = documents.read(documents.decode(source, file), file)
    if document.faults:
        raise problems.DocumentError(document.faults)
    return document


def _ordered(changes: Sequence[FieldChange]) -> list[FieldChange]:
    """Return the changes, those that set fields before those that remove fields.

    This way, no mapping is empty in between. The order stays as given if a set field and a removed field
    overlap.
    """
    sets = [each for each in changes if each.value is not None]
    leaves = [each for each in changes if each.value is None]
    overlap = any(
        a.path[: len(b.path)] == b.path or b.path[: len(a.path)] == a.path for a in sets for b in leaves
    )
    return list(changes) if overlap else [*sets, *leaves]


class _Edit:
    """One change of a text."""

    def __init__(self, text: str, document: documents.Document) -> None:
        self._text = text
        self._document = document
        self._tree = syntax_trees.tree(text, document.file)

    def verified(self, path: Path, value: Any) -> tuple[str, documents.Document]:
        """Return the changed text and its document, after checking that the document is as it should be."""
        text = self.made(path, value)
        if text == self._text:
            return text, self._document
        try:
            after = _read(text, self._document.file)
        except problems.DocumentError as error:
            raise self._refused(
                path, f"it cannot be changed without breaking the file; {_BY_HAND}"
            ) from error
        if after.data != _applied(self._document.data, path, value):
            raise self._refused(path, f"it cannot be changed without changing something else; {_BY_HAND}")
        return text, after

    def made(self, path: Path, value: Any) -> str:
        """Return the changed text, unchecked."""
        if value == _value_at(self._document.data, path):
            return self._text
        node = self._tree.root
        for depth, name in enumerate(path):
            here = path[: depth + 1]
            if not isinstance(node, yaml.MappingNode):
                raise self._refused(
                    path[:depth], f"this is no mapping, so it cannot have {problems.shown(name)}; {_BY_HAND}"
                )
            if depth and id(node) in self._tree.shared:
                raise self._refused(path[:depth], self._also_elsewhere(node))
            pair = self._tree.pair(node, name)
            if pair is None:
                return self._inserted(node, here, _nested(path[depth + 1 :], value))
            if len(here) == len(path):
                return self._changed(node, pair, path, value)
            if isinstance(pair.value, Alias):
                raise self._refused(here, f"this is an alias (*name) of a value elsewhere; {_BY_HAND}")
            if pair.is_null:
                return self._changed(node, pair, here, _nested(path[depth + 1 :], value))
            node = pair.value
        raise self._refused(path, "a change names a field, not the whole file")

    def _inserted(self, node: yaml.MappingNode, path: Path, value: Any) -> str:
        is_merged = _value_at(self._document.data, path) is not None
        if value is None or (is_merged and isinstance(value, dict)):
            raise self._refused(path, f"this comes from an alias (<<: *name); {_BY_HAND}")
        edits = flow_edits if node.flow_style else block_edits
        return spliced(self._text, edits.insertion(self._tree, node, path[-1], value))

    def _changed(self, node: yaml.MappingNode, pair: KeyValue, path: Path, value: Any) -> str:
        own, shared = pair.value, self._tree.shared
        if isinstance(value, dict) and value and isinstance(own, yaml.MappingNode) and id(own) not in shared:
            return self._set_within(path, value)
        elsewhere = next((each for each in self._tree.within(own) if id(each) in shared), None)
        if elsewhere is not None:
            raise self._refused(path, self._also_elsewhere(elsewhere))
        edits = flow_edits if node.flow_style else block_edits
        if self._is_explicit(node, pair):
            raise self._refused(path, f"its key is written in an unusual way (? key); {_BY_HAND}")
        if value is not None:
            return spliced(self._text, edits.setting(self._tree, node, pair, value))
        if len(node.value) > 1:
            return spliced(self._text, edits.removal(self._tree, node, pair))
        if len(path) == 1:
            raise self._refused(path, "nothing would be left of the file")
        return self.made(path[:-1], {} if _is_needed(path[:-1]) else None)

    def _set_within(self, path: Path, value: dict[str, Any]) -> str:
        """Return the text with changes in those fields of a mapping that differ from the wanted ones."""
        wanted = dict.fromkeys(_value_at(self._document.data, path)) | value
        text, document = self._text, self._document
        for name, item in sorted(wanted.items(), key=lambda each: each[1] is None):
            text, document = _Edit(text, document).verified((*path, name), item)
        return text

    def _is_explicit(self, node: yaml.MappingNode, pair: KeyValue) -> bool:
        """Return whether there is something before a key, usually a question mark."""
        if node.flow_style:
            return self._text[: pair.start].rstrip().endswith("?")
        return bool(self._tree.before(pair.start).strip())

    def _also_elsewhere(self, node: yaml.Node) -> str:
        name = self._tree.shared[id(node)]
        return f"&{name} is used elsewhere too, as *{name}, and would change there; {_BY_HAND}"

    def _refused(self, path: Path, message: str) -> problems.DocumentError:
        return problems.DocumentError([self._document.problem(path, message)])


def _value_at(data: Any, path: Path) -> Any:
    """Return the value that data have at a path; None if there is none."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _nested(path: Path, value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _applied(data: Any, path: Path, value: Any, depth: int = 0) -> Any:
    """Return data with a change; None if nothing is left of them."""
    mapping = dict(data) if isinstance(data, dict) else {}
    name, is_last = path[depth], depth == len(path) - 1
    mapping[name] = value if is_last else _applied(mapping.get(name), path, value, depth + 1)
    if mapping[name] is None:
        del mapping[name]
    return mapping if mapping or _is_needed(path[:depth]) else None


def _is_needed(path: Path) -> bool:
    return path in _NEEDED or (len(path) == 3 and path[:2] == ("spec", "roles"))


def _said(data: Any) -> str:
    is_nothing = data is None or (isinstance(data, Scalar) and data.kind is ScalarKind.NULL)
    return "not set" if is_nothing else writings.line(data, YamlStyle())
