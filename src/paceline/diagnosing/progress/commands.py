"""Commands that misbehave: they flood their log, outlive their trainer, or send wrong reports."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnosing import sayings
from paceline.diagnosing.cases import Case
from paceline.diagnosing.progress import silences
from paceline.diagnosing.rules import Hit, rule
from paceline.diagnosing.topics import Topic
from paceline.model.explanations.findings import Severity
from paceline.model.jobs.statuses import JobPhase
from paceline.model.words import listed

#: The kinds of the events by which agents and operators report these commands.
OUTPUT, OUTLIVED, MISREAD, LEFT = "output", "outlived", "misread", "left"

FLOOD = Topic(
    code="PRG006",
    name="log-flood",
    title="A replica floods its log",
    severity=Severity.WARNING,
    why="It prints more than 256 KiB a second, and goes on with it. That takes time from the training, hides "
    "what matters, and fills the disk.",
    fix="Look at the last lines: log_device_placement, a print in each step, or a log level for developers.",
)

ENDED = Topic(
    code="PRG007",
    name="trainer-ended",
    title="The process that trained has ended, and the command goes on",
    severity=Severity.WARNING,
    why="A command that starts the trainer as another process has not noticed that it ended, or does not "
    "pass its exit code on. So the replica counts as running or succeeded, whatever became of the training.",
    fix="Let the command end with its trainer and with its exit code: exec python train.py in a shell, "
    "sys.exit(subprocess.call(...)) in Python.",
)


MISREAD_REPORTS = Topic(
    code="PRG008",
    name="misread-reports",
    title="What a script reports is not understood",
    severity=Severity.WARNING,
    why="The script writes step reports of its own, and fields of them are no numbers, or have other names. "
    "Such a field counts as not measured: steps, rates and losses are missing where they are looked for.",
    fix='Write numbers as numbers: {"type": "step", "step": 12, "steps": 1, "examples": 512, "loss": 0.31}.',
)


LEFT_BEHIND = Topic(
    code="PRG010",
    name="left-behind",
    title="A process of the command still ran when it ended",
    severity=Severity.WARNING,
    why="A command is done when it ends, and what it left in the background is ended with it. A line that "
    "ends in & or starts a daemon returns at once: then the training was cut off, and its replica counts as "
    "succeeded all the same.",
    fix="Let the command be the training: no & at its end, wait for what it has started (wait in a shell, "
    "join() or communicate() in Python).",
)


@rule(FLOOD, needs=())
def log_flood(case: Case) -> Iterator[Hit]:
    """Replicas whose agent, or on a cluster the operator, has reported that they flood their log."""
    said = sayings.of(case, OUTPUT)
    if said:
        names = sayings.names(said)
        yield Hit(
            what=f"{listed(names)} {'floods its log' if len(names) == 1 else 'flood their logs'}.",
            subjects=tuple(names),
            evidence=sayings.evidence(said),
            next_steps=(f"paceline logs {case.recording.run.name} --tail 20",),
        )


@rule(MISREAD_REPORTS, needs=(), explains=("waiting-at-start",))
def misread_reports(case: Case) -> Iterator[Hit]:
    """Replicas whose agent could not understand the reports of their scripts."""
    said = sayings.of(case, MISREAD)
    if said:
        names = sayings.names(said)
        yield Hit(
            what=f"Reports of {listed(names)} have fields that are no numbers, or no fields that are known.",
            subjects=(*names, *(str(row.replica) for row in case.recording.replicas)),
            evidence=sayings.evidence(said),
            next_steps=("docs/agent-protocol.md has the fields of a report", "paceline explain PRG008"),
        )


@rule(ENDED, needs=())
def trainer_ended(case: Case) -> Iterator[Hit]:
    """Replicas whose training process has ended while the command goes on, without another step since."""
    run, steps = case.recording.run, case.recording.steps
    if run.phase not in (JobPhase.RUNNING, JobPhase.SUCCEEDED):
        return
    said = [
        event
        for event in sayings.of(case, OUTLIVED)
        if not any(step.replica == event.replica and step.at > event.at for step in steps)
    ]
    if said:
        names = sayings.names(said)
        yield Hit(
            what=f"The process that trained has ended, and the command of {listed(names)} goes on."
            if run.phase is JobPhase.RUNNING
            else f"The command of {listed(names)} went on after the process that trained had ended: how that "
            "ended is not known.",
            subjects=tuple(names),
            evidence=sayings.evidence(said),
            next_steps=(f"paceline logs {run.name} --tail 20",),
        )


@rule(LEFT_BEHIND, needs=(), explains=("nothing-trained",))
def left_behind(case: Case) -> Iterator[Hit]:
    """Replicas whose command ended while processes that it had started still ran."""
    attempts = {row.replica: row.attempt for row in case.recording.replicas}
    said = [
        each
        for each in sayings.of(case, LEFT)
        if each.replica is not None and attempts.get(each.replica) == each.attempt
    ]
    if said:
        names = sayings.names(said)
        commands = "command" if len(names) == 1 else "commands"
        trained = silences.steps_made(case.recording.steps)
        yield Hit(
            what=f"Processes of {listed(names)} still ran when the {commands} ended, and were ended.",
            subjects=tuple(names),
            evidence=sayings.evidence(said),
            next_steps=(f"paceline logs {case.recording.run.name} --tail 20",),
            # If no step was made, the processes that were ended were probably the training itself.
            severity=None if trained else Severity.ERROR,
        )
