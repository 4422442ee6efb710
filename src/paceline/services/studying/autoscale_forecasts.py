"""Forecasts what autoscaling would do to a measured job: it runs the rounds on the model of the job."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from paceline.control import resizings
from paceline.control.resizings import Resize
from paceline.errors import InvalidInput
from paceline.model.jobs.adjustments import Knob
from paceline.model.jobs.job_specs import Autoscale, JobSpec
from paceline.model.measures.probes import CutPart, Elasticity
from paceline.model.roles import ReplicaId, Role
from paceline.modelling import elasticities, predictions
from paceline.modelling.forecasts import Forecast
from paceline.modelling.layouts import ModelLayout
from paceline.modelling.predictions import Speed
from paceline.probing import balances, plans
from paceline.probing.balances import Balance
from paceline.services.studying import predictions as jobs
from paceline.services.studying.predictions import SpeedModel

#: A round gives a replica at most half as much again, so this number of rounds about 100 times as much.
MOST_ROUNDS = 12


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of autoscaling.

    Attributes:
        balance: what it changes, and why; the last round changes nothing, unless there are `MOST_ROUNDS`.
        forecast: the forecast of the job after the round.
    """

    balance: Balance
    forecast: Forecast


def rounds(model: SpeedModel, spec: JobSpec) -> tuple[Round, ...]:
    """Return the rounds that autoscaling would make, until a round changes nothing.

    The model computes the effects of the cuts that a probe would make. It does not know what else happens
    meanwhile in the job or beside it.

    Args:
        model: what is known of the job.
        spec: the job, with the section that limits autoscaling.

    Raises:
        InvalidInput: the job has no such section, or a difference whose effect the model does not know.
    """
    if spec.autoscale is None:
        raise InvalidInput(
            "the job file does not say within what cores may move",
            "--set 'autoscale.ps.cpu={min: 100m, max: 4}'",
        )
    return tuple(_rounds(model, spec, spec.autoscale))


def _rounds(model: SpeedModel, spec: JobSpec, scale: Autoscale) -> Iterator[Round]:
    layout = jobs.layout(model, spec)
    for _ in range(MOST_ROUNDS):
        speed = predictions.speed(layout, model.calibration.costs)
        found = balances.balance(spec, scale, list(_probed(model, layout)), _used(layout, speed))
        for move in found.moves:
            spec = resizings.resized(spec, Resize(target=str(move.replica), cpu_cores=move.after))
        layout = jobs.layout(model, spec)
        yield Round(balance=found, forecast=jobs.forecast_of(model, layout))
        if not found.moves:
            return


def _probed(model: SpeedModel, layout: ModelLayout) -> Iterator[Elasticity]:
    """Yield what a probe of a layout would find: for each server alone, and for all trainers together."""
    servers = [(str(ReplicaId(Role.PS, index)),) for index in range(len(layout.servers))]
    trainers = tuple(str(each) for alike in layout.trainers for each in alike.replicas)
    costs, half = model.calibration.costs, plans.HALF_WIDTH
    for targets in (*servers, trainers):
        part = CutPart(Knob.CPU, targets)
        value = elasticities.computed(layout, costs, part)
        if value is not None:
            yield Elasticity(part=part, value=value, low=value - half, high=value + half, cuts=1)


def _used(layout: ModelLayout, speed: Speed) -> dict[ReplicaId, float]:
    """Return the cores that each replica uses; the use of the trainers is divided evenly."""
    trainers: Sequence[ReplicaId] = [each for alike in layout.trainers for each in alike.replicas]
    servers = {ReplicaId(Role.PS, index): cores for index, cores in enumerate(speed.server_cores)}
    return servers | dict.fromkeys(trainers, speed.trainer_cores / len(trainers))
