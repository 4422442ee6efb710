"""The sessions of browsers: their cookies hold a ticket instead of a token.

A ticket is a random number. It is valid only for servers of this store, and only until the session ends or
the user logs out. The token that began the session is in the store, so that every replica of a server finds
it. The server checks the token with each request, so revoking the token ends its sessions. The token is
encrypted with a key derived from the ticket, so a reader of the store cannot read it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable

from paceline.stores import Store
from paceline.surfaces.web.memories import Memory

SESSION_SECONDS = 7 * 86_400
#: The most sessions of one caller; older ones end.
MOST_SESSIONS = 100
#: How long a session that was looked up is cached, and so how long it may outlive its end at another replica.
REMEMBERED_SECONDS = 10.0
_BYTES = 32
_TICKET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class Tickets:
    """Begins sessions, and finds them again.

    Args:
        store: returns the store with the sessions.
        now: Unix seconds.
        clock: a monotonic clock in seconds.
    """

    def __init__(
        self, store: Callable[[], Store], now: Callable[[], float], clock: Callable[[], float]
    ) -> None:
        self._store, self._now = store, now
        # Sealed as in the store: a later reader of this process's memory finds no token here.
        self._known: Memory[str, bytes] = Memory(clock, REMEMBERED_SECONDS)

    def begin(self, token: str, who: str) -> str:
        """Begin a session of a caller with a token; return its ticket."""
        ticket, now = secrets.token_urlsafe(_BYTES), self._now()
        self._store().begin_session(
            _name(ticket), who=who, sealed=_sealed(ticket, token.encode()), at=now,
            ends_at=now + SESSION_SECONDS, most=MOST_SESSIONS,
        )  # fmt: skip
        return ticket

    def token(self, ticket: str) -> str | None:
        """Return the token that a session began with; None: there is no such session, or it has ended."""
        if not _TICKET.fullmatch(ticket):
            return None
        name = _name(ticket)
        sealed = self._known.find(name)
        if sealed is None:
            sealed = self._store().session(name, at=self._now())
            if sealed is None:
                return None
            self._known.keep(name, sealed)
        return _sealed(ticket, sealed).decode()

    def end(self, ticket: str) -> None:
        """End a session."""
        if _TICKET.fullmatch(ticket):
            self._known.forget(_name(ticket))
            self._store().end_session(_name(ticket))


def _name(ticket: str) -> str:
    return hashlib.sha256(b"name of " + ticket.encode()).hexdigest()


def _sealed(ticket: str, text: bytes) -> bytes:
    """Return a text sealed, or a sealed text opened: each ticket has 256 bits and seals only one text."""
    stream = hashlib.shake_256(b"seal of " + ticket.encode()).digest(len(text))
    return bytes(each ^ other for each, other in zip(text, stream, strict=True))
