"""The links of workers are full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing import headrooms, needs, outlooks
from paceline.diagnosing.cases import Case
from paceline.diagnosing.networks import links
from paceline.diagnosing.networks.links import Link
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Gain
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.words import listed

TIMES = Threshold(
    "worker-links.times", 2.0, Unit.TIMES,
    means="The rule tells the gain of this many times the bandwidth. At 2 that is twice the bandwidth, or "
    "half the bytes.",
    above=1.0,
)  # fmt: skip

TOPIC = Topic(
    code="NET002",
    name="worker-link",
    title="The link of workers is full",
    severity=Severity.WARNING,
    why="A worker pulls parameters and pushes gradients in each step. When the link of its host is full it "
    "waits for that, though the parameter servers and their links have room; several workers on one host "
    "share its link.",
    fix="Give workers more bandwidth, put fewer of them on a host, or have a step send less.",
    risk=links.RISK,
)


@rule(TOPIC, needs=(needs.LINKS,), explains=("retransmissions", "waiting-for-ps"))
def worker_link(case: Case) -> Iterator[Hit]:
    """Full links of hosts with only trainers, if no server's link is as full."""
    full = links.full(case)
    if not full or any(link.servers for link in full) or not any(link.trainers for link in full):
        return
    gain = _gain(case, full)
    seen = links.others(case, full[-1].use)
    hosts = listed(link.host for link in full)
    what = f"The link of {hosts} binds" if len(full) == 1 else f"The links of {hosts} bind"
    uses = f"{full[0].use:.0%} of it is" if len(full) == 1 else f"up to {full[0].use:.0%} of them are"
    who = listed(sorted(replica.replica for link in full for replica in link.trainers))
    yield Hit(
        what=f"{what} {who}: {uses} used.",
        subjects=tuple(
            name
            for link in full
            for name in (link.host, *(str(replica.replica) for replica in link.replicas))
        ),
        evidence=(*(links.evidence(case, link) for link in full[:2]), *([seen] if seen else [])),
        changes=tuple(links.halved(case)),
        next_steps=(f"more bandwidth for {hosts}, or fewer workers on it", links.fewer_bytes(case)),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=None if gain is None else headrooms.severity(gain, case),
    )


def _gain(case: Case, found: Sequence[Link]) -> Gain | None:
    """Return the gain from `TIMES` times the bandwidth: at 2 the transfer of a step takes half of its time.

    The transfer counts as time that a trainer spends by itself, because no other trainer waits at its link.
    If several trainers share the link, the gain is no smaller.
    """
    total = rates.total(each.steps_per_second for each in case.trainers)
    if not total:
        return None
    more, spared = 0.0, 1 - 1 / case.value(TIMES)
    for link in found:
        own = rates.total(each.steps_per_second for each in link.trainers) or 0.0
        more += own * (1 / (1 - min(link.use, 1.0) * spared) - 1)
    return outlooks.limited(case, 1 + more / total, but={each.station for each in found})
