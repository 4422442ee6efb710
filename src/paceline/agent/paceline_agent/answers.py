"""What a client gets: status, content type, and bytes or a stretch of a file."""

import errno
import os
import stat
from typing import Any, Iterator, Tuple, Union

PIECE_BYTES = 1 << 16  # of a file held in memory at a time


class Stretch:
    """A section of a file, sent piece by piece after a head."""

    def __init__(self, head: bytes, file: Any, length: int) -> None:
        self._head, self._file, self._length = head, file, length

    def __len__(self) -> int:
        return len(self._head) + self._length

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it; less than its length if the file has become shorter meanwhile."""
        yield self._head
        left = self._length
        while left > 0:
            piece = self._file.read(min(left, PIECE_BYTES))
            if not piece:
                return
            left -= len(piece)
            yield piece

    def close(self) -> None:
        """Close the file."""
        self._file.close()


Answer = Tuple[int, str, Union[bytes, Stretch]]


STATUSES = {
    200: "OK", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    405: "Method Not Allowed", 413: "Content Too Large",
}  # fmt: skip

NOTHING: Answer = (404, "text/plain", b"there is no such thing\n")
NOT_ALLOWED: Answer = (401, "text/plain", b"the token of the job is needed (docs/agent-protocol.md)\n")


def open_file(path: str) -> Tuple[Any, int]:
    """Open a regular file and return it and its size; no pipe or device that a script put in its place."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no file")
    return os.fdopen(descriptor, "rb"), status.st_size
