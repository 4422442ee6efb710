"""The API over each kind of store in turn."""

from __future__ import annotations

import pytest
from support import postgresqls

from paceline.stores import open_store


@pytest.fixture(scope="session")
def blank_database(postgresql: postgresqls.Postgresql) -> str:
    """The name of a database without jobs, to be copied."""
    url = postgresql.new_database()
    open_store(url).close()
    return postgresqls.name_of(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def other_store(request: pytest.FixtureRequest) -> str | None:
    """The URL of an empty database of a real PostgreSQL, or None for a file."""
    if request.param == "sqlite":
        return None
    server: postgresqls.Postgresql = request.getfixturevalue("postgresql")
    return server.new_database(request.getfixturevalue("blank_database"))
