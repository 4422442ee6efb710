"""Parameter servers share the link of one host, which is full."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs, outlooks
from paceline.diagnosing.cases import Case
from paceline.diagnosing.networks import links
from paceline.diagnosing.networks.links import Link
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.placements import PlacementStrategy
from paceline.model.words import listed

TIMES = Threshold(
    "shared-links.times", 2.0, Unit.TIMES,
    means="If hosts of their own do not help the replicas on a full link, the rule tells the gain of this "
    "many times the bandwidth.",
    above=1.0,
)  # fmt: skip
_STRATEGY = ("spec", "placement", "strategy")

TOPIC = Topic(
    code="NET001",
    name="shared-link",
    title="Parameter servers share a link that is full",
    severity=Severity.WARNING,
    why="Several parameter servers on one host, or servers beside workers, send through one link what they "
    "would send through several. When it is full all wait for it, whatever their cores could do.",
    fix="Put parameter servers on hosts of their own, or have a step send less.",
    risk="Replicas on more hosts need more hosts.",
)


@rule(TOPIC, needs=(needs.LINKS,), explains=("ps-network-bound", "retransmissions", "waiting-for-ps"))
def shared_link(case: Case) -> Iterator[Hit]:
    """Full links of hosts with a parameter server and at least one other parameter server or trainer."""
    full = links.full(case)
    shared = [link for link in full if link.servers and len(link.servers) + len(link.trainers) > 1]
    if not shared:
        return
    alone = outlooks.gain(case, lambda now: links.apart(now, shared))
    helps = alone is None or headrooms.matters(alone, case)
    times = case.value(TIMES)
    gain = alone if helps else outlooks.gain(case, lambda now: links.wider(now, shared, times))
    for link in shared:
        seen = (links.evidence(case, link), links.others(case, link.use))
        yield Hit(
            what=f"{link.names} share the link of {link.host}, which binds: {link.use:.0%} of it is used.",
            subjects=(link.host, *(str(replica.replica) for replica in link.replicas)),
            evidence=tuple(evidence for evidence in seen if evidence is not None),
            changes=_changes(case, link) if helps else (),
            next_steps=(_apart(link) if helps else _more(link), _fewer_bytes(case)),
            gain=gain if headrooms.matters(gain, case) else None,
            severity=None if gain is None else headrooms.severity(gain, case),
        )


def _apart(link: Link) -> str:
    return f"put {listed(sorted(each.replica for each in link.servers))} on hosts of their own"


def _more(link: Link) -> str:
    """Return the next step if separate hosts do not help, because local traffic would then use links too."""
    return f"give {link.host} more bandwidth: apart, its replicas would send as much over links of their own"


def _fewer_bytes(case: Case) -> str:
    if any(links.halved(case)):
        return "spec.training.transfers.precision: bfloat16 halves the bytes of values; look at the AUC"
    return links.fewer_bytes(case)


def _changes(case: Case, link: Link) -> tuple[FieldChange, ...]:
    """Return the change to a placement on separate hosts, if the job has enough hosts for it."""
    now, hosts = case.spec.placement.strategy, len(case.spec.hosts)
    if hosts < len(case.servers) + (1 if link.trainers else 0):
        return ()
    wanted = PlacementStrategy.ISOLATE if link.trainers else PlacementStrategy.SPREAD_PS
    return () if now is wanted else (FieldChange(path=_STRATEGY, value=str(wanted)),)
