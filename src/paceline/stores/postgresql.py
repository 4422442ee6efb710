"""Connections to PostgreSQL that notice when the server falls silent.

If the server process is stopped, its kernel still acknowledges packets; if a proxy hangs, the proxy does.
Keepalives and ``tcp_user_timeout`` are therefore not enough, and every wait for an answer has a deadline. The
times are chosen so that a silent server causes an error within 20 s, whatever the last statement was.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import waiting

#: Time limits for making a connection, and for the answer to a ping on an idle connection.
CONNECT_SECONDS, PING_SECONDS = 10, 4.0
#: The server cancels a statement after the first; the client gives up a silent server slightly later.
STATEMENT_SECONDS, SILENT_SECONDS = 15, 17.0
#: Connection parameters of libpq. With them, the kernel notices a dead server even if no statement runs.
_ARGUMENTS = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_LOOK_SECONDS = 0.1


class DeadlineConnection(psycopg.Connection[Any]):
    """A connection with a deadline for each answer.

    Attributes:
        silent_seconds: how long the server may be silent during a wait for an answer; None: for ever.
    """

    silent_seconds: float | None = SILENT_SECONDS

    def wait(self, gen: Any, interval: float = _LOOK_SECONDS, timeout: float | None = None) -> Any:
        """Wait for an answer.

        Raises:
            psycopg.OperationalError: the server was silent for too long; the connection is closed.
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
    """The server has been silent for too long."""


def _heard(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """Wait as the driver's generator does, but give up when the server is silent for too long."""
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
    """Return the SQLAlchemy engine for a URL; connection parameters in the URL override Paceline's.

    Raises:
        ModuleNotFoundError: the driver is not installed.
    """
    arguments = {name: value for name, value in _ARGUMENTS.items() if name not in url.query}
    made = sa.create_engine(url, connect_args=arguments)
    sa.event.listen(made, "do_connect", _connect)
    sa.event.listen(made, "connect", _set_up)
    sa.event.listen(made, "checkout", _ping)
    return made


def be_patient(connection: sa.Connection) -> None:
    """Lift the time limits of a connection, for the migration of a large database."""
    driver: Any = connection.connection.driver_connection
    driver.silent_seconds = None
    connection.exec_driver_sql("SET statement_timeout = 0")
    connection.commit()


def _connect(
    _dialect: object, _record: object, words: list[Any], arguments: dict[str, Any]
) -> DeadlineConnection:
    return DeadlineConnection.connect(*words, **arguments)


def _set_up(connection: DeadlineConnection, _record: object) -> None:
    """Set the server's statement timeout; sent as a statement, because a pooler may reject it at connect."""
    connection.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")
    connection.commit()


def _ping(connection: DeadlineConnection, _record: object, _proxy: object) -> None:
    """Have the pool replace a connection that does not answer.

    Raises:
        sqlalchemy.exc.DisconnectionError: the connection does not answer; the pool replaces it.
    """
    connection.silent_seconds = PING_SECONDS
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except psycopg.OperationalError as error:
        raise sa.exc.DisconnectionError from error
    finally:
        connection.silent_seconds = SILENT_SECONDS
