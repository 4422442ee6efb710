"""Data and jobs for the tests of the training library."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def _beside(name):
    """The module of this name beside this file; test folders are no packages."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Processes = _beside("processes").Processes


@pytest.fixture
def tiny_data(tmp_path):
    """A train and an evaluation file whose label follows from `x` and `id`."""
    random = np.random.default_rng(0)
    files = []
    for name, rows in (("train.csv", 4000), ("evaluation.csv", 1000)):
        x, ids, other = random.normal(size=rows), random.integers(0, 50, rows), random.integers(0, 20, rows)
        label = (random.random(rows) < 1 / (1 + np.exp(-2 * x - (ids % 5 - 2)))).astype(int)
        lines = ["x,id,other,label"]
        lines += [f"{a:.4f},{b},{c},{d}" for a, b, c, d in zip(x, ids, other, label, strict=True)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        files.append(tmp_path / name)
    return files


@pytest.fixture
def job(tmp_path, tiny_data):
    """Makes jobs of the tiny script; whatever still runs afterwards is ended."""
    made = []

    def make(training, **roles):
        command = [str(ROOT / "tests/training/tiny_job.py"), *map(str, tiny_data)]
        made.append(Processes(tmp_path, command, training, roles))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture(scope="session")
def servers():
    """Two parameter servers and three workers in this process."""
    return _beside("servers").Servers(ps=2, worker=3)
