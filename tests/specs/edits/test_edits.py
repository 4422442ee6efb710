"""Changes in the text of a job file: what it says then, and all that stays as it was."""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.job_texts import VALUES, Path, Text, json_texts, texts

from paceline import specs
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.specs.edits import edits
from paceline.specs.job_file import custom_resources, dumping
from paceline.specs.yaml_text import documents

_NEEDED = ((), ("metadata",), ("spec",), ("spec", "roles"), ("spec", "training"))


def change(path: str, value: Any) -> FieldChange:
    return FieldChange(path=tuple(path.split(".")), value=value)


def made(source: str, *changes: tuple[str, Any]) -> str:
    return edits.edited(source, [change(path, value) for path, value in changes])


def plain(data: Any) -> Any:
    """Return what `documents` has read as plain values."""
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    if isinstance(data, list):
        return [plain(value) for value in data]
    convert: dict[documents.ScalarKind, Any] = {
        documents.ScalarKind.TEXT: str, documents.ScalarKind.INTEGER: int, documents.ScalarKind.FLOAT: float,
        documents.ScalarKind.BOOLEAN: "true".__eq__, documents.ScalarKind.NULL: lambda _: None,
    }  # fmt: skip
    return convert[data.kind](data.text)


def said(text: str) -> str:
    """Return what a text says, in a way that tells 1 from true."""
    document = documents.read(documents.decode(text, "x"), "x")
    assert not document.faults
    return json.dumps(plain(document.data), sort_keys=True)


def applied(data: Any, path: Path, value: Any, at: Path = ()) -> Any:
    """Return plain values with a change; None: it leaves nothing."""
    if value is None and (not isinstance(data, dict) or path[0] not in data):
        return data
    data = dict(data or {})
    below = value if len(path) == 1 else applied(data.get(path[0]), path[1:], value, (*at, path[0]))
    if below is None and (len(path) == 1 or data.get(path[0]) is not None):
        del data[path[0]]
    else:
        data[path[0]] = below
    is_role = len(at) == 3 and at[:2] == ("spec", "roles")
    return data if data or at in _NEEDED or is_role else None


@st.composite
def _changes(draw: st.DrawFn, data: dict[str, Any]) -> tuple[Path, Any]:
    """Return a change that can be made: of a field that is there, or of a new one."""
    path: Path = ()
    here: Any = data
    while isinstance(here, dict) and (not path or draw(st.booleans())):
        name = draw(st.sampled_from([*here, "new", "cpu"]))
        path, here = (*path, name), here.get(name)
    if here is None and draw(st.booleans()):
        path = (*path, "below", "it")
    return path, draw(VALUES | st.none())


@settings(max_examples=examples(60))
@given(st.data(), texts() | json_texts())
def test_a_text_says_what_it_should(data: st.DataObject, text: Text) -> None:
    source, wanted, changes = text.text, copy.deepcopy(text.data), []
    assert said(source) == json.dumps(wanted, sort_keys=True)
    for _ in range(data.draw(st.integers(1, 3))):
        path, value = data.draw(_changes(wanted))
        after = applied(wanted, path, value)
        assume(after)
        changes.append(FieldChange(path=path, value=value))
        wanted = after
    assert said(edits.edited(source, changes)) == json.dumps(wanted, sort_keys=True)


@settings(max_examples=examples(60))
@given(st.data(), texts())
def test_lines_of_other_fields_stay_as_they_are(data: st.DataObject, text: Text) -> None:
    path, value = data.draw(_changes(text.data))
    after = applied(text.data, path, value)
    assume(after)
    lines = edits.edited(text.text, [FieldChange(path=path, value=value)]).split("\n")
    # A field that is last in a mapping with braces may have a comma more or less.
    left = iter(line.removesuffix("\r").replace(",", "") for line in lines)
    others = [line.replace(",", "") for owner, line in text.lines if not _is_near(owner, path)]
    assert all(line in left for line in others), (lines, others)


def _is_near(owner: Path, path: Path) -> bool:
    """Whether a line is about a changed field, a part of it, or a mapping that it is in."""
    shorter = min(len(owner), len(path))
    return owner[:shorter] == path[:shorter]


@settings(max_examples=examples(60))
@given(st.data(), texts())
def test_comments_survive_a_leaf_that_is_set(data: st.DataObject, text: Text) -> None:
    path, value = data.draw(_changes(text.data))
    assume(value is not None and not isinstance(_at(text.data, path), dict | list))
    after = edits.edited(text.text, [FieldChange(path=path, value=value)])
    assert after.count("# c") >= text.text.count("# c")
    for number in range(1, 50):
        assert (f"# comment {number}\n" in f"{after}\n".replace("\r", "")) >= (
            f"# comment {number}\n" in f"{text.text}\n".replace("\r", "")
        )


