"""The search for a better job file: trials on an engine, one after the other, each saved when it is done.

It may be killed anywhere: what it began with, and each trial that is finished, are in the store, and a trial
that is under way ends by itself. The next one goes on from there.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from paceline import specs
from paceline.engines.local import machines
from paceline.errors import InvalidInput, NotFound
from paceline.model.jobs import JobSpec
from paceline.model.proposals import Proposal
from paceline.model.tunings import Judgement, Objective, Outcome, Pair, Quality, Trial, Tuning
from paceline.services import proposals, recordings
from paceline.services.life_cycles import LifeCycle
from paceline.services.trials import Bed, Times
from paceline.specs import edits
from paceline.stores import Store
from paceline.tuning import judgements, proofs, searches

#: What both sides learn is looked at after so many times as long as a trial is measured, and after so many
#: examples at least (with fewer, AUC is that of the first steps), but after no more than so many seconds.
_LEARNING_TIMES, _LEAST_EXAMPLES, _MOST_SECONDS = 10.0, 250_000, 240.0

#: Is told how far a search is, and what its last trial does, in few words; empty: that is done.
Tell = Callable[[Tuning, str], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much may be run.

    Attributes:
        trials: the job as it is among them.
        pairs: runs of the best one beside the job as it is.
        times: how long each takes.
        anew: whether what was found before does not count.
    """

    trials: int
    pairs: int
    times: Times
    anew: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuner:
    """Makes trials.

    Attributes:
        jobs: where they run.
        store: where the search is kept.
        times: how long a trial takes.
        tell: see `Tell`.
    """

    jobs: LifeCycle
    store: Store
    times: Times = dataclasses.field(default_factory=Times)
    tell: Tell = lambda _, __: None

    def run(self, tuning: Tuning) -> Tuning:
        """Go on with a search until it ends; return it.

        Raises:
            InvalidInput: the job file is wrong, or the job as it came does not train; or nobody keeps what is
                measured of trials that have ended.
            StoreError: the store cannot be read or written.
        """
        if not self.jobs.keeps:
            raise InvalidInput(
                "the next trial follows from what is known of the last, which the cluster's operator keeps",
                "name its store: --store URL",
            )
        while not tuning.ended:
            tuning = self._saved(self._next(tuning))
        return tuning

    def _next(self, tuning: Tuning) -> Tuning:
        """Return the search after one more trial, or at its end."""
        if len(tuning.finished) >= tuning.most_trials:
            return dataclasses.replace(tuning, ended=searches.SPENT)
        best = tuning.best
        if best is None:
            if tuning.finished:
                failure = tuning.finished[0].outcome
                raise InvalidInput(
                    f"the job as it is does not train: {failure.failure if failure else ''}",
                    f"paceline why {tuning.finished[0].run}",
                )
            return self._tried(tuning, Trial(number=0, run=f"{tuning.name}-0", source=tuning.source))
        chosen = searches.chosen(tuning, self._proposed(tuning, best))
        if not chosen:
            return dataclasses.replace(tuning, ended=searches.NOTHING)
        number = len(tuning.finished)
        changes = [change for each in chosen for change in each.changes]
        trial = Trial(
            number=number,
            run=f"{tuning.name}-{number}",
            source=edits.edited(best.source, changes),
            base=best.number,
            proposals=chosen,
        )
        return self._tried(tuning, trial)

    def _proposed(self, tuning: Tuning, best: Trial) -> Sequence[Proposal]:
        others = [
            each for each in tuning.finished if each is not best and each.outcome and each.outcome.speed
        ]
        return proposals.proposals(
            recordings.whole(self.jobs, best.run),
            tuning.objective,
            others=[recordings.whole(self.jobs, each.run) for each in others],
        )

    def _tried(self, tuning: Tuning, trial: Trial) -> Tuning:
        """Return the search with a trial that was made."""
        before = dataclasses.replace(tuning, trials=tuning.finished)
        under_way = self._saved(dataclasses.replace(before, trials=(*before.trials, trial)))
        found = self._bed(tuning).measure(trial.source, trial.run, lambda text: self.tell(under_way, text))
        done = dataclasses.replace(trial, outcome=found, judgement=self._judged(before, found))
        after = dataclasses.replace(before, trials=(*before.trials, done))
        self.tell(after, "")
        return after

    def prove(self, tuning: Tuning, *, pairs: int) -> Tuning:
        """Run the job as it came and the best one in turn, and see what both learn; return what holds.

        What that does not bear out is undone, and what is the best then is proven in its place. What was
        proven before is not run again.

        Raises:
            StoreError: the store cannot be read or written.
        """
        while True:
            tuning = self._measured_in_turn(tuning, pairs)
            less = proofs.withdrawn(tuning)
            if less is None:
                return tuning
            tuning = self._saved(less)

    def _measured_in_turn(self, tuning: Tuning, pairs: int) -> Tuning:
        best = tuning.best
        if best is None or not best.number:
            return tuning
        bed, first = self._bed(tuning), tuning.finished[0]
        sides = {"before": first.source, "after": best.source}
        while len(tuning.pairs) < pairs:
            number = len(tuning.pairs)
            # Who is first is last the next time: a machine that grows slower favours nobody.
            found = {
                side: bed.measure(sides[side], f"{tuning.name}-{side}", self._teller(tuning, side))
                for side in (sorted(sides) if number % 2 else sorted(sides, reverse=True))
            }
            tuning = self._saved(dataclasses.replace(tuning, pairs=(*tuning.pairs, Pair(**found))))
        if pairs and tuning.quality is None:
            examples = _examples(tuning.pairs, self.times)
            auc = {
                side: bed.learn(source, f"{tuning.name}-{side}", examples, self._teller(tuning, side))
                for side, source in sides.items()
            }
            quality = Quality(examples=examples, auc_before=auc["before"], auc_after=auc["after"])
            tuning = self._saved(dataclasses.replace(tuning, quality=quality))
        return tuning

    def _teller(self, tuning: Tuning, side: str) -> Callable[[str], None]:
        said = "the job as it came" if side == "before" else "the best one"
        return lambda text: self.tell(tuning, f"proof: {said} {text}")

    def _bed(self, tuning: Tuning) -> Bed:
        return Bed(jobs=self.jobs, base=Path(tuning.base), study=tuning.name, times=self.times)

    def _judged(self, tuning: Tuning, found: Outcome) -> Judgement | None:
        best = tuning.best
        if best is None or best.outcome is None:
            return None
        return judgements.judge(tuning.objective, best.outcome, found)

    def _saved(self, tuning: Tuning) -> Tuning:
        self.store.save_study(tuning, at=self.jobs.clock())
        return tuning


