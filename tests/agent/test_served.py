"""What a running agent answers by HTTP: its metrics, its spool, traces; and to whom it does not."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support import ports

from paceline.agent.paceline_agent import answers, configs, metrics, requests, servers, spools
from paceline.agent.paceline_agent.pages import Pages
from paceline.model.roles import ReplicaId
from paceline.sources import agents

BUSY = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; "
LINGER_SECONDS = 600.0
SLEEPER = BUSY + "echo $$ > ready.tmp; mv ready.tmp ready; while :; do sleep 0.05; done"
TRACE = "2027-01-15T08-00-00.000Z"


@pytest.fixture
def port() -> int:
    return ports.free_port()


def get(port: int, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> bytes:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, headers=headers or {})
    with urllib.request.urlopen(asked, timeout=240) as answer:
        return bytes(answer.read())


def page(port: int, query: str) -> tuple[dict[str, Any], bytes]:
    head, _, data = get(port, f"/spool?{query}").partition(b"\n")
    return json.loads(head), data


def values(port: int) -> dict[tuple[str, str], float]:
    """The metrics by name and kind, each of which has the replica's own labels."""
    found = {}
    for family in text_string_to_metric_families(get(port, "/metrics").decode()):
        assert family.documentation
        for sample in family.samples:
            own = {"job": "clicks", "role": "worker", "index": "1", "attempt": "1"}
            assert sample.labels.items() >= own.items()
            assert (family.type == "counter") == sample.name.endswith("_total")
            found[sample.name, sample.labels.get("kind", "")] = sample.value
    return found


def until_answered(port: int, path: str = "/metrics") -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            get(port, path)
            return
        time.sleep(0.02)
    raise AssertionError("the agent does not answer")


@pytest.fixture
def running(replica: Callable[..., Any], port: int) -> Any:
    """A replica whose command waits, and that answers; it would wait for a reader for longer than a test."""
    one = replica("sh", "-c", SLEEPER, metrics_port=port, linger_seconds=LINGER_SECONDS)
    one.config["placeholders"]["run_dir"] = str(one.folder / "run")
    one.start()
    one.number_in("ready")
    until_answered(port)
    return one


def end(one: Any) -> int:
    """End the command; return the agent's exit code."""
    os.kill(one.number_in("ready"), signal.SIGKILL)
    code, _, errors = one.finish()
    assert errors == ""
    return int(code)


def test_metrics_say_what_the_spool_says(running: Any, port: int) -> None:
    report = {"type": "step", "at": 1.0, "step": 40, "steps": 10, "examples": 640, "loss": 0.5}
    hostile = {"type": "step", "at": 1.0, "step": "x", "steps": 10**400, "examples": True, "loss": None}
    for each in (report, {**report, "loss": 0.25, "step": 50}, hostile, {"type": "evaluation", "auc": 0.75}):
        with running.reports.open("a") as file:
            file.write(json.dumps(each) + "\n")
    running.wait_until(lambda: running.lines("evaluation"))
    running.wait_until(lambda: len(running.lines("sample")) > 4)
    found = values(port)
    assert found["paceline_training_steps_total", ""] == 20
    assert found["paceline_training_examples_total", ""] == 1280
    assert found["paceline_training_global_step", ""] == 50
    assert found["paceline_training_loss", ""] == 0.25
    assert found["paceline_training_auc", ""] == 0.75
    assert found["paceline_agent_dropped_lines_total", ""] == 0
    used = sum(line["cpu_cores"] * line["interval_seconds"] for line in running.lines("sample"))
    assert 0.02 < found["paceline_replica_cpu_seconds_total", ""] <= used + 1e-6
    assert found["paceline_replica_memory_bytes", ""] > 0
    assert ("paceline_replica_context_switches_total", "voluntary") in found
    # Its cgroup is not its own: no limit was measured, and none is told.
    assert ("paceline_replica_memory_limit_bytes", "") not in found


