"""Cures of ``tf.data``: pipelines work ahead and at several elements at once, and give the same elements."""

from __future__ import annotations

import pytest
from support import nights
from support.cured import result, said

pytestmark = pytest.mark.slow
SCRIPT = "pipeline.py"
#: TensorFlow, how a script reads its pipeline.
READ = [
    ("1.4.1", "one_shot"), (None, "eager"), ("1.4.1", "initializable"), ("1.8.0", "one_shot"),
    ("1.12.3", "initializable"), ("1.15.5", "one_shot"), ("1.15.5", "initializable"), ("2.1.4", "eager"),
    ("2.4.4", "eager"), ("2.4.4", "one_shot"), ("2.8.4", "eager"), ("2.11.1", "eager"), ("2.15.1", "eager"),
    (None, "one_shot"),
]  # fmt: skip
BOTH = {"inputs": {"prefetch_batches": 3, "parallel_calls": 2}}
#: A batch that was read, those that wait, one that waits for room; the parallel function takes more.
_DRAWN = 2 * (1 + 3)
ELEMENTS = [[first**2, (first + 1) ** 2] for first in range(0, 40, 2)]


def counts(kinds: list[str], name: str) -> int:
    return sum(kind.startswith(name) for kind in kinds)


@pytest.mark.parametrize(("version", "iterator"), nights.but(READ, often=READ[:2]))
def test_a_pipeline_works_ahead_and_gives_the_same(runner, version, iterator):
    cured = result(runner, version, SCRIPT, "--iterator", iterator, "--ahead", str(_DRAWN), training=BOTH)
    assert ("parallel-map", "applied", "squared") in said(runner)
    assert ("prefetch", "applied", "BatchDataset: 3") in said(runner)
    assert len(said(runner)) == 2
    assert cured["drawn"] >= _DRAWN
    assert cured["elements"] == ELEMENTS
    # A graph may have a pipeline twice: by itself, and in the function of a one-shot iterator.
    assert counts(cured["kinds"], "ParallelMapDataset") == counts(cured["kinds"], "PrefetchDataset") > 0


@pytest.mark.parametrize(("version", "iterator"), nights.but(READ, often=READ[:1]))
def test_what_a_script_has_chosen_stays(runner, version, iterator):
    cured = result(runner, version, SCRIPT, "--iterator", iterator, "--own", training=BOTH)
    assert said(runner) == []
    assert cured["elements"] == ELEMENTS
    # A graph may have a pipeline twice: by itself, and in the function of a one-shot iterator.
    assert counts(cured["kinds"], "ParallelMapDataset") == counts(cured["kinds"], "PrefetchDataset") > 0


@pytest.mark.parametrize(("version", "iterator"), nights.but(READ[1:], often=READ[1:2]))
def test_a_function_with_a_state_is_called_once_at_a_time(runner, version, iterator):
    training = {"inputs": {"parallel_calls": 2}}
    if version is not None and version.startswith("1."):
        pytest.skip("tf.random.uniform is of TensorFlow 1.13 and later")
    cured = result(runner, version, SCRIPT, "--iterator", iterator, "--random", training=training)
    assert said(runner) == [("parallel-map", "refused", "squared has a state: RandomUniform")]
    assert cured["elements"] == ELEMENTS
    # The data set that was tried stays in a graph; no iterator reads it.
    assert iterator != "eager" or counts(cured["kinds"], "ParallelMapDataset") == 0
    assert counts(cured["kinds"], "MapDataset") > 0


@pytest.mark.parametrize(
    ("version", "iterator", "outcome", "message"),
    nights.but(
        [
            (None, "eager", "applied", "squared"),
            ("1.15.5", "one_shot", "applied", "squared"),
            ("1.4.1", "one_shot", "refused", "this TensorFlow chooses no number by itself"),
        ],
        often=[],
    ),
)
def test_a_number_that_tensorflow_chooses(runner, version, iterator, outcome, message):
    training = {"inputs": {"parallel_calls": "auto"}}
    cured = result(runner, version, SCRIPT, "--iterator", iterator, training=training)
    assert said(runner) == [("parallel-map", outcome, message)]
    assert cured["elements"] == ELEMENTS


def test_settings_that_only_the_training_library_obeys_are_refused(runner):
    training = {
        "steps_in_flight": 2, "steps_per_exchange": 1, "transfers": {"packed": True},
        "consistency": {"mode": "asynchronous"},
    }  # fmt: skip
    result(runner, None, SCRIPT, training=training)
    reasons = [message.split(": ")[0] for name, outcome, message in said(runner)]
    assert {(name, outcome) for name, outcome, _ in said(runner)} == {("library-settings", "refused")}
    assert reasons == ["steps_in_flight", "transfers.packed"]
