"""Columns as blocks and back: within the precision that is promised, and never another number silently."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from paceline.model import columns
from paceline.model.measures import samples
from paceline.stores import blocks, precisions

FLOATS = {name for name, each in precisions.PRECISIONS.items() if each.decimals is not None}
LARGEST = 2**63 - 1


def numbers(name: str) -> st.SearchStrategy[Any]:
    """Return numbers of a field: like each other, or anything that a store may hold."""
    if name in FLOATS:
        near = st.floats(0, 1e-3) | st.floats(0, 10) | st.floats(1.7e9, 1.7e9 + 100)
        return near | st.floats(allow_nan=name == "loss")
    return st.integers(0, 3) | st.integers(10**9, 10**9 + 300) | st.integers(-LARGEST, LARGEST)


@st.composite
def measured(draw: st.DrawFn) -> dict[str, list[Any]]:
    rows = draw(st.integers(1, 40))
    chosen = draw(st.sets(st.sampled_from(sorted(set(precisions.PRECISIONS) - {"at"})), max_size=5))
    found = {"at": draw(st.lists(st.floats(0, 4e9), min_size=rows, max_size=rows))}
    for name in chosen:
        of = st.none() | numbers(name) if draw(st.booleans()) else numbers(name)
        found[name] = draw(st.lists(of, min_size=rows, max_size=rows))
    return found


def is_kept(name: str, given: float | None, kept: float | None) -> bool:
    """Whether a number came back within the precision of its field."""
    if given is None or kept is None:
        return given is kept
    if math.isnan(given) or math.isnan(kept):
        return math.isnan(given) and math.isnan(kept)
    precision = precisions.PRECISIONS[name]
    unit = 2.0**precision.unit_bits if precision.decimals is None else 10.0**-precision.decimals
    if type(given) is int and precision.unit_bits == precision.digits == 0:
        return given == kept
    share = 2.0**-precision.digits if precision.digits else 4e-16
    return given == kept or abs(given - kept) <= unit / 2 * 1.0001 + abs(given) * share


@settings(max_examples=examples(150))
@given(given_columns=measured())
def test_what_is_packed_comes_back_as_precisely_as_promised(given_columns: dict[str, list[Any]]) -> None:
    block = blocks.pack(given_columns)
    found = blocks.unpack(block)
    for name, numbers in given_columns.items():
        kept = found.get(name, [None] * len(numbers))
        assert all(is_kept(name, *pair) for pair in zip(numbers, kept, strict=True)), name
        kinds = {type(number) for number in kept} - {type(None)}
        assert kinds <= {float if name in FLOATS else int}
    assert set(found) <= set(given_columns)
    # Packing what was packed already changes nothing more: blocks grow by being packed again.
    again = blocks.unpack(blocks.pack(found))
    assert {name: repr(list(each)) for name, each in again.items()} == {
        name: repr(list(each)) for name, each in found.items()
    }


@given(units=st.integers(-(2**70), 2**70), digits=st.integers(0, 20))
def test_codes_grow_with_the_numbers_and_are_as_near_as_their_digits(units: int, digits: int) -> None:
    code = precisions.shortened(units, digits)
    kept = precisions.lengthened(code, digits)
    assert abs(kept - units) * 2**digits <= abs(units) or (digits == 0 and kept == units)
    assert precisions.shortened(kept, digits) == code
    assert precisions.shortened(units + 1, digits) >= code


def test_every_number_of_a_sample_or_a_step_report_has_a_precision_of_its_own() -> None:
    kinds = (samples.Sample, samples.StepReport)
    owners = {"replica", "attempt"}
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)} - owners
    assert set(precisions.PRECISIONS) == fields
    assert len({each.number for each in precisions.PRECISIONS.values()}) == len(fields)
    for kind in kinds:
        for name, (of, _) in columns.fields(kind).items():
            if name not in owners:
                assert (of is float) == (precisions.PRECISIONS[name].decimals is not None), name


def test_what_was_not_measured_is_none_and_never_zero() -> None:
    given_columns = {
        "at": [1.0, 2.0, 3.0],
        "threads": [None, 0, None],
        "cpu_cores": [None, None, None],
        "throttled_seconds": [0.0, None, 0.0],
    }
    found = blocks.unpack(blocks.pack(given_columns))
    assert {name: list(each) for name, each in found.items()} == {
        "at": [1.0, 2.0, 3.0], "threads": [None, 0, None], "throttled_seconds": [0.0, None, 0.0],
    }  # fmt: skip


def test_an_interval_that_is_short_is_kept_exactly() -> None:
    found = blocks.unpack(blocks.pack({"at": [1.0, 2.0], "interval_seconds": [1e-6, 1.00049]}))
    assert list(found["interval_seconds"]) == [1e-6, 1.00049]
    found = blocks.unpack(blocks.pack({"at": [1.0, 2.0], "interval_seconds": [0.9996, 1.00049]}))
    assert list(found["interval_seconds"]) == [1.0, 1.0]


def noisy(rows: int, seed: int = 1) -> dict[str, list[Any]]:
    """Return samples of a busy worker, in which every digit that can be noise is."""
    chance = random.Random(seed)
    speed = [chance.gauss(1, 0.1) for _ in range(rows)]
    return {
        "at": [1.7e9 + second + abs(chance.gauss(0, 0.002)) for second in range(rows)],
        "interval_seconds": [1 + chance.gauss(0, 0.002) for _ in range(rows)],
        "cpu_cores": [3.2 * each for each in speed],
        "cpu_limit_cores": [4.0] * rows,
        "throttled_seconds": [abs(chance.gauss(0.05, 0.05)) for _ in speed],
        "memory_bytes": [int(4e9 + 4096 * chance.randint(0, 500)) for _ in speed],
        "memory_limit_bytes": [8 << 30] * rows,
        "network_received_bytes": [int(5e7 * each * chance.gauss(1, 0.02)) for each in speed],
        "network_sent_bytes": [int(6e7 * each * chance.gauss(1, 0.02)) for each in speed],
        "voluntary_switches": [int(12000 * each * chance.gauss(1, 0.03)) for each in speed],
        "involuntary_switches": [int(300 * each * chance.gauss(1, 0.2)) for each in speed],
        "threads": [64] * rows,
        "neighbours_cpu_cores": [abs(chance.gauss(1.5, 0.6)) for _ in speed],
        "gpu_utilization": [None] * rows,
        "sent_segments": [int(20000 * each * chance.gauss(1, 0.02)) for each in speed],
        "retransmitted_segments": [int(chance.random() < 0.05) for _ in speed],
    }


def test_a_sample_costs_ten_bytes() -> None:
    """220 replicas of which each second is stored are then 8 MB an hour."""
    assert len(blocks.pack(noisy(600))) < 600 * 10.2


def same(one: Mapping[str, Sequence[Any]], other: Mapping[str, Sequence[Any]]) -> bool:
    return {name: list(each) for name, each in one.items()} == {
        name: list(each) for name, each in other.items()
    }


BLOCK = blocks.pack(noisy(60))


@settings(max_examples=examples(200))
@given(data=st.data())
def test_a_damaged_block_is_refused_or_says_the_same(data: st.DataObject) -> None:
    content = bytearray(BLOCK)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    with contextlib.suppress(blocks.Damaged):
        found = blocks.unpack(bytes(content if data.draw(st.booleans()) else content[:cut]))
        assert same(found, blocks.unpack(BLOCK))


@settings(max_examples=examples(200))
@given(data=st.data())
def test_bytes_with_a_checksum_that_fits_are_unpacked_or_refused(data: st.DataObject) -> None:
    body = bytearray(BLOCK[5:] if data.draw(st.booleans()) else data.draw(st.binary(max_size=60)))
    for _ in range(data.draw(st.integers(0, 3)) if body else 0):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    checksum = blocks.zlib.crc32(body).to_bytes(4, "big")
    with contextlib.suppress(blocks.Damaged):
        blocks.unpack(bytes([blocks.VERSION]) + checksum + bytes(body))


@pytest.mark.parametrize("rows", [0, 1])
def test_differences_of_no_numbers_are_refused(rows: int) -> None:
    """The column has gaps only, or there are no rows at all."""
    # Field 2, GAPS and DIFFERENCES of whole numbers, scale, digits, no one is present, base, first, width.
    body = bytes([rows, 2, blocks._GAPS | blocks._DIFFERENCES, 0, 0, 0, 0, 0, 130])
    with pytest.raises(blocks.Damaged, match="no numbers"):
        blocks.unpack(bytes([blocks.VERSION]) + blocks.zlib.crc32(body).to_bytes(4, "big") + body)


@pytest.mark.parametrize("block", [b"", b"\x01", b"\x02" + BLOCK[1:], BLOCK + b"\x00", BLOCK[:-1]])
def test_what_is_no_block_is_refused(block: bytes) -> None:
    with pytest.raises(blocks.Damaged):
        blocks.unpack(block)
