"""The start of the command, by old and new Pythons."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support import interpreters

AGENT = Path(__file__).parents[2] / "src" / "paceline" / "agent"


@pytest.mark.parametrize("version", ["3.6", "3.11"])
def test_a_command_that_is_not_ascii_starts_without_a_locale(version: str) -> None:
    python = interpreters.of(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    program = (
        f"import sys; sys.path.insert(0, {str(AGENT)!r}); from paceline_agent.launches import launch; "
        "sys.exit(launch(['sh', '-c', 'echo \\u6570\\u636e $NAME'], "
        "{'PATH': '/usr/bin:/bin', 'NAME': '\\xe9'}).wait())"
    )
    done = subprocess.run(
        [python, "-I", "-S", "-c", program], env={}, capture_output=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout) == (0, "数据 é\n".encode()), done.stderr
