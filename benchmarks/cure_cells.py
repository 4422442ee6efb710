"""What the benchmark ``cures`` measures: cures by styles of scripts, each with something to gain.

A cell is a cure, a style and what the script is asked for. The cure has something to gain where tables are
large and few of their rows are used (Adam), where one table is giant, where ids repeat, where a link is
narrow, where a map is slow, where steps are small, where a chief comes late or a worker not at all.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from support.styles import SCRIPTS, STYLES

from paceline import specs
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.variables import cures

#: What is measured: examples/s, loss and checkpoint in pairs; seconds until the last trainer's first step in
#: pairs; how many trainers train; why the cure is refused.
RATE, WAIT, STARTS, REFUSED = "rate", "wait", "starts", "refused"
FOREVER = 10**9
_OLD, _NEW = "tf1_clicks.py", "tf2_clicks.py"
#: The script of each style, and what makes it that style.
SCRIPT_OF = {
    "monitored": (_OLD, "--loop=monitored"),
    "sync": (_OLD, "--loop=sync"),
    "supervisor": (_OLD, "--loop=supervisor"),
    "feed": (_OLD, "--loop=feed"),
    "dataset": (_OLD, "--loop=dataset"),
    "model-fn": (_OLD, "--loop=model-fn"),
    "keras-graph": (_NEW, "--loop=fit --graph"),
    "fit": (_NEW, "--loop=fit"),
    "fit-strategy": (_NEW, "--loop=fit"),
    "loop": (_NEW, "--loop=loop"),
    "loop-strategy": (_NEW, "--loop=loop"),
}
#: The TensorFlow of each style: one, or all would take twice as long, but not the same for all.
VERSION_OF = {
    "monitored": "1.15.5",
    "sync": "1.12.3",
    "supervisor": "2.11.1",
    "feed": "2.15.1",
    "dataset": "1.15.5",
    "model-fn": "1.15.5",
    "keras-graph": "2.8.4",
    "fit": "2.15.1",
    "fit-strategy": "2.8.4",
    "loop": "2.11.1",
    "loop-strategy": "2.15.1",
}
#: Workers look once in 30 s whether the chief is ready. Both sides look each second, or most of a run would
#: have one worker only.
_SOON = {"recovery_wait_seconds": 1}
_HEAD = "apiVersion: paceline.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: cures}\n"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """A cure, a style, and what the script is asked for.

    Attributes:
        cure: its name; that of settings which no cure can give to a script, too.
        style: of the script.
        version: the TensorFlow.
        kind: what is measured.
        arguments: the script's.
        steps: of all workers together, in a run whose speed is measured.
        batch: how many examples a batch has.
        replicas: of each role; none: as the style has them.
        cores: of a replica; None: not limited.
        bandwidth: between the parameter servers and the workers; None: not limited.
        training: what asks for the cure; none: its example.
        about: tells cells of one cure and style apart.
    """

    cure: str
    style: str
    version: str
    kind: str = RATE
    arguments: str = ""
    steps: int = FOREVER
    batch: int = 256
    replicas: Mapping[str, int] | None = None
    cores: float | None = 0.5
    bandwidth: str | None = None
    training: Mapping[str, Any] | None = None
    about: str = ""

    @property
    def name(self) -> str:
        """What it is called in keys and tables."""
        return " ".join(word for word in (self.cure, self.style, self.about) if word)

    @property
    def roles(self) -> Mapping[str, int]:
        """How many replicas each role has."""
        return STYLES[self.style].roles if self.replicas is None else self.replicas

    @property
    def trainers(self) -> int:
        """How many replicas say what they do: one where a coordinator makes the steps of all."""
        if "chief" in self.roles and not STYLES[self.style].is_session:
            return 1
        return sum(count for role, count in self.roles.items() if role != "ps")

    @property
    def script(self) -> str:
        """The path of the script."""
        return str(SCRIPTS / SCRIPT_OF[self.style][0])

    def words(self, folder: Path, seed: int, steps: int) -> list[str]:
        """Return the arguments of the script for a run that keeps its checkpoint in a folder."""
        own = [*SCRIPT_OF[self.style][1].split(), *self.arguments.split(), f"--batch={self.batch}"]
        return [*own, f"--folder={folder}", f"--seed={seed}", f"--steps={steps}"]

    def asking(self) -> Mapping[str, Any]:
        """Return the training section that asks for the cure alone."""
        if self.training is not None:
            return self.training
        (cure,) = (each for each in cures.CURES if each.name == self.cure)
        value = cure.example
        for name in reversed(cure.path):
            value = {name: value}
        return dict(value)

    def spec(self, python: Path, folder: Path, *, seed: int, steps: int, is_cured: bool) -> JobSpec:
        """Return the job, with the cure or without it."""
        is_waiting = self.style in ("monitored", "supervisor", "dataset", "sync", "model-fn")
        training = dict(_SOON) if is_waiting and self.kind == RATE else {}
        training.update(self.asking() if is_cured else {})
        limits = {} if self.cores is None else {"cpu": self.cores}
        spec: dict[str, Any] = {
            "command": [str(python), self.script, *self.words(folder, seed, steps)],
            "environment": {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"},
            "roles": {
                role: {"replicas": count, "memory": "3Gi", **limits} for role, count in self.roles.items()
            },
            "success": "chief",
            "termination_grace": "2s",
        }
        if training:
            spec["training"] = training
        if self.bandwidth is not None:
            spec["hosts"] = [{"name": name, "bandwidth": self.bandwidth} for name in ("servers", "workers")]
            spec["placement"] = {"strategy": "isolate"}
        return specs.parse_job(_HEAD + yaml.safe_dump({"spec": spec})).spec


def _each(cure: str, styles: Sequence[str], arguments: str, **more: Any) -> list[Cell]:
    """Return the cells of a cure with some styles."""
    return [
        Cell(cure=cure, style=style, arguments=arguments, **{"version": VERSION_OF[style], **more})
        for style in styles
    ]


#: Tables of which a step uses few rows, while Adam moves all of them.
_LARGE = "--optimizer=adam --rows 1000000 20000 20000 20000"
#: Two that are large, which turns put on the same server.
_UNEVEN = "--optimizer=adam --rows 400000 1000 400000 1000"
#: Rows that are wide, of ids that repeat.
_WIDE = "--width=64 --rows 20000 2000 2000 2000"
_SMALL = "--rows 2000 200 --every=200"
_PAIR = {"ps": 1, "worker": 1}
_NARROW: Mapping[str, Any] = {"steps": 600, "batch": 1024, "cores": None, "bandwidth": "100Mbit"}
_FREE: Mapping[str, Any] = {"cores": None}
_LINES: Mapping[str, Any] = {"steps": 4000, "replicas": _PAIR, "cores": None}

CELLS = (
    *_each(
        "lazy-adam", ("monitored", "supervisor", "feed", "sync", "model-fn"), _LARGE, steps=1500, batch=512
    ),
    *_each("lazy-adam", ("fit-strategy", "loop-strategy"), _LARGE, steps=1500, batch=512),
    *_each("lazy-adam", ("fit", "loop", "keras-graph"), _LARGE, steps=800, batch=512, cores=1),
    *_each("variable-placement", ("monitored", "feed", "model-fn"), _UNEVEN, steps=1500, batch=512),
    *_each("variable-placement", ("fit-strategy", "loop-strategy"), _UNEVEN, steps=1500, batch=512),
    *_each("partitioning", ("monitored", "feed", "model-fn", "fit-strategy"), _LARGE, steps=1500, batch=512),
    *_each(
        "unplaced-variables", ("monitored", "feed"), "--setter=none", steps=3000,
        replicas={"ps": 2, "worker": 1},
    ),
    *_each("unplaced-variables", ("monitored", "feed"), "--setter=none", kind=STARTS, about="second worker"),
    *_each("unique-ids", ("monitored", "feed"), _WIDE, **_NARROW),
    *_each("unique-ids", ("fit-strategy",), _WIDE, **_NARROW),
    *_each("transfer-precision", ("monitored", "feed", "supervisor"), _WIDE, **_NARROW),
    *_each("steps-per-execution", ("fit",), _SMALL, steps=20_000, batch=32, cores=1),
    *_each("steps-per-execution", ("fit-strategy",), _SMALL, steps=10_000, batch=32),
    *_each("prefetch", ("dataset",), "", **_LINES),
    *_each("prefetch", ("fit", "loop"), "--lines", steps=4000, **_FREE),
    *_each("parallel-map", ("dataset",), "", **_LINES),
    *_each("parallel-map", ("fit", "loop"), "--lines", steps=4000, **_FREE),
    *_each("recovery-wait", ("monitored", "supervisor"), "--late=8", kind=WAIT),
    *_each(
        "device-filters", ("monitored", "feed"), "--open", steps=3000, replicas={"ps": 2, "worker": 1},
    ),
    *_each("device-filters", ("monitored", "feed"), "--open --away", kind=STARTS, about="other worker away"),
    *_each("lean-servers", ("monitored", "feed"), "", steps=3000, batch=32),
    *_each("lean-servers", ("fit-strategy",), "", steps=3000, batch=32),
    *_each("lazy-adam", ("fit",), "--optimizer=amsgrad", kind=REFUSED, about="amsgrad"),
    *_each(
        "lazy-adam", ("fit",), "--optimizer=adam --keras3", kind=REFUSED, version="2.21.0",
        about="Keras 3",
    ),
    *_each("lazy-adam", ("monitored",), "--optimizer=adagrad", kind=REFUSED, about="Adagrad"),
    *_each(
        "variable-placement", ("monitored",), "--setter=own", kind=REFUSED, about="a strategy of its own"
    ),
    *_each(
        "partitioning", ("monitored",), _LARGE, kind=REFUSED, about="strided rows",
        training={"partitioning": {"strategy": "fixed", "rows": "strided"}},
    ),
    *_each("partitioning", ("loop-strategy",), "", kind=REFUSED, about="small tables"),
    *_each(
        "unplaced-variables", ("feed",), "--setter=none", kind=REFUSED, version="1.4.1",
        replicas={"ps": 1, "worker": 1}, about="before 1.8",
    ),
    *_each("unplaced-variables", ("monitored",), "", kind=REFUSED, about="all have a place"),
    *_each("transfer-precision", ("fit-strategy",), "", kind=REFUSED, about="no session"),
    *_each(
        "steps-per-execution", ("fit",), "--per-execution=5", kind=REFUSED, about="a number of its own"
    ),
    *_each("steps-per-execution", ("fit",), "--each", kind=REFUSED, about="a callback of each batch"),
    *_each("parallel-map", ("fit",), "--lines --state", kind=REFUSED, about="random numbers"),
    *_each("recovery-wait", ("supervisor",), "--wait=5", kind=REFUSED, about="a wait of its own"),
    *_each("lean-servers", ("monitored",), "", kind=REFUSED, version="1.12.3", about="1.12"),
    *_each("device-filters", ("monitored",), "", kind=REFUSED, about="filters of its own"),
    *_each(
        "library-settings", ("monitored",), "", kind=REFUSED, about="steps in flight",
        training={"steps_in_flight": 2},
    ),
)  # fmt: skip


def environment() -> dict[str, str]:
    """Return an environment in which TensorFlow is as it came: nothing of Paceline is in it."""
    others = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "TF_CONFIG") and not name.startswith("PACELINE_")
    }
    more = {"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    return {**others, **more, "PACELINE_INSTRUMENTATION": "off"}


def lacks_hosts(cell: Cell) -> bool:
    """Whether a cell needs emulated hosts, which only root can have on Linux."""
    return cell.bandwidth is not None and (sys.platform != "linux" or os.geteuid() != 0)
