"""A call of TensorFlow's profiler: its bytes, what a server may send, and real servers."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given
from support import interpreters, ports

from paceline.agent.paceline_agent import profiler

NAME = "2026-01-02T03-04-05.678Z"
ANSWER = b"\x38\x01"  # empty_trace: true
BODY = struct.pack(">BL", 0, len(ANSWER)) + ANSWER


def opened() -> object:
    return profiler.Call("localhost:1", profiler.PATH, b"message")


def answered() -> bytes:
    """What a server sends: settings, headers, the message in two frames, trailers."""
    return b"".join(
        profiler.frame(*each)
        for each in (
            (profiler.SETTINGS, 0, 0, b"\x00\x04\x00\x01\x00\x00"),
            (profiler.SETTINGS, profiler.ACK, 0, b""),
            (profiler.HEADERS, profiler.END_HEADERS, 1, b"\x88"),
            (profiler.PING, 0, 0, b"12345678"),
            (profiler.DATA, 0, 1, BODY[:3]),
            (profiler.DATA, 0, 1, BODY[3:]),
            (profiler.HEADERS, profiler.END_HEADERS | profiler.END_STREAM, 1, b"\x88"),
        )
    )


@given(st.lists(st.integers(0, 200)))
def test_an_answer_may_come_in_any_pieces(cuts: list[int]) -> None:
    call, data, sent = opened(), answered(), b""
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    for start, end in itertools.pairwise(places):
        assert not call.is_over
        sent += call.receive(data[start:end])
    assert call.is_over
    assert call.answer == ANSWER
    acknowledged = profiler.frame(profiler.SETTINGS, profiler.ACK, 0, b"")
    assert sent == acknowledged + profiler.frame(profiler.PING, profiler.ACK, 0, b"12345678")


@given(st.binary(max_size=400))
def test_whatever_comes_is_an_answer_or_an_error(data: bytes) -> None:
    call = opened()
    with contextlib.suppress(profiler.ProfilerError):
        call.receive(data)
        assert call.answer is None or isinstance(call.answer, bytes)


@pytest.mark.parametrize(
    "ending",
    [
        profiler.frame(profiler.HEADERS, profiler.END_HEADERS | profiler.END_STREAM, 1, b"\x88"),
        profiler.frame(profiler.RST_STREAM, 0, 1, b"\0\0\0\1"),
        profiler.frame(profiler.GOAWAY, 0, 0, b"\0" * 8),
    ],
    ids=["refused", "reset", "going away"],
)
def test_a_call_may_end_without_an_answer(ending: bytes) -> None:
    call = opened()
    call.receive(ending)
    assert call.is_over
    assert call.answer is None


def test_what_is_not_http_2_is_refused_at_once() -> None:
    with pytest.raises(profiler.ProfilerError, match="does not speak HTTP/2"):
        opened().receive(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_long_message_goes_in_frames_that_every_server_takes() -> None:
    message = b"x" * (3 * profiler.LARGEST_FRAME)
    rest = profiler.Call("localhost:1", profiler.PATH, message).opening[len(profiler.PREFACE) :]
    body = b""
    while rest:
        high, low, kind, flags, _ = profiler.FRAME_HEADER.unpack_from(rest)
        payload, rest = rest[9 : 9 + (high << 8 | low)], rest[9 + (high << 8 | low) :]
        assert len(payload) <= profiler.LARGEST_FRAME
        body += payload if kind == profiler.DATA else b""
        assert bool(kind == profiler.DATA and flags & profiler.END_STREAM) == (not rest)
    assert body == struct.pack(">BL", 0, len(message)) + message


@contextlib.contextmanager
def listening(answer: bytes) -> Iterator[int]:
    """A server that answers a client with some bytes."""
    with contextlib.closing(socket.create_server(("localhost", 0))) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with contextlib.closing(connection):
                    connection.recv(1 << 16)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
    thread.join()


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9\r\n", answered()])
def test_what_is_no_profiler_leaves_the_reason(tmp_path: Path, answer: bytes) -> None:
    with listening(answer) as port, pytest.raises(profiler.ProfilerError) as error:
        profiler.keep(port, str(tmp_path), NAME, "ps-0.1", 100)
    (path,) = (tmp_path / NAME).iterdir()
    assert path.name == "ps-0.1.profile"
    assert json.loads(path.read_text()) == {"error": str(error.value)}


def test_where_nothing_can_be_written_that_is_the_reason(tmp_path: Path) -> None:
    (tmp_path / "traces").touch()
    with pytest.raises(profiler.ProfilerError, match="its profile cannot be kept"):
        profiler.keep(1, str(tmp_path / "traces"), NAME, "ps-0.1", 100)


def test_a_port_where_nothing_listens(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
        with pytest.raises(profiler.ProfilerError, match=f"port {port}"):
            profiler.keep(port, str(tmp_path), NAME, "ps-0.1", 100)


def test_what_a_killed_agent_has_begun_goes_with_the_next_profile(tmp_path: Path) -> None:
    begun = tmp_path / "2026-01-02T03-03-00.000Z" / ".ps-0.1"
    other = tmp_path / "2026-01-02T03-03-30.000Z" / ".ps-1.1"
    for each in (begun, other):
        each.mkdir(parents=True)
        (each / "kept").touch()
    with listening(b"") as port, pytest.raises(profiler.ProfilerError):
        profiler.keep(port, str(tmp_path), NAME, "ps-0.2", 100)
    assert not begun.parent.exists()
    assert other.exists()


def test_old_profiles_of_a_replica_go(tmp_path: Path) -> None:
    for second in range(profiler.KEPT + 2):
        folder = tmp_path / f"2026-01-02T03-04-{second:02}.000Z"
        folder.mkdir()
        (folder / f"ps-0.{1 + second // 9}.profile").touch()
        if second:
            (folder / "ps-1.1.profile").touch()
    profiler.prune(str(tmp_path), "ps-0")
    assert len(list(tmp_path.glob("*/ps-0.*.profile"))) == profiler.KEPT
    assert len(list(tmp_path.glob("*/ps-1.1.profile"))) == profiler.KEPT + 1
    assert sorted(each.name for each in tmp_path.iterdir())[0].endswith("01.000Z")


SERVER = """
import socket, sys, time
import tensorflow as tf
from tensorflow.python.training import server_lib
port = PORT
server = server_lib.Server({"ps": ["localhost:%d" % port]}, job_name="ps", task_index=0)
print(port, flush=True)
time.sleep(600)
"""


def server() -> str:
    """Return a script that starts a server and prints its port."""
    return SERVER.replace("PORT", str(ports.free_port()))


@pytest.mark.slow
def test_a_real_server_is_profiled(tmp_path: Path) -> None:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    from paceline.sources import profiles

    with interpreters.printing(server()) as line:
        profiler.keep(int(line), str(tmp_path), NAME, "ps-0.1", 200)
    (path,) = tmp_path.glob("*/*")
    assert path.name == "ps-0.1.profile"
    data = gzip.decompress(path.read_bytes())
    theirs, ours = xplane_pb2.XSpace.FromString(data), profiles.space_class().FromString(data)
    assert [each.name for each in ours.planes] == [each.name for each in theirs.planes]
    assert "/host:CPU" in [each.name for each in ours.planes]


@pytest.mark.slow
def test_a_server_of_before_the_profiler_says_so(tmp_path: Path) -> None:
    python = interpreters.with_tensorflow("1.15.5")
    if python is None:
        pytest.skip("tests/instrumentation/fetch-tensorflows has it")
    with (
        interpreters.printing(server(), python) as line,
        pytest.raises(profiler.ProfilerError, match="has no profiler"),
    ):
        profiler.keep(int(line), str(tmp_path), NAME, "ps-0.1", 60_000)
    (path,) = tmp_path.glob("*/*")
    assert "has no profiler before 2.4" in path.read_text()
