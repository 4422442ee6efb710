"""What replicas of the corpus do: serve without TensorFlow's Python, and make mistakes on demand."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.diagnosis import mistakes, servers
from paceline.training import features
from paceline.training.input import shards


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a message as protobuf writes them."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(data):
        key = varint()
        value = varint()
        if key & 7 == 2:
            yield key >> 3, data[place : place + value]
            place += value
        else:
            yield key >> 3, value


def cluster_of(definition: bytes) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for _, job in fields(bytes(dict(fields(definition))[1])):  # type: ignore[arg-type]
        assert isinstance(job, bytes)
        name = next(value for number, value in fields(job) if number == 1)
        assert isinstance(name, bytes)
        tasks = [dict(fields(value)) for number, value in fields(job) if number == 2]  # type: ignore[arg-type]
        assert [task[1] for task in tasks] == list(range(len(tasks)))
        found[name.decode()] = [task[2].decode() for task in tasks]  # type: ignore[union-attr]
    return found


def test_a_definition_is_what_tensorflow_writes() -> None:
    cluster = {"ps": ["10.77.0.2:2222", "10.77.0.3:2222"], "worker": ["10.77.0.4:2222"]}
    assert servers.server_definition(cluster, "ps", 1) == (
        b"\nL\n,\n\x02ps\x12\x12\x08\x00\x12\x0e10.77.0.2:2222\x12\x12\x08\x01\x12\x0e10.77.0.3:2222"
        b"\n\x1c\n\x06worker\x12\x12\x08\x00\x12\x0e10.77.0.4:2222\x12\x02ps\x18\x01*\x04grpc"
    )


@given(
    cluster=st.dictionaries(
        st.sampled_from(["ps", "worker", "chief"]),
        st.lists(st.from_regex(r"[a-z0-9.]{1,60}:[0-9]{1,5}", fullmatch=True), min_size=1, max_size=300),
        min_size=1,
    ),
    index=st.integers(0, 100_000),
)
def test_a_definition_holds_every_address(cluster: dict[str, list[str]], index: int) -> None:
    definition = servers.server_definition(cluster, "ps", index)
    assert cluster_of(definition) == cluster
    own = dict(fields(definition))
    assert (own[2], own.get(3, 0), own[5]) == (b"ps", index, b"grpc")


@given(st.lists(st.integers(-5, 50)))
def test_slow_decoding_gives_the_same_ids(values: list[int]) -> None:
    columns = {"c1": np.array(values, dtype=np.int64)}
    slow = mistakes.SlowlyDecoded("c1", 20, hashings=2)
    assert slow.ids(columns).tolist() == features.Identity("c1", 20).ids(columns).tolist()


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    mistakes.add_options(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize("role", ["ps", "worker"])
def test_without_options_nothing_is_wrong(role: str) -> None:
    mistakes.make(options(), {"PACELINE_ROLE": role, "PACELINE_INDEX": "0"})


def test_fixed_shares_are_ones_own_files_over_and_over(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {}

    class Queue:
        _start = 0
        _work = shards.cut({"a": 1000, "b": 1000, "c": 1000}, 1.0)

    monkeypatch.setattr(mistakes, "_patch", lambda module, name, value: found.update({name: value}))
    mistakes.give_fixed_shares([1, 2.5], 1200, 1)
    grants = list(found["SharedQueue.grants"](Queue(), lambda: False))
    assert sum(grant.rows for grant in grants) == 3000
    assert {Queue._work.shards[grant.shard].file for grant in grants} == {1}
    assert [grant.epoch for grant in grants] == sorted(grant.epoch for grant in grants)
    mistakes.give_fixed_shares([0, 1], 1200, 0)
    assert list(found["SharedQueue.grants"](Queue(), lambda: False)) == []
