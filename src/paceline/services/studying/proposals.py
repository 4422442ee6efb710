"""Proposes changes of a measured job: those of its causes, library settings, cures and other shapes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

from paceline import specs
from paceline.diagnosing import catalogues, diagnoses, headrooms, needs
from paceline.diagnosing.cases import Case
from paceline.errors import EngineError, InvalidInput
from paceline.model.explanations.causes import FieldChange, Gain
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures.recordings import Recording
from paceline.model.roles import Role
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.tunings import Objective
from paceline.model.variables.variable_plans import Plan
from paceline.modelling.forecasts import Forecast
from paceline.modelling.predictions import NOTHING_BINDS
from paceline.services.studying import predictions
from paceline.services.studying.predictions import SpeedModel
from paceline.specs.edits import edits
from paceline.tuning import candidates, cure_moves, moves, searches, shapes
from paceline.tuning.candidates import Candidate, Rated
from paceline.tuning.shapes import JobShape

#: The reason why nothing is proposed for a job that is known well enough.
NOTHING = "nothing promises more than the noise of a run"
_MODEL = "the model of the job, calibrated from what was measured of it"
_LAYOUT = "layout"
_MORE_WORKERS = "More workers push gradients of older parameters: look at the AUC."
_OTHER_SERVERS = (
    "A checkpoint of paceline.training is read back under any number of PS; one of another script may not be."
)
#: The share of its memory that a PS may fill with variables: TensorFlow and what it sends need the rest.
_FULL_MEMORY = 0.8


def proposals(
    recording: Recording, objective: Objective, *, others: Sequence[Recording] = ()
) -> list[Proposal]:
    """Return the changes that may be worth a trial, the most promising first.

    Args:
        recording: the recording of the job.
        objective: what the changes are to improve; changes beyond its limits are not proposed.
        others: recordings of jobs that train the same model; the speed model also learns from those that
            differ only in their shape.
    """
    source = specs.source_of(recording.run)
    spec = specs.parse_job(source).spec
    case = Case.of(recording)
    try:
        model = predictions.model(recording, others)
    except InvalidInput:  # Its variables are unknown, or it was not measured: nothing can be predicted.
        model = None
    of_causes = list(_of_causes(case, model))
    found = [*of_causes, *_switches(case, spec, objective, model), *_cures(case, of_causes, model)]
    fitting = [made for each in found if (made := _scored(each, source, spec, objective)) is not None]
    of_shapes = _shapes(model, objective) if model is not None else ()
    return searches.worth([*fitting, *of_shapes], case.value(headrooms.LEAST_GAIN))


def none_known(recording: Recording) -> str:
    """Return why nothing is proposed for a job: no change is worth it, or too little is known of the job."""
    case = Case.of(recording)
    lacking = next((need for need in (needs.STEPS, needs.CPU) if need.lacks(case)), None)
    if lacking is None:
        return NOTHING
    return f"nothing is known: {lacking.what} ({lacking.remedy.format(name=recording.run.name)})"


def _of_causes(case: Case, model: SpeedModel | None) -> Iterator[Proposal]:
    """Yield the changes of causes, with the model's gain if it knows their effect: one list, one measure."""
    for cause in diagnoses.slowing(case):
        if not cause.changes:
            continue
        predicted = None if model is None else _forecast(model, cause.changes)
        code = catalogues.topic(cause.name).code
        yield Proposal(
            name=cause.name,
            what=cause.what,
            changes=cause.changes,
            gain=cause.gain if predicted is None else Gain(low=predicted.low, high=predicted.high),
            basis=f"{code}, from {'what was measured of the job as it is' if predicted is None else _MODEL}",
            risk=cause.risk,
        )


def _forecast(model: SpeedModel, changes: Sequence[FieldChange]) -> Forecast | None:
    """Return the forecast of a job with changes; None: the model does not know their effect."""
    try:
        layout = predictions.layout_after(model, changes)
    except (InvalidInput, EngineError):  # It has a change without a term in the model, or cannot be placed.
        return None
    return None if layout == model.measured.layout else predictions.forecast_of(model, layout)


def _scored(proposal: Proposal, source: str, spec: JobSpec, objective: Objective) -> Proposal | None:
    """Return a proposal with its gain in the objective; None: it cannot be made, or is beyond the limits."""
    if proposal.relearns and not objective.relearning:
        return None
    try:
        after = specs.parse_job(edits.edited(source, proposal.changes)).spec
    except InvalidInput:
        return None
    if not objective.affords(after.asked_cores) or proposal.gain is None:
        return None
    times = objective.score(1.0, after.asked_cores) / objective.score(1.0, spec.asked_cores)
    gain = Gain(low=proposal.gain.low * times, high=proposal.gain.high * times)
    return dataclasses.replace(proposal, gain=gain)


