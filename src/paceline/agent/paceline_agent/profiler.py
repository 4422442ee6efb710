"""Asks TensorFlow's profiler, which every server of a cluster has from 2.4 on, what its process does.

This is one gRPC call: ``tensorflow.ProfilerService/Profile`` (``profiler_service.proto``), over HTTP/2 (RFC
9113) with headers in HPACK (RFC 7541). The agent has no library for these protocols, and one call needs
little of either. The server writes its profile into a folder of its own machine, so the answer is small.
"""

import contextlib
import glob
import gzip
import json
import os
import re
import shutil
import socket
import struct
import time
from typing import Iterator, Optional, Tuple

PATH = "/tensorflow.ProfilerService/Profile"
#: ``host_tracer_level``: every operation, with the shapes of its inputs.
EVERY_OPERATION = 3
#: ``version`` of ``ProfileOptions``: without a version the server uses its default options.
OPTIONS_VERSION = 1
#: How long a server may take to collect its profile, beyond the profiled time.
COLLECTING_SECONDS = 20.0
#: A server that answers with more than the few bytes expected is no TensorFlow server.
MOST_BYTES = 1 << 20
#: How many profiles of a replica are kept.
KEPT = 60
SUFFIX = ".profile"

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEADER = struct.Struct(">HBBBL")  # 24 bits of length; type; flags; stream
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, ACK, END_HEADERS = 1, 1, 4
LARGEST_FRAME = 1 << 14
STREAM = 1
#: A gRPC status in headers that are in no table and uncompressed, as gRPC's C++ library sends them.
STATUS = re.compile(rb"grpc-status.(\d{1,2})", re.DOTALL)
UNIMPLEMENTED = 12


class ProfilerError(Exception):
    """The profiler cannot be reached or does not answer; the message says why."""


# --- protobuf -----------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    """Return a number in protobuf's encoding."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def number_field(field: int, value: int) -> bytes:
    """Return a protobuf field that holds a number."""
    return varint(field << 3) + varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    """Return a protobuf field that holds text or a message."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def profile_request(folder: str, session: str, host: str, milliseconds: int) -> bytes:
    """Return a ``ProfileRequest``: profile for this long and write to ``FOLDER/SESSION/HOST.xplane.pb``."""
    options = (
        number_field(2, EVERY_OPERATION)  # host_tracer_level
        + number_field(5, OPTIONS_VERSION)  # version
        + number_field(9, milliseconds)  # duration_ms
    )
    return (
        number_field(1, milliseconds)  # duration_ms: where servers of 2.4 look for it
        + bytes_field(4, options)  # opts
        + bytes_field(5, os.fsencode(folder))  # repository_root
        + bytes_field(6, session.encode("ascii"))  # session_id
        + bytes_field(7, host.encode("ascii"))  # host_name
    )


# --- gRPC over HTTP/2, without a socket ---------------------------------------------------------------


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame (RFC 9113, 4.1)."""
    high, low = divmod(len(payload), 1 << 8)
    return FRAME_HEADER.pack(high, low, kind, flags, stream) + payload


