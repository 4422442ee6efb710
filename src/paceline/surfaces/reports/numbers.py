"""The numbers of a report as a document for programs; values that were not measured are null."""

from __future__ import annotations

import dataclasses
from typing import Any

from paceline.surfaces import documents
from paceline.surfaces.reports import evidence


def document(measured: evidence.ReportEvidence) -> dict[str, Any]:
    """Return the summary of a run as a document."""
    summary = measured.summary
    run = measured.recording.run
    values = {field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)}
    interval = values.pop("interval")
    body = {
        **{name: documents.plain(value) for name, value in values.items()},
        "best_auc": measured.best_auc,
        "submitted_at": documents.instant(run.submitted_at),
        "started_at": documents.instant(run.started_at),
        "finished_at": documents.instant(run.finished_at),
        "training_seconds": interval.seconds if interval else None,
        "imbalances": [
            {
                **{k: v for k, v in documents.plain(one).items() if k != "loads"},
                "loads": {str(replica): load for replica, load in one.loads},
            }
            for one in summary.imbalances
        ],
        "machine": dict(measured.recording.facts),
    }
    return documents.document("Summary", body)
