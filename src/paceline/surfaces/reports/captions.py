"""A caption for each plot: a sentence that says what it shows, with numbers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from paceline.model import quantities
from paceline.model.measures.samples import StepReport
from paceline.model.measures.snapshots import ReplicaSnapshot, RoleSnapshot, Snapshot
from paceline.model.roles import Role
from paceline.surfaces.charts.steps import Splits, StepTraffic
from paceline.surfaces.reports import texts

#: Up to this many replicas are named one by one.
FEW = 4
#: The load counts as even if the highest is below this multiple of the mean.
EVEN = 1.15


def throughput(snapshot: Snapshot) -> str:
    """Return a sentence about the trainers' throughput."""
    seconds = f" in {texts.duration(snapshot.interval.seconds)} of training" if snapshot.interval else ""
    each = _each(snapshot, lambda r: r.examples_per_second, texts.number)
    return (
        f"All trainers together made {texts.number(snapshot.examples_per_second)} examples/s "
        f"({texts.whole(snapshot.examples)} examples{seconds}): {each}."
    )


def loss(snapshot: Snapshot, reports: Sequence[StepReport]) -> str:
    """Return a sentence about the first and the last reported loss."""
    told = [report.loss for report in reports if report.loss is not None]
    steps = f" after {texts.whole(snapshot.step)} steps" if snapshot.step is not None else ""
    if len(told) < 2:
        return f"The loss was {texts.quality(told[0] if told else None)}{steps}, reported once."
    verb = "fell" if told[-1] < told[0] else "rose" if told[-1] > told[0] else "stayed"
    return f"The loss {verb} from {texts.quality(told[0])} to {texts.quality(told[-1])}{steps}."


def cpu(snapshot: Snapshot) -> str:
    """Return a sentence about the cores in use and the throttling."""
    sentence = f"Cores in use on average over training: {_each(snapshot, lambda r: r.cpu_cores, texts.cores)}"
    throttled = [r for r in snapshot.replicas if (r.throttled_share or 0) >= 0.05]
    if throttled:
        worst = max(throttled, key=lambda r: r.throttled_share or 0)
        sentence += (
            f"; {worst.replica} was held back by its limit {texts.share(worst.throttled_share)} of the time"
        )
    return sentence + "."


def memory(snapshot: Snapshot) -> str:
    """Return a sentence about the highest memory."""
    shown = _each(snapshot, lambda r: r.memory_bytes, quantities.format_bytes)
    shares = [
        (r.memory_bytes / r.memory_limit_bytes, r)
        for r in snapshot.replicas
        if r.memory_bytes is not None and r.memory_limit_bytes
    ]
    if not shares:
        return f"Highest memory: {shown}."
    share, fullest = max(shares, key=lambda pair: pair[0])
    limit = quantities.format_bytes(fullest.memory_limit_bytes)
    return f"Highest memory: {shown}; {fullest.replica} came to {texts.share(share)} of its limit of {limit}."


def network(snapshot: Snapshot) -> str:
    """Return a sentence about the network traffic."""

    def both(replica: ReplicaSnapshot) -> float | None:
        return replica.network_bytes_per_second

    return (
        "Received and sent together, on average over training: "
        f"{_each(snapshot, both, texts.rate_of_bytes)}; PS receive gradients and send parameters."
    )


def imbalance(servers: RoleSnapshot) -> str:
    """Return a sentence about how evenly the PS share the load."""
    parts = [
        f"{one.resource} max/mean {texts.ratio(one.max_over_mean)} (Gini {texts.ratio(one.gini)})"
        for one in servers.imbalances
    ]
    most = max(servers.imbalances, key=lambda one: one.max_over_mean)
    if servers.hot is not None:
        verdict = f"{servers.hot} is hot and holds up the others"
    elif most.max_over_mean < EVEN:
        verdict = "the load is even"
    else:
        loads = servers.loads(most.resource)
        busiest = max(loads, key=lambda each: loads[each])
        verdict = f"{busiest} has somewhat more than its part, but is not hot"
    return f"{texts.joined(parts)}, where 1.00 is even: {verdict}."


def quality(auc: float, best: float | None) -> str:
    """Return a sentence about the quality of the model."""
    sentence = f"AUC on data that was not trained on: {texts.quality(auc)}"
    if best is not None:
        gap = best - auc
        side = "below" if gap >= 0 else "above"
        sentence += f", {abs(gap):.4f} {side} the {texts.quality(best)} that the best possible model reaches"
    return sentence + "."


def waits(snapshot: Snapshot) -> str:
    """Return a sentence about the share of time that trainers waited for input."""
    each = _each(snapshot, lambda r: r.input_wait_share, texts.share)
    total = snapshot.input_wait_share
    verdict = "input is not what holds training up" if (total or 0) < 0.1 else "input holds training up"
    return f"Part of the training time spent waiting for input: {each}; {verdict}."


def traffic(found: StepTraffic) -> str:
    """Return a sentence about the variable with the most traffic on one PS."""
    moved: dict[tuple[str, str], float] = {}
    for rows in found.ways.values():
        for row in rows:
            for piece in row.pieces:
                moved[row.name, piece.of] = moved.get((row.name, piece.of), 0.0) + piece.value
    (variable, server), most = max(moved.items(), key=lambda pair: pair[1])
    share = texts.share(most / (sum(moved.values()) + found.left_out[1]))
    how = "as traced" if found.is_traced else "as counted from the ids of batches, for one trainer"
    return f"{variable} on {server} has {share} of what a step moves, {how}."


def split(splits: Splits) -> str:
    """Return a sentence about the parts of a step's time, on average over all traced trainers."""
    shares = splits.shares
    parts = [
        f"pull {texts.share(shares.pull)}",
        f"compute {texts.share(shares.compute)}",
        f"push {texts.share(shares.push)}",
    ]
    if shares.input_wait is not None:
        parts.append(f"wait for input {texts.share(shares.input_wait)}")
    count = len(splits.rows) + splits.left_out
    sentence = f"Of a traced step, on average over {count} trainer{'s' * (count > 1)}: {', '.join(parts)}"
    if splits.left_out:
        sentence += f". Shown are the {len(splits.rows)} with the longest steps"
    return sentence + "."


def _each(
    snapshot: Snapshot,
    value: Callable[[ReplicaSnapshot], float | None],
    shown: Callable[[float | None], str],
) -> str:
    """Return the value of each replica for roles with few replicas, else the range of the role's values."""
    parts = []
    for role in Role:
        of_role = sorted(
            (replica for replica in snapshot.replicas if replica.replica.role is role),
            key=lambda replica: replica.replica,
        )
        found = [(number, r.replica) for r in of_role if (number := value(r)) is not None]
        if 0 < len(found) <= FEW:
            parts += [f"{replica} {shown(number)}" for number, replica in found]
        elif found:
            (low, lowest), (high, highest) = min(found, key=_value), max(found, key=_value)
            name = f"{len(found)} {'PS' if role is Role.PS else f'{role}s'}"
            if shown(low) == shown(high):
                parts.append(f"{name} {shown(low)} each")
                continue
            middle = shown(statistics.median(number for number, _ in found))
            parts.append(f"{name} from {shown(low)} ({lowest}) to {shown(high)} ({highest}), median {middle}")
    return ", ".join(parts) if parts else texts.UNMEASURED


def _value(pair: tuple[float, object]) -> float:
    return pair[0]
