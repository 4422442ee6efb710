"""The secret that clients of a job need."""

from typing import Optional

from .logs import say

TOKEN_BYTES = 1000


def read_token(path: Optional[str]) -> Optional[str]:
    """Return the token that clients need; None: none is needed; empty: unreadable, so no client has it."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return file.read(TOKEN_BYTES).decode("ascii", "replace").strip()
    except OSError as error:
        say("%s cannot be read (%s): nothing but metrics is answered" % (path, error))
        return ""


def is_same(one: str, other: str) -> bool:
    """Compare two secrets without the time showing where they differ; importing hmac would load OpenSSL."""
    first, second = one.encode("utf-8"), other.encode("utf-8")
    difference = len(first) ^ len(second)
    for mine, theirs in zip(first, second):  # noqa: B905 - 3.6
        difference |= mine ^ theirs
    return not difference
