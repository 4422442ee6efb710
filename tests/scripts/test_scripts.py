"""The scripts that end-to-end tests run unchanged do work by themselves, as plain processes."""

import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]
HERE = Path(__file__).parent


def addresses(count):
    found = []
    while len(found) < count:
        port = random.randint(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(f"127.0.0.1:{port}")
    return found


@pytest.fixture
def start(tmp_path):
    started = []

    def begin(script, *arguments, **environment):
        log = tmp_path / f"{len(started)}.log"
        with open(log, "wb") as stream:
            process = subprocess.Popen(
                [sys.executable, str(HERE / script), *arguments],
                env={**os.environ, "GRPC_FAIL_FAST": "use_caller", **environment},
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        return process, log

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def final_loss(process, log):
    assert process.wait(timeout=150) == 0, log.read_text()
    return float(log.read_text().strip().splitlines()[-1].rpartition("loss ")[2])


def test_tf1_style(start):
    ps, workers = addresses(1), addresses(2)

    def replica(role, index):
        return start(
            "tf1_style.py",
            f"--ps_hosts={','.join(ps)}",
            f"--worker_hosts={','.join(workers)}",
            f"--job_name={role}",
            f"--task_index={index}",
            TF_CPP_MIN_LOG_LEVEL="2",
        )

    replica("ps", 0)
    trainers = [replica("worker", i) for i in range(2)]
    assert all(final_loss(*trainer) < 0.1 for trainer in trainers)


def test_tf2_style(start):
    cluster = {"ps": addresses(1), "worker": addresses(2), "chief": addresses(1)}

    def replica(role, index):
        config = {"cluster": cluster, "task": {"type": role, "index": index}}
        return start("tf2_style.py", TF_CONFIG=json.dumps(config), TF_CPP_MIN_LOG_LEVEL="2")

    for role, index in (("ps", 0), ("worker", 0), ("worker", 1)):
        replica(role, index)
    assert final_loss(*replica("chief", 0)) < 0.5
