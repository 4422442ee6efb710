"""Finds out why a training script is not seen: from how its process was started.

Python imports the instrumentation through ``sitecustomize`` on ``PYTHONPATH``. A process that ignores either
of them has loaded TensorFlow or PyTorch without the instrumentation.
"""

import os
import re
from typing import Iterable, List, Optional

LIBRARIES = re.compile(
    r"/(_pywrap_tensorflow_internal|_pywrap_tensorflow_common|libtensorflow_framework|libtorch_python)\b"
)
PYTHON = re.compile(r"python(\d+(\.\d+)?)?[a-z]*$")
#: Python options that ignore environment variables, or skip the modules that these add.
BLOCKING = "IES"


def reason(folder: str, pids: Iterable[int], proc: str = "/proc") -> Optional[str]:
    """Return why processes that have loaded TensorFlow or PyTorch are not seen; None: no reason shows.

    Args:
        folder: the folder of the instrumentation.
        pids: the processes of the command.
        proc: where the kernel shows processes.
    """
    for pid in sorted(pids):
        place = os.path.join(proc, str(pid))
        try:
            with open(os.path.join(place, "maps"), errors="replace") as file:
                if LIBRARIES.search(file.read()) is None:
                    continue
            with open(os.path.join(place, "cmdline"), "rb") as binary:
                words = binary.read().decode("utf-8", "replace").split("\0")
            with open(os.path.join(place, "environ"), "rb") as binary:
                environment = binary.read().decode("utf-8", "replace").split("\0")
            program = os.readlink(os.path.join(place, "exe"))
        except OSError:  # It has ended, or belongs to another user.
            continue
        found = reason_of(folder, program, words, environment)
        if found is not None:
            return f"process {pid}: {found}"
    return None


def reason_of(folder: str, program: str, words: List[str], environment: List[str]) -> Optional[str]:
    """Return why a process is not seen, from its program, command line and environment; None: unknown."""
    if PYTHON.search(os.path.basename(program)) is None:
        return f"{program} brings a Python of its own, which reads no PYTHONPATH"
    option = blocking_option(words[1:])
    if option is not None:
        return f"Python was started with -{option}, which leaves PYTHONPATH or sitecustomize out"
    paths = [each.partition("=")[2] for each in environment if each.startswith("PYTHONPATH=")]
    if folder not in ":".join(paths).split(":"):
        return f"its environment was cleared: PYTHONPATH does not have {folder}"
    return None


def blocking_option(words: Iterable[str]) -> Optional[str]:
    """Return Python's first option that disables the instrumentation, if there is one."""
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("--"):
            skip = word == "--check-hash-based-pycs"
        elif not word.startswith("-") or word == "-":
            return None
        else:
            for place, letter in enumerate(word[1:], 2):
                if letter in BLOCKING:
                    return letter
                if letter in "WX":  # Its value follows, in this word or in the next.
                    skip = place == len(word)
                    break
                if letter in "cm":
                    return None
    return None
