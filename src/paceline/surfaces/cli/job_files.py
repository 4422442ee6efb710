"""Reading the job file that a verb was given."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.specs import JobFile


def read(file: str) -> tuple[JobFile, Path]:
    """Return a job file and the folder that its working directory counts from; ``-`` is stdin.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no job file.
    """
    from paceline import specs

    if file == "-":
        return specs.parse_job(sys.stdin.buffer.read(), file="stdin"), Path.cwd()
    return specs.load_job(file), Path(file).resolve().parent
