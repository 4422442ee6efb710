import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.training import evaluations, features

pairs = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])), min_size=1, max_size=60
)


def brute_force(labels, scores):
    ordered = [
        1.0 if high > low else 0.5 if high == low else 0.0
        for high, positive in zip(scores, labels, strict=True)
        if positive
        for low, other in zip(scores, labels, strict=True)
        if not other
    ]
    return sum(ordered) / len(ordered) if ordered else None


@given(pairs)
def test_auc_counts_pairs(rows):
    labels, scores = zip(*rows, strict=True)
    expected = brute_force(labels, scores)
    found = evaluations.auc(labels, scores)
    assert found is expected if expected is None else found == pytest.approx(expected, abs=1e-12)


def test_auc_of_many_float32_scores_is_exact():
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 300_000)
    assert evaluations.auc(labels, labels.astype(np.float32)) == 1.0
    assert evaluations.auc(labels, np.zeros(300_000, np.float32)) == 0.5


def test_log_loss_and_accuracy():
    assert evaluations.log_loss([1, 0], [0.8, 0.4]) == pytest.approx(-(np.log(0.8) + np.log(0.6)) / 2)
    assert evaluations.log_loss([1, 0], [0.0, 1.0]) == pytest.approx(-np.log(1e-7), rel=1e-6)
    assert evaluations.accuracy([1, 1, 0, 0], [0.5, 0.4, 0.1, 0.9]) == 0.5


def test_evaluate_goes_over_all_chunks():
    def chunk(labels):
        rows = len(labels)
        return features.Examples(
            np.zeros((rows, 0), np.float32),
            np.zeros((rows, 0), np.int32),
            np.array(labels, np.float32),
        )

    result = evaluations.evaluate(
        lambda batch: 0.25 + batch.labels / 2, [chunk([0, 1] * 5000), chunk([1])], step=7
    )
    assert (result.step, result.examples, result.auc, result.accuracy) == (7, 10_001, 1.0, 1.0)
    assert result.log_loss == pytest.approx(-np.log(0.75))
