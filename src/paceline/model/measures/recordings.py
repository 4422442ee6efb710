"""All that is known of a job at one moment, as one value for reports and rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from paceline.model.explanations.conclusions import Conclusion
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run, SpecChange
from paceline.model.measures.probes import Probe
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.roles import ReplicaId
from paceline.model.traces.traced_steps import Trace
from paceline.model.variables.variable_plans import Plan


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OutputTail:
    """The last lines that an attempt of a replica has printed."""

    replica: ReplicaId
    attempt: int
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A job with all its measurements; every sequence is in the order of time.

    Attributes:
        at: the moment (Unix seconds).
        lost: whether the job should run, but no supervisor watches it.
        facts: facts of the machine or the image, each with its name.
        traces: the newest traces, one for each trainer.
        plan: which PS holds which shard of which variable, with the measured traffic; None: not known.
        conclusion: the diagnosis at its end; None: it still runs, or was not diagnosed yet.
        changes: other job files that the run went on with.
        probes: the probes that were made while it ran.
        output: the last lines of each attempt; only recordings that are saved to a file have them.
        thresholds: the numbers of rules that the site has set, by the names of their thresholds.
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
    changes: Sequence[SpecChange] = ()
    probes: Sequence[Probe] = ()
    output: Sequence[OutputTail] = ()
    thresholds: Mapping[str, float] = dataclasses.field(default_factory=dict)
