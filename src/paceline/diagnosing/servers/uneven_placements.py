"""Variables are placed so that one parameter server has most of the traffic, though they could lie evenly."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import blames, partitionings
from paceline.diagnosing.servers.blames import BlameKind
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.words import listed

TOPIC = Topic(
    code="PS002",
    name="uneven-placement",
    title="Busy variables lie on the same parameter server",
    severity=Severity.WARNING,
    why="Placed one after the other (round-robin) or by size, the variables that each step moves most may "
    "meet on one server: with two servers all kernels on one and all biases on the other, for example. Size "
    "is not traffic.",
    fix="Place them by what a step moves, the busiest first.",
    risk="None for paceline.training: checkpoints do not depend on the placement.",
)


@rule(
    TOPIC,
    needs=(needs.CPU, needs.TRAFFIC),
    explains=("hot-ps", "ps-cpu-bound", "too-few-ps", "waiting-for-ps"),
)
def uneven_placement(case: Case) -> Iterator[Hit]:
    """A hot server whose load would be even if variables were placed differently."""
    blame = blames.blame(case)
    if blame is None or blame.kind is not BlameKind.MISPLACED:
        return
    server = blame.shard.server
    names = listed(each.name for each in blame.on_server)
    changes = partitionings.placement_to_default(case)
    by_hand = ("place variables by load: tf.compat.v1.train.replica_device_setter(ps_strategy=...)",)
    yield Hit(
        what=f"Busy variables meet on {server}; moved, no server would be hot.",
        subjects=(server,),
        evidence=(
            *blame.evidence,
            Evidence(text=f"on {server}, the busiest first: {names}", sources=(blames.traffic_source(case),)),
        ),
        changes=changes,
        next_steps=(
            *(() if changes or case.spec.training else by_hand),
            f"paceline plan {case.recording.run.name} compares ways to cut and place",
        ),
        gain=blame.gain,
        severity=blame.hot.severity,
    )
