"""An example's model in TF1 style as TensorFlow's documentation has it; of Paceline only the reading of
examples.

``python -m benchmarks.as_documented FOLDER EXAMPLE --data DATA``: `replica_device_setter` (round-robin), a
table and a lookup for each feature, `AdamOptimizer` for everything, `MonitoredTrainingSession`, no setting of
threads. Variables are resource variables, as TensorFlow 2 makes them; ``--reference-variables`` takes those
of TensorFlow 1. Each worker counts as `benchmarks.stepped` does.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf

from benchmarks import stepped
from examples.census import data as census_data
from examples.census import train as census
from paceline import training
from paceline.examples.clicks import generate, train
from paceline.training import features
from paceline.training.input import inputs

DIMENSION, UNITS = 16, (256, 128, 64)


def example(name: str, folder: Path) -> tuple[training.WideAndDeep, training.Source]:
    """An example's model and its examples."""
    if name == "census":
        return census.MODEL, census_data.sources(folder)[0]
    data = generate.load(folder)
    return train.model(data.parameters.tables), training.Source((data.train_pattern,))


def logits(known: features.FeatureSet, deep: int, numeric: Any, ids: Any) -> Any:
    """Wide & Deep with a table for each feature and part; the first features are deep."""
    wide, vectors = [], []
    for i, feature in enumerate(known.categorical):
        weights = tf.get_variable(
            f"wide_{feature.name}", [feature.rows, 1], initializer=tf.zeros_initializer()
        )
        wide.append(tf.nn.embedding_lookup(weights, ids[:, i]))
        if i < deep:
            initializer = tf.truncated_normal_initializer(stddev=0.05)
            table = tf.get_variable(
                f"deep_{feature.name}", [feature.rows, DIMENSION], initializer=initializer
            )
            vectors.append(tf.nn.embedding_lookup(table, ids[:, i]))
    hidden = tf.concat([numeric, *vectors], axis=1)
    width = len(known.numeric) + deep * DIMENSION
    for i, units in enumerate((*UNITS, 1)):
        kernel, bias = tf.get_variable(f"kernel_{i}", [width, units]), tf.get_variable(f"bias_{i}", [units])
        hidden, width = tf.matmul(hidden, kernel) + bias, units
        if i < len(UNITS):
            hidden = tf.nn.relu(hidden)
    return tf.squeeze(hidden + tf.add_n(wide), axis=1)


def work(
    server: Any,
    cluster: Any,
    index: int,
    counts: Path,
    wide_and_deep: training.WideAndDeep,
    source: training.Source,
    batch_size: int,
    steps: int,
) -> None:
    """Trains as one worker."""
    known = wide_and_deep.features
    worker = f"/job:worker/task:{index}"
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        numeric = tf.placeholder(tf.float32, [None, len(known.numeric)])
        ids = tf.placeholder(tf.int32, [None, len(known.categorical)])
        labels = tf.placeholder(tf.float32, [None])
        deep = known.categorical if wide_and_deep.deep is None else wide_and_deep.deep
        found = logits(known, len(deep), numeric, ids)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=found))
        step = tf.train.get_or_create_global_step()
        update = tf.train.AdamOptimizer(0.001).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=steps)]
    examples = inputs.shuffled(source, known, index, cluster.num_tasks("worker"), batch_size, 0)
    counter = stepped.Counter(counts / str(index))
    with (
        inputs.Prefetched(examples) as batches,
        tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks) as session,
    ):
        while not session.should_stop():
            batch = batches.next()
            session.run(update, dict(zip((numeric, ids, labels), batch, strict=True)))
            counter.add(batch_size)


def main() -> None:
    """Be whichever replica this process is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("counts", type=Path)
    parser.add_argument("example", choices=("clicks", "census"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--reference-variables", action="store_true")
    options = parser.parse_args()
    options.counts.mkdir(exist_ok=True)
    tf.disable_v2_behavior()
    if not options.reference_variables:
        tf.enable_resource_variables()
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, role, index = (
        tf.train.ClusterSpec(config["cluster"]),
        config["task"]["type"],
        config["task"]["index"],
    )
    server = tf.train.Server(cluster, job_name=role, task_index=index)
    if role == "ps":
        server.join()
    chosen = json.loads(os.environ["PACELINE_TRAINING"])
    steps = chosen.get("max_steps") or 10**9
    known, source = example(options.example, options.data)
    work(server, cluster, index, options.counts, known, source, chosen["batch_size"], steps)


if __name__ == "__main__":
    main()
