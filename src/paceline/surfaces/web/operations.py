"""The operations of a server, each with the right that it needs on a cluster.

The rights are those of Kubernetes' RBAC, so there is no second table of users: a user who may delete a
TrainingJob with kubectl may delete it here.
"""

from __future__ import annotations

import dataclasses
import enum


@dataclasses.dataclass(frozen=True, slots=True)
class ApiRight:
    """A right, as a SubjectAccessReview asks for it.

    Attributes:
        subresource: such as ``log``; empty: the resource itself.
        group: the API group of the resource.
        is_namespaced: whether the right is checked in the namespace of the request.
    """

    verb: str
    resource: str
    subresource: str = ""
    group: str = "paceline.dev"
    is_namespaced: bool = True


class ApiOperation(enum.Enum):
    """An operation of the server; the value is its name in the audit log."""

    LIST = "jobs.list"
    GET = "jobs.get"
    LOGS = "jobs.logs"
    SUBMIT = "jobs.submit"
    STOP = "jobs.stop"
    RESUME = "jobs.resume"
    SCALE = "jobs.scale"
    RESIZE = "jobs.resize"
    PROBE = "jobs.probe"
    APPLY = "jobs.apply"
    TRACE = "jobs.trace"
    DELETE = "jobs.delete"
    CLUSTER = "cluster.get"
    QUOTAS = "quotas.list"
    AUDITS = "audits.list"
    #: Experiments belong to no namespace, so a caller needs the right to list the jobs of all namespaces.
    STUDIES = "experiments.get"
    #: Needs no stored data: for example, a job file in the request is checked, or the rules are listed.
    ASK = "ask"

    @property
    def right(self) -> ApiRight | None:
        """The right that the operation needs; None: every known caller may do it."""
        return _RIGHTS.get(self)

    @property
    def changes(self) -> bool:
        """Whether the operation changes something, so that it belongs in the audit log."""
        return self in _CHANGES


_JOBS = "trainingjobs"
_RIGHTS = {
    ApiOperation.LIST: ApiRight("list", _JOBS),
    ApiOperation.GET: ApiRight("get", _JOBS),
    ApiOperation.LOGS: ApiRight("get", "pods", "log", group=""),
    ApiOperation.SUBMIT: ApiRight("create", _JOBS),
    ApiOperation.STOP: ApiRight("patch", _JOBS),
    ApiOperation.RESUME: ApiRight("patch", _JOBS),
    ApiOperation.SCALE: ApiRight("patch", _JOBS),
    ApiOperation.RESIZE: ApiRight("patch", _JOBS),
    ApiOperation.PROBE: ApiRight("patch", _JOBS),
    ApiOperation.APPLY: ApiRight("patch", _JOBS),
    ApiOperation.TRACE: ApiRight("patch", _JOBS),
    ApiOperation.DELETE: ApiRight("delete", _JOBS),
    ApiOperation.CLUSTER: ApiRight("list", "nodes", group="", is_namespaced=False),
    ApiOperation.QUOTAS: ApiRight("list", "resourcequotas", group=""),
    ApiOperation.AUDITS: ApiRight("list", _JOBS, "audits"),
    ApiOperation.STUDIES: ApiRight("list", _JOBS, is_namespaced=False),
}
_CHANGES = frozenset(
    {
        ApiOperation.SUBMIT, ApiOperation.STOP, ApiOperation.RESUME, ApiOperation.SCALE, ApiOperation.RESIZE,
        ApiOperation.PROBE, ApiOperation.APPLY,
        ApiOperation.TRACE, ApiOperation.DELETE,
    }
)  # fmt: skip
