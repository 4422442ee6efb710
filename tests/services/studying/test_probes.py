"""Probes of real jobs whose speed follows from what the kernel lets a replica take, on any machine alike."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path

import pytest
from support import group_files, nights, paced_cores
from support.group_files import until
from support.shell_jobs import Submit

from paceline.engines.local import machines
from paceline.errors import Conflict
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.probes import PartVerdict, Probe, RateUnit
from paceline.model.roles import ReplicaId, Role
from paceline.probing import windows
from paceline.probing.occupations import Occupation
from paceline.services.local import jobs
from paceline.services.studying import probes
from paceline.services.studying.probes import Prober

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("preferred"),
    pytest.mark.skipif(machines.read().cgroups is None, reason="no cgroups can be made here"),
]


def started(api: jobs.Jobs, submit: Submit, folder: Path, binding: str) -> Run:
    return paced_cores.training(api, submit(paced_cores.job(folder, binding)))


def prober(api: jobs.Jobs, **fields: object) -> Prober:
    return Prober(jobs=api, times=paced_cores.TIMES, most_share=1.0, **fields)  # type: ignore[arg-type]


def binding(found: Probe) -> list[str]:
    return [each.part.name for each in found.elasticities if each.verdict is PartVerdict.BINDS]


@pytest.mark.parametrize(
    ("limited", "named"),
    nights.but([("ps-1", ["cores of ps-1"]), ("", [])], often=[("ps-1", ["cores of ps-1"])]),
    ids=["a server binds", "nothing binds"],
)
def test_what_binds_is_named_and_all_is_put_back(
    api: jobs.Jobs, submit: Submit, tmp_path: Path, limited: str, named: list[str]
) -> None:
    run = started(api, submit, tmp_path, limited)
    told: list[str] = []
    found = prober(api, tell=lambda _, doing: told.append(doing)).probe(run.name)
    assert binding(found) == named
    assert found.ended == probes.ALL_KNOWN
    assert found.unit is RateUnit.EXAMPLES
    assert probes.newest(api, run.name) == found
    assert [group_files.cores(run, f"ps-{index}") for index in range(2)] == [0.5, 0.5]
    assert [group_files.cores(run, f"worker-{index}") for index in range(2)] == [0.3, 0.3]
    assert "cores of ps-0, ps-1 are cut" in told
    if named:
        alone = [cut for cut in found.cuts if cut.part.targets == ("ps-0",)]
        assert not alone, "one cut of both servers tells which of them feels it"
        (own,) = (each for each in found.elasticities if each.verdict is PartVerdict.BINDS)
        assert own.value == pytest.approx(1.0, abs=0.1)
    (only,) = api.recording(run.name).probes
    assert only == found
    api.stop(run.name)
    assert {row.attempt for row in api.replicas(run.name)} == {1}


@pytest.mark.nightly
def test_an_evaluation_comes_first(api: jobs.Jobs, submit: Submit, tmp_path: Path) -> None:
    """It computes until the probe says that it waits; then nothing is left to wait for."""
    rests = tmp_path / "rests"
    computes = f'while [ ! -e "{rests}" ]; do :; done; exec sleep 86400'
    spec = paced_cores.job(tmp_path, "ps-0")
    evaluator = RoleSpec(role=Role.EVALUATOR, command=("sh", "-c", computes), cpu_cores=0.3)
    run = paced_cores.training(api, submit(dataclasses.replace(spec, roles=(*spec.roles, evaluator))))
    told: list[str] = []

    def tell(found: Probe, doing: str) -> None:
        told.append(doing)
        if doing == Occupation.EVALUATION:
            assert found.cuts == ()
            rests.touch()

    found = prober(api, tell=tell).probe(run.name)
    assert told[0] == Occupation.EVALUATION
    assert binding(found) == ["cores of ps-0"]
    api.stop(run.name)


def test_a_checkpoint_comes_first(api: jobs.Jobs, submit: Submit, tmp_path: Path) -> None:
    """The first worker stands still until the probe says that it waits."""
    run, saves = started(api, submit, tmp_path, "ps-0"), tmp_path / paced_cores.SAVES
    saves.touch()
    worker, known = ReplicaId(Role.WORKER, 0), paced_cores.TIMES.known + 2 * windows.STOOD_SECONDS
    until(
        lambda: (
            max(each.at for each in api.recording(run.name).steps if each.replica == worker)
            < api.clock() - known
        )
    )
    told: list[str] = []

    def tell(found: Probe, doing: str) -> None:
        told.append(doing)
        if doing == Occupation.STAND:
            assert found.cuts == ()
            saves.unlink(missing_ok=True)

    found = prober(api, tell=tell).probe(run.name)
    assert told[0] == Occupation.STAND
    assert binding(found) == ["cores of ps-0"]
    api.stop(run.name)


def test_a_probe_that_is_killed_leaves_nothing_cut(api: jobs.Jobs, submit: Submit, tmp_path: Path) -> None:
    run = started(api, submit, tmp_path, "ps-0")
    child = paced_cores.probe(api, run, paced_cores.TIMES)
    until(lambda: group_files.cores(run, "ps-0") != 0.5)
    with pytest.raises(Conflict, match=f"is being probed by process {child.pid}"):
        prober(api).probe(run.name)
    child.send_signal(signal.SIGKILL)
    child.wait()
    until(lambda: group_files.cores(run, "ps-0") == 0.5)
    until(lambda: not api.store.load_state(run.name).adjustments)
    api.stop(run.name)


def test_a_job_that_ends_within_a_probe_ends_it(api: jobs.Jobs, submit: Submit, tmp_path: Path) -> None:
    run = started(api, submit, tmp_path, "ps-0")
    found = prober(api, tell=lambda _, doing: doing and api.stop(run.name)).probe(run.name)
    assert found.ended == probes.NO_MORE
    assert api.wait(run.name, timeout_seconds=240).phase is JobPhase.STOPPED


def test_what_does_not_run_or_makes_nothing_is_not_probed(api: jobs.Jobs, submit: Submit) -> None:
    spec = JobSpec(name="job", roles=(RoleSpec(role=Role.WORKER, command=("sleep", "600"), cpu_cores=0.5),))
    run = submit(spec)
    api.wait(run.name, timeout_seconds=240, until=lambda run: run.phase is JobPhase.RUNNING)
    with pytest.raises(Conflict, match="not made steps, or sent bytes, for long enough"):
        prober(api).probe(run.name)
    api.stop(run.name)
    api.wait(run.name, timeout_seconds=240)
    with pytest.raises(Conflict, match="only what runs can be probed"):
        prober(api).probe(run.name)
