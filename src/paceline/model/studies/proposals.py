"""Proposals: changes of a job file, with what they should bring and what they may cost."""

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
        what: one sentence for users.
        changes: the changes of the job file.
        gain: the expected factor on the score of the objective; None: not known.
        basis: what the gain is derived from.
        risk: what the changes may cost.
    """

    name: str
    what: str
    changes: tuple[FieldChange, ...]
    gain: Gain | None
    basis: str
    risk: str = ""

    @property
    def relearns(self) -> bool:
        """Whether the model may learn differently, so that its loss has to be checked."""
        return any(_overlap(each.path, field) for each in self.changes for field in _LEARNING)

    @property
    def expected(self) -> float:
        """Return the likely factor: the geometric mean of the gain's bounds; 1 if the gain is not known."""
        return 1.0 if self.gain is None else math.sqrt(self.gain.low * self.gain.high)

    def conflicts(self, other: Proposal) -> bool:
        """Whether both change the same field, or one changes a field within a field of the other."""
        return any(_overlap(one.path, two.path) for one in self.changes for two in other.changes)


def _overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two fields are the same, or one is within the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]
