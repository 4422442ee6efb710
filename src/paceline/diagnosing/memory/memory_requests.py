"""A role requests far more memory than its replicas use."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.memory import growths
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import RoleSpec
from paceline.model.measures.samples import Sample

MOST_USE = Threshold(
    "memory-requests.most-use", 0.3, Unit.SHARE,
    means="A use of a smaller share than this is far below what was asked for: three replicas would fit for "
    "one.",
)  # fmt: skip
LEAST_BYTES = Threshold(
    "memory-requests.least-bytes", 2**30, Unit.BYTES,
    means="A request for less memory than this is not worth a word.",
)  # fmt: skip
LEAST_SECONDS = Threshold(
    "memory-requests.least-seconds", 15.0, Unit.SECONDS,
    means="Training that was watched for a shorter time than this may still come to its highest use.",
)  # fmt: skip
_SPARE = Threshold(
    "memory-requests.spare", 1.5, Unit.TIMES,
    means="A role should ask for this many times its highest use: as much as memory_growth gives after a "
    "kill.",
)  # fmt: skip
_STEP_BYTES = Threshold(
    "memory-requests.step-bytes", 256 * 2**20, Unit.BYTES,
    means="What a role should ask for is rounded up to a multiple of this.",
)  # fmt: skip

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
    least_bytes, most_use = case.value(LEAST_BYTES), case.value(MOST_USE)
    for role in case.spec.roles:
        asked = role.memory_bytes
        replicas = case.of_role(role.role)
        histories = [case.histories.get(replica.replica, []) for replica in replicas]
        if asked is None or asked < least_bytes or not histories:
            continue
        if not all(_is_known(case, samples) for samples in histories):
            continue
        most = max(sample.memory_bytes or 0 for samples in histories for sample in samples)
        grows = (
            growths.growth(case, samples, asked, since=growths.training_since(case, replica))
            for replica, samples in zip(replicas, histories, strict=True)
        )
        if most >= most_use * asked or any(grows):
            continue
        yield Hit(
            what=f"Each {role.role} asks for {quantities.format_bytes(asked)} of memory; none used more than "
            f"{quantities.format_bytes(most)}.",
            subjects=tuple(str(replica.replica) for replica in case.of_role(role.role)),
            evidence=(_evidence(role, asked, most, histories),),
            changes=(
                FieldChange(
                    path=("spec", "roles", str(role.role), "memory"),
                    value=quantities.quantity_bytes(_needed_bytes(case, most)),
                ),
            ),
        )


def _needed_bytes(case: Case, most: int) -> int:
    """Return what a role should ask for whose replicas used at most this many bytes."""
    step = int(case.value(_STEP_BYTES))
    return max(step, -int(-(case.value(_SPARE) * most) // step) * step)


def _is_known(case: Case, samples: list[Sample]) -> bool:
    measured = [each.at for each in samples if each.memory_bytes is not None]
    least_samples, least_seconds = case.value(needs.LEAST_SAMPLES), case.value(LEAST_SECONDS)
    return len(measured) >= least_samples and measured[-1] - measured[0] >= least_seconds


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
