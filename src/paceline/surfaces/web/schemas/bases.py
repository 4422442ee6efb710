"""What all documents have in common."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Instant = Annotated[str, Field(description="ISO 8601, UTC", json_schema_extra={"format": "date-time"})]
#: The syntax of a job's name; other texts are refused, so that a name cannot be a path.
JOB_NAME = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
#: The namespace, which every request may name.
NAMESPACE: Any = Field(
    default=None,
    description="of the cluster; else the server's own",
    max_length=63,
    pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
)


class Schema(BaseModel):
    """A part of a request or an answer; nothing else may be in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Document(Schema):
    """A whole answer."""

    # Documents use the field name of Kubernetes.
    apiVersion: Literal["paceline.dev/v1alpha1"] = "paceline.dev/v1alpha1"
    kind: str


class FieldError(Schema):
    """A field that is wrong; of a job file with its place."""

    path: str
    message: str
    line: int | None = None
    column: int | None = None
    excerpt: str | None = None


class Problem(BaseModel):
    """An error (RFC 9457).

    Attributes:
        type: ``urn:paceline:error:NAME`` for errors of Paceline itself, such as ``NotFound``.
        hint: what to do next.
        errors: the fields that are wrong.
        findings: what lint rules say of a job file, by their codes.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    hint: str | None = None
    errors: list[FieldError] | None = None
    findings: list[dict[str, Any]] | None = None
