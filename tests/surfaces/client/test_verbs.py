"""Verbs with ``--server``: what it goes with, and what is not done through a server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from paceline.errors import InvalidInput
from paceline.services.local import state_dirs
from paceline.surfaces import composition

Paceline = Callable[..., Result]
URL = "http://127.0.0.1:9"
AT = ("--server", URL)


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune", "job.yaml", "--trials", "3"), ("experiment", "status", "x"),
        ("doctor",), ("submit", "JOB", "--dry-run"), ("run", "JOB", "--dry-run"),
    ],
)  # fmt: skip
def test_what_belongs_to_the_machine_says_so(
    paceline: Paceline, job_file: Callable[..., str], arguments: tuple[str, ...]
) -> None:
    named = [job_file("pass") if each == "JOB" else each for each in arguments]
    done = paceline(*named, *AT)
    assert done.exit_code == 2, done.output
    assert f"is not done through a server ({URL})" in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize(
    "options",
    [("--engine", "local"), ("--store", "sqlite:///x"), ("--as", "ann"), ("--context", "c"), ("-A",)],
)
def test_what_does_not_go_together(paceline: Paceline, options: tuple[str, ...]) -> None:
    done = paceline("list", *AT, *options)
    assert done.exit_code == 2, done.output
    assert "server" in done.stderr


def test_a_server_that_is_not_there(paceline: Paceline) -> None:
    done = paceline("list", *AT)
    assert done.exit_code == 1
    assert f"error: {URL} does not answer" in done.stderr
    assert paceline("list", PACELINE_SERVER=URL).exit_code == 1
    # Who names an engine means it.
    assert paceline("list", "--engine", "local", PACELINE_SERVER=URL).exit_code == 0


def test_the_token_is_never_printed(paceline: Paceline, home: state_dirs.Home) -> None:
    for token in ("a-secret-token", "two words"):
        for url in (URL, "http://example.invalid"):
            done = paceline("list", "--server", url, PACELINE_TOKEN=token)
            assert done.exit_code in (1, 2)
            assert token not in done.output
            warned = "the token can be read on the way" in done.stderr
            assert warned is (url != URL and " " not in token)
    place = composition.find_place(None, server=URL, home=home.path, environment={"PACELINE_TOKEN": "secret"})
    assert "secret" not in repr(place)
    assert isinstance(place, composition.RemoteServer)
    assert place.token == "secret"


def test_what_is_next_is_asked_of_the_same_server(paceline: Paceline) -> None:
    done = paceline("get", "missing", *AT, "-n", "ads")
    assert f"{URL} does not answer" in done.stderr
    with pytest.raises(InvalidInput, match="only through one of them"):
        composition.find_server(URL, "local", {})


def test_help_and_completion_load_no_client() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from paceline.surfaces.cli.main import cli\n"
        "CliRunner().invoke(cli, ['list', '--help'])\n"
        "print([name for name in ('httpx2', 'pyarrow') if name in sys.modules])"
    )
    environment = {**os.environ, "PACELINE_SERVER": URL}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == "[]\n", done.stderr


def test_a_client_that_is_not_installed(
    paceline: Paceline, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.startswith("paceline.surfaces.client")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    done = paceline("list", *AT)
    assert done.exit_code == 1
    assert "pip install 'paceline[client]'" in done.stderr
