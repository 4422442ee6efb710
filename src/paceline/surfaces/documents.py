"""Converts values of the model to documents for programs.

Keys are in snake_case, durations in seconds, times ISO 8601 in UTC, and values that were not measured are
null. Every document has ``apiVersion`` and ``kind``. Within an API version, keys are added but never renamed
or removed.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from paceline.model.jobs import job_specs
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run, RunSummary
from paceline.model.measures import script_facts
from paceline.model.roles import ReplicaId
from paceline.model.studies import trained_models

if TYPE_CHECKING:
    from paceline.model.explanations.causes import Cause, Explanation
    from paceline.model.measures.probes import Cut, Elasticity, Probe
    from paceline.model.measures.snapshots import Snapshot
    from paceline.model.studies.experiments import Experiment
    from paceline.model.traces.traced_steps import Trace
    from paceline.modelling.elasticities import Compared
    from paceline.modelling.forecasts import Forecast
    from paceline.scheduling.fits import Fit
    from paceline.services.observing.diagnosis_runs import DiagnosisRun
    from paceline.services.studying.autoscale_forecasts import Round
    from paceline.surfaces.diffs import Diffs

API_VERSION = job_specs.API_VERSION


def document(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document of a kind."""
    return {"apiVersion": API_VERSION, "kind": kind, **body}


def instant(at: float | None) -> str | None:
    """Return Unix seconds as ISO 8601 in UTC, to the millisecond."""
    if at is None:
        return None
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def run_list(runs: Sequence[RunSummary], *, lost: Collection[str]) -> dict[str, Any]:
    """Return the document of a list of jobs."""
    return document("RunList", {"items": [run_summary(run, lost=run.name in lost) for run in runs]})


def run_summary(run: RunSummary, *, lost: bool) -> dict[str, Any]:
    """Return the entry of a job in a list."""
    return {
        **plain(run),
        "phase": "lost" if lost else run.phase.value,
        "last_phase": run.phase.value,
        "duration_seconds": _duration(run),
    }


def run_document(
    run: Run,
    replicas: Sequence[ReplicaRow],
    *,
    lost: bool,
    supervisor_pids: Sequence[int] = (),
    events: Sequence[JobEvent] | None = None,
) -> dict[str, Any]:
    """Return the document of one job, with its events if they are given.

    Args:
        run: the job.
        replicas: the replicas of the job.
        lost: whether the job should run but no supervisor watches it.
        supervisor_pids: process ids of the guard and the supervisor; empty if there are none.
        events: events of the job, including observations of its scripts.
    """
    body = {
        **_plain_fields(run, "source"),
        "phase": "lost" if lost else run.phase.value,
        "last_phase": run.phase.value,
        "labels": dict(run.spec.labels),
        "model": trained_models.name_of(run.spec),
        "duration_seconds": _duration(run),
        "supervisor_pids": list(supervisor_pids),
        "replicas": [replica_row(row) for row in replicas],
    }
    if events is not None:
        body["events"] = [plain(each) for each in events]
        body["script_facts"] = {
            str(replica): {str(name): fact.value for name, fact in facts.items()}
            for replica, facts in script_facts.of_replicas(replicas, events).items()
        }
    return document("Run", body)


def _duration(run: Run | RunSummary) -> float | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return run.finished_at - run.started_at


def replica_row(row: ReplicaRow) -> dict[str, Any]:
    """Return the entry of a replica."""
    body: dict[str, Any] = plain(row)
    body["memory_limit_bytes"] = body.pop("memory_bytes")
    return {**body, "role": row.replica.role.value, "index": row.replica.index}


def fit(spec: job_specs.JobSpec, found: Fit) -> dict[str, Any]:
    """Return whether a job fits, where its replicas go, and what blocks it."""
    return {
        "name": spec.name,
        "fits": found.fits,
        "most_workers": found.most_workers,
        "places": {str(replica): node for replica, node in sorted(found.places.items())},
        "blockers": [plain(each) for each in found.blockers],
    }


def experiment(found: Experiment) -> dict[str, Any]:
    """Return the document of an experiment, with every variant compared with the baseline."""
    from paceline.tuning import comparisons

    compared = [plain(each) for each in comparisons.compared(found)]
    body: dict[str, Any] = plain(found)
    return document("Experiment", {**body, "compared": compared})


def snapshot(value: Snapshot, look: DiagnosisRun | None = None) -> dict[str, Any]:
    """Return the document of what ``paceline top`` shows.

    Args:
        value: the state of the job.
        look: its diagnosis; None if the job was not diagnosed: then ``unknown`` is null, not empty.
    """
    found = {
        "finding": None if look is None else _finding(look),
        "unknown": None if look is None else list(look.explanation.unknown),
        "split": None if look is None else _split(look),
    }
    return document("Snapshot", {**performance(value), **found})


def performance(value: Snapshot) -> dict[str, Any]:
    """Return how a job does, or did over its whole run, as a part of a document."""
    return {
        **_plain_fields(value, "run", "lost", "roles"),
        "name": value.run.name,
        "phase": "lost" if value.lost else value.run.phase.value,
        "elapsed_seconds": value.elapsed_seconds,
        "progress": value.progress,
        "eta_seconds": value.eta_seconds,
        "roles": [
            {
                **_plain_fields(role, "replicas"),
                "replicas": [
                    {**replica_row(each.row), **_plain_fields(each, "row")} for each in role.replicas
                ],
            }
            for role in value.roles
        ],
    }


