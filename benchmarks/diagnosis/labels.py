"""What is true of each recording of the corpus: one file of labels beside them."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "labels.json"
HEALTHY = "healthy"
FIT, UNSEEN = "fit", "unseen"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What is true of a recording by construction, and what was felt of it.

    Attributes:
        cause: the primary one, or ``healthy``.
        also: further causes that are truly there; naming one of them is no mistake.
        accepted: causes that may stand for the primary one: the other of a pair.
        severity: mild, medium or gross; None for a healthy run.
        split: ``fit`` may be looked at to set thresholds, ``unseen`` not.
        ending: whether it was recorded live, or after the job was stopped or had finished.
        twin: the healthy recording that it is compared with; None for a healthy run.
        began_at: when training began under its limits (Unix seconds).
        effect: what was measured of the fault, in words.
        value: that was measured.
        speed_ratio: examples a second over those of the twin.
    """

    name: str
    cause: str
    also: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    severity: str | None = None
    model: str
    size: str
    seed: int
    kind: str
    split: str
    ending: str
    twin: str | None = None
    began_at: float
    effect: str = ""
    value: float | None = None
    speed_ratio: float | None = None

    @property
    def file(self) -> str:
        """Return the name of its recording's file."""
        return f"{self.name}.parquet"


def read(folder: Path) -> dict[str, Label]:
    """Return the labels of a folder by name; none if it has no file of them."""
    path = folder / FILE
    if not path.exists():
        return {}
    return {name: _label(name, values) for name, values in json.loads(path.read_text()).items()}


def _label(name: str, values: Mapping[str, Any]) -> Label:
    lists = {key: tuple(values.get(key, ())) for key in ("also", "accepted")}
    return Label(name=name, **{**values, **lists})


def write(folder: Path, labels: Mapping[str, Label]) -> None:
    """Write labels, whole or not at all."""
    found = {}
    for name, label in sorted(labels.items()):
        values = dataclasses.asdict(label)
        del values["name"]
        found[name] = values
    path = folder / FILE
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(found, indent=1) + "\n")
    os.replace(temporary, path)
