"""Whole jobs over loopback: every example of every epoch is trained, whichever replica is lost on the way."""

import pytest

pytestmark = pytest.mark.slow

EPOCHS, ROWS, BATCH = 4, 4_000, 16
STEPS = EPOCHS * ROWS // BATCH
TRAINING = {
    "batch_size": BATCH,
    "epochs": EPOCHS,
    "hidden_units": [8],
    "embedding_dimension": 4,
    "steps_in_flight": 2,
    "checkpoint": {"every_seconds": 0.3, "keep": 2},
}


def ended_whole(processes, losses):
    """All is trained; twice at most what was under way at each loss: two steps of each trainer."""
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    (evaluation,) = processes.reports("worker", 0, "evaluation")
    progress = evaluation["progress"]
    assert progress["examples"] == progress["total_examples"] == EPOCHS * ROWS
    assert progress["twice"] <= losses * 2 * 2 * BATCH
    assert evaluation["auc"] > 0.8
    return progress["twice"]


def test_a_worker_that_is_killed_within_a_shard(held):
    processes, release = held(TRAINING, STEPS, ps=2, worker=2)
    processes.start_all()
    processes.await_step(120, index=1)
    processes.kill("worker", 1)
    processes.start("worker", 1, attempt=2)
    release()
    ended_whole(processes, losses=1)
    reports = [report for i in range(2) for report in processes.reports("worker", i, "step")]
    reported = sum(report["examples"] for report in reports)
    assert reported >= EPOCHS * ROWS - 500  # what the killed one had not reported
    assert f"epoch {EPOCHS}: 4,000 of 4,000 examples" in processes.log("worker", 0)


def test_a_parameter_server_that_is_killed(held):
    processes, release = held(TRAINING, STEPS, ps=2, worker=2)
    processes.start_all()
    processes.await_checkpoint()
    processes.await_step(120)
    processes.kill("ps", 0)
    processes.start("ps", 0, attempt=2)
    release()
    ended_whole(processes, losses=1)
