"""Input pipelines that make a batch only when a step asks for it."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import trainings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.causes import Evidence, EvidenceSource
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name
from paceline.model.traces import trace_summaries
from paceline.model.variables import cures
from paceline.model.words import listed

INPUT_BOUND = Threshold(
    "missing-prefetches.input-bound", 0.1, Unit.SHARE,
    means="A trainer waits for its input if the wait takes at least this share of a step.",
    source='TensorFlow\'s profiler calls a step input-bound from 5 % on and "highly" so from 20 % on '
    "(op_stats_to_input_pipeline_analysis.cc)",
)  # fmt: skip

TOPIC = Topic(
    code="SCR106",
    name="no-prefetch",
    title="Batches are made only when a step asks for them",
    severity=Severity.WARNING,
    why="A pipeline of tf.data makes a batch when the step asks for it, unless it ends in prefetch. So the "
    "step waits while the batch is read and decoded, and the cores that do that rest while the step "
    "computes. TensorFlow 2.11 and later put the prefetching in by themselves.",
    fix="End the pipeline with prefetch.",
    risk="A few batches more are held in memory.",
)


@rule(TOPIC, needs=())
def no_prefetch(case: Case) -> Iterator[Hit]:
    """Trainers without prefetching whose traced steps wait for input."""
    without = {str(each.replica): each for each in asked.of_trainers(case, Name.PREFETCHES) if not each.value}
    shares = {}
    for trace in case.recording.traces:
        split = trace_summaries.mean_split(trace)
        if trace.trainer in without and split is not None and split.input_wait_microseconds is not None:
            total = split.total_microseconds
            shares[trace.trainer] = split.input_wait_microseconds / total if total > 0 else 0.0
    bound = case.value(INPUT_BOUND)
    waiting = {name: share for name, share in shares.items() if share >= bound}
    if not waiting or 2 * len(waiting) <= len(shares):
        return
    most = max(waiting.values())
    at = max(trace.at for trace in case.recording.traces)
    yield Hit(
        what=f"{listed(waiting)} {'waits' if len(waiting) == 1 else 'wait'} up to {most:.0%} of a step for a "
        "batch that is made only then.",
        subjects=tuple(waiting),
        evidence=(
            asked.evidence(Name.PREFETCHES, [without[name] for name in waiting]),
            Evidence(
                text=f"of a traced step, {listed(f'{name} {share:.0%}' for name, share in waiting.items())} "
                "was waiting for the iterator",
                at=at,
                sources=(EvidenceSource(what="traces", field="splits", count=len(shares)),),
            ),
        ),
        changes=trainings.cured(case, cures.PREFETCH),
        next_steps=("in your script: dataset = dataset.prefetch(2), as the last step of the pipeline",),
    )
