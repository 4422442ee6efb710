"""Whole jobs over loopback, through the loss of each kind of replica."""

import signal
import time

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(480)]

STEPS = 2500
LONG = {
    "batch_size": 16,
    "epochs": 1000,
    "max_steps": STEPS,
    "hidden_units": [8],
    "embedding_dimension": 4,
    "checkpoint": {"every_seconds": 1, "keep": 2},
}
RARELY = {**LONG, "checkpoint": {"every_seconds": 1000}}


def last_step(processes, index=0, role="worker"):
    return processes.reports(role, index, "step")[-1]["step"]


def finished(processes, chief=("worker", 0), steps=STEPS):
    (evaluation,) = processes.reports(*chief, "evaluation")
    assert steps <= evaluation["step"] <= steps + 1  # the other trainer may have been within its last step
    assert evaluation["auc"] > 0.8
    assert len(list(processes.checkpoint_dir.glob("*.index"))) <= 3


def test_two_and_two_train_to_the_end(job):
    processes = job(LONG, ps=2, worker=2)
    processes.start_all()
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    finished(processes)
    steps = [report for i in range(2) for report in processes.reports("worker", i, "step")]
    assert sum(report["steps"] for report in steps) == max(report["step"] for report in steps)
    assert all(report["total_steps"] == STEPS for report in steps)
    assert all(0 <= report["input_wait_seconds"] <= report["interval_seconds"] for report in steps)
    assert all(report["input_cpu_seconds"] >= 0 for report in steps)
    assert sum(report["input_cpu_seconds"] for report in steps) > 0
    assert processes.kill("ps", 0, signal.SIGTERM) == -signal.SIGTERM


def test_killed_worker_rejoins_and_is_made_up_for(job):
    processes = job({**LONG, "max_steps": 8000}, ps=2, worker=2)
    processes.start_all()
    processes.await_step(300, index=1)
    processes.kill("worker", 1)
    seen = len(processes.reports("worker", 1, "step"))
    processes.start("worker", 1, attempt=2)
    processes.wait("worker", 0, timeout=180)
    processes.wait("worker", 1)
    finished(processes, steps=8000)
    assert len(processes.reports("worker", 1, "step")) > seen
    assert processes.log("worker", 0).count("parameters start from") == 1


@pytest.mark.parametrize(("index", "away_seconds"), [(0, 0.0), (1, 4.0)])
def test_killed_parameter_server_is_set_back_to_the_last_checkpoint(job, index, away_seconds):
    processes = job(LONG, ps=2, worker=2)
    processes.start_all()
    processes.await_checkpoint()
    processes.await_step(500)
    processes.kill("ps", index)
    time.sleep(away_seconds)
    processes.start("ps", index, attempt=2)
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    finished(processes)
    assert "parameters start from" in processes.log("worker", 0)
    assert "model.ckpt-" in processes.log("worker", 0)


def test_a_parameter_server_that_is_lost_while_the_chief_waits_for_a_trainer(job):
    processes = job({**LONG, "max_steps": 1000, "consistency": {"mode": "synchronous"}}, ps=2, worker=2)
    processes.start_all()
    processes.await_checkpoint()
    processes.kill("worker", 1)
    time.sleep(1.0)  # the chief has staged its gradients by now
    processes.kill("ps", 1)
    processes.start("ps", 1, attempt=2)
    processes.start("worker", 1, attempt=2)
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    finished(processes, steps=1000)
    assert "model.ckpt-" in processes.log("worker", 0)


@pytest.mark.parametrize(
    "consistency",
    [{"mode": "bounded-staleness", "staleness": 4}, {"mode": "synchronous"}],
    ids=lambda consistency: consistency["mode"],
)
def test_trainers_that_wait_for_each_other_outlive_the_loss_of_each_kind(job, consistency):
    processes = job({**LONG, "max_steps": 1200, "consistency": consistency}, ps=2, worker=2)
    processes.start_all()
    processes.await_checkpoint()
    processes.await_step(100)  # a checkpoint may come before the first report
    processes.kill("worker", 1)
    processes.start("worker", 1, attempt=2)
    processes.await_step(last_step(processes) + 100)
    processes.kill("ps", 1)
    processes.start("ps", 1, attempt=2)
    processes.await_that(lambda: "model.ckpt-" in processes.log("worker", 0), "restored parameters")
    processes.await_step(300)
    processes.kill("worker", 0)
    processes.start("worker", 0, attempt=2)
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    finished(processes, steps=1200)


