"""What is left of the quotas of each namespace while a round of jobs is admitted."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from paceline.model.jobs.nodes import Quota, Resources


class QuotaBook:
    """The quotas of all namespaces; what an admitted job requests is taken from those of its namespace.

    Args:
        quotas: what is left now, by namespace; a namespace that is not in it has no quota.
    """

    def __init__(self, quotas: Mapping[str, Sequence[Quota]]) -> None:
        self._left = {namespace: tuple(each) for namespace, each in quotas.items()}

    def of(self, namespace: str) -> tuple[Quota, ...]:
        """Return what is left of the quotas of a namespace."""
        return self._left.get(namespace, ())

    def take(self, namespace: str, wanted: Resources) -> None:
        """Take resources from the quotas of a namespace."""
        if namespace in self._left:
            self._left[namespace] = tuple(
                dataclasses.replace(
                    quota, left={kind: left - getattr(wanted, kind) for kind, left in quota.left.items()}
                )
                for quota in self._left[namespace]
            )