def header(name: bytes, value: bytes) -> bytes:
    """Return a header that enters no table (RFC 7541, 6.2.2); name and value: below 127 bytes each."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


class Call:
    """A call with one request and one response: takes received bytes and returns the bytes to send.

    Attributes:
        is_over: whether nothing more will come.
        status: the gRPC status, if it could be read; 0: success.
    """

    def __init__(self, authority: str, path: str, message: bytes) -> None:
        self._received = b""
        self._body = b""
        self.is_over = False
        self.status: Optional[int] = None
        headers = b"".join(
            header(name, value.encode("ascii"))
            for name, value in (
                (b":method", "POST"),
                (b":scheme", "http"),
                (b":path", path),
                (b":authority", authority),
                (b"te", "trailers"),
                (b"content-type", "application/grpc"),
            )
        )
        body = struct.pack(">BL", 0, len(message)) + message  # uncompressed; then the length
        pieces = [body[at : at + LARGEST_FRAME] for at in range(0, len(body), LARGEST_FRAME)]
        self.opening = PREFACE + frame(SETTINGS, 0, 0, b"")
        self.opening += frame(HEADERS, END_HEADERS, STREAM, headers)
        self.opening += b"".join(frame(DATA, 0, STREAM, piece) for piece in pieces[:-1])
        self.opening += frame(DATA, END_STREAM, STREAM, pieces[-1])

    @property
    def answer(self) -> Optional[bytes]:
        """The complete response message; None: there is none yet."""
        if len(self._body) < 5:
            return None
        length = struct.unpack(">L", self._body[1:5])[0]
        return self._body[5 : 5 + length] if len(self._body) >= 5 + length else None

    def receive(self, data: bytes) -> bytes:
        """Take received bytes; return the bytes to send.

        Raises:
            ProfilerError: no gRPC server sends such bytes.
        """
        self._received += data
        to_send = b""
        for kind, flags, stream, payload in self._frames():
            if kind in (SETTINGS, PING) and not flags & ACK:
                to_send += frame(kind, ACK, 0, payload if kind == PING else b"")
            elif kind == DATA and stream == STREAM:
                self._body += payload  # without padding: gRPC servers send none
            elif kind == HEADERS and stream == STREAM:
                found = STATUS.search(payload)
                self.status = int(found.group(1)) if found else self.status
            elif kind == GOAWAY or (kind == RST_STREAM and stream == STREAM):
                self.is_over = True
            if kind in (DATA, HEADERS) and stream == STREAM and flags & END_STREAM:
                self.is_over = True
        return to_send

    def _frames(self) -> Iterator[Tuple[int, int, int, bytes]]:
        size = FRAME_HEADER.size
        while len(self._received) >= size:
            high, low, kind, flags, stream = FRAME_HEADER.unpack_from(self._received)
            end = size + (high << 8 | low)
            if end > size + LARGEST_FRAME or len(self._body) > MOST_BYTES:
                raise ProfilerError("it does not speak HTTP/2")
            if len(self._received) < end:
                return
            payload, self._received = self._received[size:end], self._received[end:]
            yield kind, flags, stream & 0x7FFFFFFF, payload


# --- the socket ---------------------------------------------------------------------------------------


def profile(port: int, folder: str, session: str, host: str, milliseconds: int) -> str:
    """Have the server at a port of this machine profile its process; return the file that it has written.

    Raises:
        ProfilerError: the server has no profiler, is busy with another profile, or does not answer.
    """
    request = profile_request(folder, session, host, milliseconds)
    call = Call(f"localhost:{port}", PATH, request)
    until = time.monotonic() + milliseconds / 1000 + COLLECTING_SECONDS
    try:
        with contextlib.closing(socket.create_connection(("localhost", port), COLLECTING_SECONDS)) as sock:
            sock.sendall(call.opening)
            while not call.is_over:
                sock.settimeout(max(0.01, until - time.monotonic()))
                data = sock.recv(1 << 16)
                if not data:
                    break
                sock.sendall(call.receive(data))
    except OSError as error:
        raise ProfilerError(f"port {port}: {error}") from error
    path = os.path.join(folder, session, host + ".xplane.pb")
    if call.status == UNIMPLEMENTED:
        raise ProfilerError(f"port {port}: TensorFlow has no profiler before 2.4")
    if call.answer is None or not os.path.exists(path):
        raise ProfilerError(f"port {port}: the profiler is busy, or failed")
    return path


# --- files --------------------------------------------------------------------------------------------


def keep(port: int, traces: str, name: str, replica: str, milliseconds: int) -> None:
    """Profile a server and keep the profile as ``TRACES/NAME/REPLICA.profile``, compressed with gzip.

    If there is no profile, a JSON object with the ``error`` is kept, so that readers do not wait for one.

    Args:
        port: the server's port on this machine.
        traces: the folder of all traces of the run.
        name: the name of the trace.
        replica: the replica and its attempt, such as ``ps-0.1``.
        milliseconds: how long to profile.

    Raises:
        ProfilerError: there is no profile; the message says why.
    """
    folder, session = os.path.join(traces, name), "." + replica
    try:
        os.makedirs(os.path.join(folder, session), exist_ok=True)
        temporary = os.path.join(folder, session, "kept")
        try:
            found = profile(port, folder, session, replica, milliseconds)
            with open(found, "rb") as source, gzip.open(temporary, "wb", 5) as target:
                shutil.copyfileobj(source, target)
        except ProfilerError as error:
            with open(temporary, "w") as file:
                json.dump({"error": str(error)}, file)
            raise
        finally:
            if os.path.exists(temporary):
                os.replace(temporary, os.path.join(folder, replica + SUFFIX))
            prune(traces, replica.rpartition(".")[0])
            _remove_begun(traces, replica)
    except OSError as error:
        raise ProfilerError(f"its profile cannot be kept: {error}") from error
    finally:
        shutil.rmtree(os.path.join(folder, session), ignore_errors=True)


def _remove_begun(traces: str, replica: str) -> None:
    """Remove what agents of a replica's other attempts were killed in writing."""
    begun = glob.glob(
        os.path.join(glob.escape(traces), "*", ".%s.*" % glob.escape(replica.rpartition(".")[0]))
    )
    for path in begun:
        if os.path.basename(path) != "." + replica:
            shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(path))


def prune(traces: str, replica: str) -> None:
    """Remove the oldest profiles of a replica, such as ``ps-0``, across all its attempts."""
    paths = sorted(glob.glob(os.path.join(glob.escape(traces), "*", "%s.*%s" % (replica, SUFFIX))))
    for path in paths[: max(0, len(paths) - KEPT)]:
        os.unlink(path)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(path))
