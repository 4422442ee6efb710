"""Reads profiles of TensorFlow servers that agents requested: those of one moment give the steps of trainers.

A file is the output of the profiler of one process, an ``XSpace``, compressed with gzip. This module declares
only the used fields of the message, with TensorFlow's field numbers (``xplane.proto``). If there was nothing
to profile, the file is a JSON object with the ``error``. Needs protobuf.
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import message

from paceline.errors import first_line
from paceline.model.traces import traced_steps
from paceline.model.traces.traced_steps import Trace
from paceline.model.variables.variables import Variable
from paceline.sources import protobufs
from paceline.sources.refusals import TraceRefused
from paceline.tracing import layer_names, profiles, step_stats

#: The largest unpacked profile, so that a wrong file does not fill memory: a second of a busy server has some
#: megabytes.
MAX_BYTES = 256 * 1024 * 1024
#: The number of steps that are read of each trainer, from the middle of a profile. Steps overlap, so at
#: either end a message or two of a neighbouring step may be counted: over many steps the error is small.
STEPS = 20
_MOST_REASON = 10_000
_NAME = re.compile(r"(?P<role>[a-z]+)-(?P<index>\d{1,9})\.(?P<attempt>\d{1,9})\.profile", re.ASCII)
_MESSAGES: protobufs.Messages = {
    "XStatMetadata": {"name": (2, "string")},
    "XEventMetadata": {"name": (2, "string"), "display_name": (4, "string")},
    "XStat": {
        "metadata_id": (1, "int64"),
        "double_value": (2, "one double"),
        "uint64_value": (3, "one uint64"),
        "int64_value": (4, "one int64"),
        "str_value": (5, "one string"),
        "bytes_value": (6, "one bytes"),
        "ref_value": (7, "one uint64"),
    },
    "XEvent": {
        "metadata_id": (1, "int64"),
        "offset_ps": (2, "int64"),
        "duration_ps": (3, "int64"),
        "stats": (4, "list XStat"),
    },
    "XLine": {"timestamp_ns": (3, "int64"), "events": (4, "list XEvent")},
    "XPlane": {
        "name": (2, "string"),
        "lines": (3, "list XLine"),
        "event_metadata": (4, "map XEventMetadata"),
        "stat_metadata": (5, "map XStatMetadata"),
        "stats": (6, "list XStat"),
    },
    "XSpace": {"planes": (1, "list XPlane")},
}


@functools.cache
def space_class() -> Any:
    """Return the class of ``XSpace`` messages."""
    return protobufs.message_class(_MESSAGES, "XSpace")


@dataclasses.dataclass(frozen=True, slots=True)
class ProfileReading:
    """The contents of the profiles of one moment; fields as in ``traces.TraceReading``."""

    traces: list[Trace] = dataclasses.field(default_factory=list)
    broken: list[str] = dataclasses.field(default_factory=list)
    refused: dict[str, str] = dataclasses.field(default_factory=dict)


def read(paths: Iterable[Path], variables: Sequence[Variable] = ()) -> ProfileReading:
    """Return the steps of each trainer that made steps while the profiles of one moment were taken.

    Args:
        paths: files named after a replica and its attempt, such as ``worker-0.1.profile``, in a folder named
            after the moment.
        variables: the variables of the model; other variables are named after the layer that reads them.
    """
    reading, spaces, attempts, at = ProfileReading(), {}, {}, 0.0
    for path in paths:
        name = _NAME.fullmatch(path.name)
        if name is None:
            reading.broken.append(f"{path} is no profile of a replica, by its name")
            continue
        replica, task = f"{name['role']}-{name['index']}", f"/job:{name['role']}/task:{name['index']}"
        try:
            spaces[task], attempts[task] = _read(path), int(name["attempt"])
            at = traced_steps.at_name(path.parent.name) if traced_steps.is_name(path.parent.name) else at
        except TraceRefused as reason:
            reading.refused[replica] = str(reason)
        except ValueError as error:
            reading.broken.append(str(error))
    try:
        for task, steps in profiles.read(spaces, STEPS, at, variables).items():
            reading.traces.append(_trace(steps, task, attempts[task], variables))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
        reading.broken.append(f"the profiles make no sense together: {first_line(error)}")
    return reading


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            if file.peek(1)[:1] == b"{":
                raise TraceRefused(str(json.loads(file.read(_MOST_REASON))["error"]))
            with gzip.GzipFile(fileobj=file) as unpacked:
                data = unpacked.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES} bytes")
        return space_class().FromString(data)
    except TraceRefused:
        raise
    except (
        OSError, EOFError, zlib.error, ValueError, KeyError, TypeError, RecursionError, message.DecodeError,
    ) as error:  # fmt: skip
        raise ValueError(f"{path} is no profile: {first_line(error)}") from error


def _trace(steps: list[profiles.Step], task: str, attempt: int, variables: Sequence[Variable]) -> Trace:
    layers = {layer for step in steps for layer in step.owners.values()}
    names = layer_names.variables(layers, variables)
    record = step_stats.record(dict(enumerate(steps, 1)), task, names)
    at = min(split.start_at for split in record.splits)
    return record.trace(step_stats.process(task), attempt, at)