def _examples(pairs: Sequence[Pair], times: Times) -> int:
    """Return how many examples both sides learn from, by what the slower one trains on meanwhile."""
    slowest = min(outcome.speed for each in pairs for outcome in (each.before, each.after))
    wanted = max(_LEAST_EXAMPLES, slowest * times.window_seconds * _LEARNING_TIMES)
    return round(min(wanted, slowest * _MOST_SECONDS))


def limited(objective: Objective, spec: JobSpec, *, on_cluster: bool) -> Objective:
    """Return what is asked for, with as many cores at most as there are, where nobody gave a limit.

    On this machine these are those of its emulated hosts, or its own; on a cluster what the job asks for now,
    as others use it, too. In no case fewer than the job asks for.

    Args:
        objective: what is asked for.
        spec: the job.
        on_cluster: whether it runs on a cluster.
    """
    asked = spec.asked_cores
    if objective.most_cores is not None or asked is None:
        return objective
    there = 0.0
    if not on_cluster:
        hosts = [each.cpu_cores for each in spec.hosts]
        known = [each for each in hosts if each is not None]
        there = sum(known) if hosts and len(known) == len(hosts) else float(len(machines.read().cores))
    return dataclasses.replace(objective, most_cores=max(asked, there))


def name_of(spec: JobSpec) -> str:
    """Return the name of the search for a better file of a job; its runs have a number behind it."""
    return f"{spec.name}-trial"


def begun(
    store: Store,
    source: str,
    *,
    base: Path,
    objective: Objective,
    most_trials: int,
    anew: bool = False,
) -> Tuning:
    """Return a search for a better job file: the one that was begun with it and has not ended, or a new one.

    Args:
        store: where searches are kept.
        source: the job file.
        base: the folder that relative paths in it start from.
        objective: what is asked for.
        most_trials: that may be made, the job as it is among them.
        anew: whether to begin a new one in any case.

    Raises:
        InvalidInput: the job file is wrong.
        StoreError: the store cannot be read.
    """
    spec = specs.parse_job(source).spec
    name = name_of(spec)
    new = Tuning(
        name=name, job=spec.name, objective=objective, most_trials=most_trials, source=source, base=str(base)
    )
    if anew:
        return new
    with contextlib.suppress(NotFound):
        known = store.tuning(name)
        if (known.source, known.objective, known.base) == (source, objective, str(base)):
            if most_trials <= len(known.finished):
                return known
            # What was proven was proven of another one, perhaps.
            return dataclasses.replace(known, most_trials=most_trials, ended="", pairs=(), quality=None)
    return new
