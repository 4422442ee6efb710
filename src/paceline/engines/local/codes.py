"""Fetches the code of a job on this machine into the folder of its run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from paceline.engines import fetched_codes
from paceline.errors import EngineError
from paceline.model.jobs.job_specs import JobSpec
from paceline.rendering import codes

#: The folder of the fetched code, and the file with the fetcher's last message.
CODE, _WORD = "code", "code.json"


def fetch(spec: JobSpec, packed: bytes | None, folder: Path) -> None:
    """Fetch the code of a job into ``code`` in a folder, and store the fetcher's last message beside it.

    Args:
        spec: the job; it has a code source.
        packed: the packed code folder, if the source is a folder.
        folder: the folder of the run.

    Raises:
        EngineError: the code cannot be fetched.
    """
    assert spec.code is not None, "there is something to fetch"
    if spec.code.config_map is not None:
        raise EngineError(
            f"the code of {spec.name} is in a config map of a cluster: {spec.code.config_map}",
            "submit it with --engine kubernetes, or name the folder itself: spec.code.folder",
        )
    config, word, archive = folder / "fetch.json", folder / _WORD, folder / codes.PACKED
    told = codes.fetch_config(spec.code, spec.working_dir, str(archive))
    command = [sys.executable, "-I", "-m", "paceline.agent.fetch", str(config), str(folder / CODE), str(word)]
    try:
        if packed is not None:
            archive.write_bytes(packed)
        config.write_text(json.dumps(told))
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        archive.unlink(missing_ok=True)
        config.unlink()
    except OSError as error:
        raise EngineError(f"the code cannot be fetched into {folder}: {error.strerror or error}") from error
    if done.returncode != 0:
        cause = _cause(word, done.stderr.decode(errors="replace"))
        hint = "see spec.code; for a private source set PACELINE_CODE_PASSWORD"
        raise EngineError(f"the code cannot be fetched: {cause}", hint)


def _cause(word: Path, output: str) -> str:
    said = fetched_codes.told(word.read_text()) if word.exists() else None
    if said is not None and said.error:
        return said.error
    # The fetcher died of an unforeseen error: the last line of its traceback names the error.
    return output.strip().rpartition("\n")[2] or "its fetcher ended without a word"


def notes(folder: Path) -> Sequence[str]:
    """Return the fetcher's notes about the code in a run's folder, such as its commit."""
    try:
        said = fetched_codes.told((folder / _WORD).read_text())
    except FileNotFoundError:
        return ()
    return said.notes if said is not None else ()
