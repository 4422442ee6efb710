"""The runs of the corpus: healthy ones, every fault in every severity, and pairs of faults.

A rule's thresholds may be set by looking at the runs to fit. The others are of other seeds, and there are
enough of them for the scores alone.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from benchmarks.diagnosis import changes, checks, labels, models, trials
from benchmarks.diagnosis.bases import KINDS, PAIR, PLAIN, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, both
from benchmarks.diagnosis.makers import MAKERS
from benchmarks.diagnosis.trials import Ending
from paceline.model.jobs.job_specs import JobSpec

FIT = (("wide-deep", "middle", 0), ("deepfm", "small", 0))
#: Neighbours differ in model and size, so that those of a kind do. Runs of seeds 1 to 3 were recorded
#: before, and rules corrected by them: they are seen, and not part of the corpus.
UNSEEN = (
    ("dlrm", "small", 4), ("deepfm", "middle", 4), ("wide-deep", "large", 4),
    ("dlrm", "middle", 4), ("wide-deep", "small", 4), ("deepfm", "large", 4),
    ("dlrm", "large", 4), ("deepfm", "small", 4), ("wide-deep", "middle", 4),
)  # fmt: skip
#: The seed of kinds of jobs of which runs of seed 4 are seen as well.
SEEDS = {PAIR: 6}
#: Healthy runs that are no faulty run's twin, and end by themselves.
MORE_HEALTHY = tuple((model, size, 5) for model in models.MODELS for size in ("small", "middle", "large"))
#: The first of a pair has the larger effect; a kind of job goes with it.
PAIRS = (
    ("ps-cpu-bound", Severity.GROSS, "memory-over-asked", Severity.GROSS),
    ("compute-bound", Severity.GROSS, "memory-near-limit", Severity.MEDIUM),
    ("dense-update", Severity.GROSS, "memory-over-asked", Severity.MEDIUM),
    ("giant-variable", Severity.GROSS, "memory-over-asked", Severity.GROSS),
    ("uneven-placement", Severity.GROSS, "too-many-threads", Severity.MEDIUM),
    ("skewed-shards", Severity.GROSS, "memory-over-asked", Severity.GROSS),
    ("dense-gradient", Severity.GROSS, "too-many-threads", Severity.MILD),
    ("slow-storage", Severity.GROSS, "memory-near-limit-growing", Severity.MEDIUM),
    ("slow-decoding", Severity.GROSS, "loss-not-finite", Severity.GROSS),
    ("loss-not-finite", Severity.GROSS, "ps-network-bound", Severity.MEDIUM),
    ("hang", Severity.GROSS, "memory-over-asked", Severity.GROSS),
    ("slow-disk", Severity.GROSS, "memory-over-asked", Severity.GROSS),
    ("slow-host", Severity.GROSS, "memory-over-asked", Severity.GROSS),
    ("big-shard", Severity.GROSS, "memory-over-asked", Severity.GROSS),
    ("worker-link", Severity.GROSS, "memory-near-limit", Severity.MEDIUM),
    ("killed", Severity.MILD, "ps-cpu-bound", Severity.GROSS),
)
_FIT_SEVERITIES = (Severity.MEDIUM, Severity.GROSS)
#: Steps a second of all workers, about; for jobs that are to end by themselves.
_STEPS = {"small": 90, "middle": 80, "large": 35}
_FINISHED_SECONDS = 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A run: of a healthy job, or of a fault, or of two."""

    base: Base
    makers: tuple[tuple[str, Severity], ...] = ()
    split: str
    ending: Ending

    @property
    def name(self) -> str:
        """Return its name, that of its recording's file too."""
        what = "+".join(name for name, _ in self.makers) or labels.HEALTHY
        how = self.makers[0][1] if self.makers else self.ending
        return f"{what}.{how}.{self.base.name}"

    def fault(self) -> Fault | None:
        """Return its fault; None if it is healthy."""
        made = [MAKERS[name](self.base, severity) for name, severity in self.makers]
        if not made:
            return None
        return made[0] if len(made) == 1 else both(*made)

    def healthy_job(self) -> JobSpec:
        """Return the job of a healthy run."""
        job = self.base.job()
        if self.ending is Ending.FINISHED:
            steps = _STEPS[self.base.size] * _FINISHED_SECONDS * self.base.speed
            return changes.training(job, max_steps=round(steps))
        return job

    def healthy_plan(self) -> trials.Plan:
        """Return how a healthy run is made."""
        return trials.Plan(ending=self.ending)

    @property
    def is_whole(self) -> bool:
        """Whether what was before limits held is kept of a healthy run, too."""
        return False

    def ailing(self, outcome: trials.Outcome) -> str | None:
        """Return what is not healthy about a run that is to be; None: nothing."""
        return checks.ailing(outcome)


