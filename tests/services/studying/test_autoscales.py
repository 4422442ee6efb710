"""Cores that move within real jobs, by what probes of them say."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import pytest
from support import group_files, paced_cores
from support.group_files import until
from support.shell_jobs import Submit

from paceline.engines.local import machines
from paceline.model.jobs.job_specs import Autoscale, CoreRange
from paceline.model.roles import ReplicaId, Role
from paceline.services.local import jobs
from paceline.services.studying.autoscales import SCALED, Autoscaler

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("preferred"),
    pytest.mark.skipif(machines.read().cgroups is None, reason="no cgroups can be made here"),
]
SCALE = Autoscale(ranges={Role.PS: CoreRange(low=0.1, high=2.0)})


def said(api: jobs.Jobs, name: str) -> list[str]:
    return [event.message for _, event in api.events(name) if event.kind == SCALED]


def test_what_binds_gets_cores_of_what_rests(api: jobs.Jobs, submit: Submit, tmp_path: Path) -> None:
    spec = dataclasses.replace(paced_cores.job(tmp_path, "ps-1"), autoscale=SCALE)
    run = paced_cores.training(api, submit(spec))
    over = threading.Event()
    scaler = Autoscaler(jobs=api, name=run.name, times=paced_cores.TIMES, settle_seconds=0.1)
    thread = threading.Thread(target=scaler.go, args=(over.is_set,))
    thread.start()
    try:
        until(lambda: said(api, run.name))
    finally:
        over.set()
        thread.join()
    (text,) = said(api, run.name)
    given = api.get(run.name).spec.role_of(ReplicaId(Role.PS, 1)).cpu_cores
    left = api.get(run.name).spec.role_of(ReplicaId(Role.PS, 0)).cpu_cores
    assert given is not None
    assert left is not None
    assert text == (
        f"ps-0: 500m -> {round(1000 * left)}m CPU (it rests); "
        f"ps-1: 500m -> {round(1000 * given)}m CPU (it binds)"
    )
    assert given > 0.55 > 0.5 > left, "a kernel that divides cores gives what it takes"
    assert given + left <= 1.0 + 1e-9, "all of them together have no more than before"
    assert group_files.cores(run, "ps-1") == pytest.approx(given)
    assert group_files.cores(run, "ps-0") == pytest.approx(left)
    assert scaler.failures == 0
    api.stop(run.name)
    assert {row.attempt for row in api.replicas(run.name)} == {1}


@pytest.mark.nightly
def test_nothing_moves_where_nothing_binds(api: jobs.Jobs, submit: Submit, tmp_path: Path) -> None:
    spec = dataclasses.replace(paced_cores.job(tmp_path, ""), autoscale=SCALE)
    run = paced_cores.training(api, submit(spec))
    found = Autoscaler(jobs=api, name=run.name, times=paced_cores.TIMES).round()
    assert (found.moves, found.why) == ((), "nothing that may be scaled binds")
    assert said(api, run.name) == ["nothing was changed: nothing that may be scaled binds"]
    assert api.get(run.name).spec == run.spec
    api.stop(run.name)
