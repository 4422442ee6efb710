"""The page about one job: its spec, its replicas, its events and its files."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model import quantities
from paceline.model.jobs.job_specs import Autoscale, CpuPolicy, JobSpec, Override, RoleSpec
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run
from paceline.model.roles import ReplicaId
from paceline.surfaces import scripts
from paceline.surfaces.views import cells, job_tables, styles, tables


def page(
    run: Run,
    replicas: Sequence[ReplicaRow],
    events: Sequence[JobEvent],
    *,
    lost: bool,
    now: float,
    width: int | None,
    wide: bool = False,
    last_events: int = 20,
) -> RenderableType:
    """Return the page about a job.

    Args:
        run: the job.
        replicas: the replicas of the job.
        events: all events of the job, in chronological order.
        lost: whether the job should run but no supervisor watches it.
        now: the current time in Unix seconds, for ages.
        width: the width of the terminal; None means unlimited.
        wide: whether to show every column.
        last_events: how many of the latest events to show.
    """
    parts: list[RenderableType] = [
        job_tables.heading(run, lost=lost, now=now, width=width),
        *_section("Asked for", _facts(_asked(run.spec), width)),
        *_section("Roles", _roles(run.spec, width)),
        *_section("Replicas", job_tables.replica_table(replicas, width=width, wide=wide)),
    ]
    seen = scripts.seen(run.spec, replicas, events)
    if seen:
        parts += _section("Seen in the scripts", _facts(seen, width))
    changed = scripts.changed(run.spec, events)
    if changed:
        parts += _section("Changed in the scripts", _facts(changed, width))
    events = scripts.others(events)
    if events:
        shown = events[-last_events:] if last_events else []
        title = "Events" if len(shown) == len(events) else f"Events (the last {len(shown)} of {len(events)})"
        parts += _section(title, _events(shown, width))
    if run.notes:
        parts += _section("Notes", _bullets(run.notes, width))
    if run.engine == "local":
        parts += _section("Files", _facts(_files(run), None))
    return Group(*parts)


def _section(title: str, body: RenderableType) -> list[RenderableType]:
    return [Text(), Text(title, style="bold"), body]


def _facts(facts: Sequence[tuple[str, str]], width: int | None) -> Text:
    """Return names and values in two columns; a long value continues on the next lines."""
    size = max(len(name) for name, _ in facts)
    lines = []
    for name, value in facts:
        line = Text()
        line.append(f"{name:<{size}}  ", style="dim")
        line.append(cells.clean(value) if width is None else _below(cells.clean(value), width, size + 2))
        lines.append(line)
    return Text("\n").join(lines)


def _below(text: str, width: int, indent: int) -> str:
    return f"\n{' ' * indent}".join(cells.wrapped(text, max(20, width - indent)))


def _asked(spec: JobSpec) -> list[tuple[str, str]]:
    facts = [
        ("command", shlex.join(spec.command) if spec.command else "-"),
        *([("code", str(spec.code))] if spec.code is not None else []),
        ("working dir", spec.working_dir or "-"),
        ("placement", str(spec.placement.strategy)),
        ("succeeds with", str(spec.success)),
    ]
    if spec.hosts:
        facts.append(("hosts", ", ".join(host.name for host in spec.hosts)))
    if spec.overrides:
        facts.append(("instead of its role's", ", ".join(map(_override, spec.overrides.items()))))
    if spec.autoscale is not None:
        facts.append(("autoscale", _scaled(spec.autoscale)))
    if spec.labels:
        facts.append(("labels", ", ".join(f"{key}={value}" for key, value in spec.labels.items())))
    if spec.environment:
        facts.append(("environment", ", ".join(sorted(spec.environment))))
    if spec.active_deadline_seconds is not None:
        facts.append(("deadline", cells.duration(spec.active_deadline_seconds)))
    if spec.ttl_after_finished_seconds is not None:
        facts.append(("deleted after", cells.duration(spec.ttl_after_finished_seconds)))
    return facts


def _override(found: tuple[ReplicaId, Override]) -> str:
    replica, own = found
    cores = [] if own.cpu_cores is None else [f"{quantities.quantity_cores(own.cpu_cores)} CPU"]
    memory = [] if own.memory_bytes is None else [f"{cells.compact_bytes(own.memory_bytes)} of memory"]
    return f"{replica} has {' and '.join((*cores, *memory))}"


def _scaled(scale: Autoscale) -> str:
    ranges = [
        f"{role} {quantities.quantity_cores(each.low)} to {quantities.quantity_cores(each.high)} CPU"
        for role, each in scale.ranges.items()
    ]
    return f"{', '.join(ranges)}, every {cells.duration(scale.every_seconds)}"


def _roles(spec: JobSpec, width: int | None) -> Text:
    roles = spec.roles
    Column = tables.Column
    commands = [shlex.join(role.command) if role.command else "" for role in roles]
    columns = [
        Column(
            header="ROLE",
            cells=[str(role.role) for role in roles],
            styles=[styles.of_role(role.role) for role in roles],
        ),
        Column(header="REPLICAS", cells=[str(role.replicas) for role in roles], right=True),
        Column(header="CPU", cells=[_cpu(role) for role in roles]),
        Column(
            header="MEMORY",
            cells=["any" if r.memory_bytes is None else cells.compact_bytes(r.memory_bytes) for r in roles],
            right=True,
        ),
        Column(header="THREADS", cells=[str(role.threads or "auto") for role in roles], right=True),
        Column(header="RESTART", cells=[f"{r.restart.when} ≤{r.restart.limit}" for r in roles], drop=1),
    ]
    if any(commands):
        columns.append(
            Column(header="OWN COMMAND", cells=[cells.clean(text) for text in commands], shrink_to=12)
        )
    return tables.fit(columns, width).text


def _cpu(role: RoleSpec) -> str:
    if role.cpu_cores is None:
        return "any"
    return f"{role.cpu_cores:g}{' exclusive' if role.cpu_policy is CpuPolicy.EXCLUSIVE else ''}"


def _events(events: Sequence[JobEvent], width: int | None) -> Text:
    Column = tables.Column
    return tables.fit(
        [
            Column(header="AT (UTC)", cells=[cells.clock(event.at) for event in events]),
            Column(header="REPLICA", cells=[str(event.replica or "") for event in events], drop=1),
            Column(header="WHAT", cells=[event.kind.replace("-", " ") for event in events]),
            Column(header="", cells=[cells.clean(event.message) for event in events], shrink_to=20),
        ],
        width,
    ).text


def _bullets(notes: Sequence[str], width: int | None) -> Text:
    lines = [Text(n if width is None else _below(n, width, 2)) for n in map(cells.clean, notes)]
    return Text("\n").join(lines)


def _files(run: Run) -> list[tuple[str, str]]:
    return [
        ("folder", run.directory),
        ("logs", f"{run.directory}/logs"),
        ("checkpoints", f"{run.directory}/checkpoints"),
        ("supervisor", f"{run.directory}/supervisor.log"),
    ]
