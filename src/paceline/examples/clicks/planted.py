"""The model that the clicks are drawn from, and the best AUC that any model can reach on them.

    logit = bias + sum of f_j(count_j) + sum of e_f[id_f] + sum over the last six features, in pairs, of
    g[id, id']

The 13 counts are log-normal; their effects are linear in their scaled logarithm, for every fourth one
quadratic. The ids are Zipf-distributed and in order of frequency (id 0 is the most frequent), as a
vocabulary sorted by frequency has them. An id's effect is normal and shrinks with its rank, so what matters
in a giant table are its frequent ids. The bias is set so that about a quarter of the rows are clicks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

NUMBERS = 13
_CLICK_RATE = 0.25
_COUNT_SCALE, _COUNT_SHIFT = 1.2, 1.5
_NUMBER_EFFECT, _ID_EFFECT, _PAIR_EFFECT = 0.25, 0.25, 0.3
_RANK_SCALE = 50.0
_CALIBRATION_ROWS = 50_000

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Drawn rows.

    They are `counts` (rows, 13), `ids` (rows, tables), the true `probabilities` and the drawn `labels`.
    """

    counts: Integers
    ids: Integers
    probabilities: Floats
    labels: npt.NDArray[np.int8]


class Planted:
    """The planted model for given table sizes; the same seed plants the same model."""

    def __init__(self, tables: tuple[int, ...], zipf: float, seed: int) -> None:
        random = np.random.default_rng([seed, 0])
        self.tables = tables
        self._cumulative = [_zipf_cumulative(rows, zipf) for rows in tables]
        self._number_effects = random.normal(0.0, _NUMBER_EFFECT, NUMBERS)
        self._id_effects = [
            random.normal(0.0, _ID_EFFECT, rows) / (1.0 + np.arange(rows) / _RANK_SCALE) for rows in tables
        ]
        first = max(0, len(tables) - 6)
        self.pairs = tuple((i, i + 1) for i in range(first, len(tables) - 1, 2))
        self._pair_effects = [random.normal(0.0, _PAIR_EFFECT, (tables[i], tables[j])) for i, j in self.pairs]
        self._bias = self._calibrated(np.random.default_rng([seed, 1]))

    def draw(self, random: np.random.Generator, rows: int) -> Rows:
        """Draws rows; the result depends only on the generator's state."""
        counts, ids = self._inputs(random, rows)
        probabilities = _logistic(self._bias + self._scores(counts, ids))
        labels = (random.random(rows) < probabilities).astype(np.int8)
        return Rows(counts, ids, probabilities, labels)

    def _inputs(self, random: np.random.Generator, rows: int) -> tuple[Integers, Integers]:
        latent = random.normal(_COUNT_SHIFT, _COUNT_SCALE, (rows, NUMBERS))
        counts = np.floor(np.exp(latent)).astype(np.int64)
        ids = np.empty((rows, len(self.tables)), dtype=np.int64)
        for f, cumulative in enumerate(self._cumulative):
            ids[:, f] = np.searchsorted(cumulative, random.random(rows), side="right")
        return counts, ids

    def _scores(self, counts: Integers, ids: Integers) -> Floats:
        scaled = (np.log1p(counts) - _COUNT_SHIFT) / _COUNT_SCALE
        scaled[:, ::4] = (scaled[:, ::4] ** 2 - 1.0) / 1.5
        scores: Floats = scaled @ self._number_effects
        for f, effects in enumerate(self._id_effects):
            scores += effects[ids[:, f]]
        for (i, j), effects in zip(self.pairs, self._pair_effects, strict=True):
            scores += effects[ids[:, i], ids[:, j]]
        return scores

    def _calibrated(self, random: np.random.Generator) -> float:
        """Returns the bias that gives the target click rate, by bisection on a sample."""
        scores = self._scores(*self._inputs(random, _CALIBRATION_ROWS))
        low, high = -20.0, 20.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if _logistic(scores + middle).mean() < _CLICK_RATE else (low, middle)
        return (low + high) / 2


def best_auc(probabilities: npt.ArrayLike) -> float:
    """Returns the expected AUC of the best possible ranking, that by the true probabilities.

    With labels drawn independently, P(row i is a click and row j is not) = p_i (1 - p_j) for i != j, so

        sum over i != j of p_i (1 - p_j) ([p_i > p_j] + [p_i = p_j] / 2)  /  sum over i != j of p_i (1 - p_j)

    is the expected number of correctly ordered pairs over the expected number of pairs. No other ranking of
    the rows has a larger numerator, since each pair is in the more likely order (Neyman and Pearson's
    argument).
    """
    p = np.sort(np.asarray(probabilities, dtype=np.float64))
    misses = np.concatenate([[0.0], np.cumsum(1 - p)])
    below = misses[np.searchsorted(p, p, side="left")]
    tied = misses[np.searchsorted(p, p, side="right")] - below - (1 - p)
    ordered = float(np.sum(p * (below + tied / 2)))
    return ordered / float(np.sum(p) * np.sum(1 - p) - np.sum(p * (1 - p)))


def _zipf_cumulative(rows: int, exponent: float) -> Floats:
    """P(id <= k) for P(id = k) proportional to (k + 1) ** -exponent."""
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -exponent
    cumulative = np.cumsum(weights / weights.sum())
    cumulative[-1] = 1.0
    return cumulative


def _logistic(x: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-x))