@pytest.mark.parametrize("mode", ["asynchronous", "synchronous"])
def test_a_parameter_server_that_stops_answering_is_waited_for_anew(job, mode):
    """It lives and listens; as it seems to a trainer whose call TensorFlow's runtime has lost."""
    chosen = {**LONG, "max_steps": 1000, "consistency": {"mode": mode}}
    processes = job(chosen, script="impatient_job.py", ps=2, worker=2)
    processes.start_all()
    processes.await_checkpoint()
    processes.await_step(50)
    server = processes.running["ps", 1]
    server.send_signal(signal.SIGSTOP)
    processes.await_that(
        lambda: "has not answered for 4 s" in processes.log("worker", 0), "the end of a call"
    )
    server.send_signal(signal.SIGCONT)
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    finished(processes, steps=1000)
    assert processes.log("worker", 0).count("parameters start from") == 1  # they were there all the time


def test_parameter_server_lost_before_the_first_checkpoint(job):
    processes = job(RARELY, ps=2, worker=2)
    processes.start_all()
    processes.await_step(300)
    processes.await_step(300, index=1)
    processes.kill("ps", 1)
    processes.start("ps", 1, attempt=2)
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    finished(processes)
    assert processes.log("worker", 0).count("their first values") == 2


def test_chief_that_is_restarted_goes_on_from_the_live_parameters(job):
    processes = job(RARELY, ps=2, worker=2)
    processes.start_all()
    processes.await_step(300)
    reached = last_step(processes)
    processes.kill("worker", 0)
    processes.start("worker", 0, attempt=2)
    processes.wait("worker", 0)
    processes.wait("worker", 1)
    finished(processes)
    log = processes.log("worker", 0)
    assert log.count("first values") == 1
    resumed = int(log.rpartition("is at step ")[2].split()[0])
    assert resumed >= reached


def test_a_job_that_is_restarted_whole_resumes_from_its_checkpoint(job):
    processes = job(LONG, ps=1, chief=1, worker=1)
    processes.start_all()
    processes.await_step(500, role="chief")
    assert processes.kill("chief", 0, signal.SIGTERM) == 128 + signal.SIGTERM  # saves first
    reached = last_step(processes, role="chief")
    processes.kill("worker", 0)
    processes.kill("ps", 0)
    for role in ("ps", "chief", "worker"):
        processes.start(role, 0, attempt=2)
    processes.wait("chief", 0)
    processes.wait("worker", 0)
    finished(processes, ("chief", 0))
    resumed = int(processes.log("chief", 0).rpartition("is at step ")[2].split()[0])
    assert reached - 1 <= resumed < STEPS


def test_a_worker_does_not_wait_for_a_chief_that_has_finished(job):
    processes = job({**LONG, "max_steps": 50}, ps=1, worker=2)
    processes.start("ps", 0)
    processes.start("worker", 0)
    processes.wait("worker", 0)
    processes.kill("ps", 0)
    processes.start("ps", 0, attempt=2)
    processes.start("worker", 1)
    processes.wait("worker", 1)
    assert "training is over" in processes.log("worker", 1)


def test_evaluator_follows_the_checkpoints(job):
    processes = job(LONG, ps=1, worker=1, evaluator=1)
    processes.start_all()
    processes.await_that(lambda: processes.reports("evaluator", 0, "evaluation"), "an evaluation")
    processes.wait("worker", 0)
    processes.wait("evaluator", 0)
    by_evaluator = processes.reports("evaluator", 0, "evaluation")[-1]
    by_chief = processes.reports("worker", 0, "evaluation")[-1]
    assert by_evaluator["step"] == by_chief["step"]
    assert by_evaluator["auc"] == pytest.approx(by_chief["auc"], abs=1e-6)


def test_evaluator_ends_well_on_sigterm(job):
    processes = job({**LONG, "max_steps": 1_000_000}, ps=1, worker=1, evaluator=1)
    processes.start_all()
    processes.await_that(lambda: processes.reports("evaluator", 0, "evaluation"), "an evaluation")
    assert processes.kill("evaluator", 0, signal.SIGTERM) == 0
