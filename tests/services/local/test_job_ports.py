"""Another machine reaches no port of a job; the job reaches what it needs on this machine's own loopback."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Callable, Iterator

import pytest
from support import hadoop, kills, leftovers, prerequisites
from support.neighbours import neighbour
from support.s3_stores import s3_store
from support.shell_jobs import Submit, enough, shell_job

from paceline.engines.local import firewalls
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import ReplicaId
from paceline.services.local import jobs

LACKS = firewalls.lacks()
#: Listens as a TensorFlow server does: on every address, whatever it is told.
SERVE = """
import os, socket, sys, time
server = socket.create_server(("0.0.0.0", int(sys.argv[1].rpartition(":")[2])))
print(read(), flush=True)
while not os.path.exists(sys.argv[2]): time.sleep(0.05)
"""
READ_S3 = """
import s3fs
def read(): return s3fs.S3FileSystem().cat("data/clicks").decode()
"""
READ_HDFS = """
import urllib.request
def read(): return urllib.request.urlopen("{url}?op=OPEN").read().decode()
"""


@contextlib.contextmanager
def _in_s3() -> Iterator[str]:
    with s3_store("data") as store:
        store.pipe("data/clicks", b"what it reads")
        yield READ_S3


@contextlib.contextmanager
def _in_hdfs() -> Iterator[str]:
    with prerequisites.skipping(), hadoop.hdfs() as store:
        store.put("/clicks", b"what it reads")
        yield READ_HDFS.format(url=f"{store.web}/clicks")


@pytest.mark.parametrize("storage", [_in_s3, pytest.param(_in_hdfs, marks=pytest.mark.nightly)])
@pytest.mark.skipif(bool(LACKS), reason=f"no firewall: {LACKS}")
def test_other_machines_reach_no_port_of_a_job_that_reads_from_this_machine(
    storage: Callable[[], contextlib.AbstractContextManager[str]], api: jobs.Jobs, submit: Submit
) -> None:
    with storage() as read, neighbour() as other:
        serve = f'exec {shlex.join([sys.executable, "-c", read + SERVE])} {{address}} "{{run_dir}}/enough"'
        run = submit(shell_job(serve, ps=serve))
        log = RunFolder.of(run).log(ReplicaId.parse("worker-1"), 1)
        kills.until(lambda: log.exists() and "what it reads" in log.read_text())
        addresses = [row.address for row in api.store.replicas(run.name)]
        ports = [int((address or "").rpartition(":")[2]) for address in addresses]
        assert len(ports) == 3
        assert not any(other.reaches(port) for port in ports)
        # Who looks after it is killed, and the next one closes them again.
        kills.kill(leftovers.supervisor_pids(RunFolder.of(run))[-1:])
        kills.until(
            lambda: any(event.kind == "supervisor-replaced" for _, event in api.store.events(run.name))
        )
        assert not any(other.reaches(port) for port in ports)
        enough(run)
        assert api.wait(run.name, timeout_seconds=240).phase is JobPhase.SUCCEEDED
        assert not any("other machines" in note for note in api.get(run.name).notes)


def test_a_job_says_that_its_ports_are_open_where_they_are(api: jobs.Jobs, submit: Submit) -> None:
    if not LACKS:
        pytest.skip("they are closed here")
    run = api.wait(submit(shell_job("true")).name, timeout_seconds=240)
    assert f"other machines may reach its ports, and so files of its user: {LACKS}" in run.notes
