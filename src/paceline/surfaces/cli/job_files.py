"""Reading the job file that a verb gets as an argument."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.model.explanations.findings import Finding
    from paceline.specs import JobFile


def read(file: str) -> tuple[JobFile, Path]:
    """Return a job file and the folder that its working directory is relative to; ``-`` is stdin.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file is no job file.
    """
    from paceline import specs

    if file == "-":
        return specs.parse_job(sys.stdin.buffer.read(), file="stdin"), Path.cwd()
    return specs.load_job(file), Path(file).resolve().parent


def missing_files(job_file: JobFile, base: Path) -> tuple[Finding, ...]:
    """Return findings about missing files that a job's commands name, if it is to run on this machine.

    Args:
        job_file: the job.
        base: the folder that its working directory is relative to.
    """
    from paceline import linting

    return linting.lint_place(linting.LocalJobFile(job=job_file, base=str(base), is_missing=_is_missing))


def _is_missing(path: str) -> bool:
    """Whether a file certainly does not exist: one that this process may not look at may exist."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
