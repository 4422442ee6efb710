"""Starts the trainer that its arguments name, as launchers do: by a shell, and waits for it."""
import shlex
import subprocess
import sys

command = " ".join(shlex.quote(each) for each in [sys.executable, *sys.argv[1:]])
sys.exit(subprocess.call(["sh", "-c", "echo starting; %s" % command]))
