"""Whether probes name what binds, what they cost, and whether raising it brings what the cut foretold.

Jobs of the corpora of diagnosis, whose faults concern cores, links and input, on the library's models and on
unchanged scripts. No threshold of probes was set by looking at them. Each job is probed while it trains under
its fault. Then the part that it names has half as much again, in turn with what it had, three times in the
same run: what that brings is the truth about the part.

Where input binds, or a script rests between steps, no cores and no links do, and that is what a probe has to
say. A healthy twin of each base is measured first: faults are cut to measure by it. A probe takes about three
minutes with all that, all of them three and a half hours; those that are done are kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from support import interpreters
from support.prerequisites import NotHere

from benchmarks import plots, trials
from benchmarks.diagnosis import bases as library
from benchmarks.diagnosis import changes, knowns, quiet
from benchmarks.diagnosis import trials as corpus
from benchmarks.diagnosis.bases import PLAIN, Base
from benchmarks.diagnosis.faults import inputs, networks, servers, workers
from benchmarks.diagnosis.faults.faults import Fault, Severity
from benchmarks.diagnosis.knowns import Known
from benchmarks.diagnosis.sites import Site
from benchmarks.diagnosis_unchanged.bases import FACTORISATION, SEQUENCE, WIDE_DEEP, ScriptBase
from benchmarks.diagnosis_unchanged.faults import MAKERS
from benchmarks.prediction import errors
from benchmarks.protocols import ROOT, Bench, Check, Result, Row, reported
from paceline import specs
from paceline.diagnosing import confirmations
from paceline.diagnosing.cases import Case
from paceline.engines.local import machines
from paceline.model.explanations.causes import Cause
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.measures.probes import Elasticity, PartVerdict, Probe
from paceline.model.roles import ReplicaId, Role
from paceline.probing import raises, sayings, windows
from paceline.services.observing import recordings
from paceline.services.studying.probes import Prober, ProbeTimes

#: Of all probes, and the error of what was foretold.
NAMED, MEDIAN, LEAST_PROBES = 0.95, 0.10, 60
#: A rate is known from so much training.
TRAINED_SECONDS = 35.0
_TURNS = 3
_QUICK = 1
_GROSS = Severity.GROSS
#: The unchanged scripts rest so long after each step.
_PAUSE = ("--pause", "0.2")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What binds by construction: the knob, and whose."""

    knob: Knob
    role: Role

    def holds(self, found: Elasticity) -> bool:
        """Whether a part is of that."""
        if found.part.knob is not self.knob:
            return False
        if self.knob is Knob.LINK:
            start = library.PS_HOST if self.role is Role.PS else library.WORKER_HOST
            return all(name.startswith(start) for name in found.part.targets)
        return all(ReplicaId.parse(name).role is self.role for name in found.part.targets)


