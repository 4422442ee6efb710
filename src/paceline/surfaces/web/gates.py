"""Who the caller is and what the caller may do: on this machine the token's holder may do everything.

The gates of a server on a cluster are in `cluster_gates`.
"""

from __future__ import annotations

import abc
import dataclasses
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from paceline.errors import StoreError
from paceline.surfaces.web.operations import ApiOperation

TOKEN_BYTES = 32
TOKEN_FILE = "server.token"


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """The user or program that makes a request.

    Attributes:
        groups: the groups that the caller is a member of.
        uid, extra: the caller's other attributes in a cluster (see `reviews.Subject`).
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """What a request says about its caller.

    Attributes:
        token: from the ``Authorization`` header, or the token that its session began with; None: it has none.
        headers: with names in lower case; values of a repeated header are joined by commas.
        peer: the address of the other end of the connection.
    """

    token: str | None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    peer: str = ""


class Gate(abc.ABC):
    """Knows callers and their rights."""

    #: Whether headers name the caller: a browser's requests have them whatever page makes the request.
    believes_headers: ClassVar[bool] = False
    #: Whether a token may be part of a link; proxy logs and browser histories keep links.
    takes_links: ClassVar[bool] = False
    #: Whether it identifies callers without blocking, so that it needs no separate thread.
    is_quick: ClassVar[bool] = False

    @abc.abstractmethod
    def caller(self, credentials: Credentials) -> Caller | None:
        """Return the caller; None: the caller is unknown."""

    @abc.abstractmethod
    def allows(self, caller: Caller, operation: ApiOperation, namespace: str | None) -> bool:
        """Whether a caller may do an operation; ``namespace`` is None on this machine."""


class TokenGate(Gate):
    """Admits every request with the right token.

    Args:
        token: the token.
        user: the name of the callers who have it.
    """

    takes_links = True
    is_quick = True

    def __init__(self, token: str, user: str) -> None:
        self._token = token.encode()
        self._caller = Caller(user)

    def caller(self, credentials: Credentials) -> Caller | None:
        """Return the user if the token is the right one."""
        given = (credentials.token or "").encode()
        return self._caller if secrets.compare_digest(given, self._token) else None

    def allows(self, caller: Caller, operation: ApiOperation, namespace: str | None) -> bool:
        """Whether a caller may do an operation: always."""
        return True


def token_file(home: Path) -> Path:
    """Return the path of the file with the token of a home's server."""
    return home / TOKEN_FILE


def token(path: Path) -> str:
    """Return the token in a file that only its user may read; make a new one if there is no file.

    Raises:
        StoreError: the file cannot be read or made, or others may read it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return known(path)
        made = secrets.token_urlsafe(TOKEN_BYTES)
        with os.fdopen(descriptor, "w") as file:
            file.write(made)
    except OSError as error:
        raise StoreError(
            f"the token of the server, {path}, cannot be read or made: {error.strerror or error}",
            "set PACELINE_HOME to a folder that can be written",
        ) from error
    return made


def known(path: Path) -> str:
    """Return the token in an existing file.

    Raises:
        StoreError: others may read the file, or it holds no token.
        OSError: the file cannot be read.
    """
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise StoreError(f"others may read the token in {path}", f"make another: rm {path}")
    found = path.read_text().strip()
    if len(found) < TOKEN_BYTES:
        raise StoreError(f"{path} holds no token", f"make another: rm {path}")
    return found
