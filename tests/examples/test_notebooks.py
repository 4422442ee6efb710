"""The example notebooks: stripped in the repository, and executed as a reader would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
EXECUTE = """\
import sys, nbclient, nbformat
notebook = nbformat.read(sys.argv[1], as_version=4)
client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": sys.argv[2]}})
client.execute()
print(nbformat.writes(notebook))
"""


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_there_are_some() -> None:
    assert [path.name for path in NOTEBOOKS] == ["why.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_repository_has_no_outputs(path: Path) -> None:
    for cell in code_cells(json.loads(path.read_text())):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.slow
def test_the_story_is_told(tmp_path: Path) -> None:
    (path,) = NOTEBOOKS
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXECUTE, path, path.parent],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "IPYTHONDIR": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    shown = [
        output.get("data", {}).get("text/html", "") or output.get("text", "")
        for cell in code_cells(json.loads(done.stdout))
        for output in cell["outputs"]
    ]
    told = "\n".join("".join(each) for each in shown)
    assert told.count("PS101") >= 2
    assert "succeeded" in told or "stopped" in told
    assert "examples/s from" in told
    assert "<table" in told
    assert "computed" in told
    assert "linear-gradient" in told, "the servers' load is drawn as bars"