#: What each kind of fault makes bind; none: neither cores nor links.
BOUND: Mapping[str, Sequence[Bound]] = {
    "ps-cpu-bound": (Bound(knob=Knob.CPU, role=Role.PS),),
    "dense-update": (Bound(knob=Knob.CPU, role=Role.PS),),
    "compute-bound": (Bound(knob=Knob.CPU, role=Role.WORKER), Bound(knob=Knob.CPU, role=Role.CHIEF)),
    "slow-decoding": (Bound(knob=Knob.CPU, role=Role.WORKER),),
    "ps-network-bound": (Bound(knob=Knob.LINK, role=Role.PS),),
    "worker-link": (Bound(knob=Knob.LINK, role=Role.WORKER),),
    "slow-storage": (),
    "resting": (),
}
#: Of the library's models, in the order in which they are probed.
_LIBRARY: Mapping[str, Callable[[Base, Severity], Fault]] = {
    "ps-cpu-bound": servers.ps_cpu_bound,
    "compute-bound": workers.compute_bound,
    "ps-network-bound": servers.ps_network_bound,
    "worker-link": networks.worker_link,
    "slow-storage": inputs.slow_storage,
    "slow-decoding": inputs.slow_decoding,
}
_MODELS = (("wide-deep", "small"), ("deepfm", "middle"), ("dlrm", "small"), ("deepfm", "small"))
#: Of unchanged scripts.
_SCRIPTS = ((WIDE_DEEP, "1.15.5"), (FACTORISATION, "2.21.0"), (SEQUENCE, "2.21.0"), (WIDE_DEEP, "2.21.0"))
_OF_SCRIPTS = (
    "ps-cpu-bound", "resting", "ps-network-bound", "worker-link", "dense-update", "compute-bound",
)  # fmt: skip
#: Each of them again with a milder fault.
_AGAIN = ("ps-cpu-bound", "compute-bound", "ps-network-bound", "worker-link")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A job that is probed."""

    base: Base
    cause: str
    severity: Severity = _GROSS

    @property
    def key(self) -> str:
        """Return what names it among all."""
        return f"{self.base.name}: {self.cause}, {self.severity}"

    def fault(self) -> Fault | None:
        """Return its fault; None: it rests between steps, and nothing is done to it."""
        if self.cause == "resting":
            return None
        if isinstance(self.base, ScriptBase):
            return MAKERS[self.cause].make(self.base, self.severity)
        return _LIBRARY[self.cause](self.base, self.severity)

    def twin(self) -> Base:
        """Return the healthy job by which its fault is cut to measure."""
        fault = self.fault()
        return self.base if fault is None else fault.base

    def job(self, known: Known) -> JobSpec:
        """Return the job."""
        fault = self.fault()
        if fault is None:
            return changes.arguments(self.base.job(), *_PAUSE)
        return fault.change(fault.base.job(), known)


def planned() -> list[Scene]:
    """Return all of them, in turn of each base: a run that is cut off has some of each."""
    bases: list[Base] = [Base(model=model, size=size, seed=7) for model, size in _MODELS]
    scripts: list[Base] = [ScriptBase(model=script, size=version, kind=PLAIN) for script, version in _SCRIPTS]
    kinds = [*((base, tuple(_LIBRARY)) for base in bases), *((base, _OF_SCRIPTS) for base in scripts)]
    found = [
        Scene(base=base, cause=causes[place])
        for place in range(max(len(causes) for _, causes in kinds))
        for base, causes in kinds
        if place < len(causes)
    ]
    found += [
        Scene(base=base, cause=cause, severity=Severity.MEDIUM)
        for cause in _AGAIN
        for base in (*bases[:2], *scripts[:2])
    ]
    return [each for each in found if _fits(each)]


def _fits(scene: Scene) -> bool:
    """Whether a fault fits a script: of some nothing was made for the one or the other."""
    if not isinstance(scene.base, ScriptBase) or scene.cause == "resting":
        return True
    return scene.base.model in MAKERS[scene.cause].scripts


def run(bench: Bench) -> list[Check]:
    """Probe every job, and judge; with ``--quick`` one."""
    if machines.read().lacks_namespaces:
        raise NotHere("this benchmark needs emulated hosts, so root")
    scenes = [each for each in planned() if not isinstance(each.base, ScriptBase) or _is_here(each.base)]
    scenes = scenes[: _QUICK if bench.quick else None]
    twins = {each.twin().name: each.twin() for each in scenes}
    bench.plan(len(scenes) + len(twins))
    healthy: dict[str, Known] = {}
    for each in scenes:
        twin = each.twin()
        if twin.name not in healthy:
            healthy[twin.name] = _known(
                bench.repeat(f"{twin.name}: healthy", functools.partial(_healthy, twin))
            )
        bench.repeat(each.key, functools.partial(_probed, each, healthy[twin.name]))
    return list(checks([row for row in bench.rows if "cause" in row]))


def _is_here(base: ScriptBase) -> bool:
    own = base.size == "2.21.0"  # That of this environment.
    return own or interpreters.with_tensorflow(base.size) is not None


def _healthy(base: Base) -> Row:
    """Run a healthy job; return what faults are cut to measure by."""
    base.make_data()
    quiet.wait(quiet.BEFORE_SECONDS)
    steps_from = base.trainers if isinstance(base, ScriptBase) else None
    outcome = corpus.run(base.job(), corpus.Plan(steps_from=steps_from, traced=False))
    known = knowns.of(outcome.recording, outcome.began_at + corpus.FELT_SECONDS)
    return {
        "rates": dict(known.rates),
        "cores": {str(role): value for role, value in known.cores.items()},
        "memory_bytes": {str(role): value for role, value in known.memory_bytes.items()},
        "bits_per_second": {str(role): value for role, value in known.bits_per_second.items()},
    }


def _known(row: Row) -> Known:
    return Known(
        rates=row["rates"],
        cores={Role(role): value for role, value in row["cores"].items()},
        memory_bytes={Role(role): value for role, value in row["memory_bytes"].items()},
        bits_per_second={Role(role): value for role, value in row["bits_per_second"].items()},
        plan=None,
    )


def _probed(scene: Scene, known: Known) -> Row:
    """Run a job with its fault, probe it, and give what binds half as much again; return what came of it."""
    scene.base.make_data()
    quiet.wait(quiet.BEFORE_SECONDS)
    fault, spec = scene.fault(), scene.job(known)
    act = fault.act(known) if fault is not None and fault.act is not None else None
    steps_from = fault.steps_from if fault is not None else None
    if steps_from is None and isinstance(scene.base, ScriptBase):
        steps_from = scene.base.trainers
    with trials.service() as api:
        site = Site.of(api, api.submit(spec, source=specs.dump_job(spec), base=ROOT))
        try:
            corpus.wait_for_steps(site, steps_from)
            site.limit()
            with act(site) if act else contextlib.nullcontext():
                time.sleep(TRAINED_SECONDS)
                _, told = recordings.explain(api, site.run.name)
                times = ProbeTimes()
                probe = Prober(jobs=api, times=times).probe(site.run.name)
                best = next(iter(sayings.binding(probe.elasticities)), None)
                came = None if best is None else _raised(site, probe, best, times)
                said = list(verdicts(told.causes, probe, Case.of(recordings.whole(api, site.run.name))))
        finally:
            corpus.end_job(api, site.run)
    row = _row(scene, known, probe, best, came)
    return {"cause": scene.cause, "base": scene.base.name, "rules": said, **row}


def verdicts(causes: Sequence[Cause], probe: Probe, case: Case) -> Iterator[tuple[str, str]]:
    """Yield each cause that says that cores or a link bind, and what a probe says of that.

    Args:
        causes: that rules had found before the probe.
        probe: of the job.
        case: the job.
    """
    for cause in causes:
        found = {each.verdict for each in confirmations.about(cause, probe, case)}
        if found:
            binds = PartVerdict.BINDS in found
            yield (
                cause.name,
                "confirmed" if binds else "refuted" if found == {PartVerdict.RESTS} else "unclear",
            )


def _row(scene: Scene, known: Known, probe: Probe, best: Elasticity | None, came: float | None) -> Row:
    bound = BOUND[scene.cause]
    is_named = any(best is not None and each.holds(best) for each in bound)
    base_rates = [cut.base for cut in probe.cuts]
    return {
        "severity": str(scene.severity),
        "named": is_named if bound else best is None,
        "best": None if best is None else best.part.name,
        "elasticity": None if best is None else [best.value, best.low, best.high],
        "foretold": None if best is None else raises.times([best], probe.elasticities, sayings.RAISE)[0],
        "came": came,
        "unclear": [each.part.name for each in probe.elasticities if each.verdict is PartVerdict.UNCLEAR],
        "seconds": (probe.ended_at or probe.began_at) - probe.began_at,
        "cuts": len(probe.cuts),
        "lost_share": probe.share,
        "ended": probe.ended,
        "speed_of_twin": statistics.median(base_rates) / known.speed if base_rates and known.speed else None,
    }


def _raised(site: Site, probe: Probe, best: Elasticity, times: ProbeTimes) -> float | None:
    """Give a part half as much again, in turn with what it has; return how many times as fast the job is.

    None: it cannot be raised, as the share of cores that a neighbour uses, or the rate was not measured.
    """
    if best.part.knob not in (Knob.CPU, Knob.LINK):
        return None
    began_at = time.time()
    spans: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for _ in range(_TURNS):
        spans[0].append(_window(times))
        until = time.time() + times.cut + times.known
        site.api.adjust(site.run.name, _adjustments(site.spec, best, sayings.RAISE, until))
        try:
            time.sleep(times.settle)
            spans[1].append(_window(times))
        finally:
            site.api.adjust(site.run.name, _adjustments(site.spec, best, 1.0, 0.0))
        time.sleep(times.settle)
    time.sleep(times.known)
    recording = site.api.recording(site.run.name, since=began_at)
    rates = [
        [windows.rate(probe.unit, recording.steps, recording.samples, *span) for span in side]
        for side in spans
    ]
    before, after = ([each for each in side if each] for side in rates)
    return statistics.fmean(after) / statistics.fmean(before) if before and after else None


def _window(times: ProbeTimes) -> tuple[float, float]:
    since = time.time()
    time.sleep(times.window)
    return since, time.time()


def _adjustments(spec: JobSpec, best: Elasticity, factor: float, until: float) -> list[Adjustment]:
    """Return what sets the cores of replicas, or the links of hosts, to so many times what they have."""
    links = {host.name: host.bandwidth_bits_per_second for host in spec.hosts}
    found = []
    for name in best.part.targets:
        has = links[name] if best.part.knob is Knob.LINK else spec.role_of(ReplicaId.parse(name)).cpu_cores
        assert has is not None, "what is not limited cannot be cut"
        found.append(Adjustment(knob=best.part.knob, target=name, value=has * factor, until=until))
    return found


def checks(rows: Sequence[Row]) -> Iterator[Check]:
    """Yield the checks of all probes."""
    yield Check(
        name="probes", value=len(rows), low=None, high=None,
        target=f">= {LEAST_PROBES}", holds=len(rows) >= LEAST_PROBES,
    )  # fmt: skip
    for what, is_bound in (("what binds is named", True), ("that nothing binds is said", False)):
        own = [row for row in rows if bool(BOUND[row["cause"]]) is is_bound]
        if own:
            share = statistics.fmean(row["named"] for row in own)
            yield Check(
                name=f"{what}, of {len(own)}", value=share, low=None, high=None,
                target=f">= {NAMED:g}", holds=share >= NAMED,
            )  # fmt: skip
    raised = [error(row) for row in rows if row["came"] is not None]
    if raised:
        yield errors.quantile("median error of what a raise brings", raised, 0.5, MEDIAN)
    said = [verdict for row in rows for _, verdict in row["rules"]]
    for verdict in ("confirmed", "refuted", "unclear"):
        yield reported(f"causes that rules had found, {verdict} by the probe", [said.count(verdict)])
    yield reported(
        "share of the examples of two minutes that a probe costs", [row["lost_share"] for row in rows]
    )
    yield reported("seconds of a probe", [row["seconds"] for row in rows])


def error(row: Row) -> float:
    """Return how far what was foretold of a raise is from what came, as a share of that."""
    return abs(float(row["foretold"]) / float(row["came"]) - 1)


def details(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what each probe found, and what a raise of that brought."""
    yield "| job | what was done | named | elasticity | foretold | came | seconds | cost | rules before it |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        if "cause" not in row:
            continue
        best = "nothing" if row["best"] is None else row["best"]
        mark = "" if row["named"] else " (wrong)"
        elasticity = "-"
        if row["elasticity"] is not None:
            value, low, high = row["elasticity"]
            elasticity = f"{value:.2f} ({low:.2f} to {high:.2f})"
        foretold = "-" if row["foretold"] is None else f"{row['foretold']:.2f}"
        came = "-" if row["came"] is None else f"{row['came']:.2f}"
        rules = ", ".join(f"{name} {verdict}" for name, verdict in row["rules"]) or "-"
        yield (
            f"| {row['base']} | {row['cause']}, {row['severity']} | {best}{mark} | {elasticity} | {foretold} "
            f"| {came} | {row['seconds']:.0f} | {row['lost_share']:.1%} | {rules} |"
        )


def draw(result: Result, path: Path) -> None:
    """Draw the errors of what was foretold, by what was done."""
    groups: dict[str, list[float]] = {}
    for row in result.rows:
        if row.get("came") is not None:
            groups.setdefault(row["cause"], []).append(100 * error(row))
    if groups:
        plots.strips(
            path, groups, label="error of what a raise brings, %", title="Foretold by a cut, and raised"
        )
