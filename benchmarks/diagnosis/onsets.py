"""How long a fault of a job that trains goes unnoticed: from when it begins until a watch tells of it."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from benchmarks import trials as jobs_trials
from benchmarks.diagnosis import acts, changes, trials
from benchmarks.diagnosis.acts import Act
from benchmarks.diagnosis.bases import PLAIN, WHOLE, Base
from benchmarks.diagnosis.sites import Site
from benchmarks.protocols import ROOT
from paceline import specs
from paceline.engines.local import cgroups
from paceline.model.roles import Role
from paceline.services.observing import diagnosis_runs, finding_debounce

#: A job has been healthy for longer than a look reaches, so that the fault has to show against that.
HEALTHY_SECONDS = 35.0
PATIENCE_SECONDS = 90.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """A fault that begins while a job trains.

    Attributes:
        name: of the fault.
        kind: of the healthy job that it comes to.
        act: what begins.
        causes: that may be told of it.
    """

    name: str
    kind: str = PLAIN
    act: Callable[[Base], Act]
    causes: Collection[str]


def _quota(role: Role, share: float) -> Act:
    """Give replicas of a role a share of the cores that they have."""

    @contextlib.contextmanager
    def act(site: Site) -> Iterator[None]:
        cores = changes.cores(site.spec, role)
        assert cores is not None, "the job limits its replicas"
        for replica in site.replicas(role):
            site.groups.create(site.group(replica), cgroups.CgroupLimits(cpu_cores=cores * share))
        yield

    return act


_WORKERS = ("worker-0", "worker-1")
#: Of what a disk gives in a healthy job, about (`bases.Base.bytes_per_example` for 2000 examples a second).
_SLOW_DISK_EXAMPLES = 2000.0
ONSETS = (
    Onset(
        name="PS get a quarter of their cores",
        act=lambda base: _quota(Role.PS, 0.25),
        causes=("ps-cpu-bound", "too-few-ps", "too-many-workers", "waiting-for-ps"),
    ),
    Onset(
        name="workers get a third of their cores",
        act=lambda base: _quota(Role.WORKER, 0.33),
        causes=("compute-bound",),
    ),
    Onset(
        name="neighbours take three quarters of the cores",
        kind=WHOLE,
        act=lambda base: acts.neighbours(0.75),
        causes=("noisy-neighbour",),
    ),
    Onset(
        name="the workers' disk is slow",
        act=lambda base: acts.slow_disk(
            _WORKERS, base.folder(), _SLOW_DISK_EXAMPLES * base.bytes_per_example()
        ),
        causes=("slow-storage",),
    ),
    Onset(
        name="5 % of the packets to workers are lost",
        act=lambda base: acts.lossy(_WORKERS, 0.05),
        causes=("retransmissions", "waiting-for-ps"),
    ),
    Onset(name="workers stand still", act=lambda base: acts.frozen(_WORKERS, 0.0), causes=("hang",)),
    Onset(
        name="a worker is killed",
        act=lambda base: acts.killed(("worker-1",), 0.0),
        causes=("killed",),
    ),
)


def measure(onset: Onset, base: Base) -> dict[str, Any]:
    """Return after how many seconds a fault was told of (None: not in `PATIENCE_SECONDS`), and as what.

    What is told while the job is healthy is returned, too: a false alarm.
    """
    base = base.of_kind(onset.kind)
    base.make_data()
    spec = base.job()
    with jobs_trials.service() as api:
        run = api.submit(spec, source=specs.dump_job(spec), base=ROOT)
        site = Site.of(api, run)
        try:
            trials.wait_for_steps(site, None)
            site.limit()
            watching = _Watching(diagnosis_runs.Looker(api, run.name))
            before = watching.until(time.monotonic() + HEALTHY_SECONDS, ())
            with onset.act(base)(site):
                start = time.monotonic()
                told = watching.until(start + PATIENCE_SECONDS, onset.causes)
                seconds = time.monotonic() - start
        finally:
            trials.end_job(api, run)
    found = [each for each in told if each in onset.causes]
    return {
        "onset": onset.name,
        "seconds": seconds if found else None,
        "told": told,
        "told_before": before,
    }


class _Watching:
    """Looks as `paceline run` does."""

    def __init__(self, looker: diagnosis_runs.Looker) -> None:
        self._looker = looker
        self._watch = finding_debounce.FindingDebounce()

    def until(self, deadline: float, wanted: Collection[str]) -> list[str]:
        """Return the causes that are told of until a moment (of the monotonic clock), or until one that is
        wanted is.
        """
        told: list[str] = []
        while time.monotonic() < deadline and not set(told) & set(wanted):
            start = time.monotonic()
            found = self._looker.look()
            changes = self._watch.look(found.explanation, unjudged=found.unjudged)
            told += [each.cause.name for each in changes if not each.is_over]
            pause = diagnosis_runs.pause_seconds(
                time.monotonic() - start, confirms=self._watch.awaits_confirmation
            )
            time.sleep(min(pause, max(0.0, deadline - start)))
        return told
