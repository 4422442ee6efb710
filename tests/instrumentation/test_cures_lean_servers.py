"""A parameter server leaves its script behind where it may, and stays in it where it must."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support import nights, ports
from support.interpreters import with_tensorflow_or_skip

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parents[1] / "scripts" / "cured" / "tf1_server.py"


@pytest.fixture
def served(runner) -> Any:
    """Runs a server and a worker; returns the server's process, its command, and what its cure says."""
    with ExitStack() as stack:

        def serve(server: str = "join", version: str | None = None, **training: Any) -> Any:
            python, own = str(with_tensorflow_or_skip(version)), ports.joined(2)
            environment = runner.environment(PACELINE_TRAINING=json.dumps(training) if training else "")
            command = [python, str(SCRIPT), "--ports", own]
            log = runner.folder / "server.log"
            with log.open("w") as out:
                process = subprocess.Popen(
                    [*command, "--job=ps", f"--server={server}"], env=environment, stdout=out, stderr=out
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
            worker = subprocess.run(
                [*command, "--job=worker"], env={**environment, "PACELINE_INSTRUMENTATION": "off"},
                capture_output=True, text=True, timeout=500, check=False,
            )  # fmt: skip
            assert worker.returncode == 0, worker.stderr[-3000:] + log.read_text()[-3000:]
            said = json.loads(worker.stdout.splitlines()[-1])
            assert said == {"place": "/job:ps/task:0", "last": 3 - 3 * 0.5**5, "steps": 5}
            assert process.poll() is None
            running = Path(f"/proc/{process.pid}/cmdline").read_bytes().decode().split("\0")
            return process, running, runner.reports("cure")

        yield serve


@pytest.mark.parametrize(
    "version", nights.but((None, "1.15.5", "2.1.4", "2.4.4", "2.11.1"), often=(None, "1.15.5"))
)
@pytest.mark.parametrize("server", nights.but(("join", "started"), often=("join",)))
def test_a_server_that_is_joined_has_no_python_of_tensorflow(served, server, version):
    process, running, cures = served(server, version, lean_servers=True)
    assert [Path(each).name for each in running[1:4]] == ["-I", "-S", "lean_server.py"]
    maps = Path(f"/proc/{process.pid}/maps").read_text()
    assert "numpy" not in maps
    (cure,) = cures
    assert (cure["name"], cure["outcome"]) == ("lean-servers", "applied")
    assert cure["message"] in ("server: libtensorflow_cc.so.2", "server: _pywrap_tensorflow_internal.so")
    process.send_signal(signal.SIGTERM)
    assert process.wait(240) == -signal.SIGTERM


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("target", "the script asks for its server's target"),
        ("thread", "the script has threads beside its server: MainThread, metrics"),
        ("two", "its process has more than one server"),
        ("late", "the script does not join its server within 10 s"),
    ],
)
def test_a_server_whose_script_goes_on_stays_in_it(served, server, reason):
    _, running, cures = served(server, lean_servers=True)
    assert running[1] == str(SCRIPT)
    assert [(each["outcome"], each["message"]) for each in cures] == [("refused", reason)]


def test_an_old_tensorflow_stays_as_it_is(served):
    _, running, (cure,) = served(version="1.12.3", lean_servers=True)
    assert running[1] == str(SCRIPT)
    assert cure["message"] == "this TensorFlow has no C function that makes a server"


@pytest.mark.parametrize(
    "training",
    nights.but(({}, {"lean_servers": False}, {"unique_ids": True}), often=({"lean_servers": False},)),
)
def test_a_server_stays_as_it_is_unless_the_job_file_asks(served, training):
    _, running, cures = served(**training)
    assert running[1] == str(SCRIPT)
    assert cures == []
