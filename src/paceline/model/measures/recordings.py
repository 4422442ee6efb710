"""All that is known of a job at one moment, as one value: what a report shows and what rules judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paceline.model.explanations.conclusions import Conclusion
from paceline.model.jobs.runs import JobEvent, Relay, ReplicaRow, Run
from paceline.model.measures.probes import Probe
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.model.traces.traced_steps import Trace
from paceline.model.variables.variable_plans import Plan


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OutputTail:
    """The end of what an attempt of a replica has printed."""

    replica: ReplicaId
    attempt: int
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A job with all that was measured of it; every sequence is in the order of time.

    Attributes:
        at: the moment (Unix seconds).
        lost: it should run, but no supervisor watches it.
        facts: of the machine or the image, each with its name.
        traces: those of the newest moment of tracing, one for each trainer.
        plan: which PS holds which part of which variable, with the traffic that was counted; None: not known.
        conclusion: what was found in it when it had ended; None: it goes on, or was not diagnosed yet.
        changes: other job files that it went on with while it ran.
        probes: what was found by cutting parts of it while it ran.
        output: of each attempt the last lines; only a recording that is to be a file has them.
    """

    run: Run
    at: float
    lost: bool = False
    replicas: Sequence[ReplicaRow] = ()
    samples: Sequence[Sample] = ()
    steps: Sequence[StepReport] = ()
    evaluations: Sequence[EvaluationReport] = ()
    events: Sequence[JobEvent] = ()
    facts: Sequence[tuple[str, str]] = ()
    traces: Sequence[Trace] = ()
    plan: Plan | None = None
    conclusion: Conclusion | None = None
    changes: Sequence[Relay] = ()
    probes: Sequence[Probe] = ()
    output: Sequence[OutputTail] = ()
