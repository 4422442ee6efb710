"""Writes traces as a file for Perfetto (ui.perfetto.dev) and Chrome, in Chrome's trace event format.

The events of all trainers and parameter servers are on the clock of the first trainer. Overlapping events of
a process are in separate lanes, and each trainer has lanes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from paceline.model.traces import trace_summaries
from paceline.model.traces.traced_steps import Event, Trace


def document(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return the content of the file; its times are microseconds since the first event."""
    placed = [
        (
            trace.trainer,
            event,
            event.start_microseconds - trace_summaries.ahead_microseconds(trace, traces[0]),
        )
        for trace in traces
        for event in trace.events
    ]
    placed.sort(key=lambda each: each[2])
    first = placed[0][2] if placed else 0.0
    processes = sorted({event.process for _, event, _ in placed})
    return {
        "displayTimeUnit": "ms",
        "otherData": {"first_event_unix_microseconds": first},
        "traceEvents": [
            *(_named("process_name", number, 0, name) for number, name in enumerate(processes)),
            *_drawn(((trainer, event, start - first) for trainer, event, start in placed), processes),
        ],
    }


def _drawn(placed: Iterable[tuple[str, Event, float]], processes: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the events, each in the first free lane of its group, and the names of the lanes."""
    lanes: dict[tuple[str, str], list[tuple[int, float]]] = {}
    threads = dict.fromkeys(processes, 0)
    for trainer, event, start in placed:
        group = f"{trainer} messages" if event.sender else f"{trainer} operations"
        known = lanes.setdefault((event.process, group), [])
        process = processes.index(event.process)
        free = next((place for place, (_, end) in enumerate(known) if end <= start), len(known))
        if free == len(known):
            threads[event.process] += 1
            known.append((threads[event.process], 0.0))
            yield _named("thread_name", process, threads[event.process], group)
        thread = known[free][0]
        known[free] = thread, start + event.microseconds
        yield _event(event, process, thread, start)


def _event(event: Event, process: int, thread: int, start: float) -> dict[str, Any]:
    details = {"step": event.step, "kind": event.kind, "from": event.sender, "bytes": event.bytes}
    return {
        "ph": "X",
        "name": event.name,
        "cat": "message" if event.sender else "operation",
        "pid": process,
        "tid": thread,
        "ts": round(start, 3),
        "dur": round(event.microseconds, 3),
        "args": {key: value for key, value in details.items() if value is not None},
    }


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}
