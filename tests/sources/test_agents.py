"""What agents answer: whole lines are taken, and an answer that is not of an agent is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.model.roles import ReplicaId, Role
from paceline.sources import agents

WORKER = ReplicaId(Role.WORKER, 0)
STEPS = [json.dumps({"type": "step", "at": float(n), "step": n}).encode() + b"\n" for n in range(20)]
SPOOL = b"".join(STEPS)


def answer(offset: int, data: bytes, size: int) -> bytes:
    return json.dumps({"type": "page", "at": 0.0, "offset": offset, "size": size}).encode() + b"\n" + data


def test_paths() -> None:
    at = agents.address("ads", "clicks-ps-0-1")
    assert at == "/api/v1/namespaces/ads/pods/clicks-ps-0-1:2223/proxy"
    assert agents.spool(at, offset=7) == f"{at}/spool?offset=7"
    assert agents.spool(at, offset=7, again_seconds=15) == f"{at}/spool?offset=7&again=15"
    assert agents.spool(at, offset=0, again_seconds=15, last_bytes=100) == f"{at}/spool?last=100"


@given(cuts=st.lists(st.integers(0, len(SPOOL)), max_size=12))
def test_each_line_once_wherever_answers_end(cuts: list[int]) -> None:
    found: list[int | None] = []
    offset = 0
    for end in [*sorted(cuts), len(SPOOL)]:
        if end < offset:
            continue
        page = agents.page(answer(offset, SPOOL[offset:end], end))
        reading = agents.reading(page, replica=WORKER, attempt=1)
        assert offset <= reading.offset <= end
        offset = reading.offset
        found += [step.step for step in reading.steps]
    assert found == list(range(20))
    assert offset == len(SPOOL)


def test_a_line_that_has_no_end_is_passed_over_when_there_is_more() -> None:
    page = agents.page(answer(10, b"x" * 100, 1000))
    reading = agents.reading(page, replica=WORKER, attempt=1)
    assert (reading.offset, reading.broken) == (110, 1)
    page = agents.page(answer(10, b"x" * 100, 110))
    assert agents.reading(page, replica=WORKER, attempt=1).offset == 10


@given(data=st.binary(max_size=200))
def test_whatever_comes_is_read_or_refused(data: bytes) -> None:
    try:
        page = agents.page(data)
    except ValueError as error:
        assert "otherwise" in str(error)  # noqa: PT017
    else:
        assert page.offset >= 0


@pytest.mark.parametrize(
    "head",
    [b'{"offset": -1, "size": 0}', b'{"offset": "0", "size": 0}', b"[1]", b"", b'{"size": 3}', b"99"],
)
def test_other_answers_are_refused(head: bytes) -> None:
    with pytest.raises(ValueError, match="otherwise"):
        agents.page(head + b"\nrest")
