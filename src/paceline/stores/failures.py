"""Failures of the database in plain words: every one becomes a ``StoreError``.

SQLite gives its failures names (``SQLITE_FULL``), PostgreSQL gives them codes (SQLSTATE). A connection that
could not be made has only a message.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import sqlalchemy as sa

from paceline import errors

#: How long a statement waits while another process writes.
BUSY_SECONDS = 15.0

_REPEAT = "Repeat the command; nothing of the failed one was stored."
_UNKNOWN = f"{_REPEAT} If it fails again, this is a fault of Paceline: please report it."
_SPACE = "Free some space there and repeat the command; nothing of the failed one was stored."

#: Start of SQLite's name of the failure -> the reason, and what to do next.
_SQLITE = {
    "SQLITE_FULL": ("the disk is full", _SPACE),
    "SQLITE_READONLY": (
        "it is read-only",
        "Let this user write to the file and its folder, or name another store in PACELINE_STORE.",
    ),
    "SQLITE_CANTOPEN": (
        "the file or its folder is read-only, or cannot be opened",
        "Let this user write to the file and its folder, or name another store in PACELINE_STORE.",
    ),
    "SQLITE_PERM": ("this user may not open it", "Let this user read and write the file."),
    "SQLITE_NOTADB": (
        "the file is not a database",
        "Name another store in PACELINE_STORE, or move that file away: a new one is made then.",
    ),
    "SQLITE_CORRUPT": (
        "the file is damaged",
        "Save what is left with `sqlite3 FILE .recover`, or move the file away: a new one is made then.",
    ),
    "SQLITE_BUSY": (f"another process has kept it locked for {BUSY_SECONDS:.0f} s", _REPEAT),
    "SQLITE_LOCKED": ("another connection has locked it", _REPEAT),
    "SQLITE_IOERR": ("reading or writing the disk failed", f"Look at the disk's health and room. {_REPEAT}"),
}

#: Start of PostgreSQL's SQLSTATE -> the reason, and what to do next.
_POSTGRESQL = {
    "53100": ("the server's disk is full", _SPACE),
    "53300": ("the server has no connection left", "Raise its max_connections or end other clients."),
    "25006": ("the server is read-only", "Connect to the primary server."),
    "3D000": ("there is no such database", "Make it with `createdb NAME`; Paceline makes its tables."),
    "28": ("the server does not let this user in", "Check the user and the password in the URL."),
    "42501": (
        "this user may not do that there",
        "Grant CREATE on the schema and all rights on Paceline's tables to that user.",
    ),
    "40": ("another transaction came between", _REPEAT),
    "57014": (
        "a statement took the server too long",
        "Look at what else the server does, and at its disk. Nothing of the failed command was stored.",
    ),
    "57": ("the server is going down or ended the connection", _REPEAT),
    "08": ("the connection broke", _REPEAT),
}

#: Part of a message -> the reason, and what to do next; a connection that failed has no SQLSTATE.
_TOLD = {
    "already exists": (
        "it holds tables of another program",
        "Give Paceline a database of its own in PACELINE_STORE.",
    ),
    "connection refused": ("nothing listens there", "Start PostgreSQL, or check host and port in the URL."),
    "no such file or directory": (
        "nothing listens there",
        "Start PostgreSQL, or check the socket's folder in the URL.",
    ),
    'role "': _POSTGRESQL["28"],
    "does not exist": _POSTGRESQL["3D000"],
    "authentication failed": _POSTGRESQL["28"],
    "no password supplied": _POSTGRESQL["28"],
    "resolve": ("its host is not known", "Check the host in the URL."),
    "timeout": ("the server did not answer in time", "Check host and port in the URL, and the network."),
    "too many clients": _POSTGRESQL["53300"],
    "starting up": ("the server is still starting", _REPEAT),
    "shutting down": _POSTGRESQL["57"],
    "closed the connection": _POSTGRESQL["08"],
}


@contextlib.contextmanager
def explained(place: str) -> Iterator[None]:
    """Turn database errors that are raised within the block into a ``StoreError``.

    Args:
        place: name of the store in messages: its file, or its URL without the password.

    Raises:
        StoreError: the database failed; the message says where, why and what to do next.
    """
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise explain(place, error) from error
    except sa.exc.TimeoutError as error:
        raise errors.StoreError(
            f"the store {place} cannot be used: no connection came free ({errors.first_line(error)})", _REPEAT
        ) from error


def explain(place: str, error: sa.exc.DBAPIError) -> errors.StoreError:
    """Return the readable error that replaces an error of the database."""
    cause = error.orig or error
    found = _sqlite_reason(cause) or _postgresql_reason(cause) or _told_reason(cause)
    detail = errors.first_line(cause)
    why, hint = found or (detail, _UNKNOWN)
    told = why if why == detail else f"{why} ({detail})"
    return errors.StoreError(f"the store {place} cannot be used: {told}", hint)


def is_busy(error: sa.exc.DBAPIError) -> bool:
    """Return whether SQLite only reports that another process or connection holds the lock."""
    return str(getattr(error.orig, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _sqlite_reason(cause: BaseException) -> tuple[str, str] | None:
    name = str(getattr(cause, "sqlite_errorname", ""))
    return next((reason for start, reason in _SQLITE.items() if name.startswith(start)), None)


def _postgresql_reason(cause: BaseException) -> tuple[str, str] | None:
    state = str(getattr(cause, "sqlstate", None) or "")
    return next((reason for start, reason in _POSTGRESQL.items() if state.startswith(start)), None)


def _told_reason(cause: BaseException) -> tuple[str, str] | None:
    text = str(cause).lower()
    return next((reason for part, reason in _TOLD.items() if part in text), None)
