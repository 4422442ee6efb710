"""A job whose speed follows from what the kernel lets one replica take, on any machine alike."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.services.local import jobs
from paceline.services.studying.probes import ProbeTimes
from support.group_files import until

#: A trainer whose steps take as long as the quotas of replicas say: its own, that of ps-0 or that of none.
#: The first of them makes none while there is a file `SAVES` beside it.
_SCRIPT = """\
import json, os, sys, time
from pathlib import Path

lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
own = next(path for _, kinds, path in lines if kinds == "" or "cpu" in kinds.split(","))
mount = Path("/sys/fs/cgroup")
group = next(each for each in (mount / "cpu" / own[1:], mount / "cpu,cpuacct" / own[1:], mount / own[1:])
             if each.exists())

def cores(replica):
    folder = group.parent / replica
    if (folder / "cpu.max").exists():
        quota, period = (folder / "cpu.max").read_text().split()
    else:
        quota = (folder / "cpu.cfs_quota_us").read_text()
        period = (folder / "cpu.cfs_period_us").read_text()
    return int(quota) / int(period)

saves = Path(__file__).with_name("saves") if os.environ["PACELINE_INDEX"] == "0" else None
binding = sys.argv[1] if len(sys.argv) > 1 else ""
whole = cores(binding) if binding else 1.0
step, at = 0, time.time()
while True:
    step, at = step + 10, at + 0.1
    time.sleep(max(0.0, at - time.time()))
    while saves is not None and saves.exists():
        time.sleep(0.05)
        at = time.time()
    share = cores(binding) / whole if binding else 1.0
    report = {"type": "step", "at": at, "interval_seconds": 0.1, "step": step, "steps": 10,
              "examples": int(100_000 * share)}
    with open(os.environ["PACELINE_REPORT_FILE"], "a") as file:
        file.write(json.dumps(report) + "\\n")
"""
#: A server that uses up what it may take if it is the one, and nothing else; it does not end by itself.
_SERVER = 'if [ "$0" = "$PACELINE_ROLE-$PACELINE_INDEX" ]; then while :; do :; done; fi; exec sleep 86400'
SAVES = "saves"
#: Probes a job of a home, by times.
_PROBE = """
import json, sys

from paceline.services.local import jobs, state_dirs
from paceline.services.studying import probes
from paceline.stores import open_store

home = state_dirs.Home.from_environment({"PACELINE_HOME": sys.argv[1]})
with open_store(home.store_url) as store:
    times = probes.ProbeTimes(**json.loads(sys.argv[3]))
    probes.Prober(jobs=jobs.Jobs(home, store), times=times, most_share=1.0).probe(sys.argv[2])
"""
TIMES = ProbeTimes(window=1.5, settle=0.5, known=4.0, most=240.0)


def job(folder: Path, binding: str) -> JobSpec:
    """Return a job of two PS and two workers, as fast as the cores of one replica let it be, or of none."""
    (folder / "train.py").write_text(_SCRIPT)
    trainer = (sys.executable, str(folder / "train.py"), *([binding] if binding else []))
    return JobSpec(
        name="job",
        roles=(
            RoleSpec(role=Role.PS, replicas=2, cpu_cores=0.5, command=("sh", "-c", _SERVER, binding)),
            RoleSpec(role=Role.WORKER, replicas=2, cpu_cores=0.3, command=trainer),
        ),
        training={},
        termination_grace_seconds=1.0,
    )


def training(api: jobs.Jobs, run: Run) -> Run:
    """Return a job when it has trained for long enough to be probed."""
    api.wait(run.name, timeout_seconds=240, until=lambda run: run.phase is JobPhase.RUNNING)
    until(lambda: len(api.recording(run.name).steps) > 120)
    return run


def probe(api: jobs.Jobs, run: Run, times: ProbeTimes) -> subprocess.Popen[bytes]:
    """Probe a job by a process of its own; what it says of its end is dropped."""
    arguments = (str(api.home.path), run.name, json.dumps(dataclasses.asdict(times)))
    return subprocess.Popen([sys.executable, "-c", _PROBE, *arguments], stderr=subprocess.DEVNULL)
