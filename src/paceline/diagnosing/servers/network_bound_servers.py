"""The links of the parameter servers are full, while their cores are not."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import headrooms, needs, trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.servers import few_servers, saturations
from paceline.diagnosing.servers.saturations import Saturation
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence, FieldChange
from paceline.model.explanations.findings import Severity
from paceline.model.measures import rates
from paceline.model.variables.variables import ID_BYTES

#: Of the bytes of values: bfloat16 has two where float32 has four.
HALF = 0.5

TOPIC = Topic(
    code="PS103",
    name="ps-network-bound",
    title="The links of the parameter servers are full",
    severity=Severity.WARNING,
    why="Each step of each worker pulls parameters from the servers and pushes gradients to them. The hosts "
    "of the servers can send or take no more, so workers wait; more cores or more workers bring nothing.",
    fix="Send less: values of two bytes, several steps in an exchange; or have more servers, each on a host "
    "of its own.",
    risk="Values on the wire have 8 bits of precision; the servers keep float32. Look at the AUC.",
)


@rule(TOPIC, needs=(needs.LINKS, needs.NETWORK, needs.STEPS), explains=("waiting-for-ps",))
def ps_network_bound(case: Case) -> Iterator[Hit]:
    """Servers that all use up the links of their hosts while trainers wait."""
    saturation = saturations.of_links(case)
    if saturation is None or not saturations.are_waiting(case):
        return
    changes = _changes(case)
    more = few_servers.count(case, saturation)
    factor = 1 / _left(case) if changes else more / len(case.servers)
    gain = saturations.gain(case, saturation, factor)
    wider = saturations.planned_factor(case, saturation)
    yield Hit(
        what=f"The links of the PS are full: they are used to {saturation.use:.0%}.",
        subjects=(*saturation.names, *(server.row.host for server in saturation.servers if server.row.host)),
        evidence=(_seen(case, saturation), *saturations.waiting(case, saturation)),
        changes=changes,
        next_steps=(
            *(() if changes else ("send less: fewer or shorter values, or several steps in an exchange",)),
            f"{more} PS, each on a host of its own, or hosts with {wider:.1f} times the bandwidth",
        ),
        gain=gain if headrooms.matters(gain, case) else None,
        severity=headrooms.severity(gain, case),
    )


def _seen(case: Case, found: Saturation) -> Evidence:
    moved = [rates.total((each.received_bytes_per_second, each.sent_bytes_per_second)) or 0.0
             for each in found.servers]  # fmt: skip
    hosts = {each.row.host for each in found.servers}
    bits = [each.bandwidth_bits_per_second or 0 for each in case.spec.hosts if each.name in hosts]
    text = f"PS move {quantities.format_bytes(round(sum(moved) / len(moved)))}/s each, both ways together, "
    text += f"over {sum(bits) / len(bits) / 1e6:.0f} Mbit/s each way"
    return Evidence(text=text, sources=(case.source("network_received_bytes", found.servers),))


def _changes(case: Case) -> tuple[FieldChange, ...]:
    """Return the change to values of two bytes, if the job file can set the precision and has float32."""
    precision = trainings.section(case, "transfers").get("precision") or "float32"
    if not trainings.by_library(case) or precision != "float32":
        return ()
    return (FieldChange(path=("spec", "training", "transfers", "precision"), value="bfloat16"),)


def _left(case: Case) -> float:
    """Return the share of the bytes that remains with values of two bytes; ids stay as they are."""
    total = values = 0.0
    for variable in case.recording.plan.variables if case.recording.plan else ():
        moved = variable.step_bytes or 0.0
        total += moved
        values += moved * (
            1 - ID_BYTES / variable.looked_up_bytes if variable.sparse and variable.row_bytes else 1.0
        )
    return 1 - HALF * values / total if total > 0 else HALF
