"""A model whose runs did as they always did, until one that did worse."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from paceline.model.explanations.causes import Explanation
from paceline.model.explanations.conclusions import Conclusion
from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.explanations.findings import Severity
from paceline.services.local import state_dirs
from paceline.stores import open_store, tables
from support import filled_homes

FILE = """\
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: nightly, labels: {model: ctr}}
spec:
  command: [python, train.py]
  roles: {ps: {replicas: 2, cpu: 1}, worker: {replicas: 2, cpu: 1}}
"""
DAY = 86_400.0


def fill(home: state_dirs.Home, *, runs: int = 12, worse: int = 10) -> str:
    """Keep runs of one model; the one of a number is slower, the first was not measured; return the model."""
    name = ""
    for number in range(runs):
        job = f"nightly-{number}"
        spec = dataclasses.replace(filled_homes.spec_of(job), labels={"model": "ctr", "team": "ads"})
        run = filled_homes.fill(home, job, spec=spec, submitted_at=1.7e9 + number * DAY)
        with open_store(home.store_url) as store:
            with store._database.writing() as connection:
                mine = sa.update(tables.runs).where(tables.runs.c.name == job)
                connection.execute(mine.values(source=FILE.encode()))
            speed = 9000.0 + 150 * (number % 3) - (4000.0 if number == worse else 0.0)
            summary = DiagnosisSummary(
                at=1e9, examples_per_second=speed if number else None, used_cores=3.6 if number else None,
                auc=0.78 + 0.0003 * (number % 4) if number else None, trend=(),
                code="PS101" if number == worse else None,
                severity=Severity.WARNING if number == worse else None,
                finding="every PS is at its CPU limit" if number == worse else None,
            )  # fmt: skip
            found = Explanation(job=job, summary="it has ended")
            store.conclude(job, Conclusion(at=1e9, version="0", explanation=found), summary)
            (name,) = {each.model for each in store.list_runs() if each.name == run.name}
    return name