def explanation(found: Explanation, diffs: Diffs) -> dict[str, Any]:
    """Return the document of an explanation; each cause also has its changes as a diff of the job file."""
    body: dict[str, Any] = plain(found)
    return document("Explanation", {**body, "causes": [_cause(cause, diffs) for cause in found.causes]})


def _cause(cause: Cause, diffs: Diffs) -> dict[str, Any]:
    from paceline.diagnosing import catalogues

    body: dict[str, Any] = plain(cause)
    return {
        "code": catalogues.topic(cause.name).code,
        **body,
        "diff": diffs.diff(cause.changes),
        "effects": [_cause(effect, diffs) for effect in cause.effects],
    }


def _finding(look: DiagnosisRun) -> dict[str, Any] | None:
    """Return a short form of the primary cause; ``paceline why`` shows all of it."""
    from paceline.diagnosing import catalogues

    cause = next((each for each in look.explanation.causes if not each.is_past), None)
    if cause is None:
        return None
    names = ("name", "severity", "what", "subjects", "gain")
    return {
        "code": catalogues.topic(cause.name).code,
        **{name: plain(getattr(cause, name)) for name in names},
    }


def _split(look: DiagnosisRun) -> dict[str, Any] | None:
    from paceline.model.traces import trace_summaries

    shares = trace_summaries.shares(look.recording.traces)
    return None if shares is None else _plain_fields(shares)


def probe(value: Probe) -> dict[str, Any]:
    """Return the document of a probe: each part with its elasticity, and each cut."""
    from paceline.probing import sayings

    body: dict[str, Any] = plain(value)
    body |= {
        "name": body.pop("run"),
        "lost_share": body.pop("share"),
        "conclusion": sayings.conclusion(value.elasticities),
        "parts": list(map(_elasticity, value.elasticities)),
        "cuts": [{**_with_part(cut), "elasticity": cut.elasticity} for cut in value.cuts],
    }
    del body["elasticities"]
    return document("Probe", body)


def forecast(found: Forecast, probed: Sequence[Compared]) -> dict[str, Any]:
    """Return the document of a forecast for another layout, with probed elasticities beside computed ones."""
    parts = [{**_elasticity(each.probed), "computed": each.computed} for each in probed]
    return document("Forecast", {**plain(found), "probed": parts})


def autoscale_round(found: Round) -> dict[str, Any]:
    """Return the moves and the predicted effect of one round of autoscaling."""
    moves = [
        {"replica": str(each.replica), "before": each.before, "after": each.after, "why": each.why}
        for each in found.balance.moves
    ]
    return {
        "moves": moves,
        "why": found.balance.why,
        "examples_per_second": found.forecast.then_examples_per_second,
        "times": found.forecast.times,
        "low": found.forecast.low,
        "high": found.forecast.high,
    }


def _elasticity(found: Elasticity) -> dict[str, Any]:
    body = {**_with_part(found), "verdict": found.verdict.value}
    body["elasticity"] = body.pop("value")
    return body


def _with_part(of: Cut | Elasticity) -> dict[str, Any]:
    """Return a cut or an elasticity with the fields of its part beside its own."""
    body: dict[str, Any] = plain(of)
    return {"name": of.part.name, **body.pop("part"), **body}


def trace(
    job: str, name: str, traces: Sequence[Trace], *, broken: Sequence[str], refused: Mapping[str, str]
) -> dict[str, Any]:
    """Return the document of the traces that were taken at one moment.

    Args:
        job: the name of the job.
        name: the name of the traced moment.
        traces: one trace for each trainer.
        broken: which traces could not be read, and why.
        refused: why a replica has no trace, by the name of the replica.
    """
    from paceline.model.traces import trace_summaries

    body = {
        "name": job,
        "trace": name,
        "broken": list(broken),
        "refused": dict(refused),
        "trainers": list(map(_trainer, traces)),
        "traffic": plain(trace_summaries.traffic(traces)),
        "server_time": plain(trace_summaries.server_time(traces)),
    }
    return document("Trace", body)


def _trainer(of: Trace) -> dict[str, Any]:
    return {
        "trainer": of.trainer,
        "attempt": of.attempt,
        "at": instant(of.at),
        "untraced_step_microseconds": of.untraced_step_microseconds,
        "steps": [{**plain(split), "total_microseconds": split.total_microseconds} for split in of.splits],
        "clocks": plain(of.clocks),
    }


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a dataclass, each with whether it is a moment (`UnixSeconds`)."""
    return tuple((field.name, "UnixSeconds" in str(field.type)) for field in dataclasses.fields(kind))


_SCALARS = frozenset({type(None), bool, int, float, str})


def plain(value: Any) -> Any:
    """Return a value of the model as mappings, lists and scalars; moments are ISO 8601."""
    if type(value) in _SCALARS:  # The common case: a list of jobs has thousands of scalars.
        return value
    if isinstance(value, ReplicaId):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return _plain_fields(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _plain_fields(value: Any, *omitted: str) -> dict[str, Any]:
    """Return the fields of a dataclass, but the omitted ones, each as `plain` makes it."""
    return {
        name: (instant if is_moment else plain)(getattr(value, name))
        for name, is_moment in _fields(value.__class__)
        if name not in omitted
    }
