"""The quality of a model on data that it has not seen: AUC, log loss and accuracy, exact over all scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.training import features

_BATCH = 8_192


@dataclass(frozen=True)
class Evaluation:
    """The result at a global step.

    `auc` is None where all examples have the same label, as it is undefined then. `log_loss` is in nats per
    example. `accuracy` is the share of examples whose probability is on the correct side of 1/2.
    """

    step: int
    examples: int
    auc: float | None
    log_loss: float
    accuracy: float


def auc(labels: npt.ArrayLike, scores: npt.ArrayLike) -> float | None:
    """Return the area under the ROC curve.

    It is the probability that a random positive scores above a random negative, where a tie counts half. It
    is computed as the Mann-Whitney statistic, (R - P (P + 1) / 2) / (P N), with R the sum of the positives'
    ranks, where tied scores share their mean rank. None if there are no positives or no negatives.
    """
    positive = np.asarray(labels) > 0.5
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return None
    _, group, counts = np.unique(np.asarray(scores), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_rank = last - (counts - 1) / 2.0
    rank_sum = float(mean_rank[group][positive].sum())
    return (rank_sum - positives * (positives + 1) / 2.0) / (positives * negatives)


def log_loss(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """Return the mean of -ln of the probability given to the true label.

    Probabilities are kept 1e-7 away from 0 and 1.
    """
    truth = np.asarray(labels, dtype=np.float64)
    given = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-7, 1 - 1e-7)
    return float(-np.mean(truth * np.log(given) + (1 - truth) * np.log1p(-given)))


def accuracy(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> float:
    """Return the share of examples whose probability is on the label's side of 1/2.

    A probability of 1/2 counts as positive.
    """
    return float(np.mean((np.asarray(probabilities) >= 0.5) == (np.asarray(labels) > 0.5)))


def evaluate(
    predict: Callable[[features.Examples], npt.NDArray[np.float32]],
    chunks: Iterable[features.Examples],
    step: int,
) -> Evaluation:
    """Score all examples and compute the measures.

    Args:
        predict: returns the probabilities of some examples.
        chunks: the evaluation data.
        step: the global step of the parameters.
    """
    labels, scores = [], []
    for chunk in chunks:
        for start in range(0, len(chunk.labels), _BATCH):
            batch = chunk.take(slice(start, start + _BATCH))
            labels.append(batch.labels)
            scores.append(predict(batch))
    truth, given = np.concatenate(labels), np.concatenate(scores)
    return Evaluation(
        step=step,
        examples=len(truth),
        auc=auc(truth, given),
        log_loss=log_loss(truth, given),
        accuracy=accuracy(truth, given),
    )
