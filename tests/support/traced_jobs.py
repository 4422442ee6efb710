"""Agents and trainers as far as traces go: for a job that does not run they answer as its own would."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from pathlib import Path

from paceline.model.jobs.runs import Run
from paceline.model.traces import traced_steps
from support.profiles import two_steps

REPLICAS = ("ps-0", "ps-1", "worker-0", "worker-1")
NO_SESSION = "its steps are made without a session"


@contextlib.contextmanager
def answering(run: Run, answers: Callable[[str, Path], None]) -> Iterator[None]:
    """Have requests for traces answered as long as this is open.

    Args:
        run: the job.
        answers: takes what is asked, and the folder of the trace.
    """
    request = Path(run.directory) / traced_steps.FOLDER / traced_steps.REQUEST
    Path(run.directory).mkdir(parents=True, exist_ok=True)
    ended = threading.Event()

    def answer() -> None:
        asked = ""
        while not ended.wait(0.01):
            with contextlib.suppress(FileNotFoundError):
                text = request.read_text().strip()
                if text != asked:
                    asked, folder = text, request.parent / text.split()[0]
                    folder.mkdir(exist_ok=True)
                    answers(text, folder)

    with futures.ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer)
        try:
            yield
        finally:
            ended.set()
        answered.result()


def refuse(folder: Path, replica: str, reason: str = NO_SESSION) -> None:
    """Answer as a trainer does that has no session."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("context.json", json.dumps({"error": reason}))
    _put(folder / f"{replica}.1.zip", file.getvalue())


def refuse_profile(folder: Path, reason: str) -> None:
    """Answer as agents do whose servers have no profiler."""
    for replica in REPLICAS:
        _put(folder / f"{replica}.1.profile", json.dumps({"error": reason}).encode())


def profile(folder: Path, replicas: Sequence[str] = REPLICAS) -> None:
    """Answer as the agents of replicas do: worker-0 made two steps with ps-0, the others did nothing."""
    worker, server = two_steps()
    spaces = {"worker-0": worker.space, "ps-0": server.space}
    for replica in replicas:
        space = spaces[replica].SerializeToString() if replica in spaces else b""
        _put(folder / f"{replica}.1.profile", gzip.compress(space))


def _put(path: Path, data: bytes) -> None:
    """Leave a file as agents and trainers do: whole or not at all."""
    part = path.with_name(f".{path.name}.tmp")
    part.write_bytes(data)
    part.replace(path)
