"""Why the command ended, and the file that keeps it."""

import contextlib
import errno
import json
import os
from typing import Any, Dict, List, Optional, Tuple

EXIT_FILE_BYTES = 4096


class ExitFile:
    """Writes the exit reason whole or not at all. Its space is reserved early: the disk may fill up."""

    def __init__(self, path: str) -> None:
        self._path, self._temporary = path, path + ".tmp"
        with contextlib.suppress(OSError):
            os.unlink(path)
        with contextlib.suppress(OSError):
            self._write(b" " * EXIT_FILE_BYTES)

    def _write(self, data: bytes) -> None:
        descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError("the disk is full")
            os.ftruncate(descriptor, len(data))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write(self, reason: Dict[str, Any]) -> None:
        """Put the reason in its place; OSError if that fails."""
        data = json.dumps(reason).encode("ascii") + b"\n"
        if os.path.exists(self._path):  # it could not be removed: a container has mounted the file there
            with open(self._path, "wb") as file:
                file.write(data)
            return
        self._write(data)
        os.rename(self._temporary, self._path)


def exit_reason(code: int, number: Optional[int], orphaned: bool, out_of_memory: bool) -> Tuple[str, str]:
    """Return the kind and the message for a command that ran."""
    how = f"the command ended with code {code}" if number is None else f"signal {number} ended the command"
    if orphaned:
        return "orphaned", "no supervisor was there for too long; " + how
    if code == 0:
        return "completed", how
    if out_of_memory:
        return "out-of-memory", "the kernel killed a process of this replica for memory; " + how
    return ("error" if number is None else "signal"), how


def launch_failure(command: List[str], error: OSError) -> Tuple[int, str]:
    """Return the exit code that a shell would use, and a message that says what to do."""
    program = command[0]
    if isinstance(error, FileNotFoundError):
        reason = "not found (or the interpreter that its first line names is not)"
    else:
        reason = f"cannot be run ({error.strerror})"
    hint = ""
    if error.errno == errno.E2BIG:
        hint = ". A word or a variable has 128 KiB or more, or all together are too long: use a file"
    elif len(command) == 1 and " " in program.strip():
        hint = '. It is one word with spaces in it and no shell runs it: give a list, or ["sh", "-c", "..."]'
    return 127 if isinstance(error, FileNotFoundError) else 126, f"{program!r} {reason}{hint}"
