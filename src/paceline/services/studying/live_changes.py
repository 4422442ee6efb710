"""Changes a running job, measures the effect, and undoes the change if the job is no better.

A change that needs no restart is tried in turn with the current settings (`turns`); any other change goes
through a checkpoint.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from paceline import specs
from paceline.errors import Conflict
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import NOT_CHANGED
from paceline.model.studies.proposals import Proposal
from paceline.model.studies.studies import TrialOutcome
from paceline.model.studies.tunings import Judgement, Objective
from paceline.services import successors
from paceline.services.life_cycles import LifeCycle
from paceline.services.studying import probes, trials, turns
from paceline.services.studying.trials import TrialTimes
from paceline.specs.edits import edits
from paceline.tuning import judgements


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LiveChange:
    """The result of a change of a running job.

    Attributes:
        before, after: what was measured with the job file as it was, and with the change.
        judgement: whether the change stays; if not, the job runs as it did before.
    """

    job: str
    proposal: Proposal
    before: TrialOutcome
    after: TrialOutcome
    judgement: Judgement


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Changer:
    """Changes running jobs.

    Attributes:
        jobs: where they run.
        objective: what the changes are to improve.
        times: how long to wait and to measure.
        tell: called with what goes on, in a few words.
    """

    jobs: LifeCycle
    objective: Objective
    times: TrialTimes = dataclasses.field(default_factory=TrialTimes)
    tell: Callable[[str], None] = lambda _: None

    def change(self, name: str, proposal: Proposal) -> LiveChange:
        """Apply a proposal to a running job; undo it if the job is no better.

        Raises:
            Conflict: the job does not run or does not train, or no store keeps what is measured.
            InvalidInput: the change cannot be made.
        """
        if not self.jobs.keeps:
            raise Conflict(
                "the effect of a change cannot be judged: no measurements are stored here",
                "name the store of the cluster's operator: --store URL",
            )
        run = self.jobs.get(name)
        source = specs.source_of(run)
        changed = edits.edited(source, proposal.changes)
        as_is, wanted = (successors.successor(run, each) for each in (source, changed))
        if turns.is_possible(self.jobs, run, as_is, wanted):
            return self._in_turns(name, proposal, as_is, wanted)
        self.tell(f"{name} is measured as it is")
        before = self._measured(name, after=self.jobs.clock() - self.times.window_seconds)
        if not before.speed:
            raise Conflict(f"{name} does not train: {before.failure}", f"paceline why {name}")
        after = self._as(name, changed)
        found = judgements.judge(self.objective, before, after)
        if not found.kept:
            self.tell(f"undone: {found.why}")
            self._as(name, source)
        return LiveChange(job=name, proposal=proposal, before=before, after=after, judgement=found)

    def _in_turns(self, name: str, proposal: Proposal, as_is: JobSpec, wanted: JobSpec) -> LiveChange:
        """Try a proposal that needs no restart in turn with the current settings, which takes seconds."""
        times = probes.ProbeTimes.of(self.jobs, most=self.times.most_seconds)
        found = turns.take_turns(self.jobs, name, as_is, wanted, times, self.tell)
        judgement = judgements.in_turns(self.objective, found.before, found.after)
        if judgement.kept:
            turns.keep(self.jobs, name, wanted)
        else:
            self.tell(f"put back: {judgement.why}")
        return LiveChange(
            job=name, proposal=proposal, before=found.before, after=found.after, judgement=judgement
        )

    def _as(self, name: str, source: str) -> TrialOutcome:
        """Continue from the checkpoint with another job file; return what is measured then.

        Raises:
            Conflict: the change was refused, and the job continues unchanged; or the job is lost.
        """
        known = max((each.id for each in self.jobs.spec_changes(name)), default=0)
        self.tell(f"{name} saves its parameters and stops")
        self.jobs.change(name, source)
        at = self._made(name, known)
        self.tell(f"{name} goes on from its checkpoint")
        return self._measured(name, after=at)

    def _made(self, name: str, known: int) -> float:
        """Wait until the supervisor or operator has made the change after the one numbered ``known``.

        Returns:
            When the change was made (Unix seconds).

        Raises:
            Conflict: the change was refused or is not made in time, or the job is lost.
        """
        deadline = time.monotonic() + self.times.start_seconds
        while time.monotonic() < deadline:
            made = [each for each in self.jobs.spec_changes(name) if each.id > known]
            if not made:
                raise Conflict(f"{name} was not changed{self._refusal(name)}", f"paceline why {name}")
            if made[-1].done_at is not None:
                return made[-1].done_at
            if self.jobs.is_lost(self.jobs.get(name)):
                raise Conflict(f"{name} is lost: its supervisor died", f"paceline resume {name}")
            time.sleep(self.jobs.POLL_SECONDS)
        raise Conflict(
            f"{name} was not changed within {self.times.start_seconds:g} s", f"paceline why {name}"
        )

    def _refusal(self, name: str) -> str:
        told = [each.message for _, each in self.jobs.events(name) if each.kind == NOT_CHANGED]
        return f": {told[-1]}" if told else ""

    def _measured(self, name: str, *, after: float) -> TrialOutcome:
        run = self.jobs.get(name)
        since = trials.trained(self.jobs, run, self.times, after=after)
        if since is None:
            return TrialOutcome(
                asked_cores=run.spec.asked_cores, failure=self.jobs.get(name).message or "no steps"
            )
        since += self.times.settle_seconds
        until = trials.measured(self.jobs, run, since, self.times)
        return trials.outcome(self.jobs.recording(name), since=since, until=until)
