"""The errors that Paceline raises on purpose, each with its exit code and its next step.

::

    PacelineError            1   something that was asked for cannot be done
    ├── InvalidInput         2   a job file, a manifest or an argument is wrong
    ├── NotFound             3   no such job, replica or file
    ├── FindingsFound        4   a finding at or above ``--fail-on``
    ├── WaitTimeout          5   the wait ended before the job did
    ├── JobFailed            6   the job ended, but not well
    ├── Conflict             1   the job is in a state that does not allow this
    ├── EngineError          1   the machine refused: no cgroup, no namespace, no port, no room
    ├── StoreError           1   the store cannot be read or written
    └── SourceError          1   a Paceline server does not answer, or makes no sense

130 is an interrupt, as in every shell. A message says what happened and where; ``hint`` says what to do next.
"""

from __future__ import annotations

from typing import ClassVar


class PacelineError(Exception):
    """Base of all errors that are meant for people: shown without a traceback.

    Args:
        message: what happened, to which object, and why.
        hint: what to do next, as a sentence or a command; None when there is nothing to add.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidInput(PacelineError):
    """A job file, a manifest or an argument is wrong."""

    exit_code = 2


class NotFound(PacelineError):
    """The named job, replica or file does not exist."""

    exit_code = 3


class FindingsFound(PacelineError):
    """A check found something at or above the severity that the caller set as the limit."""

    exit_code = 4


class WaitTimeout(PacelineError):
    """The wait ended before the job did; the job goes on."""

    exit_code = 5


class JobFailed(PacelineError):
    """The job ended, but did not succeed."""

    exit_code = 6


class Conflict(PacelineError):
    """The job is in a state that does not allow this."""


class EngineError(PacelineError):
    """The machine or the cluster refused what a job needs."""


class StoreError(PacelineError):
    """The store cannot be opened, read or written."""


class SourceError(PacelineError):
    """A Paceline server does not answer, or what it answers makes no sense."""


def first_line(error: BaseException) -> str:
    """Return the first line of the message of another library's error; if it has none, the error's name."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
