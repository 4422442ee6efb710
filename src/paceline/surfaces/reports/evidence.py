"""Gathers everything that a report shows, before anything is drawn."""

from __future__ import annotations

import dataclasses

from paceline.diagnosing import diagnoses
from paceline.diagnosing.situations import Situation
from paceline.errors import PacelineError
from paceline.model.explanations.causes import Explanation
from paceline.model.jobs.runs import ReplicaRow, Run
from paceline.model.jobs.statuses import ExitKind, ReplicaPhase
from paceline.model.measures import rates, snapshots
from paceline.model.measures.recordings import Recording
from paceline.model.measures.snapshots import Snapshot
from paceline.services.life_cycles import JobReader
from paceline.services.logs import LogSelection
from paceline.services.observing import recordings

LOG_LINES = 20
#: The logs of at most this many replicas are shown; more would only repeat them.
LOG_REPLICAS = 3
LOG_LINE_LENGTH = 400


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The last lines of a failed replica's output."""

    replica: str
    attempt: int
    lines: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReportEvidence:
    """Everything that a report shows.

    Attributes:
        snapshot: how the job did over its whole run, until the moment of the recording.
        explanation: the explanation of the job; None if it was not requested.
        best_auc: the best AUC that any model can reach on these data; None if unknown.
    """

    recording: Recording
    snapshot: Snapshot
    explanation: Explanation | None = None
    best_auc: float | None = None
    logs: tuple[LogTail, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the engine could not limit or measure, each once."""
        return tuple(dict.fromkeys(self.recording.run.notes))

    @property
    def auc(self) -> float | None:
        """The AUC of the last evaluation that has one; None: there is none."""
        return rates.latest(self.recording.evaluations, lambda evaluation: evaluation.auc)


def gather(
    api: JobReader, name: str, *, best_auc: float | None = None, with_logs: bool = True
) -> ReportEvidence:
    """Return the evidence for a report on a run.

    Args:
        api: where the run is.
        name: its name.
        best_auc: the best AUC that any model can reach on these data; None if unknown.
        with_logs: whether to show the last output of failed replicas.

    Raises:
        NotFound: there is no such run.
        StoreError: the store cannot be read.
    """
    recording = recordings.whole(api, name, thinned=True)
    found = of(recording, situation=recordings.situation_of(api, recording), best_auc=best_auc)
    return dataclasses.replace(found, logs=log_tails(api, recording) if with_logs else ())


def of(
    recording: Recording, *, situation: Situation | None = None, best_auc: float | None = None
) -> ReportEvidence:
    """Return the evidence for a report on a recording from any place.

    Args:
        recording: the recording of a job.
        situation: the situation of the job; None means what the recording shows of it.
        best_auc: the best AUC that any model can reach on these data; None if unknown.
    """
    explanation = diagnoses.diagnose(recording, situation or recordings.situation(recording))
    return ReportEvidence(
        recording=recording,
        snapshot=snapshots.of_whole_run(recording),
        explanation=explanation,
        best_auc=best_auc,
    )


def log_tails(api: JobReader, recording: Recording) -> tuple[LogTail, ...]:
    """Return the last output of failed replicas, in the order of their failures.

    Replicas that could not be launched are left out.
    """
    failed = [row for row in recording.replicas if row.phase is ReplicaPhase.FAILED]
    failed = [row for row in failed if row.exit is None or row.exit.kind is not ExitKind.LAUNCH_FAILED]
    exits = (event for event in recording.events if event.kind.endswith("exited"))
    ended = {(event.replica, event.attempt): event.at for event in exits}
    failed.sort(key=lambda row: ended.get((row.replica, row.attempt), float("inf")))
    found = []
    for row in failed[:LOG_REPLICAS]:
        last = _last_lines(api, recording.run, row)
        if last:
            found.append(LogTail(replica=str(row.replica), attempt=row.attempt, lines=last))
    return tuple(found)


def _last_lines(api: JobReader, run: Run, row: ReplicaRow) -> tuple[str, ...]:
    wanted = LogSelection(replica=row.replica.__eq__, attempt=row.attempt, tail=LOG_LINES)
    try:
        return tuple(line.text[:LOG_LINE_LENGTH] for line in api.logs(run, wanted))
    except (OSError, PacelineError):
        return ()
