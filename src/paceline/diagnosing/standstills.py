"""Why a job is pending, failed, stopped or restarting; or that nothing is wrong with it.

Each rule takes a `Situation` and yields causes. Causes are reported in the order of the rules: first what
every job needs (a live supervisor or operator, a spec that can be read), then what the job waits for, then
what happened to its replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paceline.diagnosing import endings, waits
from paceline.diagnosing.situations import Situation
from paceline.model import quantities
from paceline.model.explanations.causes import Cause, Evidence, Explanation
from paceline.model.jobs.statuses import JobPhase, ReplicaPhase

Rule = Callable[[Situation], Iterator[Cause]]
_QUOTA = "exceeded quota"


def explain(situation: Situation) -> Explanation:
    """Return why a job is in its phase."""
    causes = [cause for rule in _RULES for cause in rule(situation)]
    if situation.phase is JobPhase.SUCCEEDED:
        causes = []
    elif not causes and situation.phase in (JobPhase.FAILED, JobPhase.RESTARTING):
        causes = [_only_its_word(situation)]
    # Past causes matter least.
    causes.sort(key=lambda cause: cause.is_past)
    return Explanation(
        job=situation.name,
        summary=_summary(situation, causes),
        causes=tuple(causes),
        unknown=situation.unknown,
    )


def _summary(situation: Situation, causes: list[Cause]) -> str:
    name, phase = situation.name, situation.phase
    lasts = quantities.format_seconds(round(max(0.0, situation.now - situation.since)))
    if phase is JobPhase.RUNNING and not causes:
        return f"nothing is wrong: {name} runs, for {lasts}{_whole(situation)}"
    if phase is JobPhase.RUNNING and all(cause.is_past for cause in causes):
        return f"{name} runs, for {lasts}; before, this happened"
    if phase is JobPhase.SUCCEEDED:
        return f"nothing is wrong: {name} has succeeded, {lasts} ago"
    if phase in (JobPhase.FAILED, JobPhase.STOPPED):
        return f"{name} {'has failed' if phase is JobPhase.FAILED else 'is stopped'}, {lasts} ago"
    if not causes:
        return f"nothing is wrong: {name} is {phase}, for {lasts}"
    return f"{name} is {phase}, for {lasts}"


def _whole(situation: Situation) -> str:
    """Return how many of the job's replicas run, not counting replicas that its spec no longer has."""
    spec = situation.spec
    rows = [row for row in situation.replicas if spec is None or spec.has(row.replica)]
    running = sum(row.phase is ReplicaPhase.RUNNING for row in rows)
    if not rows:
        return ""
    many = f"all of its {len(rows)}" if running == len(rows) else f"{running} of its {len(rows)}"
    return f", with {many} replicas"


def _only_its_word(situation: Situation) -> Cause:
    message = situation.message or "no reason was given"
    return Cause(
        name=str(situation.phase),
        what=f"All that is known is what was said: {message}.",
        next_steps=(f"paceline describe {situation.name}", f"paceline logs {situation.name} --tail 20"),
    )


def _has_no_supervisor(situation: Situation) -> Iterator[Cause]:
    if not situation.unattended or situation.phase.is_final:
        return
    if situation.engine == "local":
        yield Cause(
            name="no-supervisor",
            what="No supervisor watches it: the last one died.",
            evidence=situation.unattended,
            next_steps=(f"paceline resume {situation.name}",),
        )
        return
    yield Cause(
        name="no-operator",
        what="The jobs of the cluster are unattended: no operator runs.",
        evidence=situation.unattended,
        next_steps=(
            "kubectl -n paceline get deployment,pods says what became of it",
            "paceline operator runs one from here",
        ),
    )


def _its_status_cannot_be_read(situation: Situation) -> Iterator[Cause]:
    if not situation.left_alone:
        return
    yield Cause(
        name="unreadable-status",
        what="Its operator leaves it alone, for it cannot read where the job stands.",
        evidence=(Evidence(text=situation.left_alone),),
        next_steps=(
            "kubectl -n paceline get deployment -o wide says which version it has; a newer one goes on",
            f"kubectl delete trainingjob {situation.name} ends it, to be submitted again",
        ),
    )


