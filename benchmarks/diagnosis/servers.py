"""A parameter server that is there at once: it becomes TensorFlow's server without loading its Python before.

`paceline.training.servers` does the same after the user's script has loaded all of TensorFlow. That takes 5 s
of a core for each parameter server of each of hundreds of runs, of which nothing is in a recording.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn


def serve(environment: Mapping[str, str]) -> NoReturn:
    """Serve for ever, in place of this process's program."""
    from paceline.instrumentation.paceline_instrumentation import lean_server

    found = importlib.util.find_spec("tensorflow")
    if found is None or found.origin is None:
        sys.exit("error: TensorFlow is not installed")
    config = json.loads(environment["TF_CONFIG"])
    spares = [each for each in environment.get("PACELINE_SPARE_WORKERS", "").split(",") if each]
    cluster = {role: list(hosts) for role, hosts in config["cluster"].items() if role != "evaluator"}
    cluster["worker"] = [*cluster.get("worker", []), *spares]
    definition = os.memfd_create("server", 0)
    os.write(definition, server_definition(cluster, config["task"]["type"], config["task"]["index"]))
    os.lseek(definition, 0, os.SEEK_SET)
    library = str(Path(found.origin).with_name("libtensorflow_cc.so.2"))
    command = lean_server.command(library, definition)
    os.execv(command[0], command)


def server_definition(cluster: Mapping[str, list[str]], role: str, index: int) -> bytes:
    """Return a serialised ``tensorflow.ServerDef`` (tensorflow/core/protobuf/tensorflow_server.proto)."""
    jobs = b"".join(
        _field(1, _field(1, name.encode()) + b"".join(_task(*each) for each in enumerate(addresses)))
        for name, addresses in cluster.items()
    )
    number = b"\x18" + _varint(index) if index else b""
    return _field(1, jobs) + _field(2, role.encode()) + number + _field(5, b"grpc")


def _task(index: int, address: str) -> bytes:
    return _field(2, b"\x08" + _varint(index) + _field(2, address.encode()))


def _field(number: int, content: bytes) -> bytes:
    """Return a field of bytes as protobuf writes it."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
