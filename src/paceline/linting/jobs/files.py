"""Rules on the files that commands name, for jobs that run on this machine.

Only words that are certainly files count: the script of a Python or shell command, and a program that is
named by its path. The rule reports nothing if the file depends on something else (a placeholder, an unknown
option, fetched code, an image, a volume), because a false alarm is worse than silence.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence

from paceline.linting.jobs import commands
from paceline.linting.rules import LintHit, rule
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.job_specs import JobSpec
from paceline.specs import JobFile
from paceline.specs.yaml_text import problems

_PYTHON = re.compile(r"python(\d+(\.\d+)?)?", re.ASCII)
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
#: Options of Python before the script: those without a value, and those with one.
_PYTHON_FLAGS, _PYTHON_VALUES = frozenset("bBdEiIOPqsSuvx"), frozenset("WX")
_SHELL_FLAGS = frozenset("abefhiklmnprtuvxBCEHPT")
_FILLED_IN = re.compile(r"[{}$]")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LocalJobFile:
    """A job file whose job runs on this machine.

    Attributes:
        job: the job file.
        base: the folder to which relative paths are relative, as an absolute path.
        is_missing: returns whether there is certainly no file at a path.
    """

    job: JobFile
    base: str
    is_missing: Callable[[str], bool]


@rule(
    "JOB707",
    "A file of the command is not there",
    Severity.ERROR,
    why="The command names a script or a program that is not where it is looked for: in spec.working_dir, "
    "which starts at the job file. Every replica ends as soon as it starts, and is started again as often as "
    "its restart policy says.",
    fix="Write the file, or correct its name. A relative path starts at spec.working_dir.",
)
def missing_file(place: LocalJobFile) -> Iterator[LintHit]:
    """Scripts and programs must be there."""
    top = _top(place)
    if top is None:
        return
    spec = place.job.spec
    for path, command in commands.commands(place.job):
        if path == ("spec", "command") and all(role.command for role in spec.roles):
            continue  # Every role has its own command.
        for index in _files(command):
            word = command[index]
            whole = posixpath.normpath(posixpath.join(top, word))
            if not _is_mounted(spec, whole) and place.is_missing(whole):
                where = "" if word.startswith("/") else f" in {top}"
                message = f"there is no file {problems.shown(word)}{where}"
                yield LintHit(place.job.document, (*path, index), message)
                break


def _top(place: LocalJobFile) -> str | None:
    """Return the folder in which commands start; None if it is unknown or not on this machine."""
    spec = place.job.spec
    if spec.image is not None or _FILLED_IN.search(spec.working_dir or ""):
        return None
    if spec.code is None:
        return posixpath.normpath(posixpath.join(place.base, spec.working_dir or ""))
    if spec.code.folder is None:
        return None
    return spec.code.start(posixpath.join(place.base, spec.code.folder), spec.working_dir)


def _is_mounted(spec: JobSpec, path: str) -> bool:
    """Return whether the path of a file is within a mounted volume."""
    return any(path.startswith(f"{volume.mount_path.rstrip('/')}/") for volume in spec.volumes)


def _files(command: Sequence[str]) -> Iterator[int]:
    """Yield the indices of the words that are certainly files: the program, and the script that it runs."""
    program = command[0]
    if _FILLED_IN.search(program):
        return
    if "/" in program:
        yield 0
    name = posixpath.basename(program)
    index = None
    if _PYTHON.fullmatch(name):
        index = _script(command, _PYTHON_FLAGS, _PYTHON_VALUES)
    elif name in _SHELLS:
        index = _script(command, _SHELL_FLAGS, frozenset())
        if index is not None and "/" not in command[index]:
            index = None  # A shell also searches the folders of PATH for the script.
    if index is not None and not _FILLED_IN.search(command[index]):
        yield index


def _script(command: Sequence[str], flags: frozenset[str], values: frozenset[str]) -> int | None:
    """Return the index of the script of an interpreter; None if there is no script, or it is unknown."""
    index = 1
    while index < len(command):
        word = command[index]
        if not word.startswith("-"):
            return index if word and not word.startswith("+") else None
        if word == "--":
            return index + 1 if index + 1 < len(command) else None
        if len(word) == 2 and word[1] in values:
            index += 2
            continue
        if len(word) < 2 or not (word[1] in values or set(word[1:]) <= flags):
            return None
        index += 1
    return None


RULES = (missing_file,)
