"""The repository's root on the path, so that `examples` can be imported, and jobs of its scripts."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


def _processes():
    path = ROOT / "tests/training/processes.py"
    spec = importlib.util.spec_from_file_location("processes", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Processes = _processes().Processes


@pytest.fixture
def job(tmp_path):
    """Makes jobs of a command; whatever still runs afterwards is ended."""
    made = []

    def make(command, training, **roles):
        made.append(Processes(tmp_path, command, training, roles))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def census_data():
    """The folder of UCI Census Income, or a skip where it is not at hand."""
    given = os.environ.get("PACELINE_CENSUS_DATA")
    folder = Path(given) if given else ROOT.parent / "shared/data/census-income"
    if not (folder / "adult.data").exists():
        pytest.skip(f"{folder} holds no UCI Census Income; set PACELINE_CENSUS_DATA to its folder")
    return folder
