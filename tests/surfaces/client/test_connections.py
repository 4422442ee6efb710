"""Requests to a server: what is made again, what its refusals become, and who is told the token."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from paceline import errors
from paceline.errors import Conflict, InvalidInput, NotFound, PacelineError, SourceError
from paceline.surfaces.client import connections
from paceline.surfaces.client.connections import ServerConnection

URL = "http://127.0.0.1:8470"
Answer = httpx2.Response | Exception


class Server:
    """Answers as it is told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def connection(server: Server) -> ServerConnection:
    client = httpx2.Client(base_url=URL, transport=httpx2.MockTransport(server))
    return ServerConnection(client, namespace="ads", pauses_seconds=(0.0, 0.0))


def document(**body: Any) -> httpx2.Response:
    return httpx2.Response(200, json=body)


def problem(status: int, **body: Any) -> httpx2.Response:
    content = json.dumps({"type": "about:blank", "title": "?", "status": status, "detail": "no", **body})
    return httpx2.Response(status, headers={"content-type": "application/problem+json"}, content=content)


REFUSED = httpx2.ConnectError("refused")
RESET = httpx2.ReadError("reset")


def test_what_only_asks_is_asked_again(server: Server, connection: ServerConnection) -> None:
    server.answers = [document(a=1), REFUSED, RESET, document(a=2)]
    assert connection.get("/jobs")["a"] == 1
    assert connection.get("/jobs", phase=["failed"], search=None)["a"] == 2
    assert str(server.asked[-1].url) == f"{URL}/api/v1/jobs?phase=failed&namespace=ads"


def test_a_server_that_is_not_there_is_said_at_once(server: Server, connection: ServerConnection) -> None:
    server.answers = [REFUSED]
    with pytest.raises(SourceError, match=":8470 does not answer: refused"):
        connection.get("/jobs")
    assert len(server.asked) == 1


def test_a_server_that_stays_away_is_given_up(server: Server, connection: ServerConnection) -> None:
    server.answers = [document(), REFUSED, REFUSED, REFUSED]
    connection.get("/jobs")
    with pytest.raises(SourceError, match="does not answer"):
        connection.get("/jobs")
    assert server.answers == []


@pytest.mark.parametrize("status", [502, 503, 504, 429])
def test_a_server_that_is_busy_is_asked_again(
    server: Server, connection: ServerConnection, status: int
) -> None:
    server.answers = [problem(status), problem(status), document(a=1)]
    assert connection.get("/jobs") == {"a": 1}
    server.answers = [problem(status, detail="the store does not answer", hint="wait")] * 3
    with pytest.raises(PacelineError, match="the store does not answer") as caught:
        connection.get("/jobs")
    assert caught.value.hint == "wait"


CHANGES: list[Callable[[ServerConnection], Any]] = [
    lambda connection: connection.post("/jobs/a/stop"),
    lambda connection: connection.delete("/jobs/a"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_may_be_made_is_not_asked_for_again(
    server: Server, connection: ServerConnection, change: Callable[[ServerConnection], Any]
) -> None:
    server.answers = [document()]
    connection.get("/jobs")
    server.answers = [REFUSED, problem(429), document()]
    change(connection)
    for broken in (RESET, problem(503)):
        server.answers = [broken]
        with pytest.raises(PacelineError) as caught:
            change(connection)
        assert server.answers == []
    server.answers = [RESET]
    with pytest.raises(SourceError) as caught:
        change(connection)
    assert "look first whether it was done" in str(caught.value.hint)


@pytest.mark.parametrize("first", [problem(429), REFUSED])
def test_a_file_that_is_sent_again_is_sent_whole(server: Server, tmp_path: Path, first: Answer) -> None:
    server.answers = [document(), first, document()]
    source = tmp_path / "job.parquet"
    source.write_bytes(b"PAR1" * 100)
    sent: list[bytes] = []

    def read(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.read())
        return server(request)

    client = httpx2.Client(base_url=URL, transport=httpx2.MockTransport(read))
    connection = ServerConnection(client, namespace="ads", pauses_seconds=(0.0, 0.0))
    connection.get("/jobs")  # It has answered, so the address is right.
    connection.upload("/recordings", source)
    assert sent[1:] == [source.read_bytes()] * 2


def test_a_change_with_a_key_is_made_again(server: Server, connection: ServerConnection) -> None:
    server.answers = [document()]
    connection.get("/jobs")
    server.answers = [RESET, problem(503), document(name="a")]
    assert connection.post("/jobs", {"source": "x"}, key="one") == {"name": "a"}
    assert [each.headers["idempotency-key"] for each in server.asked[1:]] == ["one"] * 3


@pytest.mark.parametrize("kind", [errors.PacelineError, *errors.PacelineError.__subclasses__()])
def test_our_errors_come_back(
    server: Server, connection: ServerConnection, kind: type[PacelineError]
) -> None:
    server.answers = [
        problem(409, type=f"urn:paceline:error:{kind.__name__}", detail="\x1b[1mwhy", hint="do")
    ]
    with pytest.raises(kind) as caught:
        connection.get("/jobs")
    assert (type(caught.value), caught.value.message) == (kind, "\\x1b[1mwhy")
    assert caught.value.hint == "do"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInput), (401, PacelineError), (403, PacelineError), (404, SourceError),
        (405, SourceError), (409, PacelineError), (413, InvalidInput), (421, PacelineError),
        (422, InvalidInput), (500, PacelineError),
    ],
)  # fmt: skip
def test_other_refusals(
    server: Server, connection: ServerConnection, status: int, kind: type[PacelineError]
) -> None:
    server.answers = [problem(status, detail="no way")]
    with pytest.raises(kind) as caught:
        connection.get("/jobs")
    assert type(caught.value) is kind
    assert caught.value.message.startswith(URL)
    if status == 404:  # An operation that the server does not know is no job that is not there.
        assert "API version v1" in caught.value.message
        assert "paceline version" in str(caught.value.hint)
    if status == 401:
        assert "PACELINE_TOKEN" in str(caught.value.hint)


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(200, text="<html>a router</html>"),
        httpx2.Response(404, text="<html>not found</html>"),
        httpx2.Response(301, headers={"location": "http://elsewhere/"}),
        httpx2.Response(200, content=b"[" * 100_000),
        httpx2.Response(500, headers={"content-type": "application/problem+json"}, content=b"[" * 100_000),
        httpx2.Response(200, headers={"content-encoding": "gzip"}, content=iter([b"no gzip"])),
    ],
    ids=["page", "missing", "moved", "deep", "deep-problem", "damaged"],
)
def test_what_is_no_server_of_paceline(server: Server, connection: ServerConnection, answer: Answer) -> None:
    server.answers = [answer] * 3
    with pytest.raises(SourceError, match=":8470"):
        connection.get("/jobs")
    assert all(each.url.host == "127.0.0.1" for each in server.asked)


