"""How well the speed of layouts is foretold: real runs of many, three of them to learn from.

``variants`` are the layouts, ``runs`` measures one, ``published`` has models of others, ``errors`` judges.
"""

from benchmarks.prediction.errors import details, draw, run

__all__ = ["details", "draw", "run"]
