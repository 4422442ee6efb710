"""Searches for a better job file by trials on an engine, one after the other, each saved when it is done.

A search may be killed at any time: its arguments and each finished trial are in the store, and a trial that
is under way ends by itself. The next search continues from there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from paceline import specs
from paceline.engines.local import machines
from paceline.errors import Conflict, EngineError, InvalidInput, NotFound
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.studies import TrialOutcome, TrialPair
from paceline.model.studies.tunings import Judgement, Objective, Quality, Trial, Tuning
from paceline.services.life_cycles import LifeCycle
from paceline.services.observing import recordings
from paceline.services.studying import probes, proposals, trials, turns
from paceline.services.studying.trials import TrialActivity, TrialRunner, TrialTimes
from paceline.specs.edits import edits
from paceline.stores import Store
from paceline.tuning import judgements, proofs, searches

#: Both sides of a proof learn for this multiple of the time of a measurement, and from at least this many
#: examples (after fewer, the AUC would be that of the first steps), but for at most this many seconds.
_LEARNING_TIMES, _LEAST_EXAMPLES, _MOST_SECONDS = 10.0, 250_000, 240.0

#: The sides of a proof.
_BEFORE, _AFTER = "before", "after"

#: Called with the state of a search and its current activity; None: its last trial is done.
Tell = Callable[[Tuning, TrialActivity | None], None]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much a search may run.

    Attributes:
        trials: the number of trials, including the unchanged job.
        pairs: the number of runs of the best job file and of the unchanged job in the proof.
        times: how long each run takes.
        anew: whether to start again, without what was found before.
        examples: the number of examples from which both sides learn, to compare their AUC; None: see
            `_examples`.
    """

    trials: int
    pairs: int
    times: TrialTimes
    anew: bool
    examples: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tuner:
    """Makes the trials of a search.

    Attributes:
        jobs: where they run.
        store: where the search is kept.
        times: how long a trial takes.
        tell: see `Tell`.
        by_turns: whether a change that needs no restart is tried within the run of the best trial.
    """

    jobs: LifeCycle
    store: Store
    times: TrialTimes = dataclasses.field(default_factory=TrialTimes)
    by_turns: bool = True
    tell: Tell = lambda _, __: None

    def run(self, tuning: Tuning) -> Tuning:
        """Continue a search until it ends; return it.

        Raises:
            InvalidInput: the job file is wrong, or the unchanged job does not train; or no store keeps what
                was measured of trials that have ended.
            StoreError: the store cannot be read or written.
        """
        if not self.jobs.keeps:
            raise InvalidInput(
                "trials need the measurements of the trials before, and no store is named that keeps them",
                "name the store of the cluster's operator: --store URL",
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
        self.tell(tuning, TrialActivity(what="what to change next is computed"))
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
            each
            for each in tuning.finished
            if each.run != best.run and each.outcome and each.outcome.speed and not each.is_in_turn
        ]
        return proposals.proposals(
            recordings.whole(self.jobs, best.run, since=best.since),
            tuning.objective,
            others=[recordings.whole(self.jobs, each.run) for each in others],
        )

    def _tried(self, tuning: Tuning, trial: Trial) -> Tuning:
        """Make a trial, and further trials within its run; return the search with all of them."""
        before = dataclasses.replace(tuning, trials=tuning.finished)
        under_way = self._saved(dataclasses.replace(before, trials=(*before.trials, trial)))
        bed, tell = self._bed(tuning), functools.partial(self.tell, under_way)
        with bed.measuring(trial.source, trial.run, tell) as found:
            done = dataclasses.replace(
                trial, outcome=found.outcome, judgement=self._judged(before, found.outcome)
            )
            after, is_told = dataclasses.replace(before, trials=(*before.trials, done)), False
            if self.by_turns and found.run is not None and after.best is done:
                after, is_told = self._by_turns(after, found.run)
        if not is_told:  # The run has ended: the caller can read its whole recording.
            self.tell(after, None)
        return after

    def _by_turns(self, tuning: Tuning, run: Run) -> tuple[Tuning, bool]:
        """Try the changes that need no restart within the run of the best trial, one after the other.

        A kept change stays in the run, so the next change is tried on top of it. If there is a change to try,
        the caller is first notified that the trial itself is done. A disturbed turn ends the turns: its
        change is tried later, in a run of its own.

        Returns:
            The search with these trials, and whether the caller was notified.
        """
        is_told = False
        while len(tuning.finished) < tuning.most_trials and (best := tuning.best) is not None:
            try:
                proposal = self._turn(tuning, best, run.name)
                if proposal is None:
                    break
                if not is_told:
                    self.tell(self._saved(tuning), None)
                    is_told = True
                tuning = self._saved(self._taken(tuning, best, proposal, run))
            except (Conflict, EngineError) as error:
                what = "no more is tried within this run"
                self.tell(tuning, TrialActivity(what=what, detail=error.message, is_warning=True))
                break
            self.tell(tuning, None)
        return tuning, is_told

    def _taken(self, tuning: Tuning, best: Trial, proposal: Proposal, run: Run) -> Tuning:
        """Try a change within the run of the best trial; return the search with it."""
        source = edits.edited(best.source, proposal.changes)
        trial = Trial(
            number=len(tuning.finished),
            run=best.run,
            source=source,
            base=best.number,
            proposals=(proposal,),
        )
        under_way = dataclasses.replace(tuning, trials=(*tuning.trials, trial))
        best_spec, changed_spec = (specs.parse_job(text).spec for text in (best.source, source))
        outcomes = turns.take_turns(
            self.jobs,
            run.name,
            best_spec,
            changed_spec,
            probes.ProbeTimes.of(self.jobs, most=self.times.most_seconds),
            functools.partial(self._tell_turn, under_way),
        )
        judgement = judgements.in_turns(tuning.objective, outcomes.before, outcomes.after)
        since = None
        if judgement.kept:
            turns.keep(self.jobs, run.name, changed_spec)
            since = self.jobs.clock()
        done = dataclasses.replace(trial, outcome=outcomes.after, judgement=judgement, since=since)
        return dataclasses.replace(tuning, trials=(*tuning.trials, done))

    def _tell_turn(self, tuning: Tuning, said: str) -> None:
        self.tell(tuning, TrialActivity(what="is tried in turn", detail=said))

    def _turn(self, tuning: Tuning, best: Trial, name: str) -> Proposal | None:
        """Return the next proposal to try within the run of the best trial; None: there is none."""
        run = self.jobs.get(name)
        if run.phase is not JobPhase.RUNNING:
            return None
        as_is = specs.parse_job(best.source).spec
        for each in searches.untried(tuning, self._proposed(tuning, best)):
            wanted = specs.parse_job(edits.edited(best.source, each.changes)).spec
            if turns.is_possible(self.jobs, run, as_is, wanted):
                return each
        return None

    def prove(self, tuning: Tuning, *, pairs: int, examples: int | None = None) -> Tuning:
        """Run the unchanged job and the best job file in turn, and compare their speed and AUC.

        If the proof does not confirm a change, the change is withdrawn, and the job file that is best then is
        proven instead. What was proven before is not run again.

        Args:
            tuning: the search.
            pairs: how often both run in turn.
            examples: the number of examples from which both learn; None: see `_examples`.

        Returns:
            The search with the changes that were confirmed.

        Raises:
            StoreError: the store cannot be read or written.
        """
        while True:
            tuning = self._measured_in_turn(tuning, pairs, examples)
            less = proofs.withdrawn(tuning)
            if less is None:
                return tuning
            tuning = self._saved(less)

    def _measured_in_turn(self, tuning: Tuning, pairs: int, examples: int | None) -> Tuning:
        best, first = tuning.best, tuning.first
        if best is None or not best.number or first is None or first.outcome is None:
            return tuning
        examples = examples or _examples(tuning, self.times)
        sides = {_BEFORE: first, _AFTER: best}
        auc: dict[str, float | None] = {}
        while len(tuning.pairs) < pairs:
            number = len(tuning.pairs)
            # The order alternates, so that a machine that becomes slower favours neither side.
            order = (_BEFORE, _AFTER) if number % 2 else (_AFTER, _BEFORE)
            found = {side: self._side(tuning, side, sides[side], examples, auc) for side in order}
            pair = TrialPair(before=found[_BEFORE], after=found[_AFTER])
            tuning = self._saved(dataclasses.replace(tuning, pairs=(*tuning.pairs, pair)))
        if pairs and tuning.quality is None:
            for side in [each for each in sides if each not in auc]:
                tell = self._teller(tuning, side)
                auc[side] = self._bed(tuning).learn(sides[side].source, _run(tuning, side), examples, tell)
            quality = Quality(examples=examples, auc_before=auc[_BEFORE], auc_after=auc[_AFTER])
            tuning = self._saved(dataclasses.replace(tuning, quality=quality))
        return tuning

    def _side(
        self, tuning: Tuning, side: str, trial: Trial, examples: int, auc: dict[str, float | None]
    ) -> TrialOutcome:
        """Run one side of a pair; return what was measured.

        If learning takes long enough to measure the run in full, the side is measured and learns in one run.

        Args:
            tuning: the search.
            side: the side.
            trial: the trial whose job file the side runs.
            examples: the number of examples from which the side should learn.
            auc: the AUC of the sides that have learnt already; the AUC of this side is added.
        """
        bed, tell, speed = self._bed(tuning), self._teller(tuning, side), 0.0
        if trial.outcome is not None:
            speed = trial.outcome.speed
        size = trials.batch_size(specs.parse_job(trial.source).spec)
        if side in auc or tuning.quality is not None or not bed.outlasts(examples, speed, size):
            return bed.measure(trial.source, _run(tuning, side), tell)
        outcome, auc[side] = bed.measure_and_learn(trial.source, _run(tuning, side), examples, tell)
        return outcome

    def _teller(self, tuning: Tuning, side: str) -> Callable[[TrialActivity], None]:
        said = "the job as it came" if side == _BEFORE else "the best one"
        return lambda doing: self.tell(tuning, dataclasses.replace(doing, what=f"proof: {said} {doing.what}"))

    def _bed(self, tuning: Tuning) -> TrialRunner:
        return TrialRunner(jobs=self.jobs, base=Path(tuning.base), study=tuning.name, times=self.times)

    def _judged(self, tuning: Tuning, found: TrialOutcome) -> Judgement | None:
        best = tuning.best
        if best is None or best.outcome is None:
            return None
        return judgements.judge(tuning.objective, best.outcome, found)

    def _saved(self, tuning: Tuning) -> Tuning:
        self.store.save_study(tuning, at=self.jobs.clock())
        return tuning


