"""What would be seen of a script, by its text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support.styles import SCRIPTS

from paceline.errors import InvalidInput
from paceline.model.explanations.checkups import CheckState
from paceline.services.local import checkups, script_checkups

NEW, OLD = "3.11.7 2.21.0", "3.7.2 2.3.1"


def seen(script: Path, printed: str | None = NEW) -> dict[str, tuple[CheckState, str]]:
    def run(command: Sequence[str], seconds: float) -> str | None:
        return printed

    return {each.name: (each.state, each.detail) for each in script_checkups.checks(script, "python", run)}


@pytest.mark.parametrize(
    ("name", "style"),
    [
        ("tf1_monitored", "a session"),
        ("tf1_sync", "a session"),
        ("tf1_supervisor", "a session"),
        ("tf1_queues", "a session"),
        ("tf1_feed", "a session"),
        ("tf1_dataset", "a session"),
        ("tf1_keras", "Model.fit"),
        ("tf2_fit", "a coordinator and Model.fit"),
        ("tf2_loop", "a coordinator and a loop around a gradient tape"),
        ("tf2_strategy", "a coordinator and Model.fit"),
    ],
)
def test_the_style_of_a_script(name: str, style: str) -> None:
    found = seen(SCRIPTS / f"{name}.py")
    assert found["Script"] == (CheckState.OK, f"it trains by {style}")
    assert found["Steps"][0] is found["Variables"][0] is found["Traces"][0] is CheckState.OK
    assert found["Traces"][1].startswith(
        "a step of the session" if style == "a session" else "by the profiler"
    )


def test_without_a_session_an_old_tensorflow_gives_no_traces() -> None:
    assert seen(SCRIPTS / "tf2_fit.py", OLD)["Traces"][0] is CheckState.MISSING
    assert seen(SCRIPTS / "tf1_feed.py", OLD)["Traces"][0] is CheckState.OK


def test_a_launcher_names_no_way_to_train() -> None:
    found = seen(SCRIPTS / "launcher.py")
    assert found["Script"][0] is CheckState.MISSING
    assert "Steps" not in found


def test_a_fit_of_another_library_is_not_meant(tmp_path: Path) -> None:
    script = tmp_path / "other.py"
    script.write_text("import sklearn.svm\nsklearn.svm.SVC().fit([[1]], [1])\n")
    assert seen(script)["Script"][0] is CheckState.MISSING


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (None, "python does not run"),
        ("what is this", "python does not run"),
        ("2.7.18 1.4.0", "2.7.18: scripts of Python before 3.5 are not seen"),
        ("3.11.7 -", "3.11.7, without TensorFlow (python)"),
    ],
)
def test_the_python_that_runs_it(printed: str | None, said: str) -> None:
    assert seen(SCRIPTS / "tf1_feed.py", printed)["Python"] == (CheckState.MISSING, said)


def test_a_real_python_says_its_versions() -> None:
    checks = script_checkups.checks(SCRIPTS / "tf1_feed.py", sys.executable, checkups.output_of)
    python = next(iter(checks))
    assert python.state is CheckState.OK
    assert "with TensorFlow 2." in python.detail


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        seen(tmp_path / "none.py")


@given(st.binary(max_size=200))
def test_whatever_a_file_holds(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    script = tmp_path_factory.mktemp("script") / "train.py"
    script.write_bytes(text)
    names_a_library = any(name in text for name in (b"paceline", b"tensorflow", b"keras"))
    assert seen(script)["Script"][0] is CheckState.MISSING or names_a_library