def every(speed: float = 1.0) -> list[Item]:
    """Return all runs, twins before what is compared with them.

    Args:
        speed: how fast the machine is, see `Base`.
    """
    return [dataclasses.replace(item, base=dataclasses.replace(item.base, speed=speed)) for item in _all()]


def _all() -> list[Item]:
    faulty = list(_faulty())
    bases = {item.base.name: (item.base, item.split) for item in faulty}
    bases |= {
        base.name: (base, labels.UNSEEN)
        for base in (Base(model=model, size=size, seed=seed) for model, size, seed in UNSEEN)
    }
    healthy = [
        Item(base=base, split=split, ending=ending)
        for (base, split), ending in zip(
            bases.values(), itertools.cycle((Ending.LIVE, Ending.STOPPED)), strict=False
        )
    ]
    healthy += [
        Item(base=Base(model=model, size=size, seed=seed), split=labels.UNSEEN, ending=Ending.FINISHED)
        for model, size, seed in MORE_HEALTHY
    ]
    return healthy + faulty


def _faulty() -> Iterator[Item]:
    endings = (Ending.LIVE, Ending.STOPPED)
    for number, name in enumerate(MAKERS):
        severity = _FIT_SEVERITIES[number % 2]
        yield _item(((name, severity),), FIT[number // 2 % len(FIT)], labels.FIT, endings[number % 2])
        kind = _kind(name)
        first = 3 * list(KINDS).index(kind) + (number if kind == PLAIN else 0)
        for place, severity in enumerate(Severity):
            case = _unseen(kind, first + place)
            ending = endings[(number + place) % 2]
            yield _item(((name, severity),), case, labels.UNSEEN, ending)
    for number, (one, first_severity, other, second_severity) in enumerate(PAIRS):
        pair = ((one, first_severity), (other, second_severity))
        kind = _kind(one)
        place = 3 * list(KINDS).index(kind) + number % (len(UNSEEN) if kind == PLAIN else 3)
        yield _item(pair, _unseen(kind, place), labels.UNSEEN, endings[number % 2])


def _unseen(kind: str, place: int) -> tuple[str, str, int]:
    model, size, seed = UNSEEN[place % len(UNSEEN)]
    return model, size, SEEDS.get(kind, seed)


def _kind(maker: str) -> str:
    """Return the kind of healthy job that a maker takes."""
    model, size, seed = FIT[0]
    return MAKERS[maker](Base(model=model, size=size, seed=seed), Severity.GROSS).base.kind


def _item(
    makers: tuple[tuple[str, Severity], ...], case: tuple[str, str, int], split: str, wanted: Ending
) -> Item:
    """Return the run of faults for a model, size and seed, recorded as wanted where that can be."""
    model, size, seed = case
    item = Item(base=Base(model=model, size=size, seed=seed), makers=makers, split=split, ending=wanted)
    fault = item.fault()
    assert fault is not None, "it has makers"
    ending = wanted if wanted in fault.endings else fault.endings[0]
    return dataclasses.replace(item, base=fault.base, ending=ending)
