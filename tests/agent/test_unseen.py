"""Why a script is not seen, from what real processes show."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from paceline.agent.paceline_agent import unseen

FOLDER = "/run/instrumentation"
TENSORFLOW = "_pywrap_tensorflow_internal.so"


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ("-I train.py", "I"),
        ("-u -sE train.py", "E"),
        ("-W ignore -S train.py", "S"),
        ("-Wignore -X dev -OOE train.py", "E"),
        ("-X dev train.py -E", None),
        ("-c pass -E", None),
        ("-um trainer -I", None),
        ("--check-hash-based-pycs always -I train.py", "I"),
        ("-WEIS train.py", None),
        ("train.py -I", None),
        ("", None),
    ],
)
def test_options_of_python(options: str, found: str | None) -> None:
    assert unseen.blocking_option(options.split()) == found


@given(st.lists(st.text(alphabet="-IESWXcmu.é", max_size=6), max_size=6))
def test_any_command_line(words: list[str]) -> None:
    assert unseen.blocking_option(words) in (None, "I", "E", "S")


MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print("mapped", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("options", "path", "library", "why"),
    [
        (["-I"], FOLDER, TENSORFLOW, "Python was started with -I"),
        (["-I"], FOLDER, "libtorch_python.so", "Python was started with -I"),
        ([], "/elsewhere", TENSORFLOW, "its environment was cleared"),
        ([], f"/elsewhere:{FOLDER}", TENSORFLOW, None),
        (["-I"], FOLDER, "other.so", None),
    ],
)
def test_a_real_process(tmp_path: Path, options: list[str], path: str, library: str, why: str | None) -> None:
    mapped = tmp_path / library
    mapped.write_bytes(bytes(4096))
    command = [sys.executable, *options, "-c", MAPS, str(mapped)]
    environment = {**os.environ, "PYTHONPATH": path}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "mapped\n"
        found = unseen.reason(FOLDER, [process.pid])
        process.communicate()
    assert unseen.reason(FOLDER, [process.pid]) is None, "it has ended"
    assert found is None if why is None else why in found


def test_a_program_that_is_no_python() -> None:
    found = unseen.reason_of(FOLDER, "/opt/trainer", ["/opt/trainer"], [f"PYTHONPATH={FOLDER}"])
    assert found == "/opt/trainer brings a Python of its own, which reads no PYTHONPATH"
