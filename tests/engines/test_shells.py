"""Another shell's environment is said, without its values."""

from __future__ import annotations

import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from paceline.engines.local import shells

FIRST = {"PATH": "/bin", "HOME": "/root", "TOKEN": "very secret", "SHLVL": "1", "PWD": "/", "TERM": "xterm"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "environment.json"
    assert shells.note(found, FIRST) == []
    return found


def test_the_same_environment_in_another_terminal_is_the_same(path: Path) -> None:
    assert shells.note(path, {**FIRST, "SHLVL": "3", "PWD": "/tmp", "TERM": "dumb", "SSH_TTY": "x"}) == []


def test_what_differs_is_named_and_no_value_is_kept_or_said(path: Path) -> None:
    second = {"PATH": "/opt/bin", "TOKEN": "other secret", "EXTRA": "1"}
    expected = (
        "it goes on with the environment of another shell than its first (changed: PATH, TOKEN; new: EXTRA; "
        "gone: HOME)"
    )
    assert shells.note(path, second) == [expected]
    assert shells.note(path, second) == [expected], "it stays so"
    assert shells.note(path, FIRST) == []
    assert "secret" not in path.read_text()


def test_many_and_hostile_names_are_counted(path: Path) -> None:
    many = {f"NEW_{number:02}": "" for number in range(20)} | {"\x1b[2J": "x", "A\nB": "y"}
    (note,) = shells.note(path, FIRST | many)
    assert note.endswith("NEW_05, NEW_06, NEW_07, 14 more)")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"digests": 3, "salt": "zz"}', '{"salt": ""}'])
def test_a_damaged_file_is_begun_anew(path: Path, content: str) -> None:
    path.write_text(content)
    assert shells.note(path, {"PATH": "x"}) == []
    assert shells.note(path, {"PATH": "x"}) == []
    assert shells.note(path, {"PATH": "y"}) != []


def test_a_full_disk_costs_the_note_alone(tmp_path: Path) -> None:
    assert shells.note(tmp_path / "no" / "such" / "folder", FIRST) == []


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_any_environment_is_equal_to_itself(environment: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "environment.json")
        assert shells.note(path, environment) == shells.note(path, environment) == []
