"""How long parameter servers may take to answer a call before it counts as lost.

TensorFlow's runtime sometimes never ends a call, though every server is alive and answers other calls. It
gives each call a number to recognise retries (`GetUniqueRequestId`). The number comes from a generator of the
calling thread that is seeded with 32 bits, and each call is made in a new thread. So once in some tens of
thousands of steps, a number is repeated among the 100,000 that a server remembers (`RecentRequestIds`). The
process that gets it refuses the call (`AbortedError`: "received twice"). If the refusal comes before the call
has been sent to the next process, the call to that process is not cancelled, and it waits for the first
process forever. Seen in TensorFlow 2.21.

TensorFlow's own deadline (`operation_timeout_in_ms`) does not help: it cancels what was cancelled already,
and waits. Closing the connections to the servers does help: every call on them fails, and the runtime
reconnects by itself.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from paceline.training.lazy_tensorflow import tf, tf1

FIRST_SECONDS, LONGEST_SECONDS = 30.0, 3600.0
_FEW_STEPS = 10
_LOOK_SECONDS = 1.0

UNHURRIED = tf1.RunOptions(timeout_in_ms=24 * 3600 * 1000)
"""For calls whose length goes with the size of a model or of the data: to restore, to evaluate."""


def following(seconds: float, steps: int) -> float:
    """Return the deadline after one of `seconds` was missed, in a session that finished `steps` steps.

    A session that finished hardly any steps may be slow instead of stuck, and gets twice the time.
    """
    return FIRST_SECONDS if steps > _FEW_STEPS else min(2 * seconds, LONGEST_SECONDS)


class DeadlineSession(tf1.Session):  # type: ignore[misc]
    """A session whose calls fail when the servers do not answer in time.

    A call then raises a DeadlineExceededError. It raises an UnavailableError if TensorFlow cannot read why
    another process failed. A thread looks for overdue calls and, if there is one, closes the connections to
    the servers' `ports`: all other calls under way then end in the same way. The options of a call can set
    another deadline for it.
    """

    def __init__(
        self, target: str, *, graph: Any, config: Any, ports: Collection[int], seconds: float
    ) -> None:
        super().__init__(target, graph=graph, config=config)
        self._ports = ports
        self._seconds = seconds
        self._due: dict[object, float] = {}  # the time by which each call under way has to be answered
        self._has_missed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="deadlines", daemon=True)
        self._thread.start()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Run as `tf1.Session.run` does."""
        with self._deadline(options):
            return super().run(fetches, feed_dict, options, run_metadata)

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """Return a function as `tf1.Session.make_callable` does."""
        made = super().make_callable(fetches, feed_list, accept_options)

        def call(*values: Any, **more: Any) -> Any:
            with self._deadline(more.get("options")):
                return made(*values, **more)

        return call

    def close(self) -> None:
        """Close the session, which waits for the calls that are under way.

        The thread must not outlive the session. If it held the last reference, it would delete the session
        while Python exits, and TensorFlow aborts a process when a thread ends inside TensorFlow.
        """
        try:
            super().close()
        finally:
            self._ended.set()
            self._thread.join()

    @contextlib.contextmanager
    def _deadline(self, options: Any) -> Iterator[None]:
        seconds = options.timeout_in_ms / 1000 if options and options.timeout_in_ms else self._seconds
        call = object()
        self._due[call] = time.monotonic() + seconds
        try:
            yield
        except (tf.errors.OpError, UnicodeDecodeError) as error:
            if self._has_missed:
                raise tf.errors.DeadlineExceededError(
                    None, None, "a call was not answered in time"
                ) from error
            if isinstance(error, UnicodeDecodeError):
                # The reason that another process gives may hold bytes that are not text (seen when a socket
                # was closed). TensorFlow then cannot turn it into one of its own errors.
                raise tf.errors.UnavailableError(
                    None, None, "a call failed; its reason is no text"
                ) from error
            raise
        finally:
            del self._due[call]

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            if min(self._due.copy().values(), default=float("inf")) < time.monotonic():
                self._has_missed = True
                _hang_up(self._ports)


def _hang_up(ports: Collection[int]) -> None:
    """Shut down this process's connections to the given remote ports.

    The ports alone select them, as host names may have new addresses.
    """
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # not connected, or closed in the meantime
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                is_tcp = connection.family in (socket.AF_INET, socket.AF_INET6)
                if is_tcp and connection.getpeername()[1] in ports:
                    connection.shutdown(socket.SHUT_RDWR)
