"""What can be asked of a server, each with the right that it needs on a cluster.

Rights are those of Kubernetes' RBAC, so there is no second table of users: who may delete a TrainingJob with
kubectl may delete it here.
"""

from __future__ import annotations

import dataclasses
import enum


@dataclasses.dataclass(frozen=True, slots=True)
class Right:
    """A right as a SubjectAccessReview asks for it.

    Attributes:
        subresource: such as ``log``; empty: the resource itself.
        group: of the API.
        is_namespaced: whether it is asked for in the namespace of the request.
    """

    verb: str
    resource: str
    subresource: str = ""
    group: str = "paceline.dev"
    is_namespaced: bool = True


class Operation(enum.Enum):
    """Something that can be asked; the value is its name in the audit log."""

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
    #: Studies belong to no namespace, so a caller who sees them must be allowed to see the jobs of all.
    STUDIES = "experiments.get"
    #: Computed from what the request itself brings: a job file is checked, the rules are listed.
    ASK = "ask"

    @property
    def right(self) -> Right | None:
        """Return the right that it needs; None: every known caller may ask."""
        return _RIGHTS.get(self)

    @property
    def changes(self) -> bool:
        """Whether it changes something, so that it belongs into the audit log."""
        return self in _CHANGES


_JOBS = "trainingjobs"
_RIGHTS = {
    Operation.LIST: Right("list", _JOBS),
    Operation.GET: Right("get", _JOBS),
    Operation.LOGS: Right("get", "pods", "log", group=""),
    Operation.SUBMIT: Right("create", _JOBS),
    Operation.STOP: Right("patch", _JOBS),
    Operation.RESUME: Right("patch", _JOBS),
    Operation.SCALE: Right("patch", _JOBS),
    Operation.RESIZE: Right("patch", _JOBS),
    Operation.PROBE: Right("patch", _JOBS),
    Operation.APPLY: Right("patch", _JOBS),
    Operation.TRACE: Right("patch", _JOBS),
    Operation.DELETE: Right("delete", _JOBS),
    Operation.CLUSTER: Right("list", "nodes", group="", is_namespaced=False),
    Operation.QUOTAS: Right("list", "resourcequotas", group=""),
    Operation.AUDITS: Right("list", _JOBS, "audits"),
    Operation.STUDIES: Right("list", _JOBS, is_namespaced=False),
}
_CHANGES = frozenset(
    {
        Operation.SUBMIT, Operation.STOP, Operation.RESUME, Operation.SCALE, Operation.RESIZE,
        Operation.PROBE, Operation.APPLY,
        Operation.TRACE, Operation.DELETE,
    }
)  # fmt: skip