def _switches(
    case: Case, spec: JobSpec, objective: Objective, model: SpeedModel | None
) -> Iterator[Proposal]:
    """Yield other settings of the training library."""
    layouts = {} if model is None else moves.layouts(model.measured.layout)
    for each in moves.proposals(case, spec, objective):
        layout = layouts.get(each.name)
        if model is None or layout is None:
            yield each
            continue
        predicted = predictions.forecast_of(model, layout)
        yield moves.foretold(each, predicted.low, predicted.high)


def _cures(case: Case, proposed: Sequence[Proposal], model: SpeedModel | None) -> Iterator[Proposal]:
    """Yield cures that no cause proposes."""
    for each in cure_moves.proposals(case):
        if not any(each.conflicts(other) for other in proposed):
            yield each if model is None else _foretold(each, model)


def _foretold(proposal: Proposal, model: SpeedModel) -> Proposal:
    """Return a cure with the gain that the model of the job predicts, if the model knows its effect."""
    predicted = _forecast(model, proposal.changes)
    if predicted is None:
        return proposal
    gain = Gain(low=min(1.0, predicted.low), high=predicted.high)
    return dataclasses.replace(proposal, gain=gain, basis=f"{_MODEL}; not what the cure itself costs")


def _shapes(model: SpeedModel, objective: Objective) -> Iterator[Proposal]:
    """Yield the most promising shapes of the job within the limits."""
    now = shapes.shape(model.job.spec)
    if now is None:
        return
    rated = candidates.rated(_candidates(model, objective), model.calibration.costs, objective)
    for each in candidates.promising(now, rated):
        yield _proposal(model, now, each, objective)


def _candidates(model: SpeedModel, objective: Objective) -> Iterator[Candidate]:
    spec = model.job.spec
    # The placement of variables depends only on these two parts of a shape: the number of PS, and ``even``.
    plans: dict[tuple[int, bool], Plan | None] = {}
    now = shapes.shape(spec)
    for shape in shapes.beside(spec, objective):
        if model.is_seen and now is not None and shape.even != now.even:
            continue  # A script that ignores the job file places its variables itself: not evenly.
        after = shapes.reshaped(spec, shape)
        key = shape.servers, shape.even
        if key not in plans:
            plans[key] = _plan(model, after)
        plan = plans[key]
        if plan is None or not _has_room(plan, after):
            continue
        try:
            layout = predictions.layout(model, after, lying=plan)
        except (InvalidInput, EngineError):  # Its replicas cannot be placed.
            continue
        yield Candidate(shape=shape, layout=layout, cores=after.asked_cores)


def _plan(model: SpeedModel, spec: JobSpec) -> Plan | None:
    """Return the placement of variables in another job; None: the placement it asks for is not possible."""
    with contextlib.suppress(InvalidInput):
        return predictions.plan(model, spec)
    return None


def _has_room(plan: Plan, spec: JobSpec) -> bool:
    """Return whether the variables of each PS fit into its memory."""
    servers = spec.role(Role.PS)
    if servers is None or servers.memory_bytes is None:
        return True
    return max(plan.memory_bytes()) <= _FULL_MEMORY * servers.memory_bytes


def _proposal(model: SpeedModel, now: JobShape, found: Rated, objective: Objective) -> Proposal:
    wanted = found.candidate
    predicted = predictions.forecast_of(model, wanted.layout)
    times = objective.score(1.0, wanted.cores) / objective.score(1.0, model.job.spec.asked_cores)
    return Proposal(
        name=_LAYOUT,
        what=f"Have {shapes.words(now, wanted.shape)}; then {predicted.then.binds or NOTHING_BINDS} binds.",
        changes=shapes.changes(model.job.spec, wanted.shape),
        gain=Gain(low=predicted.low * times, high=predicted.high * times),
        basis=_MODEL,
        risk=" ".join(_risks(now, wanted.shape)),
    )


def _risks(now: JobShape, wanted: JobShape) -> Iterator[str]:
    if wanted.workers > now.workers:
        yield _MORE_WORKERS
    if wanted.servers != now.servers or wanted.even != now.even:
        yield _OTHER_SERVERS
