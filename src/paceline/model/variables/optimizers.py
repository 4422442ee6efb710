"""The optimizers of the training library, by their names in ``training:``."""

from __future__ import annotations

import typing
from typing import Literal

OptimizerName = Literal["adagrad", "ftrl", "adam", "lazy-adam", "adadelta", "momentum"]
OPTIMIZERS: tuple[OptimizerName, ...] = typing.get_args(OptimizerName)
#: What the deep and the wide part of a model have if the job file names none.
DEEP_DEFAULT: OptimizerName = "adagrad"
WIDE_DEFAULT: OptimizerName = "ftrl"
DEFAULTS = {"optimizer": DEEP_DEFAULT, "wide_optimizer": WIDE_DEFAULT}
#: Floats that an optimizer keeps for each parameter.
SLOTS: dict[OptimizerName, int] = {
    "adagrad": 1, "ftrl": 2, "adam": 2, "lazy-adam": 2, "adadelta": 2, "momentum": 1,
}  # fmt: skip
