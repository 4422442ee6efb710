"""Probes that are killed at any moment: what they have cut comes back, always."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import group_files, leftovers, nights, paced_cores
from support.group_files import until
from support.kills import kill
from support.shell_jobs import Submit

from paceline.engines.local import layouts, machines, networks
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.job_specs import Host
from paceline.model.jobs.runs import Run
from paceline.services.local import jobs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3 * 3600),
    pytest.mark.usefixtures("preferred"),
    pytest.mark.skipif(machines.read().cgroups is None, reason="no cgroups can be made here"),
]
LACKS = machines.lacks_namespaces(os.geteuid(), shutil.which)
#: For each line that it reads it begins a probe in a process of its own, and says which one that is.
_PROBES = """
import os, sys, time

from paceline.errors import Conflict
from paceline.services.local import jobs, state_dirs
from paceline.services.studying import probes
from paceline.stores import open_store

home = state_dirs.Home.from_environment({"PACELINE_HOME": sys.argv[1]})
open_store(home.store_url).close()
times = probes.ProbeTimes(window=0.3, settle=0.05, known=0.3, most=60.0)
for _ in sys.stdin:
    pid = os.fork()
    if pid == 0:
        with open_store(home.store_url) as store:
            prober = probes.Prober(jobs=jobs.Jobs(home, store), times=times, most_share=1.0)
            while True:  # It refuses while too few steps are known, as on a machine that is busy.
                try:
                    prober.probe(sys.argv[2])
                    break
                except Conflict:
                    time.sleep(0.05)
        os._exit(0)
    print(pid, flush=True)
    os.waitpid(pid, 0)
    print("gone", flush=True)
"""
#: All of them together are a thousand kills; one series of a few runs each time.
SERIES = [(0, 4), *((seed, 250) for seed in range(1, 5))]
_MOST_SECONDS, _CUT_SECONDS = 4.0, 0.5


@contextlib.contextmanager
def prober(api: jobs.Jobs, name: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _PROBES, str(api.home.path), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield child


def has(run: Run) -> dict[str, float | None]:
    return {str(replica): group_files.cores(run, str(replica)) for replica in run.spec.replicas()}


@pytest.mark.parametrize(("seed", "kills"), nights.but(SERIES, often=SERIES[:1]))
def test_whenever_a_probe_is_killed_all_is_as_it_was(
    api: jobs.Jobs, submit: Submit, tmp_path: Path, seed: int, kills: int
) -> None:
    chance = random.Random(seed)
    run = paced_cores.training(api, submit(paced_cores.job(tmp_path, "")))
    before = has(run)
    cut = 0
    with prober(api, run.name) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for number in range(kills):
            child.stdin.write("go\n")
            child.stdin.flush()
            pid = int(child.stdout.readline())
            if number % 2:
                time.sleep(chance.uniform(0.0, _MOST_SECONDS))
            else:
                until(lambda: has(run) != before)
                time.sleep(chance.uniform(0.0, _CUT_SECONDS))
            cut += has(run) != before
            os.kill(pid, signal.SIGKILL)
            assert child.stdout.readline() == "gone\n"
            until(lambda: has(run) == before)
            until(lambda: not api.store.load_state(run.name).adjustments)
    assert cut, "some of them were killed while something was cut"
    assert api.get(run.name).spec == run.spec
    api.stop(run.name)
    assert {row.attempt for row in api.replicas(run.name)} == {1}


@pytest.mark.skipif(bool(LACKS), reason=f"no network namespaces: {LACKS}")
def test_links_that_a_killed_supervisor_left_narrow_become_wide_again(
    api: jobs.Jobs, submit: Submit, tmp_path: Path
) -> None:
    """The state that it saved says that nothing is cut: it was killed between that and the kernel."""
    host = Host(name="host-0", bandwidth_bits_per_second=1_000_000_000)
    spec = dataclasses.replace(paced_cores.job(tmp_path, ""), hosts=(host,))
    run = paced_cores.training(api, submit(spec))
    before, folder = group_files.links(run), RunFolder.of(run)
    assert sum(text.count(" tbf ") for text in before.values()) == 2
    kill(leftovers.supervisor_pids(folder))
    until(lambda: api.is_lost(api.get(run.name)))
    networks.Network(folder.token, layouts.read(folder, spec.hosts).plan).limit(host, 850_000_000)
    assert group_files.links(run) != before
    api.resume(run.name)
    until(lambda: group_files.links(run) == before, seconds=240)
    api.stop(run.name)
