"""What was found in a run when it had ended: kept, so that the rules of a later version do not rewrite it."""

from __future__ import annotations

import dataclasses

from paceline.model.explanations.causes import Explanation


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Why a run went as it did, as its end was judged.

    Attributes:
        at: when it was judged (Unix seconds).
        version: of Paceline, whose rules these were.
    """

    at: float
    version: str
    explanation: Explanation
