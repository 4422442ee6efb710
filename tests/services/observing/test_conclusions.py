"""What was found when a job had ended is what `why` says from then on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from support import filled_homes

from paceline.services.local import jobs
from paceline.services.observing import diagnosis_summaries, recordings
from paceline.stores import recordings as files

RECORDING = (
    Path(__file__).parents[3]
    / "benchmarks/diagnosis/recordings/ps-cpu-bound.gross.deepfm-large-plain-4.parquet"
)


def test_later_rules_do_not_rewrite_it(api: jobs.Jobs, tmp_path: Path) -> None:
    name = filled_homes.keep(api.store, files.read(RECORDING), tmp_path)
    _, first = recordings.explain(api, name)
    diagnosis_summaries.conclude(api, name)
    kept = api.store.conclusion(name)
    assert kept is not None
    assert kept.explanation.causes == first.causes
    # Even when nothing of it could be judged any more.
    with api.store._database.writing() as connection:
        for table in ("samples", "sample_pieces", "sample_blocks", "step_reports"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    later = dataclasses.replace(api, clock=lambda: api.clock() + 10 * 86_400)
    _, again = recordings.explain(later, name)
    assert again.causes == first.causes
    # But how long ago it ended is said as of now.
    assert again.summary != first.summary
    _, anew = recordings.explain(later, name, anew=True)
    assert "ps-cpu-bound" not in {cause.name for cause in anew.causes}


def test_the_version_that_judged_is_said_when_it_is_another(api: jobs.Jobs, tmp_path: Path) -> None:
    name = filled_homes.keep(api.store, files.read(RECORDING), tmp_path)
    recording, found = recordings.explain(api, name)
    assert recording is not None
    diagnosis_summaries.conclude(api, name)
    with api.store._database.writing() as connection:
        connection.exec_driver_sql("UPDATE conclusions SET version = '0.0.9'")
    _, again = recordings.explain(api, name)
    assert again.causes == found.causes
    assert "Paceline 0.0.9 judged it when it had ended" in again.unknown[-1]
