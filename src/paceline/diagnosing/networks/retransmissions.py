"""Packets are lost in the network and sent again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.networks import links
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import paces
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures.samples import Sample
from paceline.model.measures.snapshots import ReplicaSnapshot
from paceline.model.words import listed

LEAST_SEGMENTS = Threshold(
    "retransmissions.least-segments", 20, Unit.COUNT,
    means="A replica loses packets on the way if it sent at least this many segments again. Fewer segments "
    "say nothing: connections that begin or end lose some, too.",
)  # fmt: skip

TOPIC = Topic(
    code="NET003",
    name="retransmissions",
    title="Packets are lost and sent again",
    severity=Severity.WARNING,
    why="TCP sends again what was not acknowledged, after a while that is long beside a step (200 ms at "
    "least where nothing follows), and sends more slowly from then on. A step waits for the slowest of its "
    "messages, so few lost packets slow down many steps. A full link loses packets, too.",
    fix="Find where they are lost: a cable, a switch port, an interface's errors, a policy that drops.",
)


@rule(TOPIC, needs=(needs.RETRANSMISSIONS,), explains=("waiting-for-ps",))
def retransmissions(case: Case) -> Iterator[Hit]:
    """Replicas that retransmit many of their segments; severity INFO if a full link explains the losses."""
    samples, least = case.samples_by_replica, case.value(LEAST_SEGMENTS)
    counted = [replica for replica in links.losing(case) if _again(samples.get(replica.replica, ())) >= least]
    lossy = sorted(counted, key=lambda replica: -_share(replica))
    if not lossy:
        return
    names = listed(replica.replica for replica in lossy)
    shares = ", ".join(
        f"{replica.replica} {_share(replica):.1%} of {_sent(samples[replica.replica]):,}"
        for replica in lossy[:4]
    )
    # The queue before a full link drops packets that do not fit into it: this is how TCP finds its rate.
    fills = [replica for replica in lossy if links.is_full(case, replica)]
    hosts = listed(dict.fromkeys(replica.row.host or str(replica.replica) for replica in lossy))
    yield Hit(
        what=f"Packets of {names} are lost on the way: {_share(lossy[0]):.1%} of them are sent again.",
        subjects=paces.subjects(lossy),
        evidence=(
            Evidence(
                text=f"segments sent again: {shares}",
                sources=tuple(
                    case.source(field, lossy) for field in ("retransmitted_segments", "sent_segments")
                ),
            ),
            *(
                Evidence(text=f"the link of {replica.row.host} is full, which drops packets")
                for replica in fills
            ),
        ),
        next_steps=(
            f"on {hosts}: ip -s link (errors, dropped), nstat -az TcpRetransSegs, ss -ti (retrans, rto)",
            "on a cluster: the same on its node; a policy or a NAT of the network may drop packets",
        ),
        severity=Severity.INFO if fills else None,
    )


def _share(replica: ReplicaSnapshot) -> float:
    return replica.retransmitted_share or 0.0


def _again(samples: Iterable[Sample]) -> int:
    return sum(each.retransmitted_segments or 0 for each in samples)


def _sent(samples: Iterable[Sample]) -> int:
    return sum((each.sent_segments or 0) + (each.retransmitted_segments or 0) for each in samples)
