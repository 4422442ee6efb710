"""A run of a layout: how fast it is, what it uses, and how fast the machine was meanwhile."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import trials as jobs_trials
from benchmarks.diagnosis import trials
from benchmarks.diagnosis.sites import Site
from benchmarks.prediction.variants import BASE, Variant
from benchmarks.protocols import ROOT, Row
from paceline import specs
from paceline.model.jobs import Host
from paceline.model.roles import ReplicaId
from paceline.modelling.calibrations import Measured
from paceline.modelling.layouts import Layout, Server, Trainers
from paceline.services import predictions, recordings

#: The first steps are slower; together longer than `paceline why` looks back.
SETTLE_SECONDS, WINDOW_SECONDS = 5.0, 27.0
_PROBE_ROUNDS = 3_000_000


def measure(variant: Variant) -> Mapping[str, Any]:
    """Run a layout; return what was measured, and how long the machine took for something else then."""
    BASE.make_data()
    spec = variant.job()
    before = _probe_seconds()
    with jobs_trials.service() as api:
        run = api.submit(spec, source=specs.dump_job(spec), base=ROOT)
        try:
            site = Site.of(api, run)
            trials.wait_for_steps(site, None)
            site.limit()
            time.sleep(SETTLE_SECONDS + WINDOW_SECONDS)
            found = predictions.model(recordings.whole(api, run.name)).measured
        finally:
            trials.end_job(api, run)
    return {
        "learnt": variant.learnt,
        "probe_seconds": (before + _probe_seconds()) / 2,
        "measured": dataclasses.asdict(found),
    }


def _probe_seconds() -> float:
    """Return how long this machine takes for the same work: it is not as fast at all times."""
    start = time.perf_counter()
    total = 0
    for number in range(_PROBE_ROUNDS):
        total += number
    return time.perf_counter() - start


def all_measured(rows: Sequence[Row]) -> list[Measured]:
    """Return what rows say, each as on a machine that is as fast as it was in the middle of them."""
    probe = statistics.median(row["probe_seconds"] for row in rows)
    return [_measured(row, probe_seconds=probe) for row in rows]


def _measured(row: Mapping[str, Any], *, probe_seconds: float) -> Measured:
    given = row["measured"]
    layout = given["layout"]
    return Measured(
        layout=Layout(
            servers=tuple(Server(**each) for each in layout["servers"]),
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
        steps_per_second=given["steps_per_second"] * row["probe_seconds"] / probe_seconds,
        trainer_cores=given["trainer_cores"],
        server_cores=tuple(given["server_cores"]),
    )
