"""Bare TensorFlow servers and a trainer that visits them, for the benchmark `visits`: no code of Paceline.

``python -m benchmarks.visited ps CLUSTER INDEX`` serves until it is killed. ``python -m benchmarks.visited
trainer CLUSTER VARIABLES PACE_SECONDS SECONDS`` trains so many variables of a few numbers on each server,
each with Adagrad, and rests so long after each step. When it begins and when it ends it prints the steps so
far and its CPU time, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import tensorflow as tf

_WARM_STEPS = 50
_v1 = tf.compat.v1


def _server(cluster: str, job: str, index: int) -> Any:
    config = _v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    return _v1.train.Server(_v1.train.ClusterSpec(json.loads(cluster)), job, index, config=config)


def _train(cluster: str, variables: int, pace_seconds: float, seconds: float) -> None:
    _v1.disable_eager_execution()
    target = _server(cluster, "worker", 0).target
    trained = []
    for server in range(len(json.loads(cluster)["ps"])):
        for number in range(variables):
            with _v1.device(f"/job:ps/task:{server}"):
                variable = _v1.get_variable(f"v{server}_{number}", initializer=tf.zeros([4]))
            with _v1.device("/job:worker/task:0"):
                gradient = tf.sin(variable)
            with _v1.device(f"/job:ps/task:{server}"):
                trained.append(_v1.train.AdagradOptimizer(0.1).apply_gradients([(gradient, variable)]))
    step = tf.group(*trained)
    with _v1.Session(target) as session:
        session.run(_v1.global_variables_initializer())
        for _ in range(_WARM_STEPS):
            session.run(step)
        _say(steps=0, cpu_seconds=time.process_time())
        steps, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            session.run(step)
            steps += 1
            time.sleep(pace_seconds)
        _say(steps=steps, cpu_seconds=time.process_time())
        # Until it is told that everybody has been looked at.
        sys.stdin.read()


def _say(*, steps: int, cpu_seconds: float) -> None:
    print(json.dumps({"steps": steps, "cpu_seconds": cpu_seconds}), flush=True)


if __name__ == "__main__":
    _, role, given, *rest = sys.argv
    if role == "ps":
        _server(given, "ps", int(rest[0])).join()
    else:
        _train(given, int(rest[0]), float(rest[1]), float(rest[2]))
