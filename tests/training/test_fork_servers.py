"""Scripts that are forked behave as those that are started."""

import json
import os
import signal
import subprocess
import sys

import pytest
from support.fork_servers import ForkServer

SAYS = """
import atexit, json, os, sys, threading

at_end = atexit.register(lambda: print("the end"))
threading.Thread(target=lambda: print(json.dumps([sys.argv, dict(os.environ), os.getcwd(), sys.path[0],
    __name__, sorted(name for name in globals() if name.startswith("_serve"))]))).start()
sys.exit(3)
"""
SLEEPS = """
import signal
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def server():
    started = ForkServer(["json"], dict(os.environ))
    yield started
    started.close()


@pytest.fixture
def start(server, tmp_path):
    def start(text, *arguments, **environment):
        script = tmp_path / "script.py"
        script.write_text(text)
        return server.start(
            [str(script), *arguments], environment=environment, folder=tmp_path, log=tmp_path / "log"
        )

    return start


def test_it_is_as_if_an_interpreter_had_started(start, tmp_path):
    assert start(SAYS, "a", "b", NAME="value").wait() == 3
    said, end = (tmp_path / "log").read_text().splitlines()
    script, folder = str(tmp_path / "script.py"), str(tmp_path)
    assert json.loads(said) == [[script, "a", "b"], {"NAME": "value"}, folder, folder, "__main__", []]
    assert end == "the end"


def test_each_begins_anew(start, tmp_path):
    leaves = "import json\nprint(hasattr(json, 'left'))\njson.left = True"
    assert [start(leaves).wait(), start(leaves).wait()] == [0, 0]
    assert (tmp_path / "log").read_text().split() == ["False", "False"]


def test_an_error_is_told(start, tmp_path):
    assert start("raise ValueError('wrong')").wait() == 1
    assert (tmp_path / "log").read_text().endswith("ValueError: wrong\n")


def test_signals(start, tmp_path):
    process = start(SLEEPS)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    assert process.poll() == -signal.SIGTERM
    process.kill()  # as of one that has ended


def test_modules_that_start_a_thread_are_refused(tmp_path):
    (tmp_path / "threaded.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    done = subprocess.run(
        [sys.executable, sys.modules[ForkServer.__module__].__file__, "threaded"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1
    assert "a process with 2 threads must not fork" in done.stderr
