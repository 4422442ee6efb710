"""Data and jobs for the tests of the training library."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from support.fork_servers import ForkServer

ROOT = Path(__file__).parents[2]


def _beside(name):
    """The module of this name beside this file; test folders are no packages."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Processes = _beside("processes").Processes


@pytest.fixture(scope="module")
def cluster():
    """Two parameter servers and a worker in this process, and where to connect to the worker."""
    return _beside("servers").Servers(ps=2, worker=1).cluster()


@pytest.fixture(scope="module")
def three_servers():
    """As `cluster`, with three parameter servers."""
    return _beside("servers").Servers(ps=3, worker=1).cluster()


@pytest.fixture
def tiny_data(tmp_path):
    """A train and an evaluation file whose label follows from `x` and `id`; a row has up to 4 `tags`."""
    random, other_random = np.random.default_rng(0), np.random.default_rng(1)
    files = []
    for name, rows in (("train.csv", 4000), ("evaluation.csv", 1000)):
        x, ids, other = random.normal(size=rows), random.integers(0, 50, rows), random.integers(0, 20, rows)
        label = (random.random(rows) < 1 / (1 + np.exp(-2 * x - (ids % 5 - 2)))).astype(int)
        tags = ["|".join(map(str, other_random.integers(0, 30, i % 5))) for i in range(rows)]
        lines = ["x,id,other,label,tags"]
        lines += [
            f"{a:.4f},{b},{c},{d},{e}" for a, b, c, d, e in zip(x, ids, other, label, tags, strict=True)
        ]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        files.append(tmp_path / name)
    return files


@pytest.fixture(scope="session")
def fork_server():
    """Forks scripts from a process that has imported TensorFlow."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "TF_CPP_MIN_LOG_LEVEL": "2"}
    library = ("runs", "trainers", "evaluators", "exports")
    server = ForkServer(["tensorflow", *(f"paceline.training.{name}" for name in library)], environment)
    yield server
    server.close()


@pytest.fixture
def job(tmp_path, tiny_data, fork_server):
    """Makes jobs of the tiny script, or of another; whatever still runs afterwards is ended."""
    yield from _jobs(tmp_path, tiny_data, fork_server)


@pytest.fixture
def launched_job(tmp_path, tiny_data):
    """As `job`; each process starts an interpreter of its own, as replicas do."""
    yield from _jobs(tmp_path, tiny_data, None)


def _jobs(folder, data, fork_server):
    made = []

    def make(training, script="tiny_job.py", **roles):
        command = [str(ROOT / "tests/training" / script), *map(str, data)]
        made.append(Processes(folder, command, training, roles, fork_server))
        return made[-1]

    yield make
    for each in made:
        each.end()


@pytest.fixture
def held(job, tmp_path):
    """Makes a job whose trainers are held up from step 100 on, and what lets them go on (`held_job.py`)."""
    release = tmp_path / "release"

    def make(training, steps, **roles):
        processes = job(training, script="held_job.py", **roles)
        processes.environment |= {"HELD_AT": "100", "HELD_UNTIL": str(steps), "RELEASE": str(release)}
        return processes, release.touch

    return make


@pytest.fixture(scope="session")
def servers():
    """Two parameter servers and three workers in this process."""
    return _beside("servers").Servers(ps=2, worker=3)
