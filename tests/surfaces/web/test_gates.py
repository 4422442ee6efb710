"""The token of the server of this machine."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from paceline.errors import StoreError
from paceline.surfaces.web import gates
from paceline.surfaces.web.gates import Caller, Credentials, TokenGate
from paceline.surfaces.web.operations import ApiOperation


def test_a_token_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / "server.token"
    made = gates.token(path)
    assert len(made) >= 32
    assert gates.token(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert gates.token(tmp_path / "other.token") != made


def test_a_token_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.token"
    gates.token(path)
    path.chmod(0o640)
    with pytest.raises(StoreError, match="others may read the token"):
        gates.token(path)


def test_a_damaged_token_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.token"
    path.touch(mode=0o600)
    with pytest.raises(StoreError, match="holds no token"):
        gates.token(path)


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be read or made"):
        gates.token(tmp_path / "file" / "server.token")


@pytest.mark.parametrize("given", [None, "", "wrong", "the-token ", "thé-token", "the-toke"])
def test_only_the_token_lets_in(given: str | None) -> None:
    gate = TokenGate("the-token", "ann")
    assert gate.caller(Credentials(given)) is None
    assert gate.caller(Credentials("the-token")) == Caller("ann")
    assert all(gate.allows(Caller("ann"), each, None) for each in ApiOperation)
