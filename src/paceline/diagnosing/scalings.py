"""How a job scales: what binds its speed now, and what other sizes would bring."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from paceline.diagnosing import outlooks, usages
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.inputs import slow_storage
from paceline.diagnosing.outlooks import INPUT, OWN
from paceline.model.explanations.causes import Gain, Option, Outlook
from paceline.model.measures import rates
from paceline.modelling import queues
from paceline.modelling.queues import Queues


def outlook(case: Case) -> Outlook | None:
    """Return how the job scales; None: steps or the load of servers were not measured."""
    without = outlooks.network(case)
    steps_per_second = rates.total(each.steps_per_second for each in case.trainers)
    if without is None or not steps_per_second:
        return None
    now = _with_machine(case, without, steps_per_second)
    uses, shared = _uses(case, now, steps_per_second), _with_storage(case, now, steps_per_second)
    # One of them holds: without a probe it is not known which.
    networks = [each for each in (now, shared) if each is not None]
    if shared is not None and slow_storage.is_shared(case):
        networks = [shared]
    binds, most = max(uses.items(), key=lambda item: item[1])
    binding = case.value(outlooks.BINDING_USE)
    changes: list[tuple[str, Callable[[Queues], Queues]]] = [
        ("2 x workers", lambda network: outlooks.trainers_times(network, 2)),
        ("2 x PS", outlooks.more_servers(case, 2)),
    ]
    if any(name.startswith(outlooks.link_station("")) for name in now.stations):
        changes.append(("2 x bandwidth", lambda network: outlooks.links_times(network, 2)))
    return Outlook(
        binds=binds if most >= binding else f"{outlooks.CALLS} (nothing is used to {binding:.0%})",
        uses=tuple(sorted(uses.items(), key=lambda item: -item[1])),
        knee_workers=now.knee if shared is None else None,
        options=tuple(
            Option(what=what, gain=_gain(networks, change, steps_per_second), binds=_binds(uses, change(now)))
            for what, change in changes
        ),
    )


def _with_machine(case: Case, now: Queues, steps_per_second: float) -> Queues:
    """Return the network with the cores of the machine as a station, if all replicas share them.

    However many replicas there are, and whatever cores each of them may use, together they get no more. This
    also holds if the machine emulates hosts, as in predictions.
    """
    use = usages.machine_cores(case)
    if use is None:
        return now
    used, cores = use
    seconds = min(1.0, used / cores) / steps_per_second
    stations = {**now.stations, outlooks.MACHINE_STATION: seconds}
    if seconds <= now.longest_seconds:
        return dataclasses.replace(now, stations=stations)
    # What trainers compute by themselves they compute on the machine, so it is a part of the time there.
    return queues.fitted(now.trainers, stations, steps_per_second)


def _with_storage(case: Case, now: Queues, steps_per_second: float) -> Queues | None:
    """Return the network with the storage that all trainers read from as a station; None: there is none.

    With the station, more trainers get no more from there.
    """
    reading = slow_storage.storage_bound(case)
    if reading is None or slow_storage.is_shared(case) is False:
        return None
    waited = reading.share * now.trainers / steps_per_second
    return dataclasses.replace(
        now,
        own_seconds=max(0.0, now.own_seconds - waited),
        stations={**now.stations, INPUT: 1 / steps_per_second},
    )


def _gain(networks: Sequence[Queues], change: Callable[[Queues], Queues], steps_per_second: float) -> Gain:
    """Return the gain of a change, whichever of the networks the job is.

    Whatever a network says, no station serves more steps than it has time for.
    """
    gains = []
    for now in networks:
        then = change(now)
        gain, longest = outlooks.between(now, then), then.longest_seconds
        most = 1 / (longest * steps_per_second) if longest > 0 else gain.high
        gains.append(Gain(low=min(gain.low, most), high=min(gain.high, most)))
    return Gain(low=min(gain.low for gain in gains), high=max(gain.high for gain in gains))


def _uses(case: Case, now: Queues, steps_per_second: float) -> dict[str, float]:
    found = {name: min(1.0, seconds * steps_per_second) for name, seconds in now.stations.items()}
    own = mean(case.trainers, lambda each: usages.cpu(case, each))
    waits = mean(case.trainers, lambda each: each.input_wait_share)
    return found | {name: use for name, use in ((OWN, own), (INPUT, waits)) if use is not None}


def _binds(uses: Mapping[str, float], then: Queues) -> str:
    """Return the most used bound of a network; the trainers' own computing and input are used as now."""
    throughput = then.steps_per_second()
    own = {name: use for name, use in uses.items() if name in (OWN, INPUT)}
    found = own | {name: seconds * throughput for name, seconds in then.stations.items()}
    return max(found, key=found.__getitem__)
