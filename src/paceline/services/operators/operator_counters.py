"""What an operator counts."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(slots=True)
class OperatorCounters:
    """What has happened since the operator began."""

    reconciliations: int = 0
    refusals: int = 0
    failures: int = 0
