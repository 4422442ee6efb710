"""Ports that no other process has."""

from __future__ import annotations

import random
import socket

import pytest

from paceline.engines.local import ports
from paceline.errors import EngineError


def test_chosen_ports_are_distinct_free_and_not_taken_by_other_jobs() -> None:
    taken = set(range(ports.FIRST, ports.LAST - 50))
    with socket.create_server(("127.0.0.1", 0)):
        chosen = ports.choose(20, taken, random.Random(1))
    assert len(set(chosen)) == 20
    assert not taken & set(chosen)


def test_a_port_in_use_is_not_chosen() -> None:
    port = ports.LAST
    with socket.create_server(("127.0.0.1", port)), pytest.raises(EngineError, match="only 0 of 1"):
        ports.choose(1, set(range(ports.FIRST, ports.LAST)), random.Random(1))
