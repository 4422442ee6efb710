"""What a change of a job file would bring to a job that was measured."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

from paceline import specs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings
from paceline.errors import InvalidInput
from paceline.model import rates
from paceline.model.causes import Change
from paceline.model.jobs import JobSpec
from paceline.model.recordings import Recording
from paceline.model.roles import Role
from paceline.model.runs import LOCAL
from paceline.model.variable_plans import Plan
from paceline.modelling import calibrations, forecasts, layouts
from paceline.modelling.calibrations import Calibration, Measured
from paceline.modelling.forecasts import Forecast
from paceline.modelling.layouts import Layout
from paceline.rendering import host_plans
from paceline.services import variable_plans
from paceline.specs import JobFile, edits

#: Fields of the training section that the model knows, and those that do not change how fast steps are.
_KNOWN_TRAINING = ("partitioning", "variable_placement", "variable_plan", "steps_in_flight")
_HARMLESS = ("epochs", "max_steps", "seed", "checkpoint", "trace", "export_dir", "measured_variables")
_KNOWN = (
    "the number and the cpu of replicas, hosts, placement, and of training partitioning, variable_placement "
    "and steps_in_flight"
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is known of the speed of a job.

    Attributes:
        recording: of the job.
        job: its file.
        measured: its layout, and how fast that was.
        calibration: what its steps cost.
    """

    recording: Recording
    job: JobFile
    measured: Measured
    calibration: Calibration


def model(recording: Recording, others: Sequence[Recording] = ()) -> Model:
    """Return what a job that was measured tells of its speed.

    Args:
        recording: of the job.
        others: of jobs from which the same can be learnt: what differs in more than the model knows, or was
            not measured, is left out.

    Raises:
        InvalidInput: it was not measured.
    """
    run, measured = recording.run, _measured(recording)
    job = specs.parse_job(specs.source_of(run))
    return Model(
        recording=recording,
        job=job,
        measured=measured,
        calibration=calibrations.calibrated([measured, *_alike(job.spec, others)]),
    )


def _alike(spec: JobSpec, others: Sequence[Recording]) -> Iterator[Measured]:
    """Yield what was measured of jobs that differ from one in no more than the model knows."""
    for each in others:
        if not any(_differences(spec, each.run.spec)):
            with contextlib.suppress(InvalidInput):
                yield _measured(each)


def forecast(model: Model, changes: Sequence[Change]) -> Forecast:
    """Return what changes of its file would bring to a job.

    Raises:
        InvalidInput: a change is wrong, or the model does not know what it does.
    """
    after = specs.parse_job(edits.edited(model.job.text, changes)).spec
    return forecast_of(model, layout(model, after))


def forecast_of(model: Model, layout: Layout) -> Forecast:
    """Return what another layout would bring to a job."""
    return forecasts.forecast(model.measured, model.calibration, layout)


def layout(model: Model, spec: JobSpec, *, lying: Plan | None = None, apart: bool = False) -> Layout:
    """Return the layout of another job that trains the same model.

    Args:
        model: what is known of it.
        spec: the other job.
        lying: how its variables lie, if that is known already (`plan`).
        apart: whether each of its hosts is a machine; else emulated hosts share the one that was measured.

    Raises:
        InvalidInput: it differs in something of which the model does not know what it does.
    """
    unknown = sorted(_differences(model.job.spec, spec))
    if unknown:
        raise InvalidInput(
            f"nobody knows what another {', '.join(unknown)} brings", f"the model knows {_KNOWN}"
        )
    now = model.measured.layout
    cores = None if apart else now.machine_cores
    return _layout(
        spec,
        lying or plan(model, spec),
        machine_cores=cores,
        batch_size=now.batch_size,
        input_steps_per_second=now.input_steps_per_second,
    )


def plan(model: Model, spec: JobSpec) -> Plan | None:
    """Return how the variables of the model lie in another job; None: nobody knows them.

    Raises:
        InvalidInput: they cannot lie as it asks for.
    """
    known = model.recording.plan
    if known is None or _lies_alike(model.job.spec, spec):
        return known
    asked = variable_plans.asked_for(spec, known.variables)
    if asked.plan is None:
        raise InvalidInput(f"nothing is foretold: {asked.missing}", "paceline plan compares other ways")
    return asked.plan


def _measured(recording: Recording) -> Measured:
    case = Case.of(recording)
    trainers = case.active_trainers
    steps = rates.total(each.steps_per_second for each in trainers)
    examples = rates.total(each.examples_per_second for each in trainers)
    cores = rates.total(each.cpu_cores for each in trainers)
    servers = [each.cpu_cores for each in case.servers]
    known = [each for each in servers if each is not None]
    if not steps or not examples or not cores or not servers or len(known) < len(servers):
        raise InvalidInput(
            "steps of trainers and the CPU of parameter servers were not measured, so nothing is foretold",
            "wait until the job trains, or see what is known of it: paceline describe NAME",
        )
    # What nobody waits for brings as much as was asked for, or any more.
    brings = None if readings.find(case) is None else steps / len(trainers)
    return Measured(
        layout=_layout(
            case.spec,
            recording.plan,
            machine_cores=case.machine_cores if recording.run.engine == LOCAL else None,
            batch_size=round(examples / steps),
            input_steps_per_second=brings,
        ),
        steps_per_second=steps,
        trainer_cores=cores,
        server_cores=tuple(known),
    )


def _layout(
    spec: JobSpec,
    plan: Plan | None,
    *,
    machine_cores: float | None,
    batch_size: int,
    input_steps_per_second: float | None,
) -> Layout:
    if plan is None:
        raise InvalidInput(
            "nothing is foretold: sizes and traffic of the model's variables are not known",
            f"paceline describe {spec.name} says what is seen of its scripts, and why not more",
        )
    if machine_cores is None:
        seats = host_plans.seats(spec)
    else:
        cores = range(round(machine_cores))
        seats = host_plans.plan(spec, free_cores=cores, machine_memory_bytes=None).seats
    try:
        return layouts.layout(
            spec,
            plan,
            {seat.replica: seat.host.name for seat in seats},
            machine_cores=machine_cores,
            batch_size=batch_size,
            steps_in_flight=(spec.training or {}).get("steps_in_flight", 1),
            input_steps_per_second=input_steps_per_second,
        )
    except ValueError as error:
        raise InvalidInput(
            f"nothing is foretold: {error}",
            f"the traffic of a job as it runs is measured by: paceline trace {spec.name}",
        ) from error


def _lies_alike(before: JobSpec, after: JobSpec) -> bool:
    """Whether variables lie where they lay."""
    fields = ("partitioning", "variable_placement", "variable_plan")
    old, new = (
        (
            len([each for each in spec.replicas() if each.role is Role.PS]),
            *((spec.training or {}).get(field) for field in fields),
        )
        for spec in (before, after)
    )
    return old == new


def _differences(before: JobSpec, after: JobSpec) -> Iterator[str]:
    """Yield in what jobs differ that decides their speed, and of which the model does not know how."""
    old, new = before.training or {}, after.training or {}
    for field in old.keys() | new.keys():
        if field not in _KNOWN_TRAINING and field not in _HARMLESS and old.get(field) != new.get(field):
            yield f"training.{field}"
    if before.framework is not after.framework:
        yield "framework"
    for role in after.roles:
        other = before.role(role.role)
        if other is not None and (other.gpus, other.threads) != (role.gpus, role.threads):
            yield f"{role.role}.{'gpu' if other.gpus != role.gpus else 'threads'}"
