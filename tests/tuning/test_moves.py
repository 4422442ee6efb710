"""Switches of the training library, as proposals."""

from __future__ import annotations

import pytest
from support.layouts import workers

from paceline.model.explanations.causes import Gain
from paceline.model.studies.proposals import Proposal
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers
from paceline.tuning import moves

LAYOUT = ModelLayout(
    servers=(ParameterServer(cores=1.0, host=None, step_bytes=1e6, step_rows=500.0),),
    trainers=(Trainers(replicas=workers(2), cores=1.0, host=None),),
    hosts=(),
    machine_cores=None,
    batch_size=100,
)


def test_what_a_model_knows_of_switches() -> None:
    found = moves.layouts(LAYOUT)
    (server,) = found["short-transfers"].servers
    assert (server.step_bytes, server.step_rows) == (5e5, 500.0)
    assert found["overlapping-steps"].steps_in_flight == 2


@pytest.mark.parametrize(
    ("ladder", "told", "expected"),
    [
        (Gain(low=1.0, high=1.25), (1.6, 2.2), Gain(low=1.0, high=2.2)),
        (Gain(low=1.0, high=1.25), (0.9, 1.1), Gain(low=0.9, high=1.1)),
        (None, (0.9, 1.1), Gain(low=0.9, high=1.1)),
    ],
)
def test_a_model_tells_how_much_at_most_the_ladder_how_little_at_least(
    ladder: Gain | None, told: tuple[float, float], expected: Gain
) -> None:
    proposal = Proposal(name="short-transfers", what="", changes=(), gain=ladder, basis="the ladder")
    found = moves.foretold(proposal, *told)
    assert found.gain == expected
    assert "model" in found.basis
