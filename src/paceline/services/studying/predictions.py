"""Predicts the effect of a change of the job file on a measured job."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from paceline import specs
from paceline.diagnosing import confirmations, trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import readings, slow_storage
from paceline.diagnosing.optimizers import dense_updates
from paceline.errors import InvalidInput
from paceline.model.explanations.causes import FieldChange
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import LOCAL
from paceline.model.measures import rates
from paceline.model.measures.recordings import Recording
from paceline.model.roles import Role
from paceline.model.variables import cures, script_plans, variable_devices
from paceline.model.variables.variable_plans import PlacementRule, Plan
from paceline.modelling import calibrations, elasticities, forecasts, layouts
from paceline.modelling.calibrations import Calibration, MeasuredRun
from paceline.modelling.elasticities import Compared
from paceline.modelling.forecasts import Forecast
from paceline.modelling.layouts import ModelLayout
from paceline.rendering import host_plans
from paceline.services import variable_plans
from paceline.specs import JobFile
from paceline.specs.edits import edits

#: Fields of the training section whose effect the model knows, and those that do not affect the speed.
_KNOWN_TRAINING = ("partitioning", "variable_placement", "variable_plan", "steps_in_flight")
_HARMLESS = ("epochs", "max_steps", "seed", "checkpoint", "trace", "export_dir", "measured_variables")
#: Fields of the training section that determine where variables are placed.
_PLACING = ("partitioning", "variable_placement", "variable_plan")
_SHAPE = (
    "the number and the cpu of replicas, hosts, placement, and of training partitioning, variable_placement"
)
_KNOWN = f"{_SHAPE} and steps_in_flight"
#: Cures whose effect the model knows, and those that do not affect the speed.
_KNOWN_CURES = (cures.PARTITIONING, cures.PLACEMENT, cures.UNIQUE_IDS, cures.LAZY_ADAM)
_HARMLESS_CURES = (cures.RECOVERY_WAIT, cures.DEVICE_FILTERS)
_KNOWN_OF_SCRIPTS = f"{_SHAPE}, unique_ids and lazy-adam"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SpeedModel:
    """What is known of the speed of a job.

    Attributes:
        recording: the recording of the job.
        job: the job file.
        measured: the layout of the job, and how fast it was.
        calibration: the costs of its steps.
        probed: the elasticities from the newest valid probe, each beside the one computed without it.
        is_seen: whether its script is observed only by the instrumentation, so that only cures can change it.
        updated_whole: the tables of an observed script whose updates take all rows.
        adam: the tables of ``updated_whole`` whose updates lazy Adam would limit to the rows of a batch.
    """

    recording: Recording
    job: JobFile
    measured: MeasuredRun
    calibration: Calibration
    probed: tuple[Compared, ...] = ()
    is_seen: bool = False
    updated_whole: frozenset[str] = frozenset()
    adam: frozenset[str] = frozenset()


def model(recording: Recording, others: Sequence[Recording] = ()) -> SpeedModel:
    """Return the speed model of a measured job.

    Args:
        recording: the recording of the job.
        others: recordings of other jobs from which to learn as well. A job is left out if it was not
            measured, or has a difference whose effect the model does not know.

    Raises:
        InvalidInput: the job was not measured.
    """
    case = Case.of(recording)
    run, measured, is_seen = recording.run, _measured(case), trainings.is_seen(case)
    job = specs.parse_job(specs.source_of(run))
    whole = dense_updates.whole_tables(case) if is_seen else ()
    runs = [measured, *_alike(job.spec, others, is_seen=is_seen)]
    calibration, probe = calibrations.calibrated(runs), confirmations.newest(recording)
    compared: tuple[Compared, ...] = ()
    if probe is not None:
        compared = elasticities.compared(measured.layout, calibration, probe.elasticities)
        probed_parts = [part for _, part in elasticities.probed(measured.layout, probe.elasticities)]
        calibration = calibrations.calibrated(runs, probed_parts)
    return SpeedModel(
        recording=recording,
        job=job,
        measured=measured,
        calibration=calibration,
        probed=compared,
        is_seen=is_seen,
        updated_whole=frozenset(table.name for table in whole),
        adam=frozenset(table.name for table in whole if dense_updates.is_adam(table)),
    )


def _alike(spec: JobSpec, others: Sequence[Recording], *, is_seen: bool) -> Iterator[MeasuredRun]:
    """Yield the measured runs of the jobs that differ from ``spec`` only in ways that the model knows."""
    for each in others:
        if not any(_differences(spec, each.run.spec, is_seen=is_seen)):
            with contextlib.suppress(InvalidInput):
                yield _measured(Case.of(each))


def forecast(model: SpeedModel, changes: Sequence[FieldChange]) -> Forecast:
    """Return the forecast of a job with changes of its job file.

    Raises:
        InvalidInput: a change is wrong, or the model does not know its effect.
    """
    return forecast_of(model, layout_after(model, changes))


def layout_after(model: SpeedModel, changes: Sequence[FieldChange]) -> ModelLayout:
    """Return the layout of a job with changes of its job file.

    Raises:
        InvalidInput: a change is wrong, or the model does not know its effect.
    """
    return layout(model, specs.parse_job(edits.edited(model.job.text, changes)).spec)


def forecast_of(model: SpeedModel, layout: ModelLayout) -> Forecast:
    """Return the forecast of a job with another layout."""
    return forecasts.forecast(model.measured, model.calibration, layout)


def layout(
    model: SpeedModel, spec: JobSpec, *, lying: Plan | None = None, apart: bool = False
) -> ModelLayout:
    """Return the layout of another job that trains the same model.

    Args:
        model: the speed model.
        spec: the other job.
        lying: the placement of its variables, if it is known already (`plan`).
        apart: whether each of its hosts is a machine of its own; else emulated hosts share the measured
            machine.

    Raises:
        InvalidInput: the other job has a difference whose effect the model does not know.
    """
    _check(model, spec)
    now = model.measured.layout
    cores = None if apart else now.machine_cores
    return _layout(
        spec,
        lying or plan(model, spec),
        is_seen=model.is_seen,
        updated_whole=_updated_whole(model, spec),
        machine_cores=cores,
        batch_size=now.batch_size,
        input_steps_per_second=now.input_steps_per_second,
        storage_steps_per_second=now.storage_steps_per_second,
    )


def _check(model: SpeedModel, spec: JobSpec) -> None:
    """Check that the model knows the effects of all differences of another job.

    Raises:
        InvalidInput: the model does not know the effect of a difference.
    """
    if model.is_seen:
        before, after = model.job.spec.training or {}, spec.training or {}
        others = sorted(
            key
            for key in cures.unmet(after)
            if key.partition(".")[0] not in _HARMLESS
            and _value(before, key.split(".")) != _value(after, key.split("."))
        )
        if others:
            raise InvalidInput(
                f"the effect of a change of training.{', training.'.join(others)} cannot be predicted: "
                "no cure gives it to a script without the training library",
                f"what can be predicted: {_KNOWN_OF_SCRIPTS}",
            )
    unknown = sorted(_differences(model.job.spec, spec, is_seen=model.is_seen))
    if unknown:
        raise InvalidInput(
            f"the effect of a change of {', '.join(unknown)} cannot be predicted",
            f"what can be predicted: {_KNOWN_OF_SCRIPTS if model.is_seen else _KNOWN}",
        )


def _updated_whole(model: SpeedModel, spec: JobSpec) -> frozenset[str]:
    """Return the tables whose updates take all rows in another job.

    Raises:
        InvalidInput: they are not known, or lazy Adam would change nothing.
    """
    now, then = (cures.LAZY_ADAM.is_asked(each.training or {}) for each in (model.job.spec, spec))
    if not model.is_seen or now == then:
        return model.updated_whole
    if now:
        raise InvalidInput(
            "the job without lazy-adam cannot be predicted: it runs with lazy-adam, so the cost of updates "
            "of all rows was not measured",
            "see what is known of the job as it is: paceline why " + model.recording.run.name,
        )
    if not model.adam:
        raise InvalidInput(
            "lazy-adam would change nothing: no table of the script is updated whole by Adam",
            f"paceline describe {model.recording.run.name} says what updates its variables",
        )
    return model.updated_whole - model.adam


def plan(model: SpeedModel, spec: JobSpec) -> Plan | None:
    """Return the placement of the model's variables in another job; None: the variables are not known.

    Raises:
        InvalidInput: the placement that the job asks for is not possible, or not known before the job runs.
    """
    known = model.recording.plan
    if known is not None and model.is_seen:
        return _of_script(known, model.recording.run.spec, _settled(model, spec))
    if known is None or _lies_alike(model.job.spec, spec):
        return known if known is None else variable_devices.placed(known)
    asked = variable_plans.asked_for(spec, known.variables)
    if asked.plan is None:
        raise InvalidInput(
            f"no prediction is possible: {asked.missing}", "compare other placements: paceline plan"
        )
    return asked.plan


def _settled(model: SpeedModel, spec: JobSpec) -> JobSpec:
    """Return another job with the placement of the measured job, if both job files ask for the same.

    Raises:
        InvalidInput: the other job asks for a placement that depends on traffic not yet measured.
    """
    before, after = model.job.spec.training or {}, spec.training or {}
    fields = (*_PLACING, "measured_variables")
    if any(before.get(field) != after.get(field) for field in fields):
        if after.get("variable_placement") == PlacementRule.TRAFFIC:
            raise InvalidInput(
                "no prediction is possible: which plan the traffic makes is not known before the job runs",
                f"use a saved plan: paceline plan {spec.name} --choose by-traffic --save FILE",
            )
        return spec
    now = model.recording.run.spec.training or {}
    others = {key: value for key, value in after.items() if key not in fields}
    return dataclasses.replace(spec, training=others | {key: now[key] for key in fields if key in now})


def _of_script(known: Plan, before: JobSpec, after: JobSpec) -> Plan:
    try:
        return script_plans.moved(
            known, variable_plans.asked_of_script(before), variable_plans.asked_of_script(after)
        )
    except ValueError as error:
        raise InvalidInput(
            f"no prediction is possible: {error}", "compare other placements: paceline plan"
        ) from error


def _measured(case: Case) -> MeasuredRun:
    is_seen, recording = trainings.is_seen(case), case.recording
    plan = case.placed
    if is_seen and recording.plan is not None:
        plan = _of_script(recording.plan, case.spec, case.spec)
    trainers = case.active_trainers
    steps = rates.total(trainer.steps_per_second for trainer in trainers)
    examples = rates.total(trainer.examples_per_second for trainer in trainers)
    cores = rates.total(trainer.cpu_cores for trainer in trainers)
    servers = [server.cpu_cores for server in case.servers]
    measured_cores = [cpu_cores for cpu_cores in servers if cpu_cores is not None]
    if not steps or not examples or not cores or not servers or len(measured_cores) < len(servers):
        raise InvalidInput(
            "no prediction is possible: steps of trainers or the CPU of parameter servers were not measured",
            "wait until the job trains, or see what is known of it: paceline describe NAME",
        )
    # If trainers do not wait for input, it delivers as much as they ask for, and more if they asked for more.
    waiting = readings.find(case, case.value(readings.INPUT_BOUND))
    is_shared = slow_storage.is_shared(case)
    is_storage = slow_storage.storage_bound(case) is not None and is_shared is not False
    return MeasuredRun(
        layout=_layout(
            case.spec,
            plan,
            is_seen=is_seen,
            updated_whole=[table.name for table in dense_updates.whole_tables(case)] if is_seen else (),
            machine_cores=case.machine_cores if recording.run.engine == LOCAL else None,
            batch_size=round(examples / steps),
            input_steps_per_second=None if waiting is None or is_storage else steps / len(trainers),
            storage_steps_per_second=steps if is_storage else None,
        ),
        steps_per_second=steps,
        trainer_cores=cores,
        server_cores=tuple(measured_cores),
        is_storage_shared=is_shared is True,
    )


def _layout(
    spec: JobSpec,
    plan: Plan | None,
    *,
    is_seen: bool,
    updated_whole: Collection[str],
    machine_cores: float | None,
    batch_size: int,
    input_steps_per_second: float | None,
    storage_steps_per_second: float | None,
) -> ModelLayout:
    if plan is None:
        raise InvalidInput(
            "no prediction is possible: sizes and traffic of the model's variables are not known",
            f"see what Paceline sees of the scripts, and why not more: paceline describe {spec.name}",
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
            steps_in_flight=1 if is_seen else (spec.training or {}).get("steps_in_flight", 1),
            input_steps_per_second=input_steps_per_second,
            storage_steps_per_second=storage_steps_per_second,
            updated_whole=updated_whole,
        )
    except ValueError as error:
        raise InvalidInput(
            f"no prediction is possible: {error}",
            f"measure the traffic of the job while it runs: paceline trace {spec.name}",
        ) from error


def _lies_alike(before: JobSpec, after: JobSpec) -> bool:
    """Return whether the placement of variables is the same in both jobs."""
    old, new = (
        (
            len([each for each in spec.replicas() if each.role is Role.PS]),
            *((spec.training or {}).get(field) for field in _PLACING),
        )
        for spec in (before, after)
    )
    return old == new


def _differences(before: JobSpec, after: JobSpec, *, is_seen: bool) -> Iterator[str]:
    """Yield the differences between two jobs whose effect on the speed the model does not know."""
    old, new = before.training or {}, after.training or {}
    yield from _of_cures(old, new) if is_seen else _of_library(old, new)
    if before.framework is not after.framework:
        yield "framework"
    for role in after.roles:
        other = before.role(role.role)
        if other is not None and (other.gpus, other.threads) != (role.gpus, role.threads):
            yield f"{role.role}.{'gpu' if other.gpus != role.gpus else 'threads'}"


def _of_library(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for field in old.keys() | new.keys():
        if field not in _KNOWN_TRAINING and field not in _HARMLESS and old.get(field) != new.get(field):
            yield f"training.{field}"


def _of_cures(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for cure in cures.CURES:
        if cure not in (*_KNOWN_CURES, *_HARMLESS_CURES) and _value(old, cure.path) != _value(new, cure.path):
            yield f"training.{'.'.join(cure.path)}"


def _value(training: Mapping[str, Any], path: Sequence[str]) -> Any:
    found: Any = training
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
