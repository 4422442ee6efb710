"""Faults of progress: training stands still, never begins, learns nothing, or is starved by evaluation."""

from __future__ import annotations

from benchmarks.diagnosis import acts, changes, checks
from benchmarks.diagnosis.bases import EVALUATED, PLAIN, Base
from benchmarks.diagnosis.faults.faults import Fault, Severity, of
from benchmarks.diagnosis.knowns import Known
from benchmarks.diagnosis.trials import Ending
from paceline.model.jobs.job_specs import JobSpec, RestartPolicy, RestartWhen, RoleSpec
from paceline.model.roles import Role

_LIVE = (Ending.LIVE,)
#: A job that does not begin is recorded so long after it was submitted.
_WAITING_SECONDS = 30.0
#: After the first steps it stands still, for longer than a rule waits before it says so.
_STILL_AFTER_SECONDS, _STILL_SECONDS = 7.0, 24.0


def hang(base: Base, severity: Severity) -> Fault:
    """A parameter server, all workers, or the link of a parameter server stands still."""
    frozen = {Severity.MILD: ("ps-1",), Severity.GROSS: ("worker-0", "worker-1")}

    def act(known: Known) -> acts.Act:
        if severity is Severity.MEDIUM:
            return acts.cut_off(("ps-0",), _STILL_AFTER_SECONDS)
        return acts.frozen(frozen[severity], _STILL_AFTER_SECONDS)

    return Fault(
        cause="hang",
        base=base.of_kind(PLAIN),
        felt=checks.stands_still(0.75 * _STILL_SECONDS),
        act=act,
        endings=_LIVE,
        seconds=_STILL_AFTER_SECONDS + _STILL_SECONDS,
    )


def waiting_at_start(base: Base, severity: Severity) -> Fault:
    """A parameter server, or the worker that gives variables their first values, never comes."""
    absent = {Severity.MILD: "ps-1", Severity.MEDIUM: "worker-0", Severity.GROSS: "ps-0"}[severity]

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.arguments(spec, "--absent", absent)

    return Fault(
        cause="waiting-at-start",
        base=base.of_kind(PLAIN),
        felt=checks.never_stepped(),
        change=change,
        endings=_LIVE,
        starts=False,
        seconds=_WAITING_SECONDS,
    )


def loss_not_finite(base: Base, severity: Severity) -> Fault:
    """A logarithm is not a number: after some ten seconds, after one, from the beginning."""
    bound = of(severity, 5.0, 4.4, 2.5)

    def change(spec: JobSpec, known: Known) -> JobSpec:
        return changes.arguments(spec, "--log-below", f"{bound:g}")

    return Fault(
        cause="loss-not-finite", base=base.of_kind(PLAIN), felt=checks.loses_its_loss(), change=change
    )


def evaluation_starves(base: Base, severity: Severity) -> Fault:
    """Evaluators on the workers' host evaluate all the time."""
    base = base.of_kind(EVALUATED)
    evaluators = int(of(severity, 1, 2, 3))

    def change(spec: JobSpec, known: Known) -> JobSpec:
        pattern = str(base.folder() / "train-*.parquet")
        spec = changes.training(spec, inputs={"evaluation": [pattern]})
        never = RestartPolicy(when=RestartWhen.NEVER)
        return changes.with_role(
            spec, RoleSpec(role=Role.EVALUATOR, replicas=evaluators, threads=1, restart=never)
        )

    return Fault(cause="evaluation-starves", base=base, felt=checks.slower(), change=change)
