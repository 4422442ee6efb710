"""The results of a probe for the parts of a job, beside the model's predictions for the same cuts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

from paceline.model.deviations import NORMAL_95
from paceline.model.jobs.adjustments import Knob
from paceline.model.measures.probes import CutPart, Elasticity
from paceline.modelling import predictions
from paceline.modelling.calibrations import Calibration, Probed
from paceline.modelling.costs import Costs
from paceline.modelling.layouts import ModelLayout, Trainers

#: The share to which the model cuts a part: as deep as most cuts of probes.
FACTOR = 0.7


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The elasticity of the speed to the size of a part.

    Attributes:
        probed: measured by a probe, with its interval.
        computed: predicted by the model, from all measurements except the probe.
    """

    probed: Elasticity
    computed: float


def probed(layout: ModelLayout, found: Sequence[Elasticity]) -> Iterator[tuple[Elasticity, Probed]]:
    """Yield each elasticity whose part the model knows, with the form that a calibration needs.

    Args:
        layout: the layout that was probed.
        found: the elasticities of its parts.
    """
    for each in found:
        made = _cut(layout, each.part)
        if made is None:
            continue
        factor, other = made
        depth = abs(math.log(factor))
        deviation = depth * (each.high - each.low) / 2 / NORMAL_95
        yield each, Probed(layout=other, times=factor**each.value, deviation=deviation)


def compared(
    layout: ModelLayout, calibration: Calibration, found: Sequence[Elasticity]
) -> tuple[Compared, ...]:
    """Return the probed elasticity of each part beside the prediction of the model.

    Args:
        layout: the layout that was probed.
        calibration: its costs, fitted without the probe.
        found: the elasticities of its parts; parts that the model does not know are left out.
    """
    told = ((each, computed(layout, calibration.costs, each.part)) for each in found)
    return tuple(Compared(probed=each, computed=value) for each, value in told if value is not None)


def computed(layout: ModelLayout, costs: Costs, part: CutPart) -> float | None:
    """Return the predicted elasticity of a layout's speed to a part; None: the model does not know it."""
    made = _cut(layout, part)
    if made is None:
        return None
    factor, other = made
    now, then = predictions.speeds([(layout, costs), (other, costs)])
    return math.log(then.steps_per_second / now.steps_per_second) / math.log(factor)


def _cut(layout: ModelLayout, part: CutPart) -> tuple[float, ModelLayout] | None:
    """Return the share to which the model cuts a part, and the layout with the cut; None: it cannot."""
    factor = FACTOR
    if part.knob is Knob.PAUSE:
        factor = (layout.trainer_count - len(part.targets)) / layout.trainer_count
    other = cut(layout, part, factor) if factor > 0 else None
    return None if other is None else (factor, other)


def cut(layout: ModelLayout, part: CutPart, factor: float) -> ModelLayout | None:
    """Return a layout in which one part is cut to a share; None: the model knows no such part.

    Args:
        layout: the layout as it is.
        part: cores of replicas, links of hosts, or trainers that are paused.
        factor: the share that is left; it does not matter for trainers that are paused, which are removed.
    """
    names = frozenset(part.targets)
    match part.knob:
        case Knob.LINK:
            other = dataclasses.replace(
                layout,
                hosts=tuple(
                    dataclasses.replace(
                        host, bandwidth_bits_per_second=math.floor(host.bandwidth_bits_per_second * factor)
                    )
                    if host.name in names and host.bandwidth_bits_per_second is not None
                    else host
                    for host in layout.hosts
                ),
            )
        case Knob.CPU | Knob.PAUSE:
            share = factor if part.knob is Knob.CPU else None
            servers = tuple(
                dataclasses.replace(server, cores=server.cores * factor)
                if f"ps-{index}" in names and server.cores is not None
                else server
                for index, server in enumerate(layout.servers)
            )
            trainers = tuple(one for each in layout.trainers for one in _trainers(each, names, share))
            other = dataclasses.replace(layout, servers=servers, trainers=trainers)
        case _:
            return None
    return None if other == layout else other


def _trainers(given: Trainers, names: frozenset[str], share: float | None) -> Iterator[Trainers]:
    """Yield the group without the trainers in ``names``, then these with a share of their cores.

    A share of None pauses them, so they are left out. A share does not change a group without a quota.
    """
    own = tuple(each for each in given.replicas if str(each) in names)
    others = tuple(each for each in given.replicas if str(each) not in names)
    if not own or (share is not None and given.cores is None):
        yield given
        return
    if others:
        yield dataclasses.replace(given, replicas=others)
    if share is not None and given.cores is not None:
        yield dataclasses.replace(given, replicas=own, cores=given.cores * share)