def _at(data: Any, path: Path) -> Any:
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


@settings(max_examples=examples(50))
@given(texts() | json_texts())
def test_without_changes_a_text_stays_as_it_is(text: Text) -> None:
    same = [
        FieldChange(path=(key,), value=value)
        for key, value in text.data.items()
        if isinstance(value, str | bool)
    ]
    for changes in ((), same, [FieldChange(path=("nowhere", "at all"), value=None)]):
        assert edits.edited(text.text, changes) == text.text
        assert edits.diff(text.text, changes) == ""
    assert edits.edited("\ufeff" + text.text, same) == "\ufeff" + text.text


FILE = """\
# Clicks, by night.
spec:
  roles:
    ps: {replicas: 2, cpu: 500m, memory: 1Gi}   # small
    worker:
      replicas: 4   # as many as there is room for
      # threads: 2
  training:
    optimizer: {name: adagrad}

    # By hand, see issue 12.
    # Four parts.
    partitioning:
      strategy: fixed   # or none
      shards: 4

    variable_placement: 'greedy'
"""


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("spec.roles.ps.cpu", 1, ["-cpu: 500m,", "+cpu: 1,"]),
        ("spec.roles.ps.gpu", 1, ["-1Gi}", "+1Gi, gpu: 1}"]),
        ("spec.roles.ps.memory", None, ["-, memory: 1Gi}", "+}"]),
        ("spec.roles.worker.cpu", "500m", ["+      cpu: 500m"]),
        ("spec.roles.worker.replicas", None, ["-      replicas: 4", "-    worker:", "+    worker: {}"]),
        ("spec.training.partitioning.shards", 8, ["-      shards: 4", "+      shards: 8"]),
        ("spec.training.partitioning", {"strategy": "fixed", "rows": "hashed"},
         ["-      shards: 4", "+      rows: hashed"]),
        ("spec.training.partitioning", None,
         ["-    # By hand", "-    # Four", "-    partitioning", "- strategy"]),
        ("spec.training.variable_placement", "balanced", ["-'greedy'", "+'balanced'"]),
        ("spec.training.consistency.mode", "synchronous", ["+    consistency:", "+      mode: synchronous"]),
        ("spec.training.optimizer.learning_rate", 1e-5, ["+{name: adagrad, learning_rate: 1.0e-05}"]),
        ("spec.placement.strategy", "spread-ps", ["+  placement:", "+    strategy: spread-ps"]),
        ("spec.environment", {"A": "1"}, ["+  environment:", '+    A: "1"']),
        ("spec.command", ["python", "a b", "{x}", "no"], ['+  command: [python, a b, "{x}", "no"]']),
        ("spec.hosts", [{"name": "a", "cpu": 1}], ["+  hosts:", "+  - {name: a, cpu: 1}"]),
    ],
)  # fmt: skip
def test_a_change_in_the_style_of_its_surroundings(path: str, value: Any, expected: Sequence[str]) -> None:
    found = edits.diff(FILE, [change(path, value)]).splitlines()
    for each in expected:
        sign, rest = each[0], each[1:].strip() if each[1] != " " or each[0] == "-" else each[1:]
        assert any(line.startswith(sign) and rest in line for line in found[2:]), (each, found)


def test_a_diff_has_two_lines_around() -> None:
    assert edits.diff(FILE, [change("spec.training.partitioning.shards", 8)], "clicks.yaml").splitlines() == [
        "--- clicks.yaml", "+++ clicks.yaml", "@@ -13,5 +13,5 @@", "     partitioning:",
        "       strategy: fixed   # or none", "-      shards: 4", "+      shards: 8", " ",
        "     variable_placement: 'greedy'",
    ]  # fmt: skip


@pytest.mark.parametrize("source", ["a:\r\n  b: 1\r\nc: 2", "a: 1\nb: 2", "a: {b: 1}\n# end"])
def test_a_diff_is_one_that_patch_takes(source: str, tmp_path: File) -> None:
    changes = [change("a", None), change("c", 3), change("d.e", [1])]
    file = tmp_path / "job.yaml"
    file.write_bytes(source.encode())
    patch = edits.diff(source, changes).encode()
    subprocess.run(["git", "apply", "-p0", "-"], input=patch, cwd=tmp_path, check=True, timeout=240)
    assert file.read_bytes().decode() == edits.edited(source, changes)


