"""The output of replicas, by the API; whatever it is, it is text."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from support.event_streams import Sent, sent

from paceline.surfaces.web.routes import logs
from paceline.surfaces.web.routes.logs import LINE_CHARACTERS


@pytest.fixture
def printed(recorded: str, tmp_path: Path) -> str:
    """A job whose replicas have printed something."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "worker-0.1.log").write_bytes(b"".join(b"step %d\n" % number for number in range(1000)))
    hostile = [b"<script>alert(1)</script>", b"\x1b[31mred\x1b[0m", b"\xff\x00\x07", b"x" * 10_000_000]
    (folder / "ps-0.2.log").write_bytes(b"\n".join(hostile) + b"\n")
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


def test_output_is_read_page_by_page(client: TestClient, printed: str) -> None:
    path = f"/api/v1/jobs/{printed}/logs"
    seen: list[str] = []
    after = ""
    while True:
        page = client.get(path, params={"role": "worker", "after": after, "limit": 300}).json()
        seen += [each["text"] for each in page["items"]]
        after = page["after"]
        if not page["is_full"]:
            break
    assert seen == [f"step {number}" for number in range(1000)]
    more = {"role": "worker", "after": after}
    assert client.get(path, params=more).json()["items"] == []
    begun = client.get(path, params={"role": "worker", "after": "", "begin": 2}).json()
    assert [each["text"] for each in begun["items"]] == ["step 998", "step 999"]
    assert client.get(path, params={**more, "after": begun["after"]}).json()["items"] == []


def test_a_page_that_is_searched_goes_on_behind_what_was_read(client: TestClient, printed: str) -> None:
    path = f"/api/v1/jobs/{printed}/logs"
    params = {"role": "worker", "after": "", "search": "step 9", "limit": 50}
    first = client.get(path, params=params).json()
    rest = client.get(path, params={**params, "after": first["after"], "limit": 5000}).json()
    assert first["is_full"]
    assert len(first["items"]) + len(rest["items"]) == 111


def test_a_line_without_an_end(client: TestClient, printed: str, tmp_path: Path) -> None:
    file = tmp_path / "logs" / "worker-1.1.log"
    file.write_text("50%\r100%")
    path = f"/api/v1/jobs/{printed}/logs"
    params = {"replica": ["worker-1"], "after": ""}
    whole = client.get(path, params={**params, "unfinished": False}).json()
    assert [each["text"] for each in whole["items"]] == ["50%"]
    shown = client.get(path, params=params).json()
    assert [each["text"] for each in shown["items"]] == ["50%", "100%"]
    with file.open("a") as opened:
        opened.write(" done\n")
    behind = {**params, "after": shown["after"]}
    assert [each["text"] for each in client.get(path, params=behind).json()["items"]] == [" done"]
    behind = {**params, "after": whole["after"], "unfinished": False}
    assert [each["text"] for each in client.get(path, params=behind).json()["items"]] == ["100% done"]


def test_a_page_has_a_size(client: TestClient, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "PAGE_CHARACTERS", 20)
    path = f"/api/v1/jobs/{printed}/logs"
    page = client.get(path, params={"role": "worker", "after": ""}).json()
    assert [each["text"] for each in page["items"]] == ["step 0", "step 1", "step 2", "step 3"]
    assert page["is_full"]


def packed(plain: object) -> str:
    return base64.urlsafe_b64encode(zlib.compress(json.dumps(plain).encode())).decode()


@pytest.mark.parametrize(
    "after",
    [
        "nonsense", "ä", "=", packed([]), packed({"a": "1"}), packed({"ps-0.1": 1}), packed({"ps-0": "1"}),
        packed({"ps-0.x": "1"}), packed({"ps-0.1": "x" * 200}), packed("x" * 10_000_000), "A" * 50_000,
    ],
)  # fmt: skip
def test_what_is_no_place_is_refused(client: TestClient, printed: str, after: str) -> None:
    for path in ("logs", "logs/stream"):
        headers = {"Last-Event-ID": after.encode()} if path == "logs/stream" else {}
        params = {} if headers else {"after": after}
        answer = client.get(f"/api/v1/jobs/{printed}/{path}", params=params, headers=headers)
        assert answer.status_code == 422, answer.text[:300]


@pytest.mark.parametrize("place", ["-1", "99999999999999999999", "@2026#1", "", "x"])
def test_a_place_that_was_made_up_is_none(client: TestClient, printed: str, place: str) -> None:
    answer = client.get(f"/api/v1/jobs/{printed}/logs", params={"after": packed({"worker-0.1": place})})
    assert answer.status_code == 200
    assert all(each["replica"] == "ps-0" for each in answer.json()["items"])


def followed(client: TestClient, name: str, last: str | None = None, **params: object) -> list[Sent]:
    headers = {} if last is None else {"Last-Event-ID": last}
    with client.stream("GET", f"/api/v1/jobs/{name}/logs/stream", headers=headers, params=params) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(sent(answer.iter_lines()))


def test_output_is_followed_and_a_broken_stream_goes_on(client: TestClient, printed: str) -> None:
    found = followed(client, printed, role="worker")
    assert [each.kind for each in found] == ["lines", "lines", "end"]
    texts = [line["text"] for each in found[:-1] for line in each.data["items"]]
    assert texts == [f"step {number}" for number in range(1000)]
    again = followed(client, printed, found[0].id, role="worker")
    assert again == found[1:]
    assert followed(client, printed, found[1].id, role="worker") == found[2:]


def test_what_is_not_there_has_no_output(client: TestClient) -> None:
    for path in ("logs", "logs/stream"):
        assert client.get(f"/api/v1/jobs/missing/{path}").status_code == 404


def test_a_job_that_runs_is_followed_to_its_end(
    client: TestClient, sleeping: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A line is printed when the one before it has been read."""
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.05)
    batch = logs._batch

    def read(found: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
        items = batch(found)
        for each in items:
            (tmp_path / f"read-{each['text']}").touch()
        return items

    monkeypatch.setattr(logs, "_batch", read)
    wait = f"until [ -e {tmp_path}/read-$i ]; do sleep 0.02; done"
    command = f"[bash, -c, 'for i in 1 2 3 4; do echo $i; {wait}; done; printf end']"
    source = sleeping("clicks").replace('[sleep, "600"]}', f"{command}}}")
    client.post("/api/v1/jobs", json={"source": source}).raise_for_status()
    found = followed(client, "clicks", replica=["worker-0"])
    texts = [[line["text"] for line in each.data["items"]] for each in found[:-1]]
    assert texts == [["1"], ["2"], ["3"], ["4"], ["end"]]
    assert found[-1].kind == "end"
