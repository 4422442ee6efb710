"""``paceline simulate``: a job that does not run, measured all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from paceline.stores import recordings

RECORDINGS = Path(__file__).parents[2] / "benchmarks" / "diagnosis" / "recordings"
HEALTHY = RECORDINGS / "healthy.live.deepfm-large-plain-4.parquet"
#: The same with 0.074 cores for each parameter server.
SMALL = RECORDINGS / "ps-cpu-bound.gross.deepfm-large-plain-4.parquet"
#: Another job, with three workers.
TRIO = RECORDINGS / "healthy.live.wide-deep-middle-pair-6.parquet"

Paceline = Callable[..., Result]


@pytest.fixture
def simulate(paceline: Paceline, tmp_path: Path) -> Callable[..., Path]:
    """Simulates the job of a recording, like the healthy one."""

    def simulated(source: Path, *options: str, like: Path = HEALTHY) -> Path:
        job, target = tmp_path / "job.yaml", tmp_path / "simulated.parquet"
        job.write_text(recordings.read(source).run.source)
        done = paceline("simulate", str(job), "--like", str(like), "-o", str(target), *options)
        assert done.exit_code == 0, done.stderr
        assert f"paceline why {target}" in done.stderr
        return target

    return simulated


def _examples_per_second(paceline: Paceline, path: Path) -> float:
    found = json.loads(paceline("top", str(path), "-o", "json").stdout)
    return float(found["examples_per_second"])


def test_why_finds_in_a_simulation_what_it_finds_in_the_real_run(
    paceline: Paceline, simulate: Callable[..., Path]
) -> None:
    target = simulate(SMALL, "--seconds", "60")
    for path in (target, SMALL):
        first, *_ = json.loads(paceline("why", str(path), "-o", "json").stdout)["causes"]
        assert first["name"] == "ps-cpu-bound"
    assert _examples_per_second(paceline, target) == pytest.approx(
        _examples_per_second(paceline, SMALL), rel=0.2
    )
    assert recordings.read(target).run.notes[0].startswith("simulated")


def test_the_job_that_was_measured_is_simulated_as_fast_as_it_was(
    paceline: Paceline, simulate: Callable[..., Path]
) -> None:
    target = simulate(HEALTHY, "--seconds", "30")
    assert _examples_per_second(paceline, target) == pytest.approx(
        _examples_per_second(paceline, HEALTHY), rel=0.15
    )
    assert not [
        each
        for each in json.loads(paceline("why", str(target), "-o", "json").stdout)["causes"]
        if each["severity"] != "info"
    ]


def test_the_seed_decides(simulate: Callable[..., Path]) -> None:
    steps = [
        [each.steps for each in recordings.read(simulate(SMALL, "--seconds", "5", "--seed", seed)).steps]
        for seed in ("1", "1", "2")
    ]
    assert steps[0] == steps[1] != steps[2]


def test_another_batch_size_is_not_foretold(paceline: Paceline, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(recordings.read(HEALTHY).run.source.replace("batch_size: 512", "batch_size: 64"))
    result = paceline("simulate", str(job), "--like", str(HEALTHY), "-o", str(tmp_path / "out.parquet"))
    assert result.exit_code == 2
    assert "training.batch_size" in result.stderr


def test_a_server_that_gets_slow_is_found(paceline: Paceline, simulate: Callable[..., Path]) -> None:
    target = simulate(HEALTHY, "--seconds", "60", "--at", "20 cores of ps-0 0.1")
    found = recordings.read(target)
    steps = [
        sum(each.steps or 0 for each in found.steps if first < each.at - found.run.submitted_at <= first + 15)
        for first in (5, 40)
    ]
    assert steps[1] < steps[0] / 2


def test_slow_storage_is_found(paceline: Paceline, simulate: Callable[..., Path]) -> None:
    target = simulate(HEALTHY, "--seconds", "70", "--input", "9000", "--at", "30 input of trainers 0.1")
    first, *_ = json.loads(paceline("why", str(target), "-o", "json").stdout)["causes"]
    assert first["name"] == "slow-storage"


def test_a_straggler_is_found(paceline: Paceline, simulate: Callable[..., Path]) -> None:
    target = simulate(TRIO, "--seconds", "70", "--at", "10 worker-1 0.3", like=TRIO)
    first, *_ = json.loads(paceline("why", str(target), "-o", "json").stdout)["causes"]
    assert (first["name"], first["subjects"]) == ("slow-host", ["worker-1", "worker-host-1"])


def test_other_hosts_have_other_links(
    paceline: Paceline, simulate: Callable[..., Path], tmp_path: Path
) -> None:
    names = [each.name for each in recordings.read(HEALTHY).run.spec.hosts]
    narrow = tmp_path / "hosts.yaml"
    narrow.write_text("".join(f"- {{name: {name}, bandwidth: 5M}}\n" for name in names))
    slow, fast = (
        _examples_per_second(paceline, simulate(HEALTHY, "--seconds", "30", *options))
        for options in (("--hosts", str(narrow)), ())
    )
    assert slow < fast / 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--at", "cores of ps-0"), "does not say what happens when"),
        (("--at", "-1 cores of ps-0 0.5"), "does not say what happens when"),
        (("--at", "1 cores of ps-77 0.5"), "the simulated job has no part 'cores of ps-77'"),
        (("--hosts", "nowhere.yaml"), "there is no such file"),
        (("--hosts", "wrong.yaml"), "the hosts in wrong.yaml are wrong"),
        (("--hosts", "empty.yaml"), "lists no hosts"),
    ],
)
def test_what_cannot_be_simulated(
    paceline: Paceline,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(recordings.read(HEALTHY).run.source)
    (tmp_path / "wrong.yaml").write_text("- {name: host-0, cpus: 4}\n")
    (tmp_path / "empty.yaml").write_text("hosts: []\n")
    result = paceline("simulate", "job.yaml", "--like", str(HEALTHY), *options)
    assert result.exit_code != 0
    assert message in result.stderr


def test_hosts_that_are_machines_are_not_this_one(
    paceline: Paceline, simulate: Callable[..., Path], tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("".join(f"- {{name: h{number}, bandwidth: 10G}}\n" for number in range(4)))
    target = simulate(HEALTHY, "--seconds", "10", "--hosts", str(hosts), "--apart")
    assert recordings.read(target).samples
