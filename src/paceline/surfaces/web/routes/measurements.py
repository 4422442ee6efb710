"""The measurements of a job, its state, and the causes of both."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import FileResponse, JSONResponse
from starlette.types import Receive, Scope, Send

from paceline.errors import InvalidInput
from paceline.model.jobs.runs import Run
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.services.observing import recordings
from paceline.specs.yaml_text import problems
from paceline.stores import recordings as files
from paceline.surfaces import courses, documents
from paceline.surfaces.diffs import Diffs
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.routes.jobs import Name, replica
from paceline.surfaces.web.schemas import measurements as schemas

router = APIRouter(prefix="/jobs/{name}", tags=["measurements"])
Readable = Annotated[CallerRequest, Depends(may(ApiOperation.GET))]
Wanted = Annotated[schemas.SeriesQuery, Query()]


@router.get("/snapshot", operation_id="getSnapshot", response_model=schemas.Snapshot)
def get_snapshot(asked: Readable, name: Name) -> dict[str, Any]:
    """Return how a job does: load and imbalance of its replicas, progress, the main finding."""
    run = asked.jobs.get(name)
    return documents.snapshot(asked.look_cache.snapshot(run), asked.look_cache.look(run))


@router.get("/why", operation_id="explainJob", response_model=schemas.Explanation)
def explain(asked: Readable, name: Name) -> dict[str, Any]:
    """Return why a job is where it is, and why it is as fast as it is: causes with evidence and changes."""
    run = asked.jobs.get(name)
    found = asked.look_cache.look(run).explanation
    return documents.explanation(found, Diffs.of(run))


@router.get("/situation", operation_id="getSituation", response_model=schemas.Situation)
def get_situation(asked: Readable, name: Name) -> dict[str, Any]:
    """Return where a job stands: what happened to it, what its replicas wait for, whether it fits.

    `why` tells causes from this and from what was measured.
    """
    return documents.document("Situation", documents.plain(asked.jobs.situation(name)))


class RecordingResponse(FileResponse):
    """A recording, as a file that is removed however sending it ends.

    It is sent whole: each request makes another file, and parts of two of them do not fit together.
    """

    media_type = "application/vnd.apache.parquet"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the whole file, whatever range is asked for."""
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"range"]
        try:
            await super().__call__({**scope, "headers": headers}, receive, send)
        finally:
            Path(self.path).unlink(missing_ok=True)


@router.get("/recording", operation_id="getRecording", response_class=RecordingResponse)
def get_recording(
    asked: Readable, name: Name, wanted: Annotated[schemas.RecordingQuery, Query()]
) -> RecordingResponse:
    """Return all that is known of a job in one file, which `why`, `top` and `report` take on any machine.

    A Parquet table of what was measured; the rest is in its metadata. The job file is in it, with the values
    of its environment. Of more measurements than such a file may have, several become one.
    """
    recording = recordings.whole(asked.jobs, name, since=wanted.since, thinned=wanted.thinned)
    recording = recordings.shortened(recording, files.MOST_ROWS)
    with tempfile.NamedTemporaryFile(prefix="paceline-", suffix=".parquet", delete=False) as file:
        path = Path(file.name)
    try:
        files.write(path, recording)
    except BaseException:
        path.unlink()
        raise
    return RecordingResponse(
        path,
        media_type=RecordingResponse.media_type,  # Otherwise it would be guessed from the file name.
        filename=f"{recording.run.name}.parquet",
        headers={"Accept-Ranges": "none"},
    )


@router.get("/samples", operation_id="listSamples", response_model=schemas.SeriesList)
def list_samples(asked: Readable, name: Name, wanted: Wanted) -> JSONResponse:
    """Return what was measured of the resources of a job's replicas, in as many points as are asked for."""
    chosen = _Choice(asked, name, wanted, schemas.SAMPLE_FIELDS)
    store, stored = asked.jobs.stored(name)
    return chosen.answer(store.samples(stored, **chosen.asked, every_seconds=chosen.every_seconds))


