"""The folders to which a job writes TensorBoard summaries, as far as its job file names them."""

from __future__ import annotations

import re

from paceline.model.jobs.job_specs import JobSpec

#: Options of scripts, and environment variables, that name a folder for summaries.
_OPTION = re.compile(
    r"--?(?:log|tensorboard|tb|summary|summaries)[-_]?dir(?:ectory)?(?:=(?P<value>.+))?", re.I
)
_VARIABLE = re.compile(r"(?:.*_)?(?:TENSORBOARD|TB|SUMMARY)_?(?:LOG_?)?DIR|LOG_?DIR", re.I)


def named(spec: JobSpec) -> list[str]:
    """Return the folders that a job's commands and environments name for its summaries."""
    folders: dict[str, None] = {}
    for command in (spec.command, *(role.command for role in spec.roles)):
        words = list(command or ())
        for place, word in enumerate(words):
            match = _OPTION.fullmatch(word)
            if match:
                value = match["value"] or (words[place + 1] if place + 1 < len(words) else "")
                folders |= {value: None} if value else {}
    for environment in (spec.environment, *(role.environment for role in spec.roles)):
        folders |= {value: None for key, value in environment.items() if _VARIABLE.fullmatch(key) and value}
    return list(folders)
