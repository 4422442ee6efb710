"""The store: runs, their replicas, what happened to them and what was measured, in one database.

Nothing here knows the time: every instant is the caller's, in Unix seconds. Each method is one transaction.
Methods may be called from several threads and, each with its own store, from several processes.
"""

from __future__ import annotations

import types

from paceline.stores import (
    audits,
    conclusions,
    databases,
    digests,
    imports,
    journals,
    measurements,
    model_lists,
    probes,
    relays,
    run_lists,
    runs,
    sessions,
    studies,
    thinnings,
)


class Store(
    runs.StoredRuns,
    run_lists.RunLists,
    digests.Digests,
    conclusions.Conclusions,
    thinnings.Thinnings,
    imports.Imports,
    model_lists.ModelLists,
    journals.Journals,
    relays.Relays,
    probes.StoredProbes,
    measurements.Measurements,
    studies.Studies,
    audits.Audits,
    sessions.BrowserSessions,
):
    """An open store; close it, or use it as a context manager.

    Every method raises ``StoreError`` when the database fails; what it was to change is then unchanged, and
    the same call may be repeated.
    """

    def close(self) -> None:
        """Close the store; it cannot be used any more."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: types.TracebackType | None,
    ) -> None:
        self.close()


def open_store(url: str) -> Store:
    """Open the store that a URL names, and make it or bring it up to date where that is needed.

    Args:
        url: ``sqlite:////var/lib/paceline.db`` (made with its folder if missing) or
            ``postgresql://user:password@host/name`` (the database must exist).

    Raises:
        StoreError: it cannot be opened, or a newer program made it.
    """
    return Store(databases.open_database(url))
