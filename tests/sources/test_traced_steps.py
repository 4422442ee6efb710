"""What TensorFlow gave of a traced step is read without TensorFlow, and what is none is refused."""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from paceline.sources import traced_steps, traces

CONTEXT: dict[str, Any] = {
    "at": 5.0, "step": 7, "task": "/job:worker/task:0", "waited_seconds": 0.25,
    "untraced_step_microseconds": 900.0, "trainer": "worker-0", "attempt": 1,
}  # fmt: skip
WORKER, SERVER = (f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("worker", "ps"))


def metadata(*, asks: bool = False) -> bytes:
    """A step that takes rows of a table from a server; with `asks` it sends a gradient and then asks for a
    count, as a hook does.
    """
    message = traced_steps._metadata_class()()

    def add(device: str, name: str, label: str, start: int, microseconds: int, size: int) -> None:
        known = {each.device: each for each in message.step_stats.dev_stats}
        stats = known.get(device) or message.step_stats.dev_stats.add(device=device)
        node = stats.node_stats.add(
            node_name=name, timeline_label=label, all_start_micros=start, all_start_nanos=start * 1000,
            op_end_rel_micros=microseconds, op_end_rel_nanos=microseconds * 1000,
        )  # fmt: skip
        output = node.output.add(slot=0)
        output.tensor_description.dtype = 1
        output.tensor_description.allocation_description.requested_bytes = size

    add(SERVER, "table", "table = VariableV2()", 10, 1, 4096)
    add(SERVER, "look", "look = GatherV2(table)", 12, 5, 1024)
    add(WORKER, "loss", "loss = Mean(look_S1)", 40, 9, 4)
    add(
        WORKER, "RecvTensor",
        f"[1024B] edge_1_look from {SERVER} to {WORKER}", 20, 15, 1024,
    )  # fmt: skip
    if asks:
        add(WORKER, "slope", "slope = Mul(look_S1)", 50, 4, 1024)
        add(SERVER, "RecvTensor", f"[1024B] edge_2_slope from {WORKER} to {SERVER}", 55, 10, 1024)
        add(SERVER, "update", "update = ScatterAdd(table, slope_S2)", 65, 5, 4096)
        add(SERVER, "count", "count = Identity(table)", 70, 1, 8)
        add(WORKER, "RecvTensor", f"[8B] edge_3_count from {SERVER} to {WORKER}", 72, 20, 8)
        add(WORKER, "fetched", "fetched = Identity(count_S3)", 93, 1, 8)
    return bytes(message.SerializeToString())


def write(path: Path, step: bytes | None = None, context: object = CONTEXT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("context.json", json.dumps(context))
        archive.writestr("step.pb", metadata() if step is None else step)
    return path


def test_a_step_is_read(tmp_path: Path) -> None:
    name = "2026-01-02T03-04-05.678Z"
    write(tmp_path / "traces" / name / "worker-0.1.zip")
    (tmp_path / "traces" / name / ".worker-1.1.zip.tmp").write_bytes(b"half of one")
    assert traces.names(tmp_path) == [name]
    reading = traces.read(tmp_path, name)
    assert reading.broken == ()
    (found,) = reading.traces
    assert (found.trainer, found.attempt, found.at) == ("worker-0", 1, 5.0)
    assert found.untraced_step_microseconds == 900.0
    (split,) = found.splits
    assert split.step == 7
    (moved,) = found.transfers
    assert (moved.server, moved.variable, moved.bytes) == ("ps-0", "table", 1024)
    assert {each.kind for each in found.operations} >= {"GatherV2"}


def test_what_a_script_asks_for_after_the_update_is_no_pull(tmp_path: Path) -> None:
    """A hook reads the global step when the step is done: no gradient was computed with it."""
    (split,) = traced_steps.read(write(tmp_path / "worker-0.1.zip", metadata(asks=True))).splits
    # The rows were there at 35, the step began at 10; the gradient was made at 54, and the update done at 71.
    assert (split.pull_microseconds, split.push_microseconds) == (25, 17)
    assert split.other_microseconds == pytest.approx(94 - 10 - 25 - 17 - split.compute_microseconds)


def test_a_later_attempt_replaces_an_earlier_one(tmp_path: Path) -> None:
    name = "2026-01-02T03-04-05.678Z"
    for attempt in (1, 2):
        path = tmp_path / "traces" / name / f"worker-0.{attempt}.zip"
        write(path, context={**CONTEXT, "attempt": attempt})
    (found,) = traces.read(tmp_path, name).traces
    assert found.attempt == 2


def test_what_was_not_measured_stays_so(tmp_path: Path) -> None:
    lacking = {**CONTEXT, "waited_seconds": None, "untraced_step_microseconds": None, "task": None}
    found = traced_steps.read(write(tmp_path / "worker-0.1.zip", context=lacking))
    assert found.untraced_step_microseconds is None
    assert found.splits[0].input_wait_microseconds is None


@pytest.mark.parametrize(
    "context", [[], {}, 7, {**CONTEXT, "at": "x"}, {**CONTEXT, "step": None}, {**CONTEXT, "attempt": []}]
)
def test_a_context_that_makes_no_sense_is_refused(tmp_path: Path, context: object) -> None:
    with pytest.raises(ValueError, match="is no trace"):
        traced_steps.read(write(tmp_path / "worker-0.1.zip", context=context))


@given(place=st.integers(30, 600), byte=st.integers(0, 255))
@example(place=42, byte=255)
def test_a_damaged_file_is_a_trace_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    """Damage within the packed data is no damage of the archive."""
    path = write(tmp_path_factory.getbasetemp() / "worker-2.1.zip")
    whole = bytearray(path.read_bytes())
    whole[place % len(whole)] = byte
    path.write_bytes(whole)
    with contextlib.suppress(ValueError):
        assert traced_steps.read(path).trainer


def test_what_would_fill_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_steps, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        traced_steps.read(write(tmp_path / "worker-0.1.zip", step=b"\0" * 1001))


@given(data=st.binary(max_size=300))
def test_any_bytes_are_a_trace_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "worker-0.1.zip"
    for make in (lambda: path.write_bytes(data), lambda: write(path, step=data)):
        make()
        with contextlib.suppress(ValueError):
            assert traced_steps.read(path).trainer


@given(cut=st.integers(0, 400))
def test_half_of_a_file_is_refused(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = write(tmp_path_factory.getbasetemp() / "worker-1.1.zip")
    whole = path.read_bytes()
    path.write_bytes(whole[: min(cut, len(whole) - 1)])
    with pytest.raises(ValueError, match="is no trace"):
        traced_steps.read(path)
