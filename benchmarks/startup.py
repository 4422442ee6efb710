"""From ``paceline submit`` to the first step of the clicks example, and what a parameter server starts with.

The side before is Paceline as it was at an older commit (``--baseline``), with the example as it was then.
Both run in turn, from their sources and with the same interpreter and packages, on the same data. The job
ends after its first step, so its first report says when that step was over. What a parameter server uses is
read from the kernel, from the start of its process on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from support.prerequisites import NotHere

from benchmarks import plots, trials
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, at_most, reported

#: The last commit whose parameter servers imported TensorFlow.
BASELINE = "6bfe19fb09a1"
BEFORE, AFTER = "before", "after"
LIMIT = 0.5
SERVERS, WORKERS = 2, 2
START_SECONDS, POLL_SECONDS = 1200.0, 0.05
_EXAMPLES = ("paceline.examples.clicks.train", "examples.clicks.train")


def run(bench: Bench) -> list[Check]:
    """Start the job from both sources in turn."""
    repeats = 1 if bench.quick else 12
    baseline = bench.baseline or BASELINE
    bench.plan(2 * repeats)
    data = trials.clicks_data("clicks-quick" if bench.quick else "clicks")
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        before = Path(folder)
        _check_out(baseline, before)
        trees = {BEFORE: before, AFTER: ROOT}
        for tree in trees.values():  # as where it is installed
            subprocess.run([sys.executable, "-m", "compileall", "-q", tree / "src"], check=True)
        for repeat in range(repeats):
            for side in (BEFORE, AFTER) if repeat % 2 else (AFTER, BEFORE):
                measure = functools.partial(_measure, repeat, side, trees[side], data)
                bench.repeat(f"{side} {repeat} from {baseline}", measure)
    ratios = {
        name: [after[name] / before[name] for before, after in _pairs(bench.rows)]
        for name in ("seconds", "server_cpu_seconds", "server_memory_bytes")
    }
    return [
        at_most("submit to first step, after / before", ratios["seconds"], LIMIT),
        at_most("CPU of a PS until it listens, after / before", ratios["server_cpu_seconds"], LIMIT),
        at_most("peak memory of a PS, after / before", ratios["server_memory_bytes"], LIMIT),
        *(
            reported(f"{name}, {side}", [row[key] * unit for row in bench.rows if row["side"] == side])
            for name, key, unit in (
                ("submit to first step, seconds", "seconds", 1),
                ("CPU of a PS until it listens, seconds", "server_cpu_seconds", 1),
                ("peak memory of a PS, MB", "server_memory_bytes", 1e-6),
            )
            for side in (BEFORE, AFTER)
        ),
    ]


def _pairs(rows: list[Row]) -> list[tuple[Row, Row]]:
    """The rows of both sides by repeat, the one before first."""
    sides: dict[str, dict[int, Row]] = {BEFORE: {}, AFTER: {}}
    for row in rows:
        sides[row["side"]][row["repeat"]] = row
    return [(row, sides[AFTER][repeat]) for repeat, row in sides[BEFORE].items()]


def _check_out(commit: str, folder: Path) -> None:
    """Put the files of a commit into a folder; git's own folders are left alone."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode != 0:
        raise NotHere(f"{commit} cannot be checked out: {packed.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _measure(repeat: int, side: str, tree: Path, data: Path) -> Row:
    """Submit the job from the sources in a folder, and watch it until its first step is over."""
    with _home(tree) as (home, environment):
        job = home / "job.yaml"
        job.write_text(json.dumps(_job(tree, data)))
        folder = home / "runs" / "clicks"
        watch = _Watch(folder)
        began = time.time()
        with _paceline(environment, "submit", str(job)) as submit:
            while (first_step := watch.first_step()) is None:
                watch.look()
                if submit.poll() or time.time() > began + START_SECONDS:
                    raise RuntimeError(f"the job of the side {side} took no step: see {folder}")
                time.sleep(POLL_SECONDS)
    servers = watch.servers.values()
    return {
        "side": side,
        "repeat": repeat,
        "seconds": first_step - began,
        "agents_seconds": max(watch.started.values()) - began,
        "servers_seconds": max(server.listens_at for server in servers) - began,
        "server_cpu_seconds": sum(server.cpu_seconds for server in servers) / SERVERS,
        "server_memory_bytes": max(server.memory_bytes for server in servers),
    }


@contextlib.contextmanager
def _home(tree: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """An empty home, whose job is ended, and the environment for Paceline from the sources in a folder."""
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as home:
        environment = {
            **os.environ,
            "PACELINE_HOME": home,
            "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree)]),
        }
        try:
            yield Path(home), environment
        finally:
            with _paceline(environment, "delete", "--force", "clicks") as delete:
                delete.wait()


def _paceline(environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    program = "import sys; from paceline.surfaces.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "--quiet", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)


def _job(tree: Path, data: Path) -> dict[str, Any]:
    """The job file of the example, of one step."""
    (example,) = (
        name
        for name in _EXAMPLES
        for base in ("src", ".")
        if (tree / base / name.replace(".", "/")).with_suffix(".py").exists()
    )
    return {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "clicks"},
        "spec": {
            "working_dir": str(tree),
            "command": [sys.executable, "-m", example, "--data", str(data)],
            "threads": "auto",
            "cpu_policy": "shared",
            "roles": {
                "ps": {"replicas": SERVERS, "cpu": 1, "memory": "2Gi"},
                "worker": {"replicas": WORKERS, "cpu": 1, "memory": "2Gi"},
            },
            "training": {"batch_size": 512, "max_steps": 1},
        },
    }


@dataclasses.dataclass
class _Server:
    """What a parameter server has used: CPU until it listens, and at most of memory that is no file's."""

    process: psutil.Process
    address: tuple[str, int]
    listens_at: float = 0.0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0

    def look(self) -> None:
        """Read the kernel's counts; they stay with a process that becomes another program."""
        used = self.process.cpu_times()
        self.memory_bytes = max(self.memory_bytes, _anonymous_bytes(self.process.pid))
        if not self.listens_at:
            self.cpu_seconds = used.user + used.system
            with socket.socket() as probe:
                if probe.connect_ex(self.address) == 0:
                    self.listens_at = time.time()


def _anonymous_bytes(pid: int) -> int:
    """The memory of a process that is no file's (proc_pid_status(5)); TensorFlow's library is shared."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith("RssAnon:"))
    return int(kibibytes) * 1024


class _Watch:
    """What can be seen of a job from its run's folder (docs/agent-protocol.md)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: dict[str, float] = {}
        self.servers: dict[str, _Server] = {}

    def look(self) -> None:
        """See what is new."""
        for replica, line in self._lines("started"):
            if replica not in self.started:
                self.started[replica] = line["at"]
                if replica.startswith("ps-"):
                    self.servers[replica] = _server(line["pid"])
        for server in self.servers.values():
            with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError):  # the job is over
                server.look()

    def first_step(self) -> float | None:
        """When the first step was over, in Unix seconds; None: it is not yet."""
        return min((line["at"] for _, line in self._lines("step")), default=None)

    def _lines(self, kind: str) -> Iterator[tuple[str, Row]]:
        for spool in self._folder.glob("replicas/*/spool.jsonl"):
            whole, _, _ = spool.read_text().rpartition("\n")
            for line in filter(None, whole.split("\n")):
                if f'"type": "{kind}"' in line:
                    yield spool.parent.name, json.loads(line)


def _server(pid: int) -> _Server:
    process = psutil.Process(pid)
    config = json.loads(process.environ()["TF_CONFIG"])
    host, _, port = config["cluster"]["ps"][config["task"]["index"]].rpartition(":")
    return _Server(process, (host, int(port)))


def draw(result: Result, path: Path) -> None:
    """Draw the time to the first step of each repeat."""
    groups = {
        side: [row["seconds"] for row in result.rows if row["side"] == side] for side in (BEFORE, AFTER)
    }
    plots.strips(path, groups, label="seconds", title="From paceline submit to the first step of clicks")