def test_answers_have_a_limit(
    server: Server, connection: ServerConnection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connections, "MOST_BYTES", 100)
    monkeypatch.setattr(connections, "MOST_FILE_BYTES", 100)
    for ask in (lambda: connection.get("/jobs"), lambda: connection.download("/jobs", tmp_path / "file")):
        server.answers = [document(a="x" * 100)]
        with pytest.raises(SourceError, match="more than 100 bytes"):
            ask()


def test_a_download_that_breaks_begins_anew(
    server: Server, connection: ServerConnection, tmp_path: Path
) -> None:
    def broken() -> Any:
        yield b"half"
        raise RESET

    server.answers = [httpx2.Response(200, content=broken()), httpx2.Response(200, content=b"whole")]
    connection.download("/jobs/a/recording", tmp_path / "file", since=None, thinned=True)
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert server.asked[-1].url.query == b"thinned=true&namespace=ads"


def test_clocks_are_compared(server: Server, connection: ServerConnection) -> None:
    for date, ahead in (("Wed, 01 Jan 2200 00:00:00 GMT", 5e9), ("nonsense", None), (None, None)):
        server.answers = [httpx2.Response(200, json={}, headers={} if date is None else {"date": date})]
        connection.get("/jobs")
        assert (connection.ahead_seconds > 4e9) if ahead else True


@pytest.mark.parametrize(
    "url",
    ["", "127.0.0.1:8470", "localhost:8470", "ftp://x", "http://", "http://a\x1b[31m", "file:///etc/passwd"],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InvalidInput, match="is no address of a server") as caught:
        connections.address(url)
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize("url", [f"{URL}/enter?token=secret", "https://ann:secret@host"])
def test_a_secret_in_an_address_is_refused_and_not_told(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        connections.address(url)
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"
    assert "PACELINE_TOKEN" in str(caught.value.hint)


@pytest.mark.parametrize("token", ["two words", "line\n", "ä", "\x00", "secret\r\nX-Evil: 1"])
def test_what_is_no_token_is_not_told(token: str) -> None:
    with pytest.raises(InvalidInput) as caught, connections.opened(URL, token=token):
        pass
    assert token not in f"{caught.value.message} {caught.value.hint}"


def test_an_address_below_a_path(server: Server) -> None:
    client = httpx2.Client(base_url="https://host/team/paceline/", transport=httpx2.MockTransport(server))
    server.answers = [document()]
    connection = ServerConnection(client)
    connection.get("/jobs")
    assert str(server.asked[0].url) == "https://host/team/paceline/api/v1/jobs"
    assert connection.url == "https://host/team/paceline"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1", True), ("http://[::1]:1", True), ("http://localhost", True),
        ("http://127.0.0.1.example.com", False), ("http://10.0.0.1", False),
        ("https://localhost.evil", False),
    ],
)  # fmt: skip
def test_what_is_this_machine(url: str, expected: bool) -> None:
    assert connections.is_loopback(connections.address(url)) is expected


def test_names_of_jobs_that_are_not_there_are_not_found(server: Server, connection: ServerConnection) -> None:
    server.answers = [problem(404, type="urn:paceline:error:NotFound", detail="there is no job 'a'")]
    with pytest.raises(NotFound):
        connection.get("/jobs/a")
    server.answers = [problem(409, type="urn:paceline:error:Conflict")]
    with pytest.raises(Conflict):
        connection.post("/jobs/a/stop")
    server.answers = [problem(409, type="urn:paceline:error:annotations")]
    with pytest.raises(PacelineError):
        connection.post("/jobs/a/stop")
