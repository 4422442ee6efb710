"""What the GPUs of the command do, from ``nvidia-smi``."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
from typing import Dict, List, Optional, Set, Tuple

from .kernel_files import parse_integer

GPU_SECONDS = 5.0


def parse_gpus(text: str) -> Tuple[Optional[float], Optional[int]]:
    """Parse ``nvidia-smi``'s "percent, MiB" lines: mean utilization (0 to 1) and total bytes."""
    rows = [line.split(",") for line in text.splitlines() if line.count(",") == 1]
    shares = [share for share in (parse_integer(row[0]) for row in rows) if share is not None]
    sizes = [size for size in (parse_integer(row[1]) for row in rows) if size is not None]
    return (
        sum(shares) / len(shares) / 100 if shares else None,
        sum(sizes) * 2**20 if sizes else None,
    )


def visible_gpus(environment: Dict[str, str]) -> Optional[str]:
    """Return the GPUs that the command may use, in the form of ``nvidia-smi --id``; "": all; None: none."""
    value = environment.get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return ""
    if value.strip() in ("", "-1", "NoDevFiles"):
        return None
    return value if re.match(r"^(\d+|GPU-[0-9a-f-]+)(,(\d+|GPU-[0-9a-f-]+))*$", value) else ""


class GpuWatch:
    """Runs ``nvidia-smi`` from time to time, without ever waiting for it."""

    def __init__(self, environment: Dict[str, str]) -> None:
        program, gpus = shutil.which("nvidia-smi"), visible_gpus(environment)
        self._command: List[str] = []
        if program and gpus is not None:
            query = "--query-gpu=utilization.gpu,memory.used"
            self._command = [
                program,
                query,
                "--format=csv,noheader,nounits",
                *(["--id=" + gpus] if gpus else []),
            ]
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._due, self._failures = 0.0, 0
        self._result: Tuple[Optional[float], Optional[int]] = (None, None)

    @property
    def measures(self) -> bool:
        """Whether there is a GPU to query."""
        return bool(self._command)

    @property
    def pids(self) -> Set[int]:
        """The process of the running query, if any."""
        return set() if self._process is None else {self._process.pid}

    def poll(self, now: float) -> Tuple[Optional[float], Optional[int]]:
        """Return a result that arrived since the last call, once; start the next query when it is due."""
        if self._process is not None and now > self._due + 5 * GPU_SECONDS:
            os.kill(self._process.pid, signal.SIGKILL)
        elif self._process is None and self._command and now >= self._due and self._failures < 3:
            self._due = now + GPU_SECONDS
            try:
                self._process = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
            except OSError:
                self._failures = 3
        result, self._result = self._result, (None, None)
        return result

    def end(self) -> None:
        """End the running query, if any, and begin none any more."""
        self._failures = 3
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ended(self, pid: int) -> bool:
        """Take the result if this process was the query; it fits into the pipe, so reading does not block."""
        if self._process is None or self._process.pid != pid or self._process.stdout is None:
            return False
        self._result = parse_gpus(self._process.stdout.read().decode("utf-8", "replace"))
        self._failures = 0 if self._result != (None, None) else self._failures + 1
        self._process.stdout.close()
        self._process.returncode, self._process = 0, None
        return True
