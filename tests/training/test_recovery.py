"""Whole jobs over loopback, through the loss of each kind of replica.

Trainers are held up from step `HELD_AT` on until what is done to them has happened (`held_job.py`).
"""

import signal

import pytest
from support import nights

pytestmark = pytest.mark.slow

STEPS, FEW = 600, 400
HELD_AT = 100
LONG = {
    "batch_size": 64,
    "epochs": 1000,
    "max_steps": STEPS,
    "hidden_units": [8],
    "embedding_dimension": 4,
    "checkpoint": {"every_seconds": 0.3, "keep": 2},
}
RARELY = {**LONG, "checkpoint": {"every_seconds": 1000}}
SYNCHRONOUS = {**LONG, "max_steps": FEW, "consistency": {"mode": "synchronous"}}


def last_step(processes, index=0, role="worker"):
    return processes.reports(role, index, "step")[-1]["step"]


def ended(processes, chief=("worker", 0), others=(("worker", 1),)):
    """Wait for all trainers; make sure that they have learnt, to the last step."""
    for trainer in (chief, *others):
        processes.wait(*trainer)
    steps = processes.training["max_steps"]
    (evaluation,) = processes.reports(*chief, "evaluation")
    assert steps <= evaluation["step"] <= steps + 1  # the other trainer may have been within its last step
    assert evaluation["auc"] > 0.8
    assert len(list(processes.checkpoint_dir.glob("*.index"))) <= 3


def test_two_and_two_train_to_the_end(job):
    processes = job(LONG, ps=2, worker=2)
    processes.start_all()
    ended(processes)
    steps = [report for i in range(2) for report in processes.reports("worker", i, "step")]
    assert sum(report["steps"] for report in steps) == max(report["step"] for report in steps)
    assert all(report["total_steps"] == STEPS for report in steps)
    assert all(0 <= report["input_wait_seconds"] <= report["interval_seconds"] for report in steps)
    assert all(report["input_cpu_seconds"] >= 0 for report in steps)
    assert sum(report["input_cpu_seconds"] for report in steps) > 0
    assert processes.kill("ps", 0, signal.SIGTERM) == -signal.SIGTERM


def test_killed_worker_rejoins_and_is_made_up_for(held):
    processes, release = held(LONG, STEPS, ps=2, worker=2)
    processes.start_all()
    processes.await_step(HELD_AT, index=1)
    processes.kill("worker", 1)
    seen = len(processes.reports("worker", 1, "step"))
    processes.start("worker", 1, attempt=2)
    processes.await_that(
        lambda: len(processes.reports("worker", 1, "step")) > seen, "steps of the second attempt"
    )
    release()
    ended(processes)
    assert processes.log("worker", 0).count("parameters start from") == 1


@pytest.mark.parametrize(("index", "is_noticed"), nights.but([(0, False), (1, True)], often=[(0, False)]))
def test_killed_parameter_server_is_set_back_to_the_last_checkpoint(held, index, is_noticed):
    processes, release = held(LONG, STEPS, ps=2, worker=2)
    processes.start_all()
    processes.await_checkpoint()
    processes.await_step(HELD_AT)
    processes.kill("ps", index)
    if is_noticed:
        for worker in (0, 1):
            processes.await_that(
                lambda worker=worker: "connecting anew" in processes.log("worker", worker),
                "the loss is noticed",
            )
    processes.start("ps", index, attempt=2)
    release()
    ended(processes)
    assert "parameters start from" in processes.log("worker", 0)
    assert "model.ckpt-" in processes.log("worker", 0)


@pytest.mark.nightly
def test_a_parameter_server_that_is_lost_while_the_chief_waits_for_a_trainer(held):
    processes, release = held(SYNCHRONOUS, FEW, ps=2, worker=2)
    processes.environment["NOTICE_SECONDS"] = "1"
    processes.start_all()
    processes.await_checkpoint()
    processes.await_step(HELD_AT)
    processes.kill("worker", 1)
    release()
    processes.await_that(
        lambda: "still waiting for gradients of other trainers" in processes.log("worker", 0),
        "a step of the chief that the other one lacks",
    )
    processes.kill("ps", 1)
    processes.start("ps", 1, attempt=2)
    processes.start("worker", 1, attempt=2)
    ended(processes)
    assert "model.ckpt-" in processes.log("worker", 0)


