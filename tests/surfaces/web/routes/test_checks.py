"""What needs no job, by the API: what the command line says of the same."""

from __future__ import annotations

import json
from collections.abc import Callable

from click.testing import Result
from starlette.testclient import TestClient


def test_all_codes(client: TestClient, paceline: Callable[..., Result]) -> None:
    assert client.get("/api/v1/codes").json() == json.loads(paceline("explain", "-o", "json").stdout)


def test_the_schema_of_job_files(client: TestClient, paceline: Callable[..., Result]) -> None:
    answer = client.get("/api/v1/schema")
    assert answer.headers["content-type"] == "application/schema+json"
    assert answer.json() == json.loads(paceline("schema").stdout)
