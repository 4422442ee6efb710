"""Whether a machine is quiet, by what its kernel counts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks.diagnosis import quiet


@pytest.fixture
def busy() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield
        process.kill()


def test_a_program_that_computes_is_noticed(busy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet, "_LOOK_SECONDS", 0.5)
    with pytest.raises(quiet.NotAlone, match=r"other programs use \d\.\d\d cores"):
        quiet.wait(0.0)


def test_what_is_stolen_is_a_part_of_the_cores() -> None:
    assert quiet.stolen()() >= 0.0
