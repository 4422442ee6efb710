"""One variable is too much for one parameter server."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import needs, trainings, usages
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import blames, partitionings
from paceline.diagnosing.servers.blames import Blame, BlameKind
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, EvidenceSource
from paceline.model.explanations.findings import Severity
from paceline.model.variables import cures

LINK_AT_REST = Threshold(
    "giant-variables.link-at-rest", 0.5, Unit.SHARE,
    means="A link that is used to a smaller share than this delays no message much. At one half a message "
    "waits as long as it takes.",
)  # fmt: skip

TOPIC = Topic(
    code="PS001",
    name="giant-variable",
    title="One variable is too much for one parameter server",
    severity=Severity.WARNING,
    why="TensorFlow places variables whole, one after the other. Each step of each worker reads and updates "
    "rows of this one, so the server that holds it is busy while the others rest, however many there are, "
    "and wherever their pods run.",
    fix="Cut the variable over all parameter servers, with its rows shuffled, so that each gets the same "
    "share of the traffic.",
    risk="A checkpoint of paceline.training is read back under any number of parts; one of another script "
    "may not be. Each part costs a message in each step, so small variables are better left whole.",
)


@rule(
    TOPIC,
    needs=(needs.CPU, needs.TRAFFIC),
    explains=("hot-ps", "ps-cpu-bound", "too-few-ps", "waiting-for-ps"),
)
def giant_variable(case: Case) -> Iterator[Hit]:
    """A shard of a variable whose load alone is more than an even share of the total load."""
    blame = blames.blame(case)
    if blame is None or blame.kind is not BlameKind.GIANT:
        return
    server, servers = blame.shard.server, len(case.servers)
    changes = partitionings.to_defaults(case)
    by_hand = () if changes or case.spec.training else (partitionings.BY_HAND.format(servers=servers),)
    yield Hit(
        what=f"The variable {blame.shard.name} makes {server} hot: {blame.share:.0%} of what that server "
        "does is for it, and it lies there whole.",
        subjects=(blame.shard.name, server),
        evidence=(*blame.evidence, *_sizes(case, blame), *_placement(case)),
        changes=changes,
        next_steps=(*by_hand, f"paceline plan {case.recording.run.name} compares ways to cut and place"),
        gain=blame.gain,
        severity=blame.hot.severity,
        risk=cures.PARTITIONING.risk if trainings.is_seen(case) else None,
    )


def _placement(case: Case) -> Iterator[Evidence]:
    """Yield evidence that moving pods to other hosts changes nothing, if no link is a bottleneck."""
    uses = usages.links(case)
    most = max(uses.values(), default=1.0)
    if most < case.value(LINK_AT_REST):
        fields = ("network_received_bytes", "network_sent_bytes")
        yield Evidence(
            text=f"no host uses more than {most:.0%} of its link: where pods are placed makes no difference",
            sources=tuple(case.source(field) for field in fields),
        )


def _sizes(case: Case, blame: Blame) -> Iterator[Evidence]:
    plan = case.placed
    for shard in plan.of(blame.shard.variable)[:1] if plan else ():
        size = quantities.format_bytes(shard.variable.memory_bytes)
        yield Evidence(
            text=f"{shard.variable.name} has {shard.variable.rows:,} rows, {size} with the optimizer's slots",
            sources=(EvidenceSource(what="variables", field="shape", count=1),),
        )
