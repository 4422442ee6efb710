"""The replica's log."""

import contextlib
import os


def say(message: str) -> None:
    """Write a message to the replica's log."""
    with contextlib.suppress(OSError):
        os.write(2, f"paceline-agent: {message}\n".encode("utf-8", "backslashreplace"))
