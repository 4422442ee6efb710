"""Jobs: submitted, listed, shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from paceline.model.explanations import diagnosis_summaries
from paceline.model.explanations.findings import Severity
from paceline.model.jobs import runs
from paceline.model.jobs.run_queries import MOST_RUNS, Order
from paceline.model.jobs.statuses import JobPhase
from paceline.surfaces.web.schemas.bases import JOB_NAME, NAMESPACE, Document, Schema
from paceline.surfaces.web.schemas.derived import document, listing, schema

Phase = JobPhase | Literal["lost"]


DiagnosisSummary = schema(diagnosis_summaries.DiagnosisSummary)
#: ``last_phase`` is the phase that a lost job had when a supervisor last watched it.
RunSummary = schema(runs.RunSummary, phase=Phase, last_phase=JobPhase, duration_seconds=float | None)
#: ``total`` is how many all pages have together; ``after`` asks for the next page, null: there is none.
RunList = listing("RunList", RunSummary, "A page of jobs.", total=int, after=str | None)


#: ``memory_limit_bytes`` is the limit that the job file asks for.
Replica = schema(
    runs.ReplicaRow, "Replica", omit={"memory_bytes"}, role=str, index=int, memory_limit_bytes=int | None
)
#: A job and its replicas; ``last_phase`` as in lists.
Run = document(
    runs.Run,
    "Run",
    omit={"source"},
    phase=Phase,
    last_phase=JobPhase,
    labels=dict[str, str],
    model=str,
    duration_seconds=float | None,
    supervisor_pids=list[int],
    replicas=list[Replica],  # type: ignore[valid-type]
    spec=dict[str, Any],
)


#: The numbers of events only grow.
EventList = listing("EventList", schema(runs.JobEvent, "Event", id=int), "What happened to a job.")


class RunListQuery(Schema):
    """Which jobs, and which page of them."""

    phase: list[JobPhase] = Field(default=[], description="only in one of these")
    search: str = Field(
        default="",
        description="in the name, the model, the value of a label, the finding or the codes of causes",
        max_length=200,
    )
    model: str = Field(default="", description="only jobs that train this one", max_length=100)
    finding: str = Field(
        default="", description="only jobs in which a cause with this code was found", max_length=20
    )
    label: list[str] = Field(default=[], description="selectors, as kubectl has them: team=ads,!old")
    since: float | None = Field(default=None, description="submitted then or later (Unix seconds)")
    until: float | None = Field(default=None, description="submitted before (Unix seconds)")
    sort: Order = Field(default=Order.SUBMITTED, description="by what; those without it come last")
    descending: bool = Field(default=True, description="the latest, largest or last first")
    limit: int = Field(default=50, description="at most so many", ge=1, le=MOST_RUNS)
    after: str | None = Field(default=None, description="as the page before says", max_length=2000)
    namespace: str | None = NAMESPACE


class Submit(Schema):
    """A job that is to be run."""

    source: Annotated[str, Field(description="the job file", min_length=1, max_length=1 << 20)]
    name: Annotated[
        str | None,
        Field(description="instead of that in the file; a number is added when taken", pattern=JOB_NAME),
    ] = None
    base: Annotated[
        str | None,
        Field(description="a folder of the server's machine: paths start from it", max_length=4096),
    ] = None
    fail_on: Annotated[Severity | None, Field(description="refuse what lint finds from this on")] = None


class Scale(Schema):
    """Another number of workers."""

    workers: Annotated[int, Field(ge=0, le=1_000_000)]


class Resize(Schema):
    """Other cores or memory for replicas of a job that runs."""

    target: Annotated[str, Field(description="a replica, such as ps-0, or a role", max_length=40)]
    cpu_cores: Annotated[float, Field(gt=0, le=4096)] | None = None
    memory_bytes: Annotated[int, Field(gt=0, le=1 << 60)] | None = None
    seconds: Annotated[float, Field(description="for so long; else for good", gt=0, le=1e8)] | None = None


class Prune(Schema):
    """Which jobs are old."""

    older_than_seconds: Annotated[float, Field(description="since they ended", ge=0, le=1e10)]
    dry_run: Annotated[bool, Field(description="only say which")] = False


class PruneList(Document):
    """Jobs that were removed, or would be; ``left`` is how many more there are."""

    kind: Literal["PruneList"] = "PruneList"
    names: list[str]
    left: int
    dry_run: bool


class Edit(Schema):
    """What a field of the job file should say; null: it is to be left out."""

    path: Annotated[list[str], Field(min_length=1, max_length=20)]
    value: Any


class Change(Schema):
    """As what a job is to go on: its file with some edits, or another file."""

    edits: list[Edit] = Field(default=[], description="of the job file", max_length=100)
    source: Annotated[
        str | None, Field(description="the other job file; instead of edits", max_length=1 << 20)
    ] = None
    dry_run: Annotated[bool, Field(description="only say what would change")] = False


class Gained(Schema):
    """How many times as fast a job is after a change, between which that lies, and what that says."""

    times: float
    low: float
    high: float
    verdict: str


#: ``diff`` is between the job files; a speed that was not measured is null, and so is ``gained`` then.
Changed = schema(
    runs.SpecChange,
    "Changed",
    diff=str,
    before_examples_per_second=float | None,
    after_examples_per_second=float | None,
    gained=Gained | None,
)
ChangedList = listing("ChangeList", Changed, "The changes of a job, the oldest first.")


class ChangeAsked(Document):
    """A change that was asked for, or would be; ``diff`` is empty where nothing would change."""

    kind: Literal["Change"] = "Change"
    name: str
    diff: str
    dry_run: bool
