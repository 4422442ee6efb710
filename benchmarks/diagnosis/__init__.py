"""The corpus of diagnosis: real training with real faults, recorded, each with what its fault was.

``models`` are what is trained, ``bases`` the healthy jobs, ``faults`` what is done to them; ``items`` lists
the runs, ``trials`` makes one, ``effects`` finds out whether the fault was felt, and ``corpus`` makes all.
"""

from benchmarks.diagnosis.scores import details, draw, run

__all__ = ["details", "draw", "run"]
