"""What a probe has found of the parts of a job, and what the model makes of the same cuts."""

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

#: Of what a part has, that the model is asked about: as deep as probes cut most.
FACTOR = 0.7


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The elasticity of the speed to what a part has.

    Attributes:
        probed: by experiment, with its interval.
        computed: by the model, from all that was measured but the probe.
    """

    probed: Elasticity
    computed: float


def probed(layout: ModelLayout, found: Sequence[Elasticity]) -> Iterator[tuple[Elasticity, Probed]]:
    """Yield what a probe says of a layout, as a calibration needs it; of parts that the model knows.

    Args:
        layout: that was probed.
        found: elasticities of its parts.
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
    """Return what a probe says of each part beside what the model says.

    Args:
        layout: that was probed.
        calibration: what is known of its costs without the probe.
        found: elasticities of its parts; those that the model does not know are left out.
    """
    told = ((each, computed(layout, calibration.costs, each.part)) for each in found)
    return tuple(Compared(probed=each, computed=value) for each, value in told if value is not None)


def computed(layout: ModelLayout, costs: Costs, part: CutPart) -> float | None:
    """Return the elasticity of the speed of a layout to what a part has; None: the model does not know it."""
    made = _cut(layout, part)
    if made is None:
        return None
    factor, other = made
    now, then = predictions.speeds([(layout, costs), (other, costs)])
    return math.log(then.steps_per_second / now.steps_per_second) / math.log(factor)


def _cut(layout: ModelLayout, part: CutPart) -> tuple[float, ModelLayout] | None:
    """Return to what share the model is asked to cut a part, and the layout then; None: it cannot be."""
    factor = FACTOR
    if part.knob is Knob.PAUSE:
        factor = (layout.trainer_count - len(part.targets)) / layout.trainer_count
    other = cut(layout, part, factor) if factor > 0 else None
    return None if other is None else (factor, other)


def cut(layout: ModelLayout, part: CutPart, factor: float) -> ModelLayout | None:
    """Return a layout of which a part has a share of what it has; None: the model knows no such part.

    Args:
        layout: as it is.
        part: cores of replicas, links of hosts, or trainers that stand still.
        factor: the share; of trainers that stand still there is nothing left, whatever it is.
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
    """Yield trainers that are alike, with those of some names apart, which have a share of their cores, or
    stand still (None).
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
