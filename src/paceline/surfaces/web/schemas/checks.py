"""Job files that are checked, codes that are explained, changes that are foretold."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from paceline.model.explanations.findings import Severity
from paceline.surfaces.web.schemas.bases import Document, Schema
from paceline.surfaces.web.schemas.measurements import FieldChange, Gain
from paceline.surfaces.web.schemas.probes import ProbePart

#: The greatest length of one change; its value may be a command.
MOST_CHARACTERS = 16_384


class JobFile(Schema):
    """A job file that is looked at, and not run."""

    source: Annotated[str, Field(description="the job file", min_length=1, max_length=1 << 20)]


class Position(Schema):
    """A place in the job file; lines and columns count from 1."""

    file: str
    line: int
    column: int


class Finding(Schema):
    """What a lint rule found."""

    code: str
    severity: Severity
    path: str
    message: str
    fix: str
    position: Position | None


class FindingList(Document):
    """What is legal in a job file, but wrong."""

    kind: Literal["FindingList"] = "FindingList"
    items: list[Finding]


class Code(Schema):
    """What the code of a rule or of a cause is about; ``name`` is empty for a lint rule."""

    code: str
    title: str
    severity: Severity
    why: str
    fix: str
    name: str
    risk: str


class CodeList(Document):
    """All codes."""

    kind: Literal["CodeList"] = "CodeList"
    items: list[Code]


class Proposal(Schema):
    """Changes of the job file that belong together."""

    name: str
    what: str
    changes: list[FieldChange]
    gain: Gain | None
    basis: str
    risk: str
    diff: str | None


class ProposalList(Document):
    """What could be changed in a job, the likeliest gain first."""

    kind: Literal["ProposalList"] = "ProposalList"
    items: list[Proposal]


class Speed(Schema):
    """How fast a layout is, as the model sees it."""

    steps_per_second: float
    examples_per_second: float
    uses: dict[str, float]
    trainer_cores: float
    server_cores: list[float]


class ProbedPart(ProbePart):
    """A part that was probed.

    Attributes:
        computed: its elasticity by the model, from all that was measured but the probe.
    """

    computed: float


class Forecast(Document):
    """What is to be expected of another layout; what ``paceline predict -o json`` prints.

    Attributes:
        probed: what the newest probe that holds has found, which is in the forecast.
    """

    kind: Literal["Forecast"] = "Forecast"
    now: Speed
    then: Speed
    examples_per_second: float
    times: float
    low: float
    high: float
    cores_now: float | None
    cores_then: float | None
    untold: list[str]
    probed: list[ProbedPart]


class Prediction(Schema):
    """A layout that is asked about."""

    set: Annotated[
        list[Annotated[str, Field(max_length=MOST_CHARACTERS)]],
        Field(description="changes of the job file, made together, such as ps.replicas=4", max_length=50),
    ]


class Audit(Schema):
    """Who changed what, through this server."""

    id: int
    at: str
    who: str
    origin: str
    action: str
    job: str | None
    namespace: str | None
    detail: str


class AuditList(Document):
    """What was changed, the latest first.

    Attributes:
        before_id: what to ask for to get those before; null: there are none.
    """

    kind: Literal["AuditList"] = "AuditList"
    items: list[Audit]
    before_id: int | None
