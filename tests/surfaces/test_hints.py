"""Commands in hints get the options of the session in which they are shown."""

from __future__ import annotations

import pytest

from paceline.surfaces.cli.sessions import CliSession

HERE = " --engine kubernetes --namespace ads"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("paceline why clicks", f"paceline{HERE} why clicks"),
        ("wait, or paceline stop first", f"wait, or paceline{HERE} stop first"),
        ("paceline explain LIFE206", "paceline explain LIFE206"),
        # The operator's namespace has the same name.
        ("kubectl -n paceline get deployment,pods", "kubectl -n paceline get deployment,pods"),
    ],
)
def test_a_command_about_jobs_says_where_they_are(text: str, shown: str) -> None:
    session = CliSession(engine_option="kubernetes", namespace_option="ads")
    assert session.addressed(text) == shown
    assert CliSession().addressed(text) == text
