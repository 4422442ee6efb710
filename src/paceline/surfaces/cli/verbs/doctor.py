"""``paceline doctor``: what this machine lets Paceline do."""

from __future__ import annotations

from paceline.errors import PacelineError
from paceline.surfaces.cli import options, printing, sessions


@options.verb("doctor")
@options.output_option("table", "json", "yaml")
def command(session: sessions.Session, output: str) -> None:
    """Check Python, limits, emulated hosts, TensorFlow, room, the store and GPUs.

    A thing that is missing costs what the line says; only one that failed keeps Paceline from working.
    """
    from paceline.services import checkups
    from paceline.surfaces import documents
    from paceline.surfaces.views import checkups as views

    done = []
    for check in checkups.checks(session.home):
        done.append(check)
        if output == "table":
            printing.show(views.line(check, width=printing.width()))
    if output != "table":
        items = [documents.plain(check) for check in done]
        printing.emit(documents.document("CheckList", {"items": items}), output)
    failed = [check.name for check in done if check.state is checkups.State.FAILED]
    if failed:
        raise PacelineError(f"Paceline cannot work here: {', '.join(failed)}")
    session.suggest("paceline init job.yaml", "paceline run job.yaml")
