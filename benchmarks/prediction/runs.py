"""A run of a layout: how fast it is, and what it uses."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

from benchmarks import trials as jobs_trials
from benchmarks.diagnosis import trials
from benchmarks.diagnosis.sites import Site
from benchmarks.prediction.variants import BASE, Variant
from benchmarks.protocols import ROOT, Row
from paceline import specs
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.measures.recordings import Recording
from paceline.model.roles import ReplicaId
from paceline.modelling.calibrations import MeasuredRun
from paceline.modelling.layouts import ModelLayout, ParameterServer, Trainers
from paceline.services.observing import recordings
from paceline.services.studying import predictions

#: The first steps are slower; together longer than `paceline why` looks back.
SETTLE_SECONDS, WINDOW_SECONDS = 5.0, 27.0


def measure(variant: Variant) -> Mapping[str, Any]:
    """Run a layout; return what was measured."""
    BASE.make_data()
    found = predictions.model(recorded(variant.job())).measured
    return {"layout": variant.name, "learnt": variant.learnt, "measured": dataclasses.asdict(found)}


def recorded(spec: JobSpec) -> Recording:
    """Run a job for a while; return what is known of it then."""
    with jobs_trials.service() as api:
        run = api.submit(spec, source=specs.dump_job(spec), base=ROOT)
        try:
            site = Site.of(api, run)
            trials.wait_for_steps(site, None)
            site.limit()
            time.sleep(SETTLE_SECONDS + WINDOW_SECONDS)
            return recordings.whole(api, run.name)
        finally:
            trials.end_job(api, run)


def measured(row: Row) -> MeasuredRun:
    """Return what a row says."""
    given = row["measured"]
    layout = given["layout"]
    return MeasuredRun(
        layout=ModelLayout(
            servers=tuple(ParameterServer(**each) for each in layout["servers"]),
            trainers=tuple(
                Trainers(
                    replicas=tuple(ReplicaId(**replica) for replica in each["replicas"]),
                    cores=each["cores"],
                    host=each["host"],
                )
                for each in layout["trainers"]
            ),
            hosts=tuple(Host(**each) for each in layout["hosts"]),
            machine_cores=layout["machine_cores"],
            batch_size=layout["batch_size"],
            steps_in_flight=layout["steps_in_flight"],
        ),
        steps_per_second=given["steps_per_second"],
        trainer_cores=given["trainer_cores"],
        server_cores=tuple(given["server_cores"]),
    )
