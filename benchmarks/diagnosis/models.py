"""What the corpus trains: three of the library's models in three sizes, on click data of a seed.

The sizes are those of jobs that two cores carry with all of their parameter servers and workers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.protocols import KEPT
from paceline.examples.clicks import generate

MODELS = ("wide-deep", "deepfm", "dlrm")
#: No threshold of a rule is set by looking at it.
UNSEEN_MODEL = "dlrm"
_ROWS, _EVALUATION_ROWS = 400_000, 4_000
#: A worker decodes a file as a whole, at most: small ones come evenly.
_FILES = 64


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a model is, the batches that it is trained with, and links of so many bits a second that its
    traffic fills half of them at most.
    """

    tables: tuple[int, ...]
    zipf: float
    bandwidth: int
    training: Mapping[str, Any]


SIZES: Mapping[str, Size] = {
    "small": Size(
        tables=(6_000, 3_000, 1_000, 400, 200, 100, 60, 40, 20, 10),
        zipf=1.1,
        bandwidth=150_000_000,
        training={"embedding_dimension": 16, "hidden_units": [64, 32], "batch_size": 256},
    ),
    "middle": Size(
        tables=(40_000, 15_000, 8_000, 3_000, 1_500, 800, 400, 200, 100, 80, 60, 40, 30, 20, 10, 8),
        zipf=1.05,
        bandwidth=250_000_000,
        training={"embedding_dimension": 16, "hidden_units": [128, 64], "batch_size": 384},
    ),
    "large": Size(
        tables=(
            200_000, 60_000, 30_000, 12_000, 6_000, 3_000, 1_500, 800, 500, 400, 300, 200, 150, 100, 80, 60,
            50, 40, 30, 25, 20, 16, 12, 10,
        ),
        zipf=1.02,
        bandwidth=500_000_000,
        training={"embedding_dimension": 24, "hidden_units": [192, 96], "batch_size": 512},
    ),
}  # fmt: skip


def parameters(size: str, seed: int, **more: Any) -> generate.Parameters:
    """Return what determines the data of a size and a seed; `more` are other values of the generator."""
    given = SIZES[size]
    wanted: dict[str, Any] = {
        "train_rows": _ROWS,
        "evaluation_rows": _EVALUATION_ROWS,
        "train_files": _FILES,
        "tables": given.tables,
        "zipf": given.zipf,
        "seed": seed,
        **more,
    }
    return generate.Parameters(**wanted)


def folder(size: str, seed: int, kind: str = "") -> Path:
    """Return the folder of the data of a size and a seed; `kind` names what is other about them."""
    return KEPT / "diagnosis" / "-".join(filter(None, ("clicks", size, kind, str(seed))))
