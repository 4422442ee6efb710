"""The store: runs, their replicas, events and measurements in one database.

The store reads no clock: the caller passes every time, in Unix seconds. Every method writes in one
transaction, except ``thin``, which needs several. Methods may be called from several threads, and from
several processes if each opens its own store.
"""

from __future__ import annotations

import types

from paceline.stores import (
    audits,
    conclusions,
    databases,
    diagnosis_summaries,
    imports,
    journals,
    measurements,
    model_lists,
    probes,
    run_lists,
    runs,
    sessions,
    spec_changes,
    studies,
    thinnings,
)


class Store(
    runs.StoredRuns,
    run_lists.RunLists,
    diagnosis_summaries.DiagnosisSummaries,
    conclusions.Conclusions,
    thinnings.Thinnings,
    imports.Imports,
    model_lists.ModelLists,
    journals.Journals,
    spec_changes.SpecChanges,
    probes.StoredProbes,
    measurements.Measurements,
    studies.Studies,
    audits.Audits,
    sessions.BrowserSessions,
):
    """An open store; close it, or use it as a context manager.

    Every method raises ``StoreError`` when the database fails. The transaction that failed has changed
    nothing, and the same call may be repeated.
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
    """Open the store that a URL names; create it or update its schema if needed.

    Args:
        url: ``sqlite:////var/lib/paceline.db`` (made with its folder if missing) or
            ``postgresql://user:password@host/name`` (the database must exist).

    Raises:
        StoreError: the store cannot be opened, or a newer program made it.
    """
    return Store(databases.open_database(url))
