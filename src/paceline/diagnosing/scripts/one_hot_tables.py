"""A large table that is multiplied with one-hot ids instead of being looked up."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import headrooms
from paceline.diagnosing.cases import Case
from paceline.diagnosing.optimizers import reliefs, table_works
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name

LEAST_SHARE = Threshold(
    "one-hot-tables.least-share", 0.2, Unit.SHARE,
    means="A table that is multiplied with one-hot ids makes steps slow if it takes at least this share of "
    "the bytes of a step, or of the time of operations on servers.",
)  # fmt: skip

TOPIC = Topic(
    code="SCR107",
    name="one-hot-table",
    title="A large table is multiplied with one-hot ids",
    severity=Severity.WARNING,
    why="To multiply a table with ids made one-hot gives the rows of these ids, as a lookup does. But each "
    "step then pulls the whole table, multiplies it with zeros for the most part, and pushes and applies a "
    "gradient of all of its rows, where a lookup moves the rows of the batch.",
    fix="Look the rows up by their ids: tf.nn.embedding_lookup.",
    risk="An optimizer with moments, such as Adam, treats rows that a batch does not use otherwise then.",
)


@rule(
    TOPIC,
    needs=(),
    explains=("dense-update", "giant-variable", "uneven-placement", "hot-ps", "ps-cpu-bound", "too-few-ps",
              "ps-network-bound", "too-many-workers", "waiting-for-ps", "compute-bound"),
)  # fmt: skip
def one_hot_table(case: Case) -> Iterator[Hit]:
    """Tables multiplied with one-hot ids that are a large part of the traffic or of the servers' work."""
    facts, least = asked.of_trainers(case, Name.ONE_HOT_TABLE), case.value(LEAST_SHARE)
    for table in dict.fromkeys(str(fact.value) for fact in facts):
        shards = [shard for shard in case.traffic if shard.variable == table]
        moved = _share(
            sum(shard.bytes or 0.0 for shard in shards), sum(shard.bytes or 0.0 for shard in case.traffic)
        )
        worked = _share(
            sum(shard.microseconds or 0.0 for shard in shards), table_works.total_microseconds(case)
        )
        if max(moved, worked) < least:
            continue
        gain = reliefs.gain(case, worked, moved) if case.recording.traces else None
        yield Hit(
            what=f"{table} is multiplied with one-hot ids, so each step moves all of it: "
            f"{moved:.0%} of what a step moves.",
            subjects=(table, *dict.fromkeys(shard.server for shard in shards)),
            evidence=(
                asked.evidence(Name.ONE_HOT_TABLE, [fact for fact in facts if fact.value == table]),
                Evidence(
                    text="a step moves "
                    f"{quantities.format_bytes(sum(shard.bytes or 0.0 for shard in shards))} of "
                    f"{table}" + (f", and it takes {worked:.0%} of the time of PS" if worked else "")
                ),
            ),
            next_steps=(
                f"in your script: tf.nn.embedding_lookup({table}, ids) in place of tf.matmul(tf.one_hot(ids, "
                f"...), {table})",
            ),
            gain=gain if headrooms.matters(gain, case) else None,
            severity=headrooms.severity(gain, case) if gain is not None else None,
        )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
