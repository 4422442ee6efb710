"""Schedules of learning rates: a warm-up, then a decay.

A rate is a function of the global step, which counts the steps of all trainers together. It is written once,
with operators and functions that NumPy and TensorFlow share, so a document or a plot shows the very rate of
training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

Decay = Literal["constant", "exponential", "polynomial", "cosine"]


@dataclass(frozen=True)
class LearningRateSchedule:
    """How a learning rate changes.

    It grows linearly over the first `warmup_steps`, then decays. `exponential` multiplies it by `end_factor`
    in every `decay_steps`, without an end. `polynomial` (linear unless `power` is given) and `cosine`
    (Loshchilov and Hutter 2017, without restarts) reduce it within `decay_steps` to `end_factor` (default 0)
    times the rate, where it stays.
    """

    decay: Decay = "constant"
    warmup_steps: int = field(default=0, metadata={"least": 0})
    decay_steps: int | None = field(default=None, metadata={"least": 1})
    end_factor: float | None = field(default=None, metadata={"least": 0, "most": 1})
    power: float | None = field(default=None, metadata={"above": 0})

    @property
    def is_constant(self) -> bool:
        """Whether every step has the same rate."""
        return self.decay == "constant" and self.warmup_steps == 0

    def conflict(self) -> str | None:
        """Return what is wrong with the combination of keys, or None."""
        if self.decay == "constant":
            for key in ("decay_steps", "end_factor", "power"):
                if getattr(self, key) is not None:
                    return f"{key} needs a decay: exponential, polynomial or cosine"
        elif self.decay_steps is None:
            return f"the decay {self.decay} needs decay_steps"
        if self.power is not None and self.decay != "polynomial":
            return f"power belongs to the decay polynomial, not to {self.decay}"
        if self.decay == "exponential" and not self.end_factor:
            return "the decay exponential needs an end_factor above 0"
        return None

    def factor(self, steps: Any, functions: Any) -> Any:
        """Return the factor on the learning rate in the step that follows ``steps`` steps (float64).

        `functions` is NumPy or TensorFlow, whichever `steps` belongs to.
        """
        warmup = 1.0
        if self.warmup_steps:
            warmup = functions.minimum((steps + 1.0) / self.warmup_steps, 1.0)
        if self.decay == "constant":
            return warmup
        done = functions.maximum(steps - float(self.warmup_steps), 0.0) / (self.decay_steps or 1)
        end = self.end_factor or 0.0
        if self.decay == "exponential":
            return warmup * functions.exp(done * math.log(end))
        done = functions.minimum(done, 1.0)
        if self.decay == "cosine":
            left = (functions.cos(done * math.pi) + 1.0) / 2.0
        else:
            left = (1.0 - done) ** (self.power or 1.0)
        return warmup * (end + (1.0 - end) * left)
