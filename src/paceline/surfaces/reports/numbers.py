"""The numbers of a report as a document for programs; values that were not measured are null."""

from __future__ import annotations

from typing import Any

from paceline.surfaces import documents
from paceline.surfaces.reports import evidence


def document(measured: evidence.ReportEvidence) -> dict[str, Any]:
    """Return how a job did over its whole run as a document."""
    snapshot, run = measured.snapshot, measured.recording.run
    body = {
        **documents.performance(snapshot),
        "message": run.message,
        "restarts": snapshot.restarts,
        "training_seconds": snapshot.interval.seconds if snapshot.interval else None,
        "auc": measured.auc,
        "best_auc": measured.best_auc,
        "submitted_at": documents.instant(run.submitted_at),
        "started_at": documents.instant(run.started_at),
        "finished_at": documents.instant(run.finished_at),
        "notes": list(measured.notes),
        "machine": dict(measured.recording.facts),
    }
    return documents.document("Report", body)
