"""The output of replicas."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from paceline.model.roles import Role
from paceline.surfaces.web.schemas.bases import NAMESPACE, Document, Schema

MOST_LINES = 5000


class LogQuery(Schema):
    """Which lines."""

    role: Role | None = Field(default=None, description="only of replicas of this role")
    index: int | None = Field(default=None, description="only of replicas with this index", ge=0, le=2**31)
    attempt: int | None = Field(default=None, description="only of this attempt", ge=1, le=2**31)
    search: str = Field(
        default="", description="only lines with this in them, whatever its case", max_length=200
    )
    tail: int = Field(default=200, description="the last so many", ge=1, le=MOST_LINES)
    namespace: str | None = NAMESPACE


class LogLine(Schema):
    """A line; ``is_cut`` says that it was longer than anybody reads."""

    replica: str
    attempt: int
    text: str
    is_cut: bool


class LogPage(Document):
    """Lines of the output of a job's replicas, attempt after attempt.

    Attributes:
        gone: attempts whose output is not there any more.
    """

    kind: Literal["LogPage"] = "LogPage"
    items: list[LogLine]
    gone: list[str]
