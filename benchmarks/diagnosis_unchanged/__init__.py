"""Diagnosis of scripts that nothing of Paceline is in: real jobs with real mistakes, recorded and judged.

``bases`` are the healthy jobs of the scripts in ``scripts``, ``faults`` what is done to them, ``items`` the
runs; how they are made, kept and felt is that of `benchmarks.diagnosis`.
"""

from benchmarks.diagnosis_unchanged.scores import details, draw, run

__all__ = ["details", "draw", "run"]
