"""Recordings that are uploaded as files and become jobs."""

from __future__ import annotations

import asyncio
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from paceline.surfaces import documents
from paceline.surfaces.web import guards
from paceline.surfaces.web.callers import CallerRequest, may
from paceline.surfaces.web.operations import ApiOperation
from paceline.surfaces.web.problems import RequestRefused
from paceline.surfaces.web.routes import jobs as job_routes
from paceline.surfaces.web.schemas import runs as schemas
from paceline.surfaces.web.schemas.bases import JOB_NAME

router = APIRouter(prefix="/recordings", tags=["jobs"])
MEDIA_TYPE = "application/vnd.apache.parquet"
#: The time for uploading a file.
UPLOAD_SECONDS = 600.0
_BODY = {
    "requestBody": {
        "required": True,
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post(
    "", operation_id="importRecording", response_model=schemas.Run, status_code=201, openapi_extra=_BODY
)
async def import_recording(
    request: Request,
    response: Response,
    asked: Annotated[CallerRequest, Depends(may(ApiOperation.SUBMIT))],
    name: Annotated[
        str | None,
        Query(description="of the job; else as in the file, with a number when taken", pattern=JOB_NAME),
    ] = None,
) -> dict[str, Any]:
    """Keep a recording, the file that `paceline record` writes, as a job that has ended."""
    with tempfile.TemporaryDirectory(prefix="paceline-import-") as folder:
        file = Path(folder) / "recording.parquet"
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                size = await _save(request, file)
        except TimeoutError as error:
            raise RequestRefused(HTTPStatus.REQUEST_TIMEOUT, "the rest of the file did not come") from error
        found = await run_in_threadpool(_imported, asked, file, name, size)
    response.headers["Location"] = job_routes.address(request, found["name"])
    return found


async def _save(request: Request, file: Path) -> int:
    """Write the body of a request into a file; return its size.

    Raises:
        RequestRefused: the body is too large, whatever its declared length.
    """
    most = guards.MOST_STREAMED_BYTES
    size = 0
    with file.open("wb") as output:
        async for chunk in request.stream():
            size += len(chunk)
            if size > most:
                raise RequestRefused(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a recording has at most {most} bytes"
                )
            await run_in_threadpool(output.write, chunk)
    return size


def _imported(asked: CallerRequest, file: Path, name: str | None, size: int) -> dict[str, Any]:
    asked.note(name, f"a recording of {size} bytes")
    run = asked.jobs.import_file(file, name=name, origin="the API")
    if run.name != name:  # Only now its name is known.
        asked.note(run.name, "imported" if name is None else f"imported as {name}")
    return documents.run_document(run, asked.jobs.replicas(run.name), lost=False)
