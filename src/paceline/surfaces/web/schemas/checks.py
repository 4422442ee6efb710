"""Job files that are checked, codes that are explained, changes that are foretold."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from paceline.model.explanations import findings
from paceline.model.jobs import audits
from paceline.model.studies import proposals
from paceline.modelling import forecasts
from paceline.surfaces import explanations
from paceline.surfaces.web.schemas.bases import Schema
from paceline.surfaces.web.schemas.derived import document, listing, schema
from paceline.surfaces.web.schemas.probes import part

#: The greatest length of one change; its value may be a command.
MOST_CHARACTERS = 16_384


class JobFile(Schema):
    """A job file that is looked at, and not run."""

    source: Annotated[str, Field(description="the job file", min_length=1, max_length=1 << 20)]


FindingList = listing("FindingList", schema(findings.Finding), "What is legal in a job file, but wrong.")
CodeList = listing("CodeList", schema(explanations.CodeEntry, "Code"), "All codes.")
Proposal = schema(proposals.Proposal, diff=str | None)
ProposalList = listing("ProposalList", Proposal, "What could be changed in a job, the likeliest gain first.")


#: ``computed`` is its elasticity by the model, from all that was measured but the probe.
ProbedPart = part("ProbedPart", computed=float)
#: What ``paceline predict -o json`` prints; ``probed`` is what the newest probe that holds has found.
Forecast = document(forecasts.Forecast, "Forecast", probed=list[ProbedPart])  # type: ignore[valid-type]


class Prediction(Schema):
    """A layout that is asked about."""

    set: Annotated[
        list[Annotated[str, Field(max_length=MOST_CHARACTERS)]],
        Field(description="changes of the job file, made together, such as ps.replicas=4", max_length=50),
    ]


#: ``before_id`` asks for those before; null: there are none.
AuditList = listing(
    "AuditList",
    schema(audits.Audit, omit={"scope"}, id=int),
    "What was changed through this server, the latest first.",
    before_id=int | None,
)
