"""What a caller changed through the server: who, what, where from."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One change that was asked for and allowed.

    Attributes:
        at: when (Unix seconds).
        who: the name of the caller.
        origin: the address that the request came from.
        action: such as ``jobs.stop``.
        job: that it was about; None: it was about none.
        namespace: of the cluster; None on this machine.
        scope: how the names of the namespace's runs begin in the store. One that is made anew under the same
            name has another, and so sees nothing of this.
        detail: what changed, such as the diff of a job file; empty: the action says all.
    """

    at: float
    who: str
    origin: str
    action: str
    job: str | None = None
    namespace: str | None = None
    scope: str = ""
    detail: str = ""
