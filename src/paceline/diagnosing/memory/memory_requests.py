"""A role requests far more memory than its replicas use."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.memory import growths
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import RoleSpec
from paceline.model.measures.samples import Sample

#: A use of less than that is far below what was asked for (own reasoning: three replicas would fit for one).
MOST_USE = 0.3
#: Smaller amounts are not worth a word.
LEAST_BYTES = 2**30
#: Training that was watched for less than that may still come to its highest use.
LEAST_SECONDS = 15.0
#: What is asked for over the highest use: as much as `memory_growth` gives after a kill.
_SPARE = 1.5
_STEP_BYTES = 256 * 2**20

TOPIC = Topic(
    code="MEM002",
    name="memory-over-asked",
    title="Far more memory was asked for than is used",
    severity=Severity.INFO,
    why="Memory that a replica asks for is kept for it, whether it uses it or not: the job waits for larger "
    "hosts than it needs, and others for what it keeps.",
    fix="Ask for what was used at most, and half as much again.",
    risk="Later phases may use more: evaluation, a checkpoint, a larger batch or vocabulary. memory_growth "
    "gives more after a kill.",
    is_sparing=True,
)


@rule(TOPIC, needs=(needs.MEMORY, needs.STEPS))
def memory_over_asked(case: Case) -> Iterator[Hit]:
    """Roles whose replicas all use only a small part of the memory that they request."""
    for role in case.spec.roles:
        asked = role.memory_bytes
        replicas = case.of_role(role.role)
        histories = [case.histories.get(replica.replica, []) for replica in replicas]
        if asked is None or asked < LEAST_BYTES or not histories or not all(map(_is_known, histories)):
            continue
        most = max(sample.memory_bytes or 0 for samples in histories for sample in samples)
        grows = (
            growths.growth(samples, asked, since=growths.training_since(case, replica))
            for replica, samples in zip(replicas, histories, strict=True)
        )
        if most >= MOST_USE * asked or any(grows):
            continue
        needed_bytes = max(_STEP_BYTES, -int(-(_SPARE * most) // _STEP_BYTES) * _STEP_BYTES)
        yield Hit(
            what=f"Each {role.role} asks for {quantities.format_bytes(asked)} of memory; none used more than "
            f"{quantities.format_bytes(most)}.",
            subjects=tuple(str(replica.replica) for replica in case.of_role(role.role)),
            evidence=(_evidence(role, asked, most, histories),),
            changes=(
                FieldChange(
                    path=("spec", "roles", str(role.role), "memory"),
                    value=quantities.quantity_bytes(needed_bytes),
                ),
            ),
        )


def _is_known(samples: list[Sample]) -> bool:
    measured = [each.at for each in samples if each.memory_bytes is not None]
    return len(measured) >= needs.LEAST_SAMPLES and measured[-1] - measured[0] >= LEAST_SECONDS


def _evidence(role: RoleSpec, asked: int, most: int, histories: list[list[Sample]]) -> Evidence:
    unused = quantities.format_bytes((asked - most) * len(histories))
    samples = [sample for own in histories for sample in own if sample.memory_bytes is not None]
    source = EvidenceSource(
        what="samples", field="memory_bytes", replicas=tuple(dict.fromkeys(each.replica for each in samples)),
        count=len(samples), since=min(each.at for each in samples), until=max(each.at for each in samples),
    )  # fmt: skip
    return Evidence(
        text=f"at most {most / asked:.0%} was used; {unused} of {len(histories)} {role.role} rest",
        sources=(source,),
    )
