"""The output of replicas, by the API; whatever it is, it is text."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from paceline.surfaces.web.routes.logs import LINE_CHARACTERS


@pytest.fixture
def printed(recorded: str, tmp_path: Path) -> str:
    """A job whose replicas have printed something."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "worker-0.1.log").write_bytes(b"".join(b"step %d\n" % number for number in range(1000)))
    hostile = [b"<script>alert(1)</script>", b"\x1b[31mred\x1b[0m", b"\xff\x00\x07", b"x" * 10_000_000]
    (logs / "ps-0.2.log").write_bytes(b"\n".join(hostile) + b"\n")
    return recorded


def test_the_last_lines(client: TestClient, printed: str) -> None:
    path = f"/api/v1/jobs/{printed}/logs"
    found = client.get(path, params={"role": "worker", "tail": 3}).json()["items"]
    assert [each["text"] for each in found] == ["step 997", "step 998", "step 999"]
    assert {(each["replica"], each["attempt"]) for each in found} == {("worker-0", 1)}
    found = client.get(path, params={"search": "STEP 99", "tail": 2}).json()["items"]
    assert [each["text"] for each in found] == ["step 998", "step 999"]
    assert client.get(path, params={"role": "worker", "attempt": 2}).json()["items"] == []


def test_whatever_is_printed_is_text(client: TestClient, printed: str) -> None:
    found = client.get(f"/api/v1/jobs/{printed}/logs", params={"role": "ps"}).json()["items"]
    assert [each["text"] for each in found] == [
        "<script>alert(1)</script>", "\x1b[31mred\x1b[0m", "\ufffd\x00\x07", "x" * LINE_CHARACTERS,
    ]  # fmt: skip
    assert [each["is_cut"] for each in found] == [False, False, False, True]
