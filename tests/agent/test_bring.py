"""The agent in an image that has nothing: no Python, no C library, no shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import ports

from paceline.rendering import agents

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")]

AGENT = agents.start(agents.AgentDelivery.COPY, ())
RUN = """
import os, sys
os.chroot(sys.argv[1])
os.chdir("/")
os.execve(sys.argv[2], sys.argv[2:], {})
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a container that has only what an init container brought."""
    root = tmp_path_factory.mktemp("image")
    (root / "paceline").mkdir()
    (root / "tmp").mkdir()
    subprocess.run([sys.executable, "-m", "paceline.agent.bring", root / "paceline"], check=True)
    return root


#: A /proc, and a file over the exit reason that cannot be replaced, as Kubernetes mounts its own.
MOUNTS = """
mount --rbind /proc "$1/proc" && mount --bind "$1/paceline/exit" "$1/paceline/exit" && shift && exec "$@"
"""


def in_container(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with that root and an empty environment."""
    (root / "proc").mkdir(exist_ok=True)
    (root / "paceline" / "exit").touch()
    mounted = ["unshare", "--mount", "--", "sh", "-c", MOUNTS, "sh", str(root)]
    return subprocess.run(
        [*mounted, sys.executable, "-c", RUN, str(root), *command],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


#: What runs beside the agent asks it for its metrics, too.
ASK = """
import socket, sys, time
print("hello from", sys.prefix)
time.sleep(2.5)
with socket.create_connection(("127.0.0.1", %d)) as agent:
    agent.sendall(b"GET /metrics HTTP/1.1\\r\\n\\r\\n")
    print(agent.recv(100).decode().splitlines()[0])
sys.exit(7)
"""


def test_a_thread_may_end_itself(image: Path) -> None:
    *python, _ = AGENT
    ends = "import ctypes; ctypes.CDLL(None).pthread_exit(None)"
    done = in_container(image, *python, "-c", ends)
    assert done.stderr == ""
    assert done.returncode == 0


def test_the_agent_runs_a_command_and_measures_it(image: Path) -> None:
    *python, agent = AGENT
    port = ports.free_port()
    script = ASK % port
    common = {
        "job": "clicks", "role": "worker", "command": [*python, "-c", script], "cluster": {"worker": ["a:1"]},
        "spool": "/paceline/spool", "exit": "/paceline/exit", "reports": "/paceline/reports",
        "metrics_port": port,
    }  # fmt: skip
    (image / "paceline" / "common.json").write_text(json.dumps(common))
    done = in_container(image, *python, agent, "/paceline/common.json", '{"index": 0, "attempt": 2}')
    assert done.stdout == "hello from /paceline\nHTTP/1.1 200 OK\n", done.stderr
    assert done.returncode == 7
    reason = json.loads((image / "paceline" / "exit").read_text())
    assert (reason["kind"], reason["code"]) == ("error", 7)
    lines = [json.loads(line) for line in (image / "paceline" / "spool").read_text().splitlines()]
    assert {"started", "sample", "exited"} <= {line["type"] for line in lines}
    samples = [line for line in lines if line["type"] == "sample"]
    assert all(line["cpu_cores"] is not None and line["memory_bytes"] for line in samples)
