"""Reads TensorFlow's traces of steps of scripts without the training library, written by the instrumentation.

A file is a ZIP archive of ``step.pb``, a serialized ``RunMetadata``, and ``context.json``. If there was no
step to trace, it has only ``context.json``, with the ``error``. This module declares only the used fields
of the message, with TensorFlow's field numbers (``tensorflow/core/framework``: ``step_stats.proto``,
``tensor_description.proto``, ``allocation_description.proto``; ``tensorflow/core/protobuf/config.proto``). So
it needs protobuf, but not TensorFlow.
"""

from __future__ import annotations

import functools
import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from google.protobuf import message

from paceline.errors import first_line
from paceline.model import outside
from paceline.model.traces.traced_steps import Trace
from paceline.sources import protobufs
from paceline.sources.refusals import TraceRefused
from paceline.tracing import step_stats

#: The largest member of an archive, so that a wrong file does not fill memory: a step of 10,000 operations
#: has some megabytes.
MAX_BYTES = 256 * 1024 * 1024
_MESSAGES: protobufs.Messages = {
    "AllocationDescription": {"requested_bytes": (1, "int64"), "allocated_bytes": (2, "int64")},
    "TensorDescription": {"dtype": (1, "int32"), "allocation_description": (4, "AllocationDescription")},
    "NodeOutput": {"slot": (1, "int32"), "tensor_description": (3, "TensorDescription")},
    "NodeExecStats": {
        "node_name": (1, "string"),
        "all_start_micros": (2, "int64"),
        "op_start_rel_micros": (3, "int64"),
        "op_end_rel_micros": (4, "int64"),
        "output": (7, "list NodeOutput"),
        "timeline_label": (8, "string"),
        "all_start_nanos": (13, "int64"),
        "op_start_rel_nanos": (14, "int64"),
        "op_end_rel_nanos": (15, "int64"),
    },
    "DeviceStepStats": {"device": (1, "string"), "node_stats": (2, "list NodeExecStats")},
    "StepStats": {"dev_stats": (1, "list DeviceStepStats")},
    "RunMetadata": {"step_stats": (1, "StepStats")},
}


@functools.cache
def _metadata_class() -> Any:
    """Return the class of ``RunMetadata`` messages."""
    return protobufs.message_class(_MESSAGES, "RunMetadata")


def read(path: Path) -> Trace:
    """Return the trace of a file.

    Raises:
        TraceRefused: the file says why there is no trace.
        ValueError: the file cannot be read, or is not a trace.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            context = json.loads(_member(archive, "context.json"))
            if "error" in context:
                raise TraceRefused(str(context["error"]))
            metadata = _metadata_class().FromString(_member(archive, "step.pb"))
        return _trace(metadata, context)
    except TraceRefused:
        raise
    except (
        OSError, EOFError, zipfile.BadZipFile, zlib.error, struct.error, KeyError, TypeError, AttributeError,
        ValueError, OverflowError, RecursionError, NotImplementedError, RuntimeError, message.DecodeError,
    ) as error:  # fmt: skip
        raise ValueError(f"{path} is no trace: {first_line(error)}") from error


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > MAX_BYTES:
        raise ValueError(f"{name} has more than {MAX_BYTES} bytes")
    return archive.read(name)


def _trace(metadata: Any, context: dict[str, Any]) -> Trace:
    waited, untraced = context["waited_seconds"], context["untraced_step_microseconds"]
    step = step_stats.TracedStep(int(context["step"]), metadata, None if waited is None else float(waited))
    record = step_stats.read([step], str(context["task"] or "/job:localhost/task:0"))
    return record.trace(
        str(context["trainer"]),
        int(context["attempt"]),
        outside.moment(context["at"]),
        None if untraced is None else float(untraced),
    )
