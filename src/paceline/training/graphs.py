"""The graph of a replica: the model on this task, its variables on the parameter servers.

Every trainer builds the same graph but for its own device (between-graph replication), so the variables have
the same names and are shared. The evaluator builds it without the update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow.compat.v1 as tf1

from paceline.training import clusters, features, optimizers, partitionings, placements, settings
from paceline.training.models import wide_and_deep


@dataclass(frozen=True)
class Graph:
    """Tensors and operations by purpose.

    `inputs` are placeholders; `probabilities` (examples,), `loss` the mean log loss of a batch, `step` the
    global step, `update` trains on a batch and gives the step after it (None for an evaluator), `ready` is
    true when every variable is initialised, `initialise` gives all their first values, `saver` reads and
    writes them.
    """

    graph: Any
    inputs: features.Examples
    probabilities: Any
    loss: Any
    step: Any
    update: Any
    ready: Any
    initialise: Any
    saver: Any


def build(model: wide_and_deep.WideAndDeep, cluster: clusters.Cluster, chosen: settings.Settings) -> Graph:
    """Builds the graph of this replica."""
    graph = tf1.Graph()
    with graph.as_default(), tf1.device(placements.device_function(cluster, chosen)):
        tf1.set_random_seed(chosen.seed)
        step = tf1.train.create_global_step()
        inputs = _placeholders(model.encoder)
        cut = partitionings.partitioner(chosen.partitioning, cluster.parameter_servers)
        outputs = model.build(inputs, chosen, cut)
        losses = tf1.nn.sigmoid_cross_entropy_with_logits(labels=inputs.labels, logits=outputs.logits)
        loss = tf1.reduce_mean(losses)
        probabilities = tf1.sigmoid(outputs.logits)
        with (
            tf1.device(None),
            tf1.device(cluster.task_device),
        ):  # slots follow their variable: not placed anew
            update = None
            if cluster.role != "evaluator":
                parts = (
                    (chosen.wide_optimizer, outputs.wide_variables),
                    (chosen.optimizer, outputs.deep_variables),
                )
                update = optimizers.minimize(loss, parts, step)
            variables = tf1.global_variables()
            return Graph(
                graph=graph,
                inputs=inputs,
                probabilities=probabilities,
                loss=loss,
                step=step.read_value(),
                update=update,
                ready=tf1.reduce_all(tf1.stack([each.is_initialized() for each in variables])),
                initialise=tf1.global_variables_initializer(),
                saver=tf1.train.Saver(max_to_keep=chosen.checkpoint.keep, save_relative_paths=True),
            )


def _placeholders(encoder: features.FeatureSet) -> features.Examples:
    return features.Examples(
        numeric=tf1.placeholder(tf1.float32, [None, len(encoder.numeric)], "numeric"),
        deep_ids=tf1.placeholder(tf1.int32, [None, len(encoder.deep)], "deep_ids"),
        wide_ids=tf1.placeholder(tf1.int32, [None, len(encoder.wide)], "wide_ids"),
        labels=tf1.placeholder(tf1.float32, [None], "labels"),
    )
