"""The output of ``paceline top``: the progress of a job, and the load of its replicas by role."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.text import Text

from paceline.model.jobs.runs import KUBERNETES
from paceline.model.jobs.statuses import ReplicaPhase
from paceline.model.measures.snapshots import Imbalance, ReplicaSnapshot, RoleSnapshot, Snapshot
from paceline.model.roles import Role
from paceline.services.observing.diagnosis_runs import DiagnosisRun
from paceline.surfaces.views import cells, headlines, job_tables, styles, tables

BAR_WIDTH = 20
#: Lines of a role besides its title and replicas: a blank line, the table's header, the replicas left out.
ROLE_LINES = 3


def frame(
    snapshot: Snapshot, *, width: int | None, height: int | None = None, look: DiagnosisRun | None = None
) -> RenderableType:
    """Return the whole output for one snapshot of a job.

    Args:
        snapshot: the state of the job.
        width: the width of the terminal; None means unlimited, with every column.
        height: the height of the terminal; if it is too small, the least busy replicas are left out. None
            means all replicas.
        look: the diagnosis of the job, whose primary cause is shown; None shows no diagnosis.
    """
    top = header(snapshot, width=width)
    if look is not None:
        top = Text("\n").join([top, *headlines.lines(look, width=width)])
    parts: list[RenderableType] = [top]
    rows = _rows_per_role(snapshot, None if height is None else height - _lines(top) - 1)
    dropped: dict[str, None] = {}
    unmeasured = False
    for role, count in zip(snapshot.roles, rows, strict=True):
        table = _table(role, count, width, snapshot)
        dropped.update(dict.fromkeys(table.dropped))
        unmeasured = unmeasured or any(_is_unmeasured(replica) for replica in role.replicas)
        parts += [Text(), title(role, width), table.text]
        if count < len(role.replicas):
            parts.append(Text(f"and {len(role.replicas) - count} less busy", style="dim"))
    notes = [cells.FOOTNOTE] if unmeasured else []
    if dropped:
        notes.append(f"no room for {', '.join(name.lower() for name in dropped)} (paceline top -o wide)")
    if notes:
        parts.append(_fitted(Text("; ".join(notes), style="dim"), width))
    return Group(*parts)


def header(snapshot: Snapshot, *, width: int | None) -> Text:
    """Return the lines about the job as a whole."""
    run = snapshot.run
    phase = job_tables.shown_phase(run, lost=snapshot.lost)
    first = Text()
    first.append(cells.shorten(cells.clean(run.name), 40), style="bold")
    first.append("  ")
    first.append(phase, style=styles.of_phase(phase))
    if snapshot.elapsed_seconds is not None:
        first.append(f"  {cells.duration(snapshot.elapsed_seconds)}")
    lines = [first, *(_fitted(Text(line), width) for line in _progress(snapshot))]
    if run.message and run.phase.is_final:
        lines.insert(1, _fitted(Text(cells.clean(run.message)), width))
    return Text("\n").join(_fitted(line, width) for line in lines)


def _progress(snapshot: Snapshot) -> list[str]:
    has_steps = (snapshot.step, snapshot.loss, snapshot.examples_per_second) != (None, None, None)
    time = "training" if has_steps else "the whole run"
    span = [f"means over {time}; memory is the highest"] if snapshot.whole_run else []
    if not has_steps:
        return ["no steps reported", *span]
    step = "step -"
    if snapshot.step is not None:
        step = f"step {snapshot.step:,}".replace(",", " ")
        if snapshot.total_steps:
            step += f" of {snapshot.total_steps:,}".replace(",", " ")
    parts = [step]
    if snapshot.progress is not None:
        parts = [f"{_bar(snapshot.progress)} {cells.percent(snapshot.progress)}", step]
    if snapshot.eta_seconds is not None:
        parts.append(f"ETA {cells.duration(snapshot.eta_seconds)}")
    rates = [
        f"{cells.number(snapshot.steps_per_second)} steps/s",
        f"{cells.number(snapshot.examples_per_second)} examples/s",
        f"loss {cells.loss(snapshot.loss)}",
    ]
    if snapshot.evaluation is not None:
        at_step = "" if snapshot.evaluation.step is None else f" at step {snapshot.evaluation.step}"
        rates.append(f"AUC {cells.loss(snapshot.evaluation.auc)}{at_step}")
    return ["  ".join(parts), "  ".join(rates), *span]


def _bar(share: float) -> str:
    done = round(share * BAR_WIDTH)
    return "━" * done + "─" * (BAR_WIDTH - done)


def title(role: RoleSnapshot, width: int | None) -> Text:
    """Return the lines about a role: running replicas, CPU cores in use, and for PS the imbalances."""
    running = sum(replica.row.phase is ReplicaPhase.RUNNING for replica in role.replicas)
    text = Text()
    text.append(str(role.role), style=f"bold {styles.of_role(role.role)}")
    ended = all(replica.row.phase.is_final for replica in role.replicas)
    count = len(role.replicas)
    text.append(f" {count} replica{'s' if count > 1 else ''}" if ended else f" {running}/{count} running")
    if role.cpu_cores is not None:
        text.append(f"  {cells.cores(role.cpu_cores)} cores")
    if role.hot is not None:
        text.append(f"  hot: {role.hot}", style=styles.HOT)
    lines = [_fitted(text, width)]
    if role.role is Role.PS and role.imbalances:
        # Imbalance matters for PS, where it makes a job slow; uneven workers only wait for each other.
        lines.append(_fitted(Text("  ").join(map(_imbalance, role.imbalances)), width))
    return Text("\n").join(lines)


def _imbalance(imbalance: Imbalance) -> Text:
    text = f"{imbalance.resource} max/mean {imbalance.max_over_mean:.2f}, Gini {imbalance.gini:.2f}"
    return Text(text, style=styles.HOT if imbalance.hot else "")


def _table(role: RoleSnapshot, count: int, width: int | None, snapshot: Snapshot) -> tables.Fitted:
    replicas = role.replicas[:count]
    phases = [str(replica.row.phase) for replica in replicas]

    def column(
        header: str, value: Callable[[ReplicaSnapshot], str], *, drop: int = 0, style: str = ""
    ) -> tables.Column:
        return tables.Column(
            header=header, cells=[value(replica) for replica in replicas], right=True, drop=drop,
            styles=[style] * len(replicas) if style else (),
        )  # fmt: skip

    columns = [
        tables.Column(
            header="REPLICA",
            cells=[_name(replica, role) for replica in replicas],
            styles=[_name_style(replica, role) for replica in replicas],
        ),
        tables.Column(header="STATE", cells=phases, styles=[styles.of_phase(phase) for phase in phases]),
        column("CPU", lambda r: cells.of_limit(cells.cores(r.cpu_cores), _cpu_limit(r))),
        column("THROT", lambda r: cells.percent(r.throttled_share), drop=2),
        column(
            "MEMORY", lambda r: cells.of_limit(cells.compact_bytes(r.memory_bytes), _memory_limit(r)), drop=3
        ),
        column("NET IN/OUT", _network, drop=1),
        column("SW/S", lambda r: cells.number(r.switches_per_second), drop=8),
        column("THREADS", lambda r: cells.number(r.threads), drop=9),
    ]
    if role.role.trains:
        columns[2:2] = [
            column("STEPS/S", lambda r: cells.number(r.steps_per_second), drop=2),
            column("EX/S", lambda r: cells.number(r.examples_per_second)),
            column("LOSS", lambda r: cells.loss(r.loss), drop=7),
            column("WAIT", lambda r: cells.percent(r.input_wait_share), drop=1),
        ]
        if any(r.all_reduce_share is not None for r in role.replicas):
            columns.insert(6, column("REDUCE", lambda r: cells.percent(r.all_reduce_share), drop=1))
    if width is None or any(replica.row.restarts for replica in role.replicas):
        columns.append(column("RESTARTS", lambda r: str(r.row.restarts), drop=4))
    if any(r.gpu_utilization is not None or r.gpu_memory_bytes is not None for r in role.replicas):
        columns.append(column("GPU", lambda r: cells.percent(r.gpu_utilization), drop=5))
        columns.append(column("GPU MEM", lambda r: cells.compact_bytes(r.gpu_memory_bytes), drop=6))
    if snapshot.run.engine == KUBERNETES and not snapshot.whole_run:
        # Measurements of a cluster arrive late and at different times.
        columns.append(column("AGE", lambda r: _age(r, snapshot.at), drop=5))
    return tables.fit(columns, width)


def _age(replica: ReplicaSnapshot, at: float) -> str:
    return cells.UNMEASURED if replica.measured_at is None else f"{max(0.0, at - replica.measured_at):.0f}s"


def _name(replica: ReplicaSnapshot, role: RoleSnapshot) -> str:
    return f"{replica.replica} HOT" if replica.replica == role.hot else str(replica.replica)


def _name_style(replica: ReplicaSnapshot, role: RoleSnapshot) -> str:
    return styles.HOT if replica.replica == role.hot else styles.of_role(role.role)


def _cpu_limit(replica: ReplicaSnapshot) -> str:
    return cells.UNMEASURED if replica.cpu_limit_cores is None else f"{replica.cpu_limit_cores:g}"


def _memory_limit(replica: ReplicaSnapshot) -> str:
    return cells.compact_bytes(replica.memory_limit_bytes)


def _network(replica: ReplicaSnapshot) -> str:
    received, sent = replica.received_bytes_per_second, replica.sent_bytes_per_second
    if received is None and sent is None:
        return cells.UNMEASURED
    return f"{cells.compact_bytes(received)}/{cells.compact_bytes(sent)}"


def _is_unmeasured(replica: ReplicaSnapshot) -> bool:
    return None in (replica.cpu_cores, replica.throttled_share, replica.received_bytes_per_second) or (
        replica.replica.role.trains and replica.examples_per_second is None
    )


def _rows_per_role(snapshot: Snapshot, height: int | None) -> list[int]:
    """Distribute the available lines among the roles, small roles first."""
    wanted = [len(role.replicas) for role in snapshot.roles]
    if height is None:
        return wanted
    titles = sum(_lines(title(role, None)) for role in snapshot.roles)
    left = max(0, height - titles - ROLE_LINES * len(wanted))
    rows = [0] * len(wanted)
    for position, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        rows[index] = min(wanted[index], max(1, left // (len(wanted) - position)))
        left = max(0, left - rows[index])
    return rows


def _lines(text: Text) -> int:
    return text.plain.count("\n") + 1


def _fitted(text: Text, width: int | None) -> Text:
    """Return one line of text that is no wider than the terminal."""
    if width is not None and "\n" not in text.plain:
        text.truncate(width, overflow="ellipsis")
    return text


def progress_line(snapshot: Snapshot) -> str:
    """Return a line of progress, for logs without a terminal."""
    return f"{snapshot.run.name} {snapshot.run.phase}  {'  '.join(_progress(snapshot))}"