@router.get("/steps", operation_id="listStepReports", response_model=schemas.SeriesList)
def list_steps(asked: Readable, name: Name, wanted: Wanted) -> JSONResponse:
    """Return what a job's trainers said of their progress, in as many points as are asked for."""
    chosen = _Choice(asked, name, wanted, schemas.STEP_FIELDS)
    store, stored = asked.jobs.stored(name)
    return chosen.answer(store.step_reports(stored, **chosen.asked, every_seconds=chosen.every_seconds))


@router.get("/evaluations", operation_id="listEvaluations", response_model=schemas.SeriesList)
def list_evaluations(asked: Readable, name: Name, wanted: Wanted) -> JSONResponse:
    """Return how good the model was on data that it was not trained on: all of it."""
    chosen = _Choice(asked, name, wanted, schemas.EVALUATION_FIELDS)
    chosen.every_seconds = None
    store, stored = asked.jobs.stored(name)
    return chosen.answer(store.evaluations(stored, **chosen.asked))


@router.get("/course", operation_id="getCourse", response_model=schemas.Course)
def get_course(asked: Readable, name: Name, wanted: Annotated[schemas.CourseQuery, Query()]) -> JSONResponse:
    """Return the load of a job's replicas and how its training went, over its whole life on one grid of time.

    For charts: once a client has drawn one, it asks for what comes after, with ``since``.
    """
    found = asked.look_cache.course(asked.jobs.get(name))
    return JSONResponse(courses.course(found, wanted.gauge, since=wanted.since))


class _Choice:
    """The measurements that a caller wants, and the answer with them.

    Attributes:
        asked: arguments that select them in a store; if there are several replicas, they are filtered later.
        every_seconds: the length of the intervals; None: as they were measured.
    """

    def __init__(
        self, asked: CallerRequest, name: str, query: schemas.SeriesQuery, known_fields: Sequence[str]
    ) -> None:
        self._fields = query.field or known_fields
        for field in self._fields:
            if field not in known_fields:
                close = problems.did_you_mean(field, known_fields)
                raise InvalidInput(
                    f"there is no field {problems.shown(field)}{close}", ", ".join(known_fields)
                )
        self._replicas = frozenset(map(replica, query.replica))
        self.asked: dict[str, Any] = {
            "replica": next(iter(self._replicas)) if len(self._replicas) == 1 else None,
            "role": query.role,
            "since": query.since,
            "until": query.until,
        }
        self.every_seconds = _every_seconds(asked.jobs.get(name), query, now=asked.site.clock())

    def answer(self, found: Sequence[Sample | StepReport | EvaluationReport]) -> JSONResponse:
        """Return measurements as columns; they are many, so no schema validates each of them again."""
        items = list(self._series(found))
        body = documents.document("SeriesList", {"every_seconds": self.every_seconds, "items": items})
        return JSONResponse(body)

    def _series(
        self, measurements: Sequence[Sample | StepReport | EvaluationReport]
    ) -> Iterator[dict[str, Any]]:
        by_attempt: dict[tuple[ReplicaId, int], list[Sample | StepReport | EvaluationReport]] = {}
        for measurement in measurements:
            if not self._replicas or measurement.replica in self._replicas:
                by_attempt.setdefault((measurement.replica, measurement.attempt), []).append(measurement)
        for (of, attempt), measured in sorted(by_attempt.items(), key=lambda item: item[0]):
            yield {
                "replica": str(of),
                "attempt": attempt,
                "at_unix_seconds": [measurement.at for measurement in measured],
                "interval_seconds": [
                    getattr(measurement, "interval_seconds", None) for measurement in measured
                ],
                "values": {
                    name: [_number(getattr(measurement, name)) for measurement in measured]
                    for name in self._fields
                },
            }


def _every_seconds(run: Run, wanted: schemas.SeriesQuery, *, now: float) -> float | None:
    """Return the length of intervals that gives about as many of them as are wanted; None: as measured."""
    begin = max(wanted.since or 0.0, run.started_at if run.started_at is not None else now)
    end = min(wanted.until if wanted.until is not None else math.inf, run.finished_at or now)
    seconds = (end - begin) / wanted.points
    return seconds if 1.0 < seconds < math.inf else None


def _number(value: float | None) -> float | None:
    """Return a number that JSON can represent, or None: a loss may be NaN."""
    return value if value is None or math.isfinite(value) else None
