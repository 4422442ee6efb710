"""Connections to PostgreSQL that notice when the server falls silent.

Packets to a server that is stopped, or behind a proxy that hangs, are still acknowledged: by its kernel, or
by the proxy. So keepalives and ``tcp_user_timeout`` are not enough: who waits for an answer has a deadline.
Times are chosen so that a server that falls silent is an error within 20 s, whatever it was asked last.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import waiting

#: Until a connection is made, and until one that was idle answers.
CONNECT_SECONDS, PING_SECONDS = 10, 4.0
#: The server gives up a statement after so long; who hears nothing for a little longer gives up the server.
STATEMENT_SECONDS, SILENT_SECONDS = 15, 17.0
#: What is asked of the kernel: a server that is gone for good is noticed also while nothing is asked of it.
_ARGUMENTS = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_LOOK_SECONDS = 0.1


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection of which each answer has a deadline.

    Attributes:
        silent_seconds: how long nothing may come while an answer is waited for; None: as long as it takes.
    """

    silent_seconds: float | None = SILENT_SECONDS

    def wait(self, gen: Any, interval: float = _LOOK_SECONDS, timeout: float | None = None) -> Any:
        """Wait for an answer.

        Raises:
            psycopg.OperationalError: none came; the connection is closed.
        """
        if self.silent_seconds is None:
            return super().wait(gen, interval)
        try:
            heard = _heard(gen, self.silent_seconds)
            return waiting.wait(heard, self.pgconn.socket, interval=interval)
        except _Silent:
            self.pgconn.finish()
            raise psycopg.OperationalError(
                f"timeout: the server has been silent for {self.silent_seconds:.0f} s"
            ) from None


class _Silent(Exception):
    """Nothing has come for too long."""


def _heard(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """Wait as a generator of the driver does, but only while something comes."""
    try:
        wanted = next(gen)
        heard_at = time.monotonic()
        while True:
            ready = yield wanted
            if ready != waiting.READY_NONE:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at >= seconds:
                gen.close()
                raise _Silent
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value


def engine(url: sa.URL) -> sa.Engine:
    """Return where connections come from; what the URL says of them counts.

    Raises:
        ModuleNotFoundError: there is no driver.
    """
    arguments = {name: value for name, value in _ARGUMENTS.items() if name not in url.query}
    made = sa.create_engine(url, connect_args=arguments)
    sa.event.listen(made, "do_connect", _connect)
    sa.event.listen(made, "connect", _set_up)
    sa.event.listen(made, "checkout", _ping)
    return made


def be_patient(connection: sa.Connection) -> None:
    """Let statements of a connection last as long as they take: a migration of a large database."""
    driver: Any = connection.connection.driver_connection
    driver.silent_seconds = None
    connection.exec_driver_sql("SET statement_timeout = 0")
    connection.commit()


def _connect(
    _dialect: object, _record: object, words: list[Any], arguments: dict[str, Any]
) -> DeadlineConnection:
    return DeadlineConnection.connect(*words, **arguments)


def _set_up(connection: DeadlineConnection, _record: object) -> None:
    """Let the server give up what takes too long; a pooler may not take this when a connection begins."""
    connection.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")
    connection.commit()


def _ping(connection: DeadlineConnection, _record: object, _proxy: object) -> None:
    """Have a connection replaced that does not answer.

    Raises:
        sqlalchemy.exc.DisconnectionError: it does not; the pool takes another.
    """
    connection.silent_seconds = PING_SECONDS
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except psycopg.OperationalError as error:
        raise sa.exc.DisconnectionError from error
    finally:
        connection.silent_seconds = SILENT_SECONDS