def test_the_spool_is_given_from_any_place(running: Any, port: int) -> None:
    running.wait_until(lambda: len(running.lines("sample")) > 3)
    head, data = page(port, "offset=0")
    whole = running.spool.read_bytes()
    assert (head["type"], head["offset"]) == ("page", 0)
    assert abs(head["at"] - time.time()) < 60
    assert whole.startswith(data)
    assert head["size"] == len(data)
    first = data.index(b"\n") + 1
    assert page(port, f"offset={first}")[1].startswith(data[first : len(data)])
    assert page(port, "offset=999999999")[1] == b""
    head, data = page(port, "last=1")
    assert head["offset"] == head["size"] - len(data)
    head, data = page(port, "last=700")
    assert 0 < len(data) <= 1400
    assert json.loads(data.splitlines()[0])["type"] == "sample"
    assert whole[: head["offset"]].endswith(b"\n")
    assert page(port, "last=999999999")[0]["offset"] == 0
    assert page(port, "offset=-5")[0]["offset"] == 0


def test_a_trace_is_asked_for_and_given(running: Any, port: int) -> None:
    assert json.loads(get(port, "/traces")) == []
    get(port, f"/traces/{TRACE}", "POST")
    folder = running.folder / "run" / "traces"
    assert (folder / "request").read_text() == TRACE + "\n"
    (folder / TRACE).mkdir()
    (folder / TRACE / "worker-1.1.parquet").write_bytes(b"PAR1")
    (folder / TRACE / ".worker-1.1.parquet.tmp").write_bytes(b"half")
    assert json.loads(get(port, f"/traces/{TRACE}")) == ["worker-1.1.parquet"]
    assert get(port, f"/traces/{TRACE}/worker-1.1.parquet") == b"PAR1"
    (running.folder / "run" / "variables.json").write_text("{}")
    assert get(port, "/variables.json") == b"{}"


@pytest.mark.parametrize(("seconds_ago", "stays"), [(0, True), (3600, False)])
def test_a_request_is_taken_back_that_an_earlier_agent_left(
    replica: Callable[..., Any], tmp_path: Path, seconds_ago: float, stays: bool
) -> None:
    told = {**replica("true").config, "placeholders": {"run_dir": str(tmp_path)}}
    config = configs.parse_config(json.dumps(told))
    request = tmp_path / "traces" / "request"
    request.parent.mkdir()
    request.write_text(TRACE + "\n")
    at = time.time() - seconds_ago
    os.utime(request, (at, at))
    Pages(config, metrics.Metrics(config)).tidy(time.monotonic())
    assert request.exists() == stays


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/traces/../../config.json", 404),
        ("GET", f"/traces/{TRACE}/../../../exit", 404),
        ("GET", f"/traces/{TRACE}/worker-1.1.parquet", 404),
        ("GET", "//etc/passwd", 404),
        ("POST", "/traces/x", 405),
        ("POST", "/metrics", 405),
        ("DELETE", f"/traces/{TRACE}", 405),
    ],
)
def test_nothing_else_is_given(running: Any, port: int, method: str, path: str, status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=240)
    with contextlib.closing(connection):
        connection.request(method, path)
        assert connection.getresponse().status == status


def test_clients_that_are_slow_or_speak_nonsense_disturb_no_other_client(running: Any, port: int) -> None:
    for nonsense in (b"\0\xff\r\n\r\n", b"GET\r\n\r\n", b"A" * 20_000, b"GET /metrics HTTP/9.9\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", port), timeout=240) as one, contextlib.suppress(OSError):
            one.sendall(nonsense)
            one.shutdown(socket.SHUT_WR)
            assert one.recv(100)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 200")
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    flood = threading.Thread(target=lambda: [_ignored(port) for _ in range(40)])
    flood.start()
    try:
        assert values(port)
        before = len(running.lines("sample"))
        running.wait_until(lambda: len(running.lines("sample")) > before + 3)
    finally:
        flood.join()
        for one in slow:
            one.close()
    assert end(running) == 128 + signal.SIGKILL


def _ignored(port: int) -> None:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=240) as one:
        one.sendall(b"GET /spool HTTP/1.1\r\n\r\n")


def test_a_port_that_is_taken_is_a_note(replica: Callable[..., Any]) -> None:
    with socket.create_server(("", 0)) as taken:
        one = replica("true", metrics_port=taken.getsockname()[1])
        assert one.run()[0] == 0
    (started,) = one.lines("started")
    assert any("nothing answers on port" in note for note in started["notes"])


