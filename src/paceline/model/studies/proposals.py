"""Changes of a job file that a user may want to make: what they should bring, and what they may cost."""

from __future__ import annotations

import dataclasses
import math

from paceline.model.explanations.causes import FieldChange, Gain

#: Fields that decide what a model learns from the same examples.
_LEARNING = tuple(
    ("spec", "training", *path)
    for path in (
        ("optimizer",), ("wide_optimizer",), ("clip_norm",), ("batch_size",), ("embedding_dimension",),
        ("hidden_units",), ("compute_precision",), ("transfers", "precision"), ("steps_per_exchange",),
        ("steps_in_flight",), ("consistency",), ("seed",),
    )
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Changes that belong together.

    Attributes:
        name: a word for programs: the name of a cause or of a move, or ``layout``.
        what: one sentence for people.
        changes: of the job file.
        gain: how many times as much of what is asked for they bring; None: not known.
        basis: what the gain rests on.
        risk: what they may cost.
    """

    name: str
    what: str
    changes: tuple[FieldChange, ...]
    gain: Gain | None
    basis: str
    risk: str = ""

    @property
    def relearns(self) -> bool:
        """Whether the model may learn otherwise, so that its loss is to be looked at."""
        return any(_overlap(each.path, field) for each in self.changes for field in _LEARNING)

    @property
    def expected(self) -> float:
        """Return how many times as much is likely: the geometric middle; 1 where that is not known."""
        return 1.0 if self.gain is None else math.sqrt(self.gain.low * self.gain.high)

    def conflicts(self, other: Proposal) -> bool:
        """Whether both change the same field, or a field within one that the other changes."""
        return any(_overlap(one.path, two.path) for one in self.changes for two in other.changes)


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether a field is the same as another one, or within it."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
