"""The model that a job trains: jobs of one model are compared with each other, whatever their layout."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from paceline.model.explanations.diagnosis_summaries import DiagnosisSummary
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.statuses import JobPhase
from paceline.model.roles import Role

#: A label with which a user names the model, for instance if commands contain dates.
LABEL = "model"
#: Keys below ``training`` whose values distinguish models.
_SHAPE = ("embedding_dimension", "hidden_units")
_LONGEST = 40


class Told(NamedTuple):
    """The results of a run of a model; None: not measured."""

    examples_per_second: float | None
    used_cores: float | None
    auc: float | None

    @property
    def examples_per_core_hour(self) -> float | None:
        """Return the examples for each core hour that the run used."""
        return per_core_hour(self.examples_per_second, self.used_cores)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model in a list.

    Attributes:
        runs: the number of runs that train it.
        last_at: when the last of these runs was submitted (Unix seconds).
        told: the results of the newest runs, the newest first.
    """

    name: str
    runs: int
    last_at: float
    told: tuple[Told, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """A run of a model, as trends need it; ``diagnosis`` is None if the run was not diagnosed."""

    name: str
    submitted_at: float
    phase: JobPhase
    source: str
    spec: JobSpec
    diagnosis: DiagnosisSummary | None


def per_core_hour(examples_per_second: float | None, used_cores: float | None) -> float | None:
    """Return the examples for each core hour used; None: not measured."""
    return examples_per_second / used_cores * 3600 if examples_per_second and used_cores else None


def name_of(spec: JobSpec) -> str:
    """Return the name of the model that a job trains, such as ``deepfm-3f2a9c01``.

    Jobs have the same name if and only if they have the same shape and the same label ``model``, or without
    this label the same command: the digits are a checksum of these. The word before the digits is for users.
    """
    role = Role.CHIEF if spec.role(Role.CHIEF) else Role.WORKER
    return name(spec.labels.get(LABEL), spec.command_of(role), spec.training or {})


def name(label: str | None, command: Sequence[str], training: Mapping[str, Any]) -> str:
    """Return the name of a model.

    Args:
        label: the value of the label ``model``; None: the job has none.
        command: the command of its chief, or else of its workers.
        training: the ``training`` section of its job file.
    """
    # The first word is left out: the interpreter may be that of another environment.
    words = list(command[1:])
    identity = [label is not None, words if label is None else [label], [training.get(e) for e in _SHAPE]]
    digits = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:8]
    return f"{_slug(label or _script(words)) or 'model'}-{digits}"


def _script(words: Sequence[str]) -> str:
    """Return the name of the script or module that a command runs; empty: there is none."""
    for before, word in zip(("", *words), words, strict=False):
        if before == "-m":
            return word.rpartition(".")[2]
        if not word.startswith("-"):
            return word.rpartition("/")[2].partition(".")[0]
    return ""


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:_LONGEST].strip("-")
