"""A home of one's own for each test, filled by hand or with real jobs; nothing is left running."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support import kills, leftovers

from paceline.engines.local import engine, machines
from paceline.engines.local.folders import RunFolder
from paceline.services.local import state_dirs
from paceline.stores import open_store
from paceline.surfaces import composition
from paceline.surfaces.cli.main import cli
from paceline.surfaces.web.job_files import JobFiles

PYTHON = sys.executable

JOB = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {{name: {name}}}
spec:
  termination_grace: 2s
  roles:
    worker:
      replicas: {replicas}
      command: {command}
      restart: {{when: never}}
"""


@pytest.fixture(scope="session")
def blank_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without jobs, to be copied: making one takes half a second."""
    path = tmp_path_factory.mktemp("blank") / "paceline.db"
    open_store(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def job_files() -> Iterator[JobFiles]:
    """Reads the job files of all tests, for to begin its process takes a second."""
    made = JobFiles()
    yield made
    made.close()


@pytest.fixture
def other_store() -> str | None:
    """The URL of an empty store that the home has; None: a file in it."""
    return None


@pytest.fixture
def home(
    tmp_path: Path, blank_store: Path, other_store: str | None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[state_dirs.Home]:
    """A home that the environment names; every job that a test leaves is ended and deleted."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("PACELINE_HOME", str(path))
    for name in ("PACELINE_STORE", "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    if other_store is None:
        (path / "paceline.db").write_bytes(blank_store.read_bytes())
    else:
        monkeypatch.setenv("PACELINE_STORE", other_store)
    found = composition.find_home()
    yield found
    with composition.opened(found) as jobs:
        real = [RunFolder.of(run) for run in jobs.runs() if Path(run.directory).exists()]
    for folder in real:
        kills.kill(leftovers.supervisor_pids(folder))
        engine.release(folder, machines.read())


@pytest.fixture
def paceline(home: state_dirs.Home) -> Callable[..., Result]:
    """Runs a command line within this process."""

    def run(*arguments: str, **environment: str) -> Result:
        result = CliRunner().invoke(cli, list(arguments), env=environment, prog_name="paceline")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@dataclasses.dataclass(frozen=True)
class Started:
    """A command line in a process of its own."""

    process: subprocess.Popen[str]

    def end(self, timeout: float = 240.0) -> tuple[int, str, str]:
        """Wait for its end; return exit code, stdout, stderr."""
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err


@pytest.fixture
def start(home: state_dirs.Home) -> Iterator[Callable[..., Started]]:
    """Starts a command line as a process; kills what is left in the end."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str, **environment: str) -> Started:
        process = subprocess.Popen(
            [PYTHON, "-c", "from paceline.surfaces.cli.main import main; main()", *arguments],
            env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return Started(process)

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


@pytest.fixture
def job_file(tmp_path: Path) -> Callable[..., str]:
    """Writes a job whose workers run some Python, and returns its path."""

    def write(code: str, *, name: str = "tiny", replicas: int = 1) -> str:
        path = tmp_path / f"{name}.yaml"
        command = repr([PYTHON, "-c", code])
        path.write_text(JOB.format(name=name, replicas=replicas, command=command))
        return str(path)

    return write
