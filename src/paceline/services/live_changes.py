"""A change of a job that runs: made through its checkpoint, measured, and undone if it is no better."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from paceline.errors import Conflict
from paceline.model.proposals import Proposal
from paceline.model.tunings import Judgement, Objective, Outcome
from paceline.services import relays, trials
from paceline.services.jobs import Jobs
from paceline.services.trials import Times
from paceline.specs import edits
from paceline.tuning import judgements


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LiveChange:
    """What became of it.

    Attributes:
        before, after: what was measured with the job file as it was, and with the change.
        judgement: whether it stays; if not, the job runs as it did before.
    """

    job: str
    proposal: Proposal
    before: Outcome
    after: Outcome
    judgement: Judgement


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Changer:
    """Changes jobs that run.

    Attributes:
        jobs: where they run.
        objective: what is asked for.
        times: how long to wait and to measure.
        tell: is told what goes on, in few words.
    """

    jobs: Jobs
    objective: Objective
    times: Times = dataclasses.field(default_factory=Times)
    tell: Callable[[str], None] = lambda _: None

    def change(self, name: str, proposal: Proposal) -> LiveChange:
        """Make a proposal to a job that runs; undo it if it is no better.

        Raises:
            Conflict: the job does not run, or does not train.
            InvalidInput: the change cannot be made.
        """
        run = self.jobs.get(name)
        source = run.source
        changed = edits.edited(source, proposal.changes)
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

    def _as(self, name: str, source: str) -> Outcome:
        """Go on from the checkpoint with another job file; return what is measured then.

        Raises:
            Conflict: the job cannot go on with it, and goes on as it was; or nobody looks after it.
        """
        self.tell(f"{name} saves its parameters and stops")
        self.jobs.change(name, source)
        at = self._made(name, source)
        self.tell(f"{name} goes on from its checkpoint")
        return self._measured(name, after=at)

    def _made(self, name: str, source: str) -> float:
        """Wait until whoever looks after the job has made a change; return when that was."""
        store = self.jobs.store
        while store.waiting_relay(name) is not None:
            if self.jobs.is_lost(self.jobs.get(name)):
                raise Conflict(f"nobody looks after {name}: its supervisor died", f"paceline resume {name}")
            time.sleep(self.jobs.POLL_SECONDS)
        last = store.relays(name)[-1:]
        if not last or last[0].source != source or last[0].done_at is None:
            told = [event.message for _, event in self.jobs.events(name) if event.kind == relays.NOT_CHANGED]
            raise Conflict(f"{name} was not changed: {told[-1]}", f"paceline top {name}")
        return last[0].done_at

    def _measured(self, name: str, *, after: float) -> Outcome:
        run = self.jobs.get(name)
        since = trials.trained(self.jobs, run, self.times, after=after)
        if since is None:
            return Outcome(
                asked_cores=run.spec.asked_cores, failure=self.jobs.get(name).message or "no steps"
            )
        since += self.times.settle_seconds
        until = trials.measured(self.jobs, run, since, self.times)
        return trials.outcome(self.jobs.recording(name), since=since, until=until)
