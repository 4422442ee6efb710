"""All trainers wait for reading."""

from __future__ import annotations

from typing import Any

import pytest
from support import cases
from support.cases import found

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case
from paceline.diagnosing.inputs import slow_storage
from paceline.diagnosing.inputs.slow_decoding import slow_decoding
from paceline.diagnosing.trainers.waiting_trainers import waiting_for_ps
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import Framework
from paceline.model.measures.recordings import Recording

RESTING = {"cpu_cores": 0.25, "cpu_limit_cores": 1.0}
WORKERS = ("worker-0", "worker-1")


def _recording(wait: float | None = 0.6, load: dict[str, Any] = RESTING, **more: Any) -> Recording:
    steps = {name: {**cases.STEPS, "input_wait_seconds": wait} for name in WORKERS}
    loads = {"ps-0": cases.SERVER, **dict.fromkeys(WORKERS, load)}
    return cases.recording(loads, **{"steps": steps, **more})


def test_trainers_that_wait_and_rest_are_found() -> None:
    (cause,) = found(slow_storage.slow_storage, _recording())
    assert cause.what == (
        "Trainers wait for storage: 60% of their time they have no examples, and their cores rest."
    )
    assert (cause.severity, cause.subjects) == (Severity.WARNING, WORKERS)
    assert [each.text for each in cause.evidence] == [
        "trainers wait for input 60% of the time",
        "meanwhile their cores rest: 25% are used on average",
    ]
    assert [each.sources[0].what for each in cause.evidence] == ["steps", "samples"]
    assert cause.gain is not None
    # Without its wait a step takes 0.4 of its time.
    assert 1.5 < cause.gain.low <= cause.gain.high <= 2.51


def test_a_job_of_the_library_may_keep_copies() -> None:
    (cause,) = found(slow_storage.slow_storage, _recording(spec={"training": {"epochs": 1}}))
    assert cause.next_steps[0].startswith("spec.training.inputs.cache.folder")
    inputs = {"cache": {"folder": "/cache"}}
    (cause,) = found(slow_storage.slow_storage, _recording(spec={"training": {"inputs": inputs}}))
    assert not any("cache" in each for each in cause.next_steps)


@pytest.mark.parametrize(
    ("train", "names", "way"),
    [
        ("data/*.csv", "storage:", "dd if=FILE"),
        (["hdfs://nn:8020/a.csv", "hdfs://nn:8020/b.csv"], "storage (hdfs://nn:8020):", "hdfs dfs -cat FILE"),
        ("s3://clicks/a/*.csv", "storage (s3://clicks):", "aws s3 cp FILE"),
        ("https://ada:secret@host:81/a.csv?key=1", "storage (https://host:81):", "curl"),
        (["s3a://clicks/a", "https://host/b"], "storage (s3a://clicks, https://host):", "curl"),
    ],
)
def test_the_storage_is_named_as_the_job_file_names_it(train: Any, names: str, way: str) -> None:
    spec = {"training": {"inputs": {"train": train, "cache": {"folder": "/cache"}}}}
    (cause,) = found(slow_storage.slow_storage, _recording(spec=spec))
    assert cause.what.startswith(f"Trainers wait for {names} 60% ")
    assert way in cause.next_steps[-1]


@pytest.mark.parametrize(
    ("elasticity", "waited", "is_shared"),
    [(0.0, 0.8, True), (1.0, 0.8, False), (0.2, 0.8, None), (0.0, 0.1, None), (1.0, None, None)],
)
def test_a_probe_shows_whether_storage_is_shared(
    elasticity: float, waited: float | None, is_shared: bool | None
) -> None:
    recording = _recording(probes=(cases.probe_of_workers(elasticity, waited),))
    assert slow_storage.is_shared(Case.of(recording)) is is_shared
    (cause,) = found(slow_storage.slow_storage, recording)
    assert any("they share what storage delivers" in each.text for each in cause.evidence) is (
        is_shared is True
    )


def test_a_script_may_name_its_storage_in_its_command() -> None:
    command = ("python", "train.py", "--data=hdfs://ns1/clicks", "--track=https://mlflow:5000/", "runs://")
    spec = {"command": command, "training": {"inputs": {"train": None}}}
    (cause,) = found(slow_storage.slow_storage, _recording(spec=spec))
    assert "(hdfs://ns1)" in cause.what
    assert "hdfs fsck FILE" in cause.next_steps[-1]


def test_loaders_of_pytorch_may_read_ahead() -> None:
    (cause,) = found(slow_storage.slow_storage, _recording(spec={"framework": Framework.PYTORCH}))
    assert cause.next_steps[0].startswith("DataLoader(num_workers=2, persistent_workers=True)")


def test_it_is_no_decoding_and_no_waiting_for_servers() -> None:
    assert not found(slow_decoding, _recording())
    assert not found(waiting_for_ps, _recording())


def test_busy_cores_decode() -> None:
    assert not found(slow_storage.slow_storage, _recording(load={"cpu_cores": 0.95, "cpu_limit_cores": 1.0}))


def test_a_few_percent_are_those_of_any_run() -> None:
    assert not found(slow_storage.slow_storage, _recording(0.19))
    assert found(slow_storage.slow_storage, _recording(0.21))


def test_one_of_two_is_a_straggler() -> None:
    steps = {"worker-0": cases.STEPS, "worker-1": {**cases.STEPS, "input_wait_seconds": 0.8}}
    assert not found(slow_storage.slow_storage, _recording(steps=steps))


def test_without_the_number_of_cores_it_is_not_found() -> None:
    assert not found(slow_storage.slow_storage, _recording(load={"cpu_cores": 0.25}))


def test_it_needs_the_wait_for_input() -> None:
    assert slow_storage.slow_storage.lacks(Case.of(_recording(None))) == (needs.INPUT_WAIT,)
