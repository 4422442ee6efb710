"""The output of replicas."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from paceline.model.roles import Role
from paceline.surfaces.web.schemas.bases import NAMESPACE, Document, Schema

MOST_LINES = 5000
#: The greatest length of a cursor; with 2,200 replicas it has some ten thousand characters.
MOST_CURSOR = 60_000


class LogChoice(Schema):
    """Whose lines."""

    role: Role | None = Field(default=None, description="only of replicas of this role")
    index: int | None = Field(default=None, description="only of replicas with this index", ge=0, le=2**31)
    replica: list[str] = Field(default=[], description="only of these, such as ps-0", max_length=1000)
    attempt: int | None = Field(default=None, description="only of this attempt", ge=1, le=2**31)
    search: str = Field(
        default="", description="only lines with this in them, whatever its case", max_length=200
    )
    begin: int | None = Field(
        default=None,
        description="from the beginning on: of what is there already the last so many lines of each attempt",
        ge=0,
        le=1_000_000,
    )
    since: float | None = Field(
        default=None,
        description="of what is there already only attempts that printed something after that (Unix seconds)",
    )
    namespace: str | None = NAMESPACE


class LogQuery(LogChoice):
    """Which lines: the last ones, or with ``after`` those from some place on, page by page."""

    tail: int = Field(default=200, description="the last so many, of all together", ge=1, le=MOST_LINES)
    after: str | None = Field(
        default=None,
        description="those behind the place where an answer ended, the oldest first; empty: the beginning",
        max_length=MOST_CURSOR,
    )
    limit: int = Field(default=MOST_LINES, description="of those at most so many", ge=1, le=MOST_LINES)
    unfinished: bool = Field(
        default=True, description="lines that have no end yet, too; what follows in them is a line of its own"
    )


class LogLine(Schema):
    """A line; ``is_cut``: it was longer than the server sends."""

    replica: str
    attempt: int
    text: str
    is_cut: bool


class LogPage(Document):
    """Lines of the output of a job's replicas, attempt after attempt.

    Attributes:
        gone: attempts whose output is not there any more.
        after: what to ask for, with the same choice, to get what comes behind these lines.
        is_full: there were more lines already, which ``limit`` has left for the next page.
    """

    kind: Literal["LogPage"] = "LogPage"
    items: list[LogLine]
    gone: list[str]
    after: str
    is_full: bool
