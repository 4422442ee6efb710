"""Bottlenecks found by a probe: more of their resource makes the job faster, whatever it is used for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing import confirmations
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, FieldChange, Gain
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures.probes import Elasticity
from paceline.model.roles import ReplicaId
from paceline.model.words import counted
from paceline.probing import raises, sayings

TOPIC = Topic(
    code="PRG014",
    name="bound-part",
    title="A probe has found what binds",
    severity=Severity.WARNING,
    why="It was cut for some seconds, again and again, and the whole job was slower by as much. So it "
    "decides how fast the job is, whatever the reason.",
    fix="Give it more, or less to do. What it works for a trace of a step says.",
    risk="What one replica gets more another may lack. When it does not bind any more, something else does.",
)


@rule(TOPIC, needs=(), explains=("waiting-for-ps",))
def bound_part(case: Case) -> Iterator[Hit]:
    """Cores and links that a probe found to be bottlenecks."""
    probe = confirmations.newest(case.recording)
    ends = probe.elasticities if probe is not None else ()
    for each in sayings.binding(ends):
        if each.part.knob in raises.KNOBS:
            yield _hit(case, each, ends)


def _hit(case: Case, found: Elasticity, ends: Sequence[Elasticity]) -> Hit:
    name = case.recording.run.name
    _, low, high = raises.times([found], ends, sayings.RAISE)
    changes = tuple(_changes(case.spec, found))
    return Hit(
        what=f"By experiment the {found.part.name} {'bind' if found.part.is_plural else 'binds'}.",
        subjects=found.part.targets,
        evidence=(
            Evidence(
                text=f"{sayings.cost(found)} when there is 30 % less of it (elasticity {found.value:.2f}, "
                f"{found.low:.2f} to {found.high:.2f}, {counted(found.cuts, 'cut')})"
            ),
        ),
        changes=changes,
        next_steps=(f"paceline trace {name} says what it works for",),
        gain=Gain(low=max(1.0, low), high=high) if changes else None,
    )


def _changes(spec: JobSpec, found: Elasticity) -> Iterator[FieldChange]:
    """Yield the changes that give each replica of a part 1.5 times its cores; nothing for a link."""
    if found.part.knob is not Knob.CPU:
        return
    for target in found.part.targets:
        cores = spec.role_of(ReplicaId.parse(target)).cpu_cores
        if cores is not None:
            value = quantities.plain(quantities.quantity_cores(cores * sayings.RAISE))
            yield FieldChange(path=("spec", "overrides", target, "cpu"), value=value)
