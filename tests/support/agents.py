"""Real agents on this machine, as if they ran in pods of a cluster in memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paceline.model.roles import ReplicaId
from paceline.rendering.config_maps import METRICS_PORT
from support import ports
from support.memory_clusters import MemoryCluster

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "src" / "paceline" / "agent" / "agent.py"
#: Reports a step ten times a second until it is told to end, and then one more.
TRAIN = """
import json, os, signal, sys, time
def report(step):
    with open(os.environ["PACELINE_REPORT_FILE"], "a") as file:
        line = {"type": "step", "interval_seconds": 0.1, "step": step, "steps": 1, "examples": 64,
                "loss": 1 / (step + 1)}
        file.write(json.dumps(line) + "\\n")
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
print("begun", flush=True)
for step in range(1, 10**6):
    report(step)
    if stopped or os.path.exists(os.path.join(os.environ["PACELINE_RUN_DIR"], "enough")):
        report(step + 1)
        print("done", flush=True)
        sys.exit(0)
    time.sleep(0.1)
"""


class PodAgent:
    """The agent of a pod: a process whose port a cluster passes requests on to."""

    def __init__(self, cluster: MemoryCluster, folder: Path, pod: str, namespace: str = "default") -> None:
        self.pod = pod
        self.folder = folder / pod
        self.folder.mkdir(parents=True)
        self.spool = self.folder / "spool"
        self.port = ports.free_port()
        prefix = f"/api/v1/namespaces/{namespace}/pods/{pod}:{METRICS_PORT}/proxy"
        cluster.proxied[prefix] = f"127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        replica: ReplicaId,
        *,
        attempt: int = 1,
        command: list[str] | None = None,
        token: str | None = None,
    ) -> None:
        """Start it; with a token it answers who has that alone."""
        config = {
            "job": "clicks", "role": str(replica.role), "index": replica.index, "attempt": attempt,
            "command": command or [sys.executable, "-c", TRAIN], "cluster": {str(replica.role): ["h:1"]},
            "spool": str(self.spool), "exit": str(self.folder / "exit"),
            "reports": str(self.folder / "reports"), "sample_seconds": 0.1, "grace_seconds": 5.0,
            "placeholders": {"run_dir": str(self.folder)}, "metrics_port": self.port,
            # A busy machine goes round slowly.
            "linger_seconds": 600.0,
        }  # fmt: skip
        if token is not None:
            (self.folder / "token").write_text(token)
            config["token_file"] = str(self.folder / "token")
        with (self.folder / "output").open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(AGENT), json.dumps(config)], stdout=output, stderr=subprocess.STDOUT
            )

    def finish(self) -> None:
        """Have the command end by itself."""
        (self.folder / "enough").touch()

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """What the agent has written."""
        if not self.spool.exists():
            return []
        whole = [line for line in self.spool.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in map(json.loads, whole) if line["type"] == kind]

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        if self.process is not None:
            if self.process.poll() is None:
                os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()


def wait_until(holds: Callable[[], Any], what: str = "", seconds: float = 240.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, what or "it did not happen in time"
        time.sleep(0.02)
    return found
