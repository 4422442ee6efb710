"""The operator as it is shipped, in a process that can be killed, with the rights of its service account."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from support import clusters
from support.kills import until

#: The command line, by this interpreter.
PACELINE = (sys.executable, "-c", "from paceline.surfaces.cli.main import main; main()")
_ACTS = "looks after the jobs"
#: The lease of an operator that was killed has to run out first.
_TURN_SECONDS = 240.0
_KEEPER_SECONDS = 0.3


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a process has used so far."""

    cpu_seconds: float
    peak_memory_bytes: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        """Return that of a live process, from ``/proc`` (proc(5): utime, stime; VmHWM)."""
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        peak = next(line for line in lines if line.startswith("VmHWM:")).split()[1]
        ticks = int(fields[11]) + int(fields[12])
        return cls(cpu_seconds=ticks / os.sysconf("SC_CLK_TCK"), peak_memory_bytes=int(peak) << 10)


class OperatorProcess:
    """An operator.

    Args:
        kubeconfig: its rights.
        log: where it writes.
        arguments: more of its command line.
    """

    def __init__(self, kubeconfig: Path, log: Path, *arguments: str) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        self._arguments = arguments
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    @classmethod
    def like(cls, other: Self, log: Path, *more: str) -> Self:
        """Return another one with the same rights."""
        return cls(Path(other._environment["KUBECONFIG"]), log, *other._arguments, *more)

    @property
    def pid(self) -> int:
        """Return the process that was started last."""
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Start it; it acts when it holds the lease."""
        command = [*PACELINE, "operator", *self._arguments]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                command, env=self._environment, stdout=output, stderr=output, cwd="/"
            )

    def turns(self) -> int:
        """Return how often it has begun to act, restarts included."""
        return self.log.read_text().count(_ACTS) if self.log.exists() else 0

    def start_and_wait(self) -> None:
        """Start it, and return when it acts."""
        before = self.turns()
        self.start()
        until(lambda: self.turns() > before, seconds=_TURN_SECONDS)

    def kill(self) -> None:
        """End it without a warning."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """End it as Kubernetes does, and return its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout=240)

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    def usage(self) -> Usage:
        """Return what it has used since it was started."""
        return Usage.of(self.pid)

    def tracebacks(self) -> int:
        """Return how many unforeseen errors are in its log."""
        return self.log.read_text().count("Traceback")


@contextlib.contextmanager
def acting(
    port: int | None = None, *, keeping: bool = False, arguments: Sequence[str] = ()
) -> Iterator[OperatorProcess]:
    """Install what is shipped on a cluster without jobs, yield an operator that acts, and clear up.

    As in a Deployment, it is started again whenever it ends.

    Args:
        port: of a proxy on this machine, through which it reaches the API server.
        keeping: whether it goes round all replicas to keep what they say, as the shipped operator does.
        arguments: more of its command line.
    """
    clusters.install(clusters.NAMESPACE)
    clusters.clear()
    with tempfile.TemporaryDirectory(prefix="paceline-bench-") as folder:
        kubeconfig = clusters.operator_kubeconfig(Path(folder) / "kubeconfig", port=port)
        home = ("--home", str(Path(folder) / "home")) if keeping else ()
        made = OperatorProcess(
            kubeconfig, Path(folder) / "operator.log", "--agent-image", "none", *home, *arguments
        )
        ended = threading.Event()
        keeper = threading.Thread(target=lambda: _keep(made, ended), daemon=True)
        try:
            made.start_and_wait()
            keeper.start()
            yield made
            if made.tracebacks():
                raise RuntimeError(f"the operator met an error: {made.log.read_text()[-3000:]}")
        finally:
            ended.set()
            if keeper.is_alive():
                keeper.join()
            if made.is_alive():
                made.stop()
            clusters.clear()


def _keep(operator: OperatorProcess, ended: threading.Event) -> None:
    """Start an operator again whenever it is not there."""
    while not ended.wait(_KEEPER_SECONDS):
        if not operator.is_alive():
            operator.start()
