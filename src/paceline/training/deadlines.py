"""How long parameter servers may take to answer a call before it counts as lost.

TensorFlow's runtime now and then never ends a call, though every server lives and answers others. It numbers
calls to tell retries apart (`GetUniqueRequestId`), by a generator of the thread that makes the call, seeded
with 32 bits; and it makes every call in a new thread. So among the 100,000 numbers that a server remembers
(`RecentRequestIds`) one comes again, once in some tens of thousands of steps. One process refuses that call
(`AbortedError`: "received twice"). If the refusal comes before the call has been sent to the next process,
that one is not called off, and waits for the first for ever. Seen in TensorFlow 2.21.

Its own deadline (`operation_timeout_in_ms`) does not help: it calls off what was called off already, and
waits. What helps is to end the connections to the servers: that fails every call on them, and the runtime
makes new ones by itself.
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
    """The deadline after one of so many seconds was missed, in a session that finished so many steps.

    Who finished hardly any may be slow, not stuck, and is given twice the time.
    """
    return FIRST_SECONDS if steps > _FEW_STEPS else min(2 * seconds, LONGEST_SECONDS)


class DeadlineSession(tf1.Session):  # type: ignore[misc]
    """A session whose calls raise a DeadlineExceededError when servers have not answered in time, and an
    UnavailableError when TensorFlow cannot read the reason for which one failed.

    A thread looks for calls that are overdue, and ends the connections to the servers' `ports` for them: all
    other calls that are under way then end so, too. A call's options can give it another deadline.
    """

    def __init__(
        self, target: str, *, graph: Any, config: Any, ports: Collection[int], seconds: float
    ) -> None:
        super().__init__(target, graph=graph, config=config)
        self._ports = ports
        self._seconds = seconds
        self._due: dict[object, float] = {}  # when each call that is under way has to be answered
        self._has_missed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="deadlines", daemon=True)
        self._thread.start()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs as `tf1.Session.run` does."""
        with self._deadline(options):
            return super().run(fetches, feed_dict, options, run_metadata)

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """Returns a function as `tf1.Session.make_callable` does."""
        made = super().make_callable(fetches, feed_list, accept_options)

        def call(*values: Any, **more: Any) -> Any:
            with self._deadline(more.get("options")):
                return made(*values, **more)

        return call

    def close(self) -> None:
        """Closes the session, which waits for the calls that are under way.

        The thread must not outlive this: were it the last to know the session, it would delete it while
        Python ends, and TensorFlow aborts a process whose thread is ended inside of it.
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
                # The reason that another process gives may hold bytes that are no text, seen when a socket
                # was closed. TensorFlow then cannot make its own error of it.
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
    """Ends this process's connections to others' ports; by these alone, as names may have new addresses."""
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # not one of a server, or closed meanwhile
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                is_tcp = connection.family in (socket.AF_INET, socket.AF_INET6)
                if is_tcp and connection.getpeername()[1] in ports:
                    connection.shutdown(socket.SHUT_RDWR)