def test_the_end_waits_for_a_reader_that_promised_to_come_back(running: Any, port: int) -> None:
    page(port, f"offset=0&again={LINGER_SECONDS:.0f}")
    ended: list[int] = []
    waiting = threading.Thread(target=lambda: ended.append(end(running)))
    waiting.start()
    running.wait_until(lambda: running.lines("exited"))
    time.sleep(0.3)
    assert not ended
    assert running.reason()["kind"] == "signal"
    head, data = page(port, f"offset=0&again={LINGER_SECONDS:.0f}")
    assert json.loads(data.splitlines()[-1])["type"] == "exited"
    page(port, f"offset={head['size']}&again={LINGER_SECONDS:.0f}")
    waiting.join()
    assert ended


@pytest.fixture
def pages(replica: Callable[..., Any]) -> Pages:
    """What is answered of a spool of three bytes."""
    one = replica("true")
    one.spool.write_text("{}\n")
    config = configs.parse_config(json.dumps(one.config))
    return Pages(config, metrics.Metrics(config))


@pytest.mark.parametrize("last", [100, 400, 10**6])
def test_the_end_of_a_spool_comes_with_what_is_seen_of_the_script(
    replica: Callable[..., Any], last: int
) -> None:
    one = replica("true")
    spool = spools.Spool(str(one.spool))
    messages = ["TensorFlow 2.21.0 on Python 3.11.7", "its steps, made by sessions"]
    for message in messages:
        spool.append({"type": "instrumentation", "at": 5.0, "message": message})
    spool.append({"type": "fact", "at": 5.0, "name": "device_filters", "value": False})
    messages.append("device_filters: no")
    for step in range(20):
        spool.append({"type": "step", "at": 6.0 + step, "step": step})
    config = configs.parse_config(json.dumps(one.config))
    pages = Pages(config, metrics.Metrics(config), spool.seen)
    status, _, body = pages.answer(requests.Request("GET", "/spool", {"last": str(last)}))
    assert status == 200
    found = agents.reading(agents.page(body), replica=ReplicaId.parse("worker-1"), attempt=1)
    assert [event.message for event in found.events] == messages
    assert (len(found.steps) == 20) == (last == 10**6)
    assert found.steps[-1].step == 19
    assert found.broken == 0
    assert found.offset == one.spool.stat().st_size, "it is read on from its end"


def spool_request(offset: int) -> requests.Request:
    return requests.Request("GET", "/spool", {"offset": str(offset), "again": "15"})


def answer(pages: Pages, offset: int) -> None:
    _, _, stretch = pages.answer(spool_request(offset))
    assert isinstance(stretch, answers.Stretch)
    stretch.close()


def test_a_promise_counts_before_its_answer_has_arrived(pages: Pages) -> None:
    assert not pages.is_awaited(time.monotonic())
    answer(pages, 0)
    assert pages.is_awaited(time.monotonic())


def test_the_last_answer_arrives_before_the_reader_has_all(pages: Pages) -> None:
    answer(pages, 3)
    assert pages.is_awaited(time.monotonic())
    pages.heard(spool_request(3), came=1.0)
    assert not pages.is_awaited(time.monotonic())


def test_what_a_reader_asked_last_counts_though_it_is_noted_first(pages: Pages) -> None:
    """Two threads answered; the first was held up between its answer and the note of it."""
    answer(pages, 0)
    answer(pages, 3)
    pages.heard(spool_request(3), came=2.0)
    pages.heard(spool_request(0), came=1.0)
    assert not pages.is_awaited(time.monotonic())


@pytest.mark.parametrize("query", ["offset=0", "offset=0&again=0", "offset=0&again=x"])
def test_the_end_waits_for_no_other_agent(running: Any, port: int, query: str) -> None:
    page(port, query)
    end(running)


def test_the_end_waits_no_longer_than_promised(running: Any, port: int) -> None:
    began = time.monotonic()
    page(port, "offset=0&again=2")
    end(running)
    assert time.monotonic() - began > 2


