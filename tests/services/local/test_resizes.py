"""Replicas of real jobs get other limits while they run, for good and for a time, even if processes die."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from support import control_groups, group_files, leftovers
from support.group_files import until
from support.shell_jobs import UNTIL_ENOUGH, Submit, enough, shell_job

from paceline import specs
from paceline.control.resizings import Resize
from paceline.engines.local import machines, processes
from paceline.engines.local.folders import RunFolder
from paceline.errors import Conflict, EngineError
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import ReplicaId, Role
from paceline.services.local import jobs, supervisors

pytestmark = control_groups.CGROUPS
GIB = 1 << 30


def sized_job(**fields: object) -> JobSpec:
    spec = shell_job(UNTIL_ENOUGH, **fields)  # type: ignore[arg-type]
    ps, worker = spec.roles
    ps = dataclasses.replace(ps, cpu_cores=0.5, memory_bytes=GIB)
    return dataclasses.replace(spec, roles=(ps, dataclasses.replace(worker, cpu_cores=0.25)))


def running(api: jobs.Jobs, run: Run) -> Run:
    return api.wait(run.name, timeout_seconds=240, until=lambda run: run.phase is JobPhase.RUNNING)


def ended(api: jobs.Jobs, run: Run) -> Run:
    enough(run)
    run = api.wait(run.name, timeout_seconds=240)
    until(lambda: not supervisors.is_supervised(RunFolder.of(run)))
    assert leftovers.find(run.spec, RunFolder.of(run)) == []
    return run


def messages(api: jobs.Jobs, run: Run, kind: str) -> list[str]:
    return [event.message for _, event in api.events(run.name) if event.kind == kind]


def cut(cores: float, seconds: float, target: str = "ps-0", knob: Knob = Knob.CPU) -> Adjustment:
    return Adjustment(knob=knob, target=target, value=cores, until=time.time() + seconds)


def attempts(api: jobs.Jobs, run: Run) -> set[int]:
    return {row.attempt for row in api.replicas(run.name)}


def test_a_replica_gets_more_for_good_and_none_restarts(api: jobs.Jobs, submit: Submit) -> None:
    run = running(api, submit(sized_job()))
    api.resize(run.name, Resize(target="ps-0", cpu_cores=1.5, memory_bytes=2 * GIB))
    assert group_files.cores(run, "ps-0") == 1.5
    assert group_files.memory(run, "ps-0") == 2 * GIB
    assert group_files.cores(run, "worker-0") == 0.25
    after = api.get(run.name)
    assert after.spec.role_of(ReplicaId(Role.PS, 0)).cpu_cores == 1.5
    assert specs.parse_job(after.source).spec.overrides == after.spec.overrides
    assert messages(api, run, "resized") == [
        "ps-0 has 1500m CPU (had 500m CPU); ps-0 has 2.0 GiB of memory (had 1.0 GiB of memory)"
    ]
    (change,) = api.spec_changes(run.name)
    assert change.done_at is not None
    assert "overrides" in change.source
    assert "overrides" not in change.before
    assert attempts(api, run) == {1}
    with pytest.raises(Conflict, match="what it has already"):
        api.resize(run.name, Resize(target="ps-0", cpu_cores=1.5))
    assert ended(api, run).phase is JobPhase.SUCCEEDED


def test_a_replica_that_is_launched_again_has_what_it_was_resized_to(api: jobs.Jobs, submit: Submit) -> None:
    run = running(api, submit(sized_job()))
    api.resize(run.name, Resize(target="worker", cpu_cores=0.5))
    assert [group_files.cores(run, f"worker-{index}") for index in range(2)] == [0.5, 0.5]
    pid = processes.agent_pid(RunFolder.of(run).config(ReplicaId(Role.WORKER, 1), 1))
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until(lambda: processes.agent_pid(RunFolder.of(run).config(ReplicaId(Role.WORKER, 1), 2)))
    assert group_files.cores(run, "worker-1") == 0.5
    assert ended(api, run).phase is JobPhase.SUCCEEDED


def test_what_is_for_a_time_is_put_back_and_the_job_file_never_says_it(
    api: jobs.Jobs, submit: Submit
) -> None:
    run = running(api, submit(sized_job()))
    # A time that is over before it is seen would be no time at all.
    api.resize(run.name, Resize(target="ps-0", cpu_cores=1.0), seconds=3600.0)
    until(lambda: [each for each in messages(api, run, "adjusted") if each.startswith("ps-0 has 1 CPU for ")])
    assert group_files.cores(run, "ps-0") == 1.0
    api.resize(run.name, Resize(target="ps-0", cpu_cores=1.0), seconds=0.5)
    until(lambda: "ps-0 has the CPU again that its job says" in messages(api, run, "adjusted"))
    until(lambda: group_files.cores(run, "ps-0") == 0.5)
    assert api.get(run.name).spec == run.spec
    assert not api.spec_changes(run.name)
    ended(api, run)


@pytest.mark.parametrize("whole", [False, True], ids=["supervisor", "supervisor and guard"])
def test_what_is_over_is_put_back_whichever_process_dies(api: jobs.Jobs, submit: Submit, whole: bool) -> None:
    run = running(api, submit(sized_job()))
    api.adjust(run.name, [cut(0.1, 3600.0), cut(1.0, 3600.0, "worker-1", Knob.PAUSE)])
    assert group_files.cores(run, "ps-0") == 0.1
    guard, supervisor = leftovers.supervisor_pids(RunFolder.of(run))
    for pid in (guard, supervisor) if whole else (supervisor,):
        os.kill(pid, signal.SIGKILL)
    if whole:
        until(lambda: not supervisors.is_supervised(RunFolder.of(run)))
        api.resume(run.name)
    api.adjust(run.name, [dataclasses.replace(cut(0.1, 0.0), until=0.0)])
    until(lambda: group_files.cores(run, "ps-0") == 0.5)
    worker = ReplicaId(Role.WORKER, 1)
    until(lambda: stopped(run, worker))  # its time is not over
    api.adjust(run.name, [dataclasses.replace(cut(1.0, 0.0, "worker-1", Knob.PAUSE), until=0.0)])
    until(lambda: not stopped(run, worker))
    assert attempts(api, run) == {1}
    assert ended(api, run).phase is JobPhase.SUCCEEDED


def stopped(run: Run, replica: ReplicaId, attempt: int = 1) -> bool:
    """Whether the command of a replica stands still, and its agent does not."""
    agent = processes.agent_pid(RunFolder.of(run).config(replica, attempt))
    assert agent is not None
    process = psutil.Process(agent)
    assert process.status() != psutil.STATUS_STOPPED
    children = set()
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # A shell's short command is over.
            children.add(child.status())
    # What has ended waits for its parent, which stands still. A shell waits in the kernel for a fork that was
    # stopped before it executed its command (vfork(2)): both stand still.
    return children - {psutil.STATUS_ZOMBIE, psutil.STATUS_DISK_SLEEP} == {psutil.STATUS_STOPPED}


def test_a_replica_that_stands_still_ends_when_it_is_asked_to(api: jobs.Jobs, submit: Submit) -> None:
    run = running(api, submit(sized_job()))
    api.adjust(run.name, [cut(1.0, 3600.0, "worker-1", Knob.PAUSE)])
    until(lambda: stopped(run, ReplicaId(Role.WORKER, 1)))
    api.stop(run.name)
    assert api.wait(run.name, timeout_seconds=240).phase is JobPhase.STOPPED
    reasons = [row.exit for row in api.replicas(run.name)]
    assert all(reason is not None and reason.signal == signal.SIGTERM for reason in reasons), reasons


def test_a_replica_that_begins_anew_stands_still_too(api: jobs.Jobs, submit: Submit) -> None:
    # Its command begins some time after the attempt, so it is not there yet when the attempt is launched.
    run = running(api, submit(sized_job()))
    worker = ReplicaId(Role.WORKER, 1)
    api.adjust(run.name, [cut(1.0, 3600.0, "worker-1", Knob.PAUSE)])
    until(lambda: stopped(run, worker))
    agent = processes.agent_pid(RunFolder.of(run).config(worker, 1))
    assert agent is not None
    os.kill(agent, signal.SIGKILL)
    until(lambda: processes.agent_pid(RunFolder.of(run).config(worker, 2)))
    until(lambda: stopped(run, worker, 2))
    api.adjust(run.name, [dataclasses.replace(cut(1.0, 0.0, "worker-1", Knob.PAUSE), until=0.0)])
    until(lambda: not stopped(run, worker, 2))
    assert ended(api, run).phase is JobPhase.SUCCEEDED


def test_what_cannot_be_is_said_before_anything_changes(api: jobs.Jobs, submit: Submit) -> None:
    hosted = sized_job(hosts=(Host(name="a", cpu_cores=1.0, memory_bytes=2 * GIB),))
    run = running(api, submit(hosted))
    with pytest.raises(EngineError, match="ps-0 cannot have 1500m CPU: host a has 1"):
        api.resize(run.name, Resize(target="ps-0", cpu_cores=1.5))
    with pytest.raises(EngineError, match=r"ps-0 cannot have 4\.0 GiB of memory: host a has 2\.0 GiB"):
        api.resize(run.name, Resize(target="ps-0", memory_bytes=4 * GIB))
    assert group_files.cores(run, "ps-0", "a") == 0.5
    assert not messages(api, run, "resized")
    ended(api, run)
    with pytest.raises(Conflict, match="does not run"):
        api.resize(run.name, Resize(target="ps-0", cpu_cores=0.7))


def test_too_little_memory_is_said_before_the_kernel_kills(api: jobs.Jobs, submit: Submit) -> None:
    hungry = "python3 -c 'import time; held = bytearray(200 << 20); time.sleep(600)'"
    run = running(api, submit(sized_job(ps=hungry)))
    until(lambda: any((each.memory_bytes or 0) > 200 << 20 for each in api.snapshot(run.name).replicas))
    with pytest.raises(Conflict, match="the kernel would kill it"):
        api.resize(run.name, Resize(target="ps-0", memory_bytes=100 << 20))
    api.resize(run.name, Resize(target="ps-0", memory_bytes=512 << 20))
    assert group_files.memory(run, "ps-0") == 512 << 20
    assert attempts(api, run) == {1}
    ended(api, run)


def test_a_job_is_changed_by_one_at_a_time(api: jobs.Jobs, submit: Submit) -> None:
    run = running(api, submit(sized_job()))
    others = (
        lambda: api.resize(run.name, Resize(target="ps-0", cpu_cores=1.0)),
        lambda: api.scale(run.name, 3),
        lambda: api.change(run.name, specs.source_of(run)),
    )
    with api.changing(run.name, "probed"):
        for other in others:
            with pytest.raises(Conflict, match=rf"is being probed by process {os.getpid()}"):
                other()
    others[0]()
    assert group_files.cores(run, "ps-0") == 1.0
    ended(api, run)


def uplink(run: Run) -> str:
    """Return how the link of a job's first host is shaped."""
    command = ["tc", "-n", f"{RunFolder.of(run).token}-host-0", "qdisc", "show", "dev", "uplink"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_link_has_another_rate_while_packets_pass(api: jobs.Jobs, submit: Submit) -> None:
    hosts = (Host(name="a", bandwidth_bits_per_second=10**9), Host(name="b", bandwidth_bits_per_second=10**9))
    if machines.read().lacks_namespaces:
        pytest.skip("no network namespaces can be made here")
    run = running(api, submit(sized_job(hosts=hosts)))
    assert "rate 1Gbit" in uplink(run)
    api.adjust(run.name, [cut(7e8, 3600.0, "a", Knob.LINK)])
    assert "rate 700Mbit" in uplink(run)
    api.adjust(run.name, [dataclasses.replace(cut(7e8, 0.0, "a", Knob.LINK), until=0.0)])
    until(lambda: "rate 1Gbit" in uplink(run))
    ended(api, run)


@pytest.mark.parametrize("number", range(6))
def test_killed_at_any_moment_limits_are_as_before(
    api: jobs.Jobs, submit: Submit, number: int, tmp_path: Path
) -> None:
    chance = random.Random(number)
    run = running(api, submit(sized_job()))
    asked = [cut(0.2, 1.0), cut(0.1, 1.0, "worker-0"), cut(1.0, 1.0, "worker-1", Knob.PAUSE)]
    api.registry.request(run, jobs.adjust_request(asked))
    time.sleep(chance.uniform(0.0, 1.2))
    os.kill(leftovers.supervisor_pids(RunFolder.of(run))[1], signal.SIGKILL)
    until(lambda: group_files.cores(run, "ps-0") == 0.5 and group_files.cores(run, "worker-0") == 0.25)
    until(lambda: not stopped(run, ReplicaId(Role.WORKER, 1)))
    until(lambda: not api.store.load_state(run.name).adjustments)
    assert attempts(api, run) == {1}
    assert ended(api, run).phase is JobPhase.SUCCEEDED