def _run(tuning: Tuning, side: str) -> str:
    """Return the name of the run of a side of a proof."""
    return f"{tuning.name}-{side}"


def _examples(tuning: Tuning, times: TrialTimes) -> int:
    """Return the number of examples from which both sides learn, from the speed of the slower side."""
    slowest = min(each.outcome.speed for each in (tuning.first, tuning.best) if each and each.outcome)
    wanted = max(_LEAST_EXAMPLES, slowest * times.window_seconds * _LEARNING_TIMES)
    return round(min(wanted, slowest * _MOST_SECONDS))


def limited(objective: Objective, spec: JobSpec, *, on_cluster: bool) -> Objective:
    """Return the objective with a limit on cores, if it has none.

    On this machine the limit is the cores of the job's emulated hosts, or of the machine. On a cluster, which
    others use, too, it is what the job asks for now. It is never less than what the job asks for.

    Args:
        objective: the objective.
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
    """Return the name of the search for a better file of a job; the names of its runs add a number."""
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
    """Return a search for a better job file: the stored one with the same arguments, or a new one.

    Args:
        store: where searches are kept.
        source: the job file.
        base: the folder to which its paths are relative.
        objective: what the search is to improve.
        most_trials: the most trials to make, including the unchanged job.
        anew: whether to begin a new search in any case.

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
            # More trials may find a better job file than the proven one.
            return dataclasses.replace(known, most_trials=most_trials, ended="", pairs=(), quality=None)
    return new
