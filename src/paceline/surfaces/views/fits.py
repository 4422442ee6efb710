"""Whether a job fits on a cluster: its placement on nodes, or what blocks it."""

from __future__ import annotations

import collections

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.nodes import Resources
from paceline.model.roles import Role
from paceline.scheduling import items
from paceline.scheduling.fits import Blocker, Fit
from paceline.surfaces.views import cells, tables


def fit(spec: JobSpec, found: Fit, *, width: int | None) -> RenderableType:
    """Return whether the job fits, with its placement or the reasons against it."""
    if found.fits:
        return Group(Text(_answer(spec, found), style="bold green"), _places(spec, found, width))
    return Group(Text(_answer(spec, found), style="bold red"), _blockers(found, width))


def _answer(spec: JobSpec, found: Fit) -> str:
    if found.fits:
        replicas, nodes = len(found.places), len(set(found.places.values()))
        return f"{spec.name} fits: {_of(replicas, 'replica')} on {_of(nodes, 'node')}"
    worker = spec.role(Role.WORKER)
    if worker is None:
        return f"{spec.name} does not fit"
    if found.most_workers is None:
        return f"{spec.name} does not fit, not even without workers"
    return f"{spec.name} does not fit: {found.most_workers} of {worker.replicas} workers would"


def _of(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _places(spec: JobSpec, found: Fit, width: int | None) -> Text:
    """Return a row for each node that the job would use."""
    nodes = sorted(set(found.places.values()))
    counts = collections.Counter((node, replica.role) for replica, node in found.places.items())
    takes: collections.defaultdict[str, Resources] = collections.defaultdict(Resources)
    for replica, node in found.places.items():
        takes[node] += items.requests(spec.role_of(replica))
    columns = [
        tables.Column(header="NODE", cells=[cells.clean(node) for node in nodes], shrink_to=16),
        *(
            tables.Column(
                header=str(role.role).upper(),
                cells=[str(counts[node, role.role]) for node in nodes],
                right=True,
            )
            for role in spec.roles
        ),
        tables.Column(
            header="CPU",
            cells=[f"{takes[each].millicores / 1000:.3g}" for each in nodes],
            right=True,
            drop=1,
        ),
        tables.Column(
            header="MEMORY",
            cells=[cells.compact_bytes(takes[each].memory_bytes) for each in nodes],
            right=True,
            drop=2,
        ),
    ]
    return tables.fit(columns, width).text


def _blockers(found: Fit, width: int | None) -> Text:
    columns = [
        tables.Column(header="NO PLACE FOR", cells=[_missing(each) for each in found.blockers]),
        tables.Column(header="NODES", cells=[_count(each) for each in found.blockers], right=True),
        tables.Column(
            header="BECAUSE", cells=[cells.clean(each.reason) for each in found.blockers], shrink_to=48
        ),
        tables.Column(
            header="WHICH", cells=[cells.clean(" ".join(each.nodes)) for each in found.blockers], shrink_to=8
        ),
    ]
    return tables.fit(columns, width).text


def _missing(blocker: Blocker) -> str:
    return f"{blocker.missing} {blocker.what}" if blocker.what else "any"


def _count(blocker: Blocker) -> str:
    return str(len(blocker.nodes)) if blocker.nodes else ""
