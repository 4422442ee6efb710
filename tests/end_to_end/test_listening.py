"""What listens of a job that trains: its own ports, which no other machine reaches, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest
from support import kills
from support.neighbours import neighbour
from support.shell_jobs import enough

from paceline.engines.local import firewalls, processes
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role
from paceline.services.local import jobs, state_dirs
from paceline.stores import open_store

pytestmark = pytest.mark.slow

LACKS = firewalls.lacks()
#: As users write it; TensorFlow takes the port alone of the address that it is given.
SERVE = """
import json, os, sys, time
import tensorflow.compat.v1 as tf
told = json.loads(os.environ["TF_CONFIG"])
server = tf.train.Server(told["cluster"], job_name=told["task"]["type"], task_index=told["task"]["index"])
print("serves", flush=True)
while not os.path.exists(sys.argv[1]): time.sleep(0.1)
"""


@pytest.mark.skipif(bool(LACKS), reason=f"no firewall: {LACKS}")
def test_what_tensorflow_opens_to_all_is_closed_to_other_machines(tmp_path: Path) -> None:
    home = state_dirs.Home.from_environment({"PACELINE_HOME": str(tmp_path / "home")})
    roles = tuple(RoleSpec(role=role, memory_bytes=2 << 30) for role in (Role.PS, Role.WORKER))
    command = (sys.executable, "-c", SERVE, "{run_dir}/enough")
    with open_store(home.store_url) as store, neighbour() as other:
        api = jobs.Jobs(home, store)
        run = api.submit(JobSpec(name="job", roles=roles, command=command), source="", base=tmp_path)
        folder = RunFolder.of(run)
        logs = [folder.log(replica, 1) for replica in run.spec.replicas()]
        kills.until(lambda: all(log.exists() and "serves" in log.read_text() for log in logs), seconds=300)
        ports = {int((row.address or "").rpartition(":")[2]) for row in store.replicas(run.name)}
        found = [
            each.laddr
            for pid in processes.members(folder.path)
            for each in psutil.Process(pid).net_connections(kind="tcp")
            if each.status == psutil.CONN_LISTEN
        ]
        assert {each.port for each in found if each.ip not in ("127.0.0.1", "::1")} == ports
        assert not any(other.reaches(port) for port in ports)
        enough(run)
        phase = api.wait(run.name, timeout_seconds=300).phase
    assert phase is JobPhase.SUCCEEDED
