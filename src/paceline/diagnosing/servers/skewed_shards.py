"""The shards of a table are equal in size but unequal in traffic."""

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

TOPIC = Topic(
    code="PS003",
    name="skewed-shards",
    title="The parts of a table are equal in size and unequal in traffic",
    severity=Severity.WARNING,
    why="A table that is cut into ranges of rows keeps their order, and vocabularies are often sorted by how "
    "frequent a word is: the first part then has nearly all of the traffic. Equal bytes are not equal work.",
    fix="Shuffle the rows before they are cut: rows: hashed.",
    risk="None for paceline.training: a checkpoint holds each table whole, whatever the order of its rows.",
)


@rule(
    TOPIC,
    needs=(needs.CPU, needs.TRAFFIC),
    explains=("hot-ps", "ps-cpu-bound", "too-few-ps", "waiting-for-ps"),
)
def skewed_shards(case: Case) -> Iterator[Hit]:
    """A server that is hot because one shard of a variable is busier than the others."""
    blame = blames.blame(case)
    if blame is None or blame.kind is not BlameKind.SKEWED:
        return
    moved = [shard.bytes or 0.0 for shard in blame.siblings]
    share = (blame.shard.bytes or 0.0) / (sum(moved) or 1.0)
    variable, server = blame.shard.variable, blame.shard.server
    by_hand = ("shuffle or hash the ids before the lookup, so that frequent ones spread over the parts",)
    yield Hit(
        what=f"Of the {len(moved)} parts of {variable} the one on {server} has {share:.0%} of the traffic.",
        subjects=(variable, server),
        evidence=(
            *blame.evidence,
            Evidence(
                text="its parts move " + ", ".join(f"{size / (sum(moved) or 1.0):.0%}" for size in moved[:8]),
                sources=(blames.traffic_source(case),),
            ),
        ),
        changes=partitionings.rows_hashed(case) if case.spec.training else (),
        next_steps=() if case.spec.training else by_hand,
        gain=blame.gain,
        severity=blame.hot.severity,
    )
