"""Starts the replica agent: ``agent.py CONFIG...``. Its code is in `paceline_agent`, beside this file.

In a pod that mounts the agent, the Python of the job's image runs this file, and that may be Python 2.
"""

import importlib
import os
import sys

OLDEST = (3, 6)
TOO_OLD = """\
the agent needs Python 3.6 or newer, and this image has only Python %d.%d.
With a command that a shell starts, the agent brings its own: command: [sh, -c, "exec python train.py"]
"""
#: Kubernetes keeps what a container writes here.
LAST_WORDS = "/dev/termination-log"

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.version_info < OLDEST:
        again = ["python3", "-I", "-S", os.path.join(here, "agent.py")]
        try:
            os.execvp(again[0], again + sys.argv[1:])
        except OSError:
            message = TOO_OLD % sys.version_info[:2]
        sys.stderr.write(message)
        if os.path.exists(LAST_WORDS):
            with open(LAST_WORDS, "w") as file:
                file.write(message)
        sys.exit(127)
    sys.path.insert(0, here)
    sys.exit(importlib.import_module("paceline_agent.main").main(sys.argv[1:]))
