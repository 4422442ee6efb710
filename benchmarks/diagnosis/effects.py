"""What a recording says of speed and load, to find out whether a fault was felt."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import Sample
from paceline.model.roles import ReplicaId, Role

TRAINERS = (Role.CHIEF, Role.WORKER)


def rates(recording: Recording, since: float) -> dict[str, float]:
    """Return the examples a second of each trainer from a moment (Unix seconds) on.

    Until the recording, or until the last step of all where the job has ended; a report that began before
    counts by the part of it that lies after. Of a trainer whose examples are not seen, steps a second.
    """
    found = {str(each): 0.0 for each in recording.run.spec.replicas() if each.role in TRAINERS}
    last = max((report.at for report in recording.steps), default=since)
    end = last if recording.run.phase.is_final else recording.at
    for report in recording.steps:
        interval = report.interval_seconds or 1.0
        inside = report.at - max(since, report.at - interval)
        if inside > 0:
            found[str(report.replica)] += (report.examples or report.steps or 0) * inside / interval
    seconds = max(end - since, 1.0)
    return {name: examples / seconds for name, examples in found.items()}


def speed(recording: Recording, since: float) -> float:
    """Return the examples a second of all trainers together."""
    return sum(rates(recording, since).values())


def samples_of(recording: Recording, role: Role, since: float) -> dict[ReplicaId, list[Sample]]:
    """Return the samples of each replica of a role after a moment."""
    found: dict[ReplicaId, list[Sample]] = {}
    for sample in recording.samples:
        if sample.replica.role is role and sample.at - sample.interval_seconds >= since:
            found.setdefault(sample.replica, []).append(sample)
    return found


def cpu(samples: Iterable[Sample]) -> float | None:
    """Return the mean of the cores used; None: not measured."""
    used = [sample.cpu_cores for sample in samples if sample.cpu_cores is not None]
    return statistics.fmean(used) if used else None


def cpu_of_limit(recording: Recording, role: Role, since: float) -> list[float]:
    """Return for each replica of a role its cores used over its limit, where both are known."""
    found = []
    for own in samples_of(recording, role, since).values():
        used, limits = cpu(own), [each.cpu_limit_cores for each in own if each.cpu_limit_cores]
        if used is not None and limits:
            found.append(used / statistics.fmean(limits))
    return found


def input_wait(recording: Recording, since: float) -> dict[str, float]:
    """Return the share of its time that each trainer waited for input."""
    waited: dict[str, list[float]] = {}
    for report in recording.steps:
        if report.at - (report.interval_seconds or 0.0) >= since and report.interval_seconds:
            own = waited.setdefault(str(report.replica), [0.0, 0.0])
            own[0] += report.input_wait_seconds or 0.0
            own[1] += report.interval_seconds
    return {name: wait / seconds for name, (wait, seconds) in waited.items()}


def bits_per_second(samples: Iterable[Sample]) -> float:
    """Return the mean of the bits received or sent in a second, the larger; 0 where not measured."""
    samples = list(samples)
    seconds = sum(each.interval_seconds for each in samples)
    received = sum(each.network_received_bytes or 0 for each in samples)
    sent = sum(each.network_sent_bytes or 0 for each in samples)
    return 8.0 * max(received, sent) / seconds if seconds else 0.0


def link_use(recording: Recording, since: float) -> list[float]:
    """Return of each host's bandwidth the share that its replicas receive or send, the larger.

    What they send one another on the host is counted, too: it does not pass the link.
    """
    hosts = {host.name: host.bandwidth_bits_per_second for host in recording.run.spec.hosts}
    used: dict[str, float] = {}
    for row in recording.replicas:
        own = samples_of(recording, row.replica.role, since).get(row.replica, [])
        if row.host in hosts:
            used[row.host] = used.get(row.host, 0.0) + bits_per_second(own)
    bandwidths = ((bits, hosts[name]) for name, bits in used.items())
    return [bits / bandwidth for bits, bandwidth in bandwidths if bandwidth]
