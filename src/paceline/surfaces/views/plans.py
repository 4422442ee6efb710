"""The output of a submission with ``--dry-run``: the seat, limits and command of each replica."""

from __future__ import annotations

import shlex

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.jobs.job_specs import CpuPolicy
from paceline.services.local.dry_runs import JobPlan, ReplicaPlan
from paceline.surfaces.views import cells, job_tables, styles


def plan(value: JobPlan) -> RenderableType:
    """Return what a submission would do."""
    parts: list[RenderableType] = [
        Text(f"would submit {value.name}: {len(value.replicas)} replicas", style="bold"),
        Text(f"folder       {value.directory}"),
        *([Text(f"code         {cells.clean(value.code)}")] if value.code is not None else []),
        Text(f"working dir  {value.working_dir}"),
        Text("cluster      ports are chosen at submit"),
        *(Text(f"  {role:<11}{_some(addresses)}") for role, addresses in value.cluster.items()),
    ]
    for replica in value.replicas:
        parts += [Text(), _replica(replica)]
    parts += [Text(f"note: {note}", style="yellow") for note in value.missing]
    return Group(*parts)


def _replica(replica: ReplicaPlan) -> Text:
    cpu = "any CPU" if replica.cpu_cores is None else f"{replica.cpu_cores:g} CPU"
    if replica.cpu_policy is CpuPolicy.EXCLUSIVE:
        cpu += " exclusive"
    if replica.cores:
        cpu += f" (cores {job_tables.core_list(replica.cores)})"
    memory = (
        "any memory"
        if replica.memory_bytes is None
        else f"{cells.compact_bytes(replica.memory_bytes)} memory"
    )
    threads = "threads as cores" if replica.threads is None else f"{replica.threads} threads"
    text = Text(str(replica.replica), style=styles.of_role(replica.replica.role))
    text.append(f"  on {cells.clean(replica.host)}, {cpu}, {memory}, {threads}", style="default")
    text.append(f"\n  {cells.clean(shlex.join(replica.command)) or 'no command'}", style="default")
    return text


def _some(addresses: tuple[str, ...], most: int = 4) -> str:
    shown = " ".join(addresses[:most])
    return shown if len(addresses) <= most else f"{shown} and {len(addresses) - most} more"
