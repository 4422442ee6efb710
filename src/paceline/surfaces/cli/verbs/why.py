"""``paceline why``: why a job is where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paceline.surfaces.cli import options, printing, sessions

if TYPE_CHECKING:
    from paceline.model.causes import Explanation


@options.verb("why")
@options.engine_options
@options.name_argument
@options.output_option("table", "json", "yaml")
def command(session: sessions.Session, name: str, output: str) -> None:
    """Say why the job NAME is pending, failed, stopped or restarting, or that nothing is wrong.

    From what happened to it, why its replicas ended, what its pods wait for, and whether it fits. Each cause
    with what was seen of it, and what to do next; `paceline explain CODE` says more. Why a job is slow is
    another question: `paceline top`.
    NAME may be the file of a recording (`paceline record`).
    """
    from paceline.diagnosing import standstills, topics
    from paceline.surfaces.views import causes as views

    recording = sessions.recording(name)
    if recording is not None:
        from paceline.services import recordings

        found = standstills.explain(recordings.situation(recording))
    else:
        with session.jobs() as jobs:
            found = standstills.explain(jobs.situation(name))
    if output == "table":
        printing.show(views.explanation(found, say=session.addressed, width=printing.width()))
    else:
        from paceline.surfaces import documents

        printing.emit(documents.document("Explanation", _document(found)), output)
    codes = [f"paceline explain {topics.code(cause.name)}" for cause in found.causes[:1]]
    others = ("describe", "logs") if recording is None else ("top", "report")
    session.suggest(*codes, *(f"paceline {verb} {name}" for verb in others))


def _document(found: Explanation) -> dict[str, Any]:
    from paceline.diagnosing import topics
    from paceline.surfaces import documents

    body: dict[str, Any] = documents.plain(found)
    for cause in body["causes"]:
        cause["code"] = topics.code(cause["name"])
        for each in cause["evidence"]:
            each["at"] = documents.instant(each["at"])
    return body
