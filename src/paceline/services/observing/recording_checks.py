"""Checks that a recording is plausible: files come from anywhere, and their content is shown for years.

Times and numbers are checked whenever a recording is read (`model.outside`), also if it is only viewed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from paceline import specs
from paceline.diagnosing import catalogues
from paceline.model.explanations.causes import Cause
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.specs.job_file import fields
from paceline.specs.yaml_text import problems

#: The limits of a replica's, attempt's or core's number, and of an integer in a database.
_MOST, _LARGEST = 2**31, 2**63
_TRAINER = re.compile(r"(worker|chief)-\d{1,9}")


def check(recording: Recording) -> None:
    """Check that a job of this home could have made a recording.

    Raises:
        ValueError: the recording holds an impossible value, which the text explains.
        LookupError: a cause found in it is not known here.
        InvalidInput: its job file is invalid.
    """
    run = recording.run
    if not fields.is_name(run.name):
        raise ValueError(f"{problems.shown(run.name)} cannot be a job's name")
    specs.parse_job(specs.dump_job(run.spec), file="its job file")
    replicas = _replicas(recording)
    measured: list[Sample | StepReport | EvaluationReport] = [
        *recording.samples, *recording.steps, *recording.evaluations
    ]  # fmt: skip
    for each in measured:
        _check_measured(each, replicas)
    for event in recording.events:  # Some may be of replicas that the job has no more.
        _check_whole(event.attempt or 0, 0 if event.replica is None else event.replica.index)
    for trace in recording.traces:
        if not _TRAINER.fullmatch(trace.trainer):
            raise ValueError(f"{problems.shown(trace.trainer)} is no trainer")
        _check_whole(trace.attempt)
    for output in recording.output:
        _check_whole(output.replica.index, output.attempt)
    if recording.conclusion is not None:
        _check_causes(recording.conclusion.explanation.causes)


def _replicas(recording: Recording) -> frozenset[ReplicaId]:
    """Return the replicas of a job; each must be present exactly once."""
    rows = frozenset(row.replica for row in recording.replicas)
    if len(rows) != len(recording.replicas):
        raise ValueError("a replica is there twice")
    missing = set(recording.run.spec.replicas()) - rows
    if missing:
        raise ValueError(f"{min(missing)} is missing")
    for row in recording.replicas:
        _check_whole(row.attempt, row.restarts, row.replica.index, *row.cores)
        if not 0 <= (row.memory_bytes or 0) < _LARGEST:
            raise ValueError(f"{row.memory_bytes} is no size of memory")
    return rows


def _check_measured(measured: Sample | StepReport | EvaluationReport, replicas: frozenset[ReplicaId]) -> None:
    if measured.replica not in replicas:
        raise ValueError(f"{measured.replica} was measured, and the job has none")
    _check_whole(measured.attempt)


def _check_whole(*numbers: int) -> None:
    for each in numbers:
        if not 0 <= each < _MOST:
            raise ValueError(f"{each} is no number of a replica, an attempt or a core")


def _check_causes(causes: Iterable[Cause]) -> None:
    for each in causes:
        catalogues.topic(each.name)
        _check_causes(each.effects)
