"""Actions on files at any URL that fsspec understands, repeated when the connection is lost.

An installed package decides which library reads a URL: hdfs-native for `hdfs://`, else Hadoop's own through
pyarrow; s3fs for `s3://`.
"""

from __future__ import annotations

import errno
import functools
import logging
import re
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

from paceline.training import errors

_log = logging.getLogger(__name__)
_DELAYS_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
_FINAL_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENAMETOOLONG)
_BUSY = (408, 429)  # HTTP's "request timeout" and "too many requests"
#: What HDFS says that waiting does not change; hdfs-native has one kind of error for all that it is told.
_FINAL_OF_HDFS = ("AccessControlException", "QuotaExceededException", "InvalidToken", "UnknownHost")
_HDFS_URL = re.compile(r"hdfs://[^/]*(/.*)?", re.DOTALL)

Answer = TypeVar("Answer")


def is_remote(url: str) -> bool:
    """Return whether a URL is not one of a file of this machine."""
    return "://" in url and not url.startswith("file://")


def system_of(url: str, error_type: type[errors.TrainingError] = errors.InputError) -> tuple[Any, str]:
    """Return the file system of a URL and the path in it.

    Raises:
        error_type: a package that the file system needs is missing.
    """
    try:
        if url.startswith("hdfs://"):
            _mend_hdfs()
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise error_type.of(url, error) from error
    return system, path


@functools.cache
def _mend_hdfs() -> None:
    """Have hdfs-native, if it is here, take all of a path for its name.

    It splits paths as URLs of web pages, so it would read or write another file where a name has ``#`` or
    ``?``.
    """
    try:
        from hdfs_native.fsspec import HdfsFileSystem
    except ImportError:
        return

    class WholeNames(HdfsFileSystem):
        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            """Return a path without the protocol and the host."""
            found = _HDFS_URL.fullmatch(str(path))
            return (found[1] if found else str(path)) or cls.root_marker

    fsspec.register_implementation("hdfs", WholeNames, clobber=True)


def is_local(system: Any) -> bool:
    """Return whether a file system is that of this machine."""
    return isinstance(system, LocalFileSystem)


def reads_ahead(system: Any) -> bool:
    """Return whether files of a file system take fsspec's options for reading ahead: hdfs-native's do not."""
    hdfs = sys.modules.get("hdfs_native.fsspec")
    return hdfs is None or not isinstance(system, hdfs.HdfsFileSystem)


def retried(
    url: str,
    action: Callable[[], Answer],
    lose: Callable[[], None] = lambda: None,
    *,
    error_type: type[errors.TrainingError] = errors.InputError,
    refusal: str | None = None,
) -> Answer:
    """Run an action over a connection; if the connection is lost, repeat it after a while.

    Args:
        url: the place, for messages.
        action: what to do.
        lose: called before the action is repeated.
        error_type: the kind of the error that is raised.
        refusal: what is wrong if the place refuses the action; None: the file cannot be read.

    Raises:
        error_type: the place refused the action, or the connection was lost every time.
    """
    for tries, delay in enumerate((*_DELAYS_SECONDS, None), start=1):
        try:
            return action()
        except _lost_errors() as error:
            cause = error.__cause__ or error
            if _is_final(error):
                if isinstance(error, _FINAL) and refusal is None:
                    raise error_type.of(url, "there is no such file, or it may not be read") from error
                raise error_type.of(url, f"{refusal or 'it cannot be read'} ({_line(error)})") from error
            reason = f"{type(cause).__name__}: {_line(cause)}"
            if delay is None:
                raise error_type.of(
                    url,
                    f"the connection was lost {tries} times in a row ({reason}); "
                    "see that its server can be reached from here, then start the job again to go on",
                ) from error
            _log.warning("%s: the connection was lost (%s), trying again in %.1f s", url, reason, delay)
            lose()
            time.sleep(delay)
    raise AssertionError("the last try returns or raises")


def _line(error: BaseException) -> str:
    """Return the first line of an error: HDFS adds the trace of its server."""
    return (str(error).strip().splitlines() or [""])[0]


def _is_final(error: Exception) -> bool:
    """Return whether it does not help to try again."""
    if isinstance(error, _FINAL) or getattr(error, "errno", None) in _FINAL_NUMBERS:
        return not _is_lost(error.__cause__)
    botocore = sys.modules.get("botocore.exceptions")
    if botocore is not None and isinstance(
        error, botocore.BotoCoreError
    ):  # Others are credentials and the like.
        return not isinstance(error, botocore.ConnectionError | botocore.HTTPClientError)
    return any(word in str(error) for word in _FINAL_OF_HDFS)


def _is_lost(cause: BaseException | None) -> bool:
    """Return whether a file seemed to be missing only because its server failed to answer."""
    status = getattr(cause, "status", 500)
    return isinstance(cause, _lost_errors()[1:]) and (status >= 500 or status in _BUSY)


def _lost_errors() -> tuple[type[Exception], ...]:
    """Return the errors that fsspec raises for a lost connection; those of a library only if it is in use."""
    aiohttp, botocore = sys.modules.get("aiohttp"), sys.modules.get("botocore.exceptions")
    return (
        OSError,
        TimeoutError,
        *((aiohttp.ClientError,) if aiohttp else ()),
        *((botocore.BotoCoreError,) if botocore else ()),
        *((RuntimeError,) if "hdfs_native" in sys.modules else ()),
    )