def test_the_end_is_not_put_off_for_ever(replica: Callable[..., Any], port: int) -> None:
    """A reader that promises again and again to come back, and never has all, does not keep the pod."""
    one = replica("sh", "-c", SLEEPER, metrics_port=port, linger_seconds=3.0)
    one.start()
    one.number_in("ready")
    until_answered(port)
    stopped, times = threading.Event(), itertools.count()

    def promise() -> None:
        while not stopped.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):  # it ends meanwhile
                page(port, "offset=0&again=600")
                next(times)

    reader = threading.Thread(target=promise)
    reader.start()
    try:
        assert end(one) == 128 + signal.SIGKILL
    finally:
        stopped.set()
        reader.join()
    assert next(times) > 1


@pytest.fixture
def guarded(replica: Callable[..., Any], port: int) -> Any:
    """A replica whose agent asks for a token."""
    one = replica("sh", "-c", SLEEPER, metrics_port=port, linger_seconds=LINGER_SECONDS)
    one.config["placeholders"]["run_dir"] = str(one.folder / "run")
    (one.folder / "token").write_text("secret-7\n")
    one.config["token_file"] = str(one.folder / "token")
    one.start()
    one.number_in("ready")
    until_answered(port)
    return one


OTHERS = [
    ("GET", "/spool?offset=0&again=600"), ("GET", "/traces"), ("POST", f"/traces/{TRACE}"),
    ("GET", "/variables.json"), ("GET", "/"),
]  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer secret-8"}, {"Authorization": "Bearer secret-77"}, {"Paceline-Token": ""}],
    ids=["none", "wrong", "longer", "empty"],
)
def test_without_the_token_there_are_metrics_and_no_more(
    guarded: Any, port: int, headers: dict[str, str]
) -> None:
    assert b"paceline_agent_dropped_lines_total" in get(port, "/metrics", headers=headers)
    for method, path in OTHERS:
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(port, path, method, headers)
        with refused.value:
            assert refused.value.code == 401
            assert refused.value.headers["WWW-Authenticate"] == "Bearer"
    assert not (guarded.folder / "run" / "traces").exists()
    end(guarded)  # it does not wait for whom it did not answer


@pytest.mark.parametrize("headers", [{"authorization": "bearer secret-7"}, {"Paceline-Token": "secret-7"}])
def test_with_the_token_all_is_answered(guarded: Any, port: int, headers: dict[str, str]) -> None:
    """The API server takes ``Authorization`` for itself, so what it passes on has a header of its own."""
    assert get(port, "/spool?offset=0", headers=headers)
    assert json.loads(get(port, "/traces", headers=headers)) == []
    assert get(port, f"/traces/{TRACE}", "POST", headers) == b"{}"


def test_a_token_that_cannot_be_read_lets_no_caller_in(replica: Callable[..., Any]) -> None:
    told = {**replica("true").config, "metrics_port": 1, "token_file": "/nothing/here"}
    config = configs.parse_config(json.dumps(told))
    pages = Pages(config, metrics.Metrics(config))
    assert pages.answer(requests.Request("GET", "/spool", {}))[0] == 401
    assert pages.answer(requests.Request("GET", "/spool", {}, ""))[0] == 401
    assert pages.answer(requests.Request("GET", "/metrics", {}))[0] == 200


def test_a_file_is_given_piece_by_piece(running: Any, port: int) -> None:
    """Four readers of a large file do not take its size from the memory of the replica."""
    folder = running.folder / "run" / "traces" / TRACE
    folder.mkdir(parents=True)
    with (folder / "worker-1.1.parquet").open("wb") as file:
        file.truncate(48 << 20)
    before = peak_kib(running.process.pid)
    sizes: list[int] = []
    path = f"/traces/{TRACE}/worker-1.1.parquet"
    readers = [threading.Thread(target=lambda: sizes.append(len(get(port, path)))) for _ in range(4)]
    for each in readers:
        each.start()
    for each in readers:
        each.join()
    assert sizes == [48 << 20] * 4
    assert peak_kib(running.process.pid) - before < 16 << 10
    end(running)


def peak_kib(pid: int) -> int:
    """Return the most that a process has had in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_a_pipe_in_the_place_of_a_file_keeps_no_thread(running: Any, port: int) -> None:
    folder = running.folder / "run" / "traces" / TRACE
    folder.mkdir(parents=True)
    os.mkfifo(folder / "worker-1.1.parquet")
    for _ in range(servers.SERVER_THREADS + 1):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(port, f"/traces/{TRACE}/worker-1.1.parquet")
    assert get(port, "/metrics")