@pytest.mark.parametrize(
    ("source", "changes", "expected"),
    [
        ("a:  # why\nb: 1\n", [("a.x", 1)], "a:  # why\n  x: 1\nb: 1\n"),
        ("a: ~  # why\nb: {c: 1}\n", [("a.x", 1)], "a: {x: 1}  # why\nb: {c: 1}\n"),
        ("a: {x, y: }\n", [("a.x", 1), ("a.y", 2)], "a: {x: 1, y: 2 }\n"),
        ("a: {}\n", [("a.x.z", 1)], "a: {x: {z: 1}}\n"),
        ("a: {}\n", [("a.x.y", 1)], "a: {x: {\"y\": 1}}\n"),
        ("a: {b: 1, c: 2,}\n", [("a.c", None)], "a: {b: 1,}\n"),
        ("a: {b: 1, c: 2}\n", [("a.b", None)], "a: {c: 2}\n"),
        ("a: {b: 1}\nc: 1\n", [("a.b", None)], "c: 1\n"),
        ("a:\n- 1\n- 2 # two\nb: 1\n", [("a", [3])], "a:\n- 3\nb: 1\n"),
        ("a:\n  - 1\nb: 1\n", [("a", 3), ("c", [[1]])], "a: 3\nb: 1\nc:\n- [1]\n"),
        ("a: [1, 2] # x\n", [("a", [3])], "a: [3] # x\n"),
        ("a: 1 # x\nb: 2\n", [("a", {"b": {"c": 1}})], "a: # x\n  b:\n    c: 1\nb: 2\n"),
        ("a:\n    b: 1\n", [("c.d", 1)], "a:\n    b: 1\nc:\n    d: 1\n"),
        ("a: |+\n  x\n\nb: 1\n", [("b", None), ("c", 1)], "a: |+\n  x\n\nc: 1\n"),
        ("a: |\n  x\n\n\nb: 1\n", [("a", "z")], "a: z\n\n\nb: 1\n"),
        ("a:\n  b: |\n    x\n\nc: 1\n", [("a.d", 2)], "a:\n  b: |\n    x\n  d: 2\n\nc: 1\n"),
        ("a: 1\nb: 2", [("b", None)], "a: 1"),
        ("a: 1\r\nb: 2", [("b", None), ("c", 3)], "a: 1\r\nc: 3"),
        ("a: &x 1\nb: *x\n", [("b", 2)], "a: &x 1\nb: 2\n"),
        ("a: &x {c: 1}\nb: {<<: *x}\n", [("b.c", 2)], "a: &x {c: 1}\nb: {<<: *x, c: 2}\n"),
        ("a: &x 1\nb: 1\n", [("a", 2)], "a: 2\nb: 1\n"),
        ('{"a":1}', [("b.c", "x")], '{"a":1,"b":{"c":"x"}}'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', [("c", True)], '{\n  "a": 1,\n  "b": 2,\n  "c": true\n}\n'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', [("b", None)], '{\n  "a": 1\n}\n'),
        ("{a: 1, # one\n b: 2 # two\n}", [("c", 3)], "{a: 1, # one\n b: 2, # two\n c: 3\n}"),
        ("{a: 1, # one\n b: 2 # two\n}", [("b", None)], "{a: 1 # one\n}"),
        ("# x\na: 1\nb: 2\n", [("a", None)], "# x\nb: 2\n"),
        ("# x\na: 1\n\nb: 2\n", [("a", None)], "\nb: 2\n"),
        ("b: 2\n# cpu: 1\n# x\na: 1\n", [("a", None)], "b: 2\n# cpu: 1\n"),
        ("b:\n  # x\n  c: 1\na: 1\n", [("b.c", None)], "a: 1\n"),
        ("b:\n  # x\n  c: 1\na: 1\n", [("b.c", None), ("b.d", 1)], "b:\n  # x\n  d: 1\na: 1\n"),
    ],
)  # fmt: skip
def test_corners(source: str, changes: Sequence[tuple[str, Any]], expected: str) -> None:
    assert made(source, *changes) == expected


