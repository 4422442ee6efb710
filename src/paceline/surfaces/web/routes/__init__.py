"""The API: one file for each kind of thing that is asked about."""

from paceline.surfaces.web.schemas.bases import Problem

#: What every route may answer instead of what was asked for.
PROBLEMS = {
    status: {"model": Problem, "content": {"application/problem+json": {}}, "description": why}
    for status, why in (
        (401, "Who asks is not known."),
        (403, "They may not."),
        (404, "There is no such thing."),
        (409, "The job is in a state that does not allow this, or there is no room for it."),
        (413, "The request is too large."),
        (422, "The request, or a job file in it, is wrong."),
        (429, "Too many requests."),
        (503, "The store or the cluster does not answer."),
    )
}
