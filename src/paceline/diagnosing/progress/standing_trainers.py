"""Trainers that have made no step for longer than ten of their steps take, and report what they wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paceline.diagnosing.cases import Case
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model import quantities
from paceline.model.explanations.causes import Evidence
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures import standings
from paceline.model.measures.standings import Standing, StandingActivity
from paceline.model.words import listed

TOPIC = Topic(
    code="PRG009",
    name="standing-trainers",
    title="Trainers make no step, and wait",
    severity=Severity.WARNING,
    why="A trainer has made no step for longer than ten of its steps take, and its process does not compute. "
    "It says where it waits: for its input, within a step (for a parameter server, or for input that its "
    "graph reads), or in a line of the script between two steps.",
    fix="See what that place waits for: storage that does not answer, a queue that nothing fills, a "
    "parameter server that is gone, a lock.",
)
_WORDS = {
    StandingActivity.INPUT: "for input",
    StandingActivity.STEP: "within a step: for a parameter server, or for input that the graph reads",
    StandingActivity.BETWEEN: "between two steps, in the script",
}


@rule(TOPIC, needs=(), explains=("slow-storage", "waiting-for-ps", "idle-workers"))
def standing_trainers(case: Case) -> Iterator[Hit]:
    """Trainers that report that they wait and have made no step since."""
    run = case.recording.run
    if run.phase is not JobPhase.RUNNING or case.recording.lost or case.snapshot.progress == 1.0:
        return
    standing = standings.now(case.recording)
    waiting = [trainer for trainer in standing if trainer.doing is not StandingActivity.COMPUTING]
    if not waiting:
        return
    # A trainer that computes without making steps usually evaluates or saves, and others may wait for it.
    computes = len(waiting) < len(standing)
    names = [str(trainer.replica) for trainer in waiting]
    seconds = case.recording.at - min(trainer.since for trainer in waiting)
    what = f"{listed(names)} {'has' if len(names) == 1 else 'have'} waited for up to " + (
        f"{quantities.format_seconds(round(max(0.0, seconds)))} {_for_what(waiting)}"
    )
    yield Hit(
        what=f"{what}; another trainer computes meanwhile." if computes else f"{what}.",
        subjects=tuple(names),
        evidence=tuple(
            Evidence(
                text=f"{trainer.replica} waits {_WORDS[trainer.doing]}"
                + (f", at {trainer.where}" if trainer.where else ""),
                at=trainer.since,
            )
            for trainer in waiting[:5]
        ),
        next_steps=(
            f"paceline logs {run.name} --role {waiting[0].replica.role} --index {waiting[0].replica.index} "
            "--tail 20",
            "where it runs, py-spy dump --pid PID says what its threads wait for",
        ),
        severity=Severity.INFO if computes else None,
    )


def _for_what(waiting: Sequence[Standing]) -> str:
    """Return in words what most of the trainers wait for."""
    counts = {doing: sum(each.doing is doing for each in waiting) for doing in _WORDS}
    return _WORDS[max(counts, key=lambda doing: counts[doing])]
