"""Which shard of which variable makes a parameter server hot, and whether moving shards would help."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from paceline.diagnosing import outlooks
from paceline.diagnosing.cases import Case, ShardTraffic, once
from paceline.diagnosing.servers import hot_loads
from paceline.diagnosing.servers.hot_loads import Hot, ServerResource
from paceline.model import imbalances
from paceline.model.explanations.causes import Evidence, EvidenceSource, Gain


class BlameKind(enum.Enum):
    """What is wrong with the shards."""

    GIANT = enum.auto()  # One uncut shard is too much for one server.
    SKEWED = enum.auto()  # The shards of a variable carry unequal traffic.
    MISPLACED = enum.auto()  # The shards could lie evenly, but do not.


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Why a parameter server is hot.

    Attributes:
        kind: what is wrong with the shards.
        hot: the hot server.
        shard: the shard that causes most of the server's load.
        share: its share of the server's load.
        siblings: all shards of its variable.
        on_server: all shards on the hot server, the busiest first.
        gain: the gain from an even load, from evening out only this variable to all of them; None: not known.
        evidence: the evidence.
    """

    kind: BlameKind
    hot: Hot
    shard: ShardTraffic
    share: float
    siblings: tuple[ShardTraffic, ...]
    on_server: tuple[ShardTraffic, ...]
    gain: Gain | None
    evidence: tuple[Evidence, ...]


@once
def blame(case: Case) -> Blame | None:
    """Return what makes a server hot; None: no server is hot, or the traffic does not explain it."""
    hot = hot_loads.find(case)
    if hot is None:
        return None
    shards = [each for each in case.traffic if _load(each, by_time=False) > 0]
    timed = bool(shards) and all(each.microseconds is not None for each in shards[:3])
    for by_time in (True, False) if hot.resource is ServerResource.CPU and timed else (False,):
        found = _blamed(case, hot, shards, by_time=by_time)
        if found is not None:
            return found
    return None


def _load(shard: ShardTraffic, *, by_time: bool) -> float:
    return (shard.microseconds if by_time else shard.bytes) or 0.0


def _blamed(case: Case, hot: Hot, shards: Sequence[ShardTraffic], *, by_time: bool) -> Blame | None:
    names = [str(replica.replica) for replica in case.servers]
    loads = dict.fromkeys(names, 0.0)
    for shard_traffic in shards:
        if shard_traffic.server in loads:
            loads[shard_traffic.server] += _load(shard_traffic, by_time=by_time)
    uneven, even = imbalances.max_over_mean(list(loads.values())), case.value(outlooks.EVEN)
    server = str(hot.server.replica)
    if uneven is None or uneven < even or max(loads, key=loads.__getitem__) != server:
        return None
    on_server = sorted(
        (traffic for traffic in shards if traffic.server == server),
        key=lambda traffic: -_load(traffic, by_time=by_time),
    )
    shard, total = on_server[0], sum(loads.values())
    siblings = tuple(traffic for traffic in shards if traffic.variable == shard.variable)
    sibling_loads = [_load(sibling, by_time=by_time) for sibling in siblings]
    placeable = _best([_load(traffic, by_time=by_time) for traffic in shards], len(names)) <= even
    skewed = (imbalances.max_over_mean(sibling_loads) or 0.0) >= even
    share = sibling_loads[siblings.index(shard)] / loads[server]
    return Blame(
        kind=BlameKind.MISPLACED if placeable else BlameKind.SKEWED if skewed else BlameKind.GIANT,
        hot=hot,
        shard=shard,
        share=share,
        siblings=siblings,
        on_server=tuple(on_server),
        gain=_gain(case, hot, share),
        evidence=(*hot.evidence, _seen(case, loads, server, total, by_time=by_time)),
    )


def _gain(case: Case, hot: Hot, share: float) -> Gain | None:
    """Return the gain from an even load: between spreading only one shard and making all loads even."""
    least = outlooks.gain(case, outlooks.split(case, hot.server, share))
    if least is None or hot.gain is None or not hot.matters:
        return None
    return Gain(low=min(least.low, hot.gain.low), high=max(least.high, hot.gain.high))


def _best(loads: Sequence[float], servers: int) -> float:
    """Return the max/mean load of a nearly optimal placement: longest processing time first (Graham 1969)."""
    found = [0.0] * servers
    for load in sorted(loads, reverse=True):
        found[found.index(min(found))] += load
    return imbalances.max_over_mean(found) or 1.0


def _seen(case: Case, loads: dict[str, float], server: str, total: float, *, by_time: bool) -> Evidence:
    what = "of the time of operations on PS" if by_time else "of the bytes that a step moves"
    return Evidence(
        text=f"{loads[server] / total:.0%} {what} are for variables on {server}",
        sources=(traffic_source(case),),
    )


def traffic_source(case: Case) -> EvidenceSource:
    """Return the source of the variables' traffic: traces, or counted batches."""
    traces = case.recording.traces
    if not traces:
        return EvidenceSource(what="variables", field="step_bytes", count=len(case.traffic))
    steps = sum(len(trace.splits) for trace in traces)
    at = [trace.at for trace in traces]
    return EvidenceSource(what="traces", field="transfers", count=steps, since=min(at), until=max(at))