@pytest.mark.parametrize(
    "consistency",
    nights.but(
        [{"mode": "bounded-staleness", "staleness": 4}, {"mode": "synchronous"}],
        often=[{"mode": "synchronous"}],
    ),
    ids=lambda consistency: consistency["mode"],
)
def test_trainers_that_wait_for_each_other_outlive_the_loss_of_each_kind(held, consistency):
    processes, release = held({**SYNCHRONOUS, "consistency": consistency}, FEW, ps=2, worker=2)
    processes.start_all()
    processes.await_checkpoint()
    processes.await_step(HELD_AT)
    processes.kill("worker", 1)
    processes.start("worker", 1, attempt=2)
    processes.await_step(last_step(processes, index=1) + 2, index=1)
    processes.kill("ps", 1)
    processes.start("ps", 1, attempt=2)
    processes.await_that(lambda: "model.ckpt-" in processes.log("worker", 0), "restored parameters")
    reached = len(processes.reports("worker", 0, "step"))
    processes.await_that(lambda: len(processes.reports("worker", 0, "step")) > reached, "steps from there")
    processes.kill("worker", 0)
    processes.start("worker", 0, attempt=2)
    release()
    ended(processes)


@pytest.mark.parametrize("mode", nights.but(["asynchronous", "synchronous"], often=["asynchronous"]))
def test_a_parameter_server_that_stops_answering_is_waited_for_anew(held, mode):
    """It lives and listens; as it seems to a trainer whose call TensorFlow's runtime has lost."""
    processes, release = held({**SYNCHRONOUS, "consistency": {"mode": mode}}, FEW, ps=2, worker=2)
    processes.environment["FIRST_DEADLINE_SECONDS"] = "4"
    processes.start_all()
    processes.await_checkpoint()
    processes.await_step(HELD_AT)
    server = processes.running["ps", 1]
    server.send_signal(signal.SIGSTOP)
    processes.await_that(
        lambda: "has not answered for 4 s" in processes.log("worker", 0), "the end of a call"
    )
    server.send_signal(signal.SIGCONT)
    release()
    ended(processes)
    assert processes.log("worker", 0).count("parameters start from") == 1  # they were there all the time


@pytest.mark.nightly
def test_parameter_server_lost_before_the_first_checkpoint(held):
    processes, release = held(RARELY, STEPS, ps=2, worker=2)
    processes.start_all()
    processes.await_step(HELD_AT)
    processes.await_step(HELD_AT, index=1)
    processes.kill("ps", 1)
    processes.start("ps", 1, attempt=2)
    release()
    ended(processes)
    assert processes.log("worker", 0).count("their first values") == 2


@pytest.mark.nightly
def test_chief_that_is_restarted_goes_on_from_the_live_parameters(held):
    processes, release = held(RARELY, STEPS, ps=2, worker=2)
    processes.start_all()
    processes.await_step(HELD_AT)
    reached = last_step(processes)
    processes.kill("worker", 0)
    processes.start("worker", 0, attempt=2)
    processes.await_that(lambda: processes.log("worker", 0).count("is at step") == 2, "the second attempt")
    release()
    ended(processes)
    log = processes.log("worker", 0)
    assert log.count("first values") == 1
    resumed = int(log.rpartition("is at step ")[2].split()[0])
    assert resumed >= reached


def test_a_job_that_is_restarted_whole_resumes_from_its_checkpoint(held):
    processes, release = held(LONG, STEPS, ps=1, chief=1, worker=1)
    processes.start_all()
    processes.await_step(HELD_AT, role="chief")
    assert processes.kill("chief", 0, signal.SIGTERM) == 128 + signal.SIGTERM  # saves first
    reached = last_step(processes, role="chief")
    processes.kill("worker", 0)
    processes.kill("ps", 0)
    release()
    for role in ("ps", "chief", "worker"):
        processes.start(role, 0, attempt=2)
    ended(processes, ("chief", 0), [("worker", 0)])
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
