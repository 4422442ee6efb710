"""Positions up to which output was read, which clients pass on from one answer to the next request."""

from __future__ import annotations

import base64
import binascii
import json
import zlib

from paceline.errors import InvalidInput
from paceline.model.roles import ReplicaId
from paceline.services.logs import Positions

#: Enough for twenty thousand attempts; a larger cursor does not come from this server.
MOST_BYTES = 1 << 20
MOST_POSITION = 100


def text(positions: Positions) -> str:
    """Return positions as a text that fits into an address or a header."""
    plain = {f"{replica}.{attempt}": at for (replica, attempt), at in positions.items()}
    packed = zlib.compress(json.dumps(plain, separators=(",", ":")).encode(), level=1)
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def parse(cursor: str) -> Positions:
    """Return the positions that `text` has written.

    Raises:
        InvalidInput: the cursor was not written by `text`.
    """
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        plain = json.loads(zlib.decompressobj().decompress(packed, MOST_BYTES))
        return {_attempt(name): _position(at) for name, at in plain.items()}
    except (ValueError, AttributeError, binascii.Error, zlib.error, RecursionError) as error:
        raise InvalidInput(
            "`after` is not a position from an earlier answer",
            "copy it unchanged from the previous answer, or leave it empty to read from the beginning",
        ) from error


def _attempt(name: str) -> tuple[ReplicaId, int]:
    replica, _, attempt = name.rpartition(".")
    return ReplicaId.parse(replica), int(attempt)


def _position(at: object) -> str:
    if not isinstance(at, str) or len(at) > MOST_POSITION or not at.isascii():
        raise ValueError(at)
    return at
