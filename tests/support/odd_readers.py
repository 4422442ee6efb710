"""Readers as texts of users may make them, for a process that is to survive them."""

from __future__ import annotations

import os
import re
import signal
import time

from paceline.errors import InvalidInput


def read(text: str) -> str:
    """Return a text in capitals; some words do something else."""
    match text:
        case "for ever":
            time.sleep(3600)
        case "within one call":
            # The whole of it is one call of C, which keeps every thread of its process waiting.
            re.fullmatch("(a+)+b", "a" * 64)
        case "too large":
            return "x" * (1 << 40)
        case "too deep":
            return read_deep(0)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "a fault of ours":
            raise KeyError(text)
        case "wrong":
            raise InvalidInput("it is wrong", "mend it")
    return text.upper()


def read_deep(level: int) -> str:
    """Go deeper than any reader may."""
    return read_deep(level + 1)
