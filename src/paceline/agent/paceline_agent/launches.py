"""The start of the command."""

import os
import signal
import subprocess
from typing import Callable, Dict, List, Optional

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def load_prctl() -> Optional[Callable[[int, int], int]]:
    """Return Linux's prctl(2), or None if the C library cannot be reached."""
    try:
        import ctypes

        prctl, zero = ctypes.CDLL(None).prctl, ctypes.c_ulong(0)
    except (ImportError, OSError, AttributeError):
        return None
    return lambda option, argument: int(prctl(option, ctypes.c_ulong(argument), zero, zero, zero))


def launch(command: List[str], environment: Dict[str, str]) -> "subprocess.Popen[bytes]":
    """Start the command so that it dies with the agent; OSError if it cannot be run."""
    prctl, agent = load_prctl(), os.getpid()

    def tie() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != agent:
            os._exit(1)

    if prctl is not None:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        return subprocess.Popen(command, env=environment, preexec_fn=tie)
    except UnicodeEncodeError:
        # Python 3.6 without a locale takes the file system's encoding for ASCII; Linux takes any bytes.
        words = [_encoded(word) for word in command]
        variables = {_encoded(name): _encoded(value) for name, value in environment.items()}
        return subprocess.Popen(words, env=variables, preexec_fn=tie)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
