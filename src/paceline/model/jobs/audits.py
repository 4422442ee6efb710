"""The audit log: which caller changed what through the server, and from where."""

from __future__ import annotations

import dataclasses

from paceline.model.instants import UnixSeconds


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """A change that was requested and allowed.

    Attributes:
        at: when.
        who: the name of the caller.
        origin: the address that the request came from.
        action: the action, such as ``jobs.stop``.
        job: the job that was changed; None: the action concerns no job.
        namespace: the namespace of the cluster; None on this machine.
        scope: the prefix that the runs of the namespace have in the store. A namespace that is created again
            under the same name has another prefix, so it does not see this entry.
        detail: what changed, such as the diff of a job file; empty: the action says everything.
    """

    at: UnixSeconds
    who: str
    origin: str
    action: str
    job: str | None = None
    namespace: str | None = None
    scope: str = ""
    detail: str = ""
