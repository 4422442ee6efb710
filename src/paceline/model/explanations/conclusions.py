"""The diagnosis of a run at its end, kept so that the rules of a later version do not change it."""

from __future__ import annotations

import dataclasses

from paceline.model.explanations.causes import Explanation


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The explanation of a run that was made at its end.

    Attributes:
        at: when it was made (Unix seconds).
        version: the version of Paceline whose rules made it.
    """

    at: float
    version: str
    explanation: Explanation
