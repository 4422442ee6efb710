"""The eight cases of where to put servers, simulated; at a small scale both simulated and really run.

What a step costs is measured on one small job with the same model. The cases are the experiment files of
``examples/scenes``, whose hosts are machines there. At the small scale, that of ``scenes-small``, both scenes
with one hot variable are read from its result; with that variable cut over all servers they are run here.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.prerequisites import NotHere

from benchmarks import plots, scenes_small, trials
from benchmarks.diagnosis import trials as starts
from benchmarks.diagnosis.sites import Site
from benchmarks.protocols import KEPT, ROOT, Bench, Check, Result, Row, written_rows
from paceline import specs
from paceline.engines.local import machines
from paceline.examples.clicks import generate
from paceline.model.explanations.causes import FieldChange
from paceline.model.measures.recordings import Recording
from paceline.model.studies.experiments import Experiment, Repeat, Variant
from paceline.model.studies.studies import TrialOutcome
from paceline.services.observing import recordings
from paceline.services.studying import experiments
from paceline.services.studying.experiments import Runner
from paceline.specs.edits import edits
from paceline.specs.job_file import experiment_files
from paceline.stores import open_store
from paceline.stores import recordings as files
from paceline.tuning import comparisons
from paceline.tuning.comparisons import Comparison

FOLDER = ROOT / "examples" / "scenes"
CASES = {1: "1-server.yaml", 5: "5-servers.yaml", 10: "10-servers.yaml", 20: "20-servers.yaml"}
TOGETHER, APART = "scene 1, whole", "scene 2, whole"
CUT_TOGETHER, CUT_APART = "scene 1, cut", "scene 2, cut"
#: Of each host: as the files have it, and so wide that the servers' cores bind.
LINKS = ("1G", "10G")
#: The small job: few workers with cores of their own, so that a step's parts can be told apart.
_SMALL = {
    "spec.roles.worker.replicas": 2, "spec.roles.worker.cpu": "300m", "spec.roles.ps.cpu": "500m",
}  # fmt: skip
_SECONDS, _REPEATS = 10.0, 3
#: Longer than the window of what is measured.
_TRAINING_SECONDS = 45.0
#: With so many servers both scenes are really run with the variable cut.
SMALL_SCALE, SMALL_REPEATS = (3, 4), 2
_CUT = tuple(
    FieldChange(path=("spec", "training", field), value=None)
    for field in ("partitioning", "variable_placement")
)
_CASE, _RUN, _SMALL_CASE = "case", "run", "small case"


def run(bench: Bench) -> list[Check]:
    """Measure the small job, and simulate every case."""
    if machines.read().lacks_namespaces:
        raise NotHere("this benchmark needs emulated hosts, so root")
    cases = {1: CASES[1]} if bench.quick else CASES
    small, repeats = ((2,), 1) if bench.quick else (SMALL_SCALE, SMALL_REPEATS)
    sides = (scenes_small.TOGETHER, scenes_small.APART)
    bench.plan(
        len(LINKS) * len(cases) + len(scenes_small.WORKERS_PER_SERVER) + len(small) * repeats * len(sides)
    )
    file = KEPT / "scenes-like.parquet"
    if not file.exists():
        KEPT.mkdir(exist_ok=True)
        files.write(file, _measured())
    like = files.read(file)
    for links, servers in itertools.product(LINKS, cases):
        case = functools.partial(_simulated, servers, FOLDER / cases[servers], like, links)
        bench.repeat(f"{servers} servers, {links}", case)
    for servers in scenes_small.WORKERS_PER_SERVER:
        bench.repeat(f"small, {servers} servers", functools.partial(_simulated_small, servers, like))
    for number in range(repeats):
        for servers in small:
            for side in sides if number % 2 == 0 else sides[::-1]:
                key = f"cut, {servers} PS, {side}, {number}"
                bench.repeat(key, functools.partial(_run, side, servers, number))
    return list(_checks(bench.rows))


def _run(side: str, servers: int, number: int) -> Mapping[str, Any]:
    """Run a scene at the small scale with the variable cut."""
    found = scenes_small.measure(side, servers, _CUT)
    return {"kind": _RUN, "number": number, **found}


def _measured() -> Recording:
    """Run the small job for a while."""
    data = KEPT / "clicks-scenes"
    generate.generate(data, scenes_small.DATA)
    source = (FOLDER / "job.yaml").read_text()
    changes = [FieldChange(path=tuple(field.split(".")), value=value) for field, value in _SMALL.items()]
    spec = specs.parse_job(edits.edited(source, changes)).spec
    command = (
        trials.example("clicks").command[0],
        "-m",
        "paceline.examples.clicks.train",
        "--data",
        str(data),
    )
    spec = dataclasses.replace(spec, command=command, working_dir=str(ROOT))
    with trials.service() as api:
        job = api.submit(spec, source=specs.dump_job(spec), base=ROOT)
        try:
            site = Site.of(api, job)
            starts.wait_for_steps(site, None)
            site.limit()
            time.sleep(_TRAINING_SECONDS)
            return recordings.whole(api, job.name)
        finally:
            starts.end_job(api, job)


def _simulated(servers: int, file: Path, like: Recording, links: str) -> Mapping[str, Any]:
    asked = _with_links(experiment_files.load_experiment(file), links)
    with tempfile.TemporaryDirectory() as folder, open_store(f"sqlite:///{folder}/paceline.db") as store:
        begun = dataclasses.replace(_of(asked, like), seconds=_SECONDS, repeats=_REPEATS)
        measure = experiments.simulated(like, begun, apart=True)
        done = Runner(store=store, measure=measure).run(begun)
    placed = dataclasses.replace(done, baseline=TOGETHER)
    cut = dataclasses.replace(done, baseline=CUT_TOGETHER)
    return {
        "kind": _CASE,
        "servers": servers,
        "links": links,
        "speeds": {
            each.variant: None if each.examples_per_second is None else each.examples_per_second[0]
            for each in comparisons.compared(done)
        },
        "whole": _compared(placed, APART),
        "cut": _compared(cut, CUT_APART),
        "gain": _compared(placed, CUT_TOGETHER),
    }


def _with_links(asked: Experiment, links: str) -> Experiment:
    """Return an experiment whose hosts have links of another width."""

    def wide(change: FieldChange) -> FieldChange:
        if change.path != ("spec", "hosts"):
            return change
        return dataclasses.replace(change, value=[{**host, "bandwidth": links} for host in change.value])

    variants = (dataclasses.replace(each, changes=tuple(map(wide, each.changes))) for each in asked.variants)
    return dataclasses.replace(asked, variants=tuple(variants))


def _of(asked: Experiment, like: Recording) -> Experiment:
    """Return the experiment of the job that was measured: the same model, in another folder."""
    command = list(like.run.spec.command)
    changes = [
        FieldChange(path=("spec", "command"), value=command),
        FieldChange(path=("spec", "working_dir"), value=None),
    ]
    return dataclasses.replace(asked, source=edits.edited(asked.source, changes))


def _simulated_small(servers: int, like: Recording) -> Mapping[str, Any]:
    """Simulate both scenes at the small scale, with the variable whole and cut."""
    blank = Experiment(
        name="small", source="", base="", variants=(), baseline="", repeats=SMALL_REPEATS, seconds=_SECONDS
    )
    measure = experiments.simulated(like, blank)
    threads = [FieldChange(path=("spec", "roles", role, "threads"), value=None) for role in ("ps", "worker")]
    speeds: dict[str, dict[str, list[float]]] = {}
    for cut, changes in (("whole", threads), ("cut", [*threads, *_CUT])):
        speeds[cut] = {}
        for side in (scenes_small.TOGETHER, scenes_small.APART):
            source = edits.edited(scenes_small.job_source(side, servers, Path("counts")), changes)
            found = [measure("", source, number, lambda _: None)[0] for number in range(SMALL_REPEATS)]
            speeds[cut][side] = [each.speed for each in found]
    return {"kind": _SMALL_CASE, "servers": servers, "speeds": speeds}


def _compared(experiment: Experiment, variant: str) -> dict[str, Any]:
    found = next(each for each in comparisons.compared(experiment) if each.variant == variant)
    return {"times": found.times, "verdict": str(found.verdict), "causes": list(found.causes)}


def _checks(rows: Sequence[Row]) -> Iterator[Check]:
    cases = [row for row in rows if row["kind"] == _CASE]
    for row in cases:
        for name, what in (
            ("whole", "one variable hot: scene 2 over scene 1"),
            ("cut", "cut: scene 2 over scene 1"),
            ("gain", "scene 1, cut over whole"),
        ):
            value, low, high = row[name]["times"]
            yield Check(
                name=f"{row['servers']} PS, {row['links']} links, simulated, {what}",
                value=value, low=low, high=high, target="whatever it is", holds=True,
            )  # fmt: skip
    for cut in ("whole", "cut"):
        real, simulated = _verdict(_real(rows, cut)), _verdict(_small(rows, cut))
        for name, found in (("really run", real), ("simulated", simulated)):
            if found is not None and found.times is not None:
                value, low, high = found.times
                yield Check(
                    name=f"small scale, the variable {cut}, {name}: scene 2 over scene 1 ({found.verdict})",
                    value=value, low=low, high=high, target="whatever it is", holds=True,
                )  # fmt: skip
        if real is None or simulated is None or real.times is None or simulated.times is None:
            continue
        same = float(_overlap(real.times, simulated.times))
        yield Check(
            name=f"small scale, the variable {cut}: both tell the same (their intervals overlap)", value=same,
            low=same, high=same, target="1", holds=bool(same),
        )  # fmt: skip


def _overlap(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    return max(one[1], other[1]) <= min(one[2], other[2])


#: The speeds of scene 1 and of scene 2, one after the other.
_Rounds = Sequence[tuple[float, float]]


def _real(rows: Sequence[Row], cut: str) -> _Rounds:
    """Return the speeds that were really measured at the small scale."""
    found = [row for row in rows if row["kind"] == _RUN]
    if cut == "whole":
        found = [
            {**row, "number": int(row["key"].rpartition(" ")[2])} for row in written_rows("scenes-small")
        ]
    speeds = {(row["side"], row["servers"], row["number"]): row["examples_per_second"] for row in found}
    return [
        (speed, speeds[scenes_small.APART, servers, number])
        for (side, servers, number), speed in speeds.items()
        if side == scenes_small.TOGETHER and (scenes_small.APART, servers, number) in speeds
    ]


def _small(rows: Sequence[Row], cut: str) -> _Rounds:
    """Return the speeds that were simulated at the small scale."""
    return [
        pair
        for row in rows
        if row["kind"] == _SMALL_CASE
        for pair in zip(
            row["speeds"][cut][scenes_small.TOGETHER], row["speeds"][cut][scenes_small.APART], strict=True
        )
    ]


def _verdict(rounds: _Rounds) -> Comparison | None:
    """Return what an experiment with these speeds says of scene 2; None: nothing was measured."""
    if not rounds:
        return None
    sides = (scenes_small.TOGETHER, scenes_small.APART)
    done = tuple(
        Repeat(variant=side, number=number, run="", outcome=TrialOutcome(examples_per_second=(speed,)))
        for number, speeds in enumerate(rounds)
        for side, speed in zip(sides, speeds, strict=True)
    )
    experiment = Experiment(
        name="small", source="", base="", variants=tuple(Variant(name=each, changes=()) for each in sides),
        baseline=sides[0], repeats=len(rounds), seconds=_SECONDS, done=done,
    )  # fmt: skip
    return comparisons.compared(experiment)[1]


def draw(result: Result, path: Path) -> None:
    """Draw the speed of each variant, by the number of servers."""
    groups = {
        f"{row['servers']} PS, {row['links']}, {variant}": [speed]
        for row in result.rows
        if row["kind"] == _CASE
        for variant, speed in row["speeds"].items()
        if speed is not None
    }
    plots.strips(path, groups, label="examples/s, simulated", title="Ten light workers for each PS")
