"""Jobs of a cluster that go on with another job file, over one in memory with an operator and its store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operator_scenes import Scene, is_worker, job

from paceline import specs
from paceline.engines.kubernetes import kinds
from paceline.errors import Conflict, InvalidInput
from paceline.model.jobs.runs import Run
from paceline.services.cluster import runs
from paceline.services.cluster.jobs import ClusterJobs
from paceline.services.cluster.measurements import ClusterMeasurements
from paceline.services.cluster.spec_changes import merge_patch
from paceline.services.studying import changes
from paceline.specs.job_file import custom_resources
from paceline.stores import open_store


class Place(NamedTuple):
    jobs: ClusterJobs
    scene: Scene
    runner: asyncio.Runner
    home: Path

    def keep(self) -> None:
        """Let the store know what there is, as the operator's rounds do."""
        resource = self.scene.cluster.of_kind(kinds.TRAINING_JOBS)["clicks"]
        runs.keep(
            self.jobs.measurements.store,
            runs.run_name(resource, self.jobs.scope()),
            resource,
            custom_resources.job_spec(resource),
            self.home,
            now=time.time(),
        )

    def start_operator(self) -> None:
        async def start() -> None:
            self.scene.start_operator()

        self.runner.run(start())

    def until_phase(self, phase: str) -> None:
        self.runner.run(self.scene.until_phase(phase, "clicks"))

    def until_pods(self, pods: set[str]) -> None:
        self.runner.run(
            self.scene.until(
                lambda: set(self.scene.pods()) == pods and self.scene.status().get("phase") == "running",
                "other pods",
            )
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with asyncio.Runner() as runner:
        scene = Scene()
        runner.run(scene.begin())
        url = f"sqlite:///{tmp_path}/paceline.db"
        with open_store(url):
            pass
        measurements = ClusterMeasurements(scene.cluster, store_url=url, home=tmp_path)
        yield Place(ClusterJobs(scene.cluster, "default", runner, measurements), scene, runner, tmp_path)
        measurements.close()
        runner.run(scene.close())
        assert scene.operator is not None
        assert scene.operator.counters.failures == 0


def running(place: Place) -> Run:
    place.jobs.submit(job("clicks"), source="", base=Path())
    place.until_phase("running")
    place.keep()
    return place.jobs.get("clicks")


def changed(run: Run, workers: int = 1, **training: Any) -> str:
    edited = specs.dump_job(job("clicks", workers=workers, training=training or None))
    assert edited != specs.source_of(run)
    return edited


FIRST = {"clicks-ps-0-1", "clicks-worker-0-1", "clicks-worker-1-1"}
SECOND = {"clicks-ps-0-2", "clicks-worker-0-2"}


def test_a_job_goes_on_with_another_file_and_back(place: Place) -> None:
    run = running(place)
    assert set(place.scene.pods()) >= FIRST
    place.jobs.change("clicks", changed(run))
    with pytest.raises(Conflict, match="is being changed already"):
        place.jobs.change("clicks", changed(run))
    place.until_pods(SECOND)
    place.keep()
    (made,) = changes.changes(place.jobs, "clicks")
    assert made.change.done_at is not None
    assert specs.parse_job(made.change.before).spec == run.spec
    assert len(place.jobs.get("clicks").spec.replicas()) == 2
    place.jobs.change("clicks", made.change.before)
    place.until_pods({"clicks-ps-0-3", "clicks-worker-0-3", "clicks-worker-1-2"})
    assert place.jobs.get("clicks").spec == run.spec


def test_what_a_file_says_no_more_is_gone(place: Place) -> None:
    run = running(place)
    place.jobs.change("clicks", changed(run, 2, batch_size=512))
    place.until_pods({"clicks-ps-0-2", "clicks-worker-0-2", "clicks-worker-1-2"})
    place.keep()
    place.jobs.change("clicks", specs.source_of(run))
    place.until_pods({"clicks-ps-0-3", "clicks-worker-0-3", "clicks-worker-1-3"})
    assert place.jobs.get("clicks").spec == run.spec


def test_a_change_outlives_the_operator(place: Place) -> None:
    run = running(place)
    place.runner.run(place.scene.end())
    place.jobs.change("clicks", changed(run))
    place.keep()
    assert changes.changes(place.jobs, "clicks")[0].change.done_at is None
    place.start_operator()
    place.runner.run(place.scene.until(lambda: place.scene.status().get("phase") == "stopping"))
    place.runner.run(place.scene.end())
    place.start_operator()
    place.until_pods(SECOND)
    place.keep()
    assert changes.changes(place.jobs, "clicks")[0].change.done_at is not None


def meanwhile(place: Place, happens: Callable[[], object]) -> None:
    """Let something happen, once, between the look at the job and the write of the change."""

    def happen(verb: str, plural: str, name: str) -> None:
        if (verb, plural) == ("patch", kinds.TRAINING_JOBS.plural):
            place.scene.cluster.trouble = lambda *_: None
            happens()

    place.scene.cluster.trouble = happen


def test_a_status_that_the_operator_writes_meanwhile_refuses_no_change(place: Place) -> None:
    run = running(place)
    cluster = place.scene.cluster
    status = {**place.scene.status(), "message": "seen"}
    meanwhile(place, lambda: cluster.change(kinds.TRAINING_JOBS, "clicks", "default", status=status))
    place.jobs.change("clicks", changed(run))
    place.until_pods(SECOND)


def test_a_change_that_another_user_makes_meanwhile_is_not_overwritten(place: Place) -> None:
    run = running(place)
    place.runner.run(place.scene.end())
    cluster = place.scene.cluster
    spec = {**cluster.of_kind(kinds.TRAINING_JOBS)["clicks"]["spec"], "suspend": True}
    meanwhile(place, lambda: cluster.change(kinds.TRAINING_JOBS, "clicks", "default", spec=spec))
    with pytest.raises(Conflict, match="was changed meanwhile"):
        place.jobs.change("clicks", changed(run))
    assert cluster.of_kind(kinds.TRAINING_JOBS)["clicks"]["spec"] == spec
    place.start_operator()


def test_a_job_that_was_stopped_goes_on_with_another_file(place: Place) -> None:
    run = running(place)
    place.jobs.stop("clicks")
    place.until_phase("stopped")
    place.jobs.change("clicks", changed(run))
    place.until_pods(SECOND)


def test_what_cannot_be_done_leaves_the_job_as_it_was(place: Place) -> None:
    run = running(place)
    before = place.scene.cluster.of_kind(kinds.TRAINING_JOBS)["clicks"]["spec"]
    for wrong in (
        changed(run).replace("train", "other"),
        "a: b",
        changed(run).replace("image: clicks:1", ""),
    ):
        with pytest.raises(InvalidInput):
            place.jobs.change("clicks", wrong)
    assert place.scene.cluster.of_kind(kinds.TRAINING_JOBS)["clicks"]["spec"] == before
    assert changes.changes(place.jobs, "clicks") == ()
    place.scene.kubelet.exit_code = lambda pod: 0 if is_worker(pod) else None
    place.until_phase("succeeded")
    with pytest.raises(Conflict, match="has succeeded"):
        place.jobs.change("clicks", changed(run))


JSON = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=4),
)


def merged(value: Any, patch: Any) -> Any:
    """Merge as RFC 7386, section 2, has it."""
    if not isinstance(patch, dict):
        return patch
    new = dict(value) if isinstance(value, dict) else {}
    for key, part in patch.items():
        if part is None:
            new.pop(key, None)
        else:
            new[key] = merged(new.get(key), part)
    return new


@given(JSON, JSON)
def test_a_patch_makes_one_value_of_another(before: Any, after: Any) -> None:
    assert merged(before, merge_patch(before, after)) == after
