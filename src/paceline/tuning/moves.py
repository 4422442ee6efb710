"""Proposals of switches in the job file's ``training`` section for jobs that use the training library.

The gain of a switch is what it brought on the ladder of the benchmarks (`docs/figures.md`), from the least to
the most on its models. If the model of the job knows the switch, the gain is the model's prediction. Only a
trial shows what a switch brings to this job.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from paceline.diagnosing import headrooms, trainings
from paceline.diagnosing.cases import Case
from paceline.model.explanations.causes import FieldChange, Gain
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.tunings import Objective
from paceline.modelling.layouts import ModelLayout

_LADDER = "what it brought on the ladder of the benchmarks"
_MODEL = "the model of the job; the least is from the ladder of the benchmarks"
_NO_RISK = "None for the model."


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A switch.

    Attributes:
        path: its key, below ``training``.
        default: the value that the training library takes if the job file has none.
        value: the proposed value. Nothing is proposed if the job file has this value, or any number above 1.
        computes: whether trainers compute less with it; if not, they wait less, as far as they wait at all.
    """

    name: str
    what: str
    path: tuple[str, ...]
    default: Any
    value: Any
    gain: Gain
    risk: str = _NO_RISK
    computes: bool = False


_MOVES = (
    _Move(
        name="fused-tables",
        what="Look ids up in one table for all categorical features, each id once: fewer, larger messages.",
        path=("fused_tables",),
        default=True,
        value=True,
        gain=Gain(low=1.4, high=2.3),
        computes=True,
        risk="A checkpoint of the one form is not read by the other.",
    ),
    _Move(
        name="packed-transfers",
        what="Send what a step moves as one message for each PS and direction.",
        path=("transfers", "packed"),
        default=True,
        value=True,
        gain=Gain(low=1.2, high=1.5),
    ),
    _Move(
        name="shared-exchanges",
        what="Let several steps of a worker share one exchange with the PS.",
        path=("steps_per_exchange",),
        default=1,
        value=6,
        gain=Gain(low=1.3, high=2.1),
        risk="Parameters are up to six steps old, and their gradients are added up. Look at the AUC.",
    ),
    _Move(
        name="short-transfers",
        what="Send values in 16 bits: half the bytes.",
        path=("transfers", "precision"),
        default="float32",
        value="bfloat16",
        gain=Gain(low=1.0, high=1.25),
        risk="Values on the wire are rounded to 8 bits of precision; the PS keep 24. Look at the AUC.",
    ),
    _Move(
        name="short-layers",
        what="Compute dense layers in bfloat16, for which newer CPUs have instructions.",
        path=("compute_precision",),
        default="float32",
        value="bfloat16",
        gain=Gain(low=0.95, high=1.3),
        computes=True,
        risk="Layers are rounded to 8 bits of precision. Look at the AUC. Older CPUs are slower with it.",
    ),
    _Move(
        name="overlapping-steps",
        what="Let a worker pull for the next step while it computes this one.",
        path=("steps_in_flight",),
        default=1,
        value=2,
        gain=Gain(low=0.9, high=1.4),
        risk="Parameters are one step older. Look at the AUC.",
    ),
)
#: Twice the batch: twice the examples for the same messages.
_BATCH = Gain(low=1.0, high=1.8)


def proposals(case: Case, spec: JobSpec, objective: Objective) -> Iterator[Proposal]:
    """Yield the switches that a job with the training library does not use yet.

    Args:
        case: the measurements of the job.
        spec: the job.
        objective: the objective of the search.
    """
    training = spec.training
    if training is None or not trainings.by_library(case):
        return
    for move in _MOVES:
        if _is_done(move, training):
            continue
        yield Proposal(
            name=move.name,
            what=move.what,
            changes=(FieldChange(path=("spec", "training", *move.path), value=move.value),),
            gain=move.gain if move.computes else headrooms.within(case, move.gain),
            basis=_LADDER,
            risk=move.risk,
        )
    size = training.get("batch_size")
    if objective.batch_size and size is not None:
        yield Proposal(
            name="larger-batch",
            what="Take twice as many examples in a step.",
            changes=(FieldChange(path=("spec", "training", "batch_size"), value=2 * size),),
            gain=headrooms.within(case, _BATCH),
            basis="between what a message costs and what an example costs",
            risk="Fewer and larger updates: the learning rate may have to grow. Look at the AUC.",
        )


def layouts(now: ModelLayout) -> Mapping[str, ModelLayout]:
    """Return the layouts that switches make of a layout, by name, for the switches that the model knows."""
    halved = tuple(dataclasses.replace(each, step_bytes=each.step_bytes / 2) for each in now.servers)
    return {
        "short-transfers": dataclasses.replace(now, servers=halved),
        "overlapping-steps": dataclasses.replace(now, steps_in_flight=2 * now.steps_in_flight),
    }


def foretold(proposal: Proposal, low: float, high: float) -> Proposal:
    """Return a switch with the gain that the model of the job predicts; its least is at most the ladder's.

    A model knows what a switch saves, not what the saving costs.
    """
    least = low if proposal.gain is None else min(proposal.gain.low, low)
    return dataclasses.replace(proposal, gain=Gain(low=least, high=high), basis=_MODEL)


def _is_done(move: _Move, training: Mapping[str, Any]) -> bool:
    found: Any = training
    for name in move.path:
        found = found.get(name) if isinstance(found, Mapping) else None
    now = move.default if found is None else found
    if isinstance(move.value, int) and not isinstance(move.value, bool):
        return bool(now > 1)
    return bool(now == move.value)
