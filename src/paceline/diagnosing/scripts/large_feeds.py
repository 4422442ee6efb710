"""Large arrays that are fed to each step."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import needs
from paceline.diagnosing.cases import Case, mean
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.scripts import asked
from paceline.diagnosing.thresholds import Threshold, Unit
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.measures.script_facts import Name
from paceline.model.words import listed

LARGE_BYTES_PER_SECOND = Threshold(
    "large-feeds.large-bytes-per-second", 100e6, Unit.BYTES_PER_SECOND,
    means="A trainer that feeds at least this many bytes a second feeds large arrays. What it feeds is "
    "copied twice: from the array, and into a message to the session's server. At 100 MB a second that takes "
    "some hundredths of a core, and at ten times as many bytes most of a core.",
)  # fmt: skip

TOPIC = Topic(
    code="SCR110",
    name="large-feeds",
    title="Large arrays are fed to each step",
    severity=Severity.INFO,
    why="What a script feeds is copied by Python's thread while no operation of the step runs: from the "
    "array into a tensor, and from that into a message to the session's server. An input pipeline hands its "
    "batches over without a copy.",
    fix="Give the session its batches by tf.data, or feed ids and have the step look the values up.",
)


@rule(TOPIC, needs=(needs.STEPS,))
def large_feeds(case: Case) -> Iterator[Hit]:
    """Trainers that feed many bytes per second to their steps."""
    fed = {
        trainer: size * trainer.steps_per_second
        for trainer in case.active_trainers
        if (size := asked.amount(case, trainer.replica, Name.FEEDS_BYTES_PER_STEP))
        and trainer.steps_per_second
    }
    large = case.value(LARGE_BYTES_PER_SECOND)
    trainers = [trainer for trainer, speed in fed.items() if speed >= large]
    if not trainers:
        return
    size = mean(trainers, lambda trainer: asked.amount(case, trainer.replica, Name.FEEDS_BYTES_PER_STEP))
    most = max(fed[trainer] for trainer in trainers)
    yield Hit(
        what=f"{listed(trainer.replica for trainer in trainers)} {'feeds' if len(trainers) == 1 else 'feed'} "
        f"{quantities.format_bytes(size)} to each step.",
        subjects=tuple(str(trainer.replica) for trainer in trainers),
        evidence=(
            Evidence(
                text=f"that is up to {quantities.format_bytes(round(most))} a second of a trainer",
                sources=(case.source("steps", trainers, steps=True),),
            ),
        ),
        next_steps=("in your script: tf.data in place of feed_dict, ended by prefetch",),
    )