def _its_spec_is_wrong(situation: Situation) -> Iterator[Cause]:
    begun = situation.phase not in (JobPhase.PENDING, JobPhase.FAILED, JobPhase.STOPPED)
    if situation.spec is not None or begun:  # A running job does not follow changes of its spec.
        return
    said = situation.message.removeprefix("the job is wrong: ")
    yield Cause(
        name="wrong-spec",
        what="Its spec is wrong, so it cannot begin.",
        evidence=tuple(Evidence(text=each) for each in said.split("; ") if each),
        next_steps=(
            f"kubectl edit trainingjob {situation.name}; it is looked at again at once",
            "mend the file, see that it is right (paceline lint FILE), and kubectl apply -f FILE",
        ),
    )


def _was_requested(situation: Situation) -> Iterator[Cause]:
    resting = situation.phase in (JobPhase.PENDING, JobPhase.STOPPING, JobPhase.STOPPED)
    if not resting or not (situation.is_suspended or situation.phase is JobPhase.STOPPED):
        return
    told = [event for event in situation.events if event.kind in ("stopping", "stopped")]
    evidence = tuple(Evidence(text=event.message or event.kind, at=event.at) for event in told[-1:])
    if situation.is_suspended:
        evidence = (Evidence(text="spec.suspend: true"), *evidence)
    yield Cause(
        name="suspended",
        what="It was stopped on request.",
        evidence=evidence,
        next_steps=(situation.resume_step,),
    )


def _its_time_is_over(situation: Situation) -> Iterator[Cause]:
    spec = situation.spec
    if spec is None or spec.active_deadline_seconds is None or "active deadline" not in situation.message:
        return
    limit = quantities.format_seconds(spec.active_deadline_seconds)
    yield Cause(
        name="deadline",
        what=f"It was ended because it ran longer than it may: {limit}.",
        evidence=(Evidence(text=situation.message, at=situation.finished_at),),
        next_steps=(
            "spec.active_deadline: make it longer, or leave it out",
            situation.resume_step,
        ),
    )


def _it_is_refused(situation: Situation) -> Iterator[Cause]:
    """Yield what the API server refuses; the operator tries again and reports it in its message."""
    message = situation.message
    if _QUOTA in message:
        yield Cause(
            name="quota",
            what="A quota of the namespace does not let its pods in.",
            evidence=(Evidence(text=message),),
            next_steps=(
                "kubectl describe resourcequota says what is used",
                "make its replicas smaller or fewer, or delete jobs that have ended",
            ),
        )
    elif " cannot be made: " in message or "does not belong to the job" in message:
        yield Cause(
            name="refused",
            what="The API server refuses an object of the job.",
            evidence=(Evidence(text=message),),
            next_steps=("kubectl -n paceline logs deployment/paceline-operator has every attempt",),
        )


def _it_is_on_its_way(situation: Situation) -> Iterator[Cause]:
    """Yield what a stopping job still waits for."""
    if situation.phase is not JobPhase.STOPPING:
        return
    left = [row for row in situation.replicas if row.phase is ReplicaPhase.STOPPING]
    spec = situation.spec
    grace = "" if spec is None else quantities.format_seconds(spec.termination_grace_seconds)
    what = f"{len(left)} of its replicas are still ending; they are killed after their grace of {grace}."
    if any(row.phase.is_live and row not in left for row in situation.replicas):
        what += " Its parameter servers end after them, so that a chief can save."
    yield Cause(
        name="stopping",
        what=what,
        evidence=tuple(Evidence(text=str(row.replica)) for row in left[: endings.SHOWN]),
        next_steps=(f"paceline wait {situation.name} --for finished",),
    )


_RULES: tuple[Rule, ...] = (
    _has_no_supervisor,
    _its_status_cannot_be_read,
    _its_spec_is_wrong,
    _was_requested,
    _its_time_is_over,
    _it_is_refused,
    waits.room,
    waits.queue,
    waits.obstacles,
    endings.endings,
    _it_is_on_its_way,
)