@pytest.mark.parametrize(
    ("source", "path", "value", "place", "why"),
    [
        ("a: &x {b: 1}\nc: *x\n", "a.b", 2, "1:4: a", "&x is used elsewhere too, as *x"),
        ("a: &x 1\nc: *x\n", "a", 2, "1:4: a", "&x is used elsewhere too"),
        ("a: {b: &x 1}\nc: *x\n", "a", None, "1:4: a", "&x is used elsewhere too"),
        ("a: &x {b: 1}\nc: *x\n", "c.b", 2, "1:4: c", "an alias (*name)"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "c.b", None, "c.b", "comes from an alias (<<: *name)"),
        ("a: &x {b: {d: 1}}\nc:\n  <<: *x\n", "c.b.d", 2, "c.b", "comes from an alias (<<: *name)"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n  b: 2\n", "c.b", None, "4:6: c.b", "without changing something else"),
        ("b: 1\na: |\n  x", "c", 1, "c", "without changing something else"),
        ("? a\n: 1\nb: 2\n", "a", 2, "a", "its key is written in an unusual way"),
        ("a: {? b : 1}", "a.b", 2, "a.b", "its key is written in an unusual way"),
        ("a: [1]\n", "a.b", 2, "1:4: a", "this is no mapping, so it cannot have 'b'"),
        ("a: 5\n", "a.b.c", 2, "1:4: a", "this is no mapping"),
        ("- 1\n", "a", 2, "1:1", "this is no mapping"),
        ("", "a", 2, "1:1", "this is no mapping"),
        ("a: 1\n", "a", None, "1:4: a", "nothing would be left"),
        ("a: 1\na: 2\n", "a", 3, "2:1: a", "given twice"),
        ("a: [\n", "a", 3, "2:1", "this is not YAML"),
        ("a: 1\n", "a", "\ud800", "1:4: a", "without breaking the file"),
    ],
)
def test_what_cannot_be_changed_is_said(source: str, path: str, value: Any, place: str, why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(source, (path, value))
    assert caught.value.message.startswith("job.yaml:")
    assert place in caught.value.message
    assert why in caught.value.message


def test_the_whole_file_is_no_field() -> None:
    with pytest.raises(InvalidInput, match="a change names a field"):
        edits.edited("a: 1\n", [FieldChange(path=(), value={"b": 1})])


@pytest.mark.parametrize("value", [object(), float("nan"), {"a": None}, [None], b"x"])
def test_a_value_must_be_plain(value: Any) -> None:
    with pytest.raises(InvalidInput, match="no plain value"):
        made("a: 1\n", ("a", value))
    with pytest.raises(InvalidInput, match="no plain value"):
        edits.listed("a: 1\n", [FieldChange(path=("a",), value=value)])


def test_a_value_has_limits() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(InvalidInput, match="50 levels"):
        made("a: 1\n", ("a", deep))
    with pytest.raises(InvalidInput, match="50 levels"):
        edits.edited("a: 1\n", [FieldChange(path=("a",) * 5_000, value=1)])
    for huge in (2**63, 10**5_000):
        with pytest.raises(InvalidInput, match="64 bits"):
            made("a: 1\n", ("a", huge))


@pytest.mark.parametrize("value", ["\ud800", "\0", {"\ud800": 1}, "\x85", "\ufffe"])
def test_any_text_is_written_or_refused(value: Any) -> None:
    with contextlib.suppress(InvalidInput):
        assert edits.edited("a: 1\n", [FieldChange(path=("a",), value=value)])


def test_a_job_file_and_a_resource_of_kubernetes(good: str) -> None:
    changes = [
        change("spec.roles.ps.cpu", 2), change("spec.training.partitioning.rows", "hashed"),
        change("spec.training.variable_placement", None), change("spec.placement.strategy", "spread-ps"),
    ]  # fmt: skip
    job = specs.parse_job(edits.edited(good, changes)).spec
    resource = custom_resources.resource(specs.parse_job(good).spec, "ads")
    text = dumping.dump_document({**resource, "status": {"phase": "running"}})
    after = edits.edited(text, changes)
    assert "status:\n  phase: running\n" in after
    assert "strategy: spread-ps" in after
    assert job.roles[0].cpu_cores == 2
    assert job.training is not None
    assert job.training["partitioning"]["rows"] == "hashed"
    assert "variable_placement" not in job.training


def test_changes_as_lines() -> None:
    changes = [
        change("spec.roles.ps.cpu", 1), change("spec.roles.ps.gpu", 1),
        change("spec.training.optimizer", None), change("spec.training.partitioning", {"strategy": "none"}),
    ]  # fmt: skip
    assert edits.listed(FILE, changes) == (
        "spec.roles.ps.cpu: 500m -> 1",
        "spec.roles.ps.gpu: not set -> 1",
        "spec.training.optimizer: {name: adagrad} -> not set",
        "spec.training.partitioning: {strategy: fixed, shards: 4} -> {strategy: none}",
    )
