"""The graph of a replica: the model on this task, its variables on the parameter servers.

Every trainer builds the same graph except for its own device (between-graph replication), so the variables
have the same names and are shared. The evaluator builds the graph in its own process, without the update.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.model.variables import variable_plans
from paceline.model.variables.variables import Variable
from paceline.training import blocks, clusters, declarations, errors, features, parameters, places, settings
from paceline.training.checkpoints import checkpoints
from paceline.training.graph import clocks, exchanges, lookups, optimizers, plans, rounds, steps, updates
from paceline.training.input import shards, shared_queues
from paceline.training.lazy_tensorflow import tf, tf1


@dataclass(frozen=True)
class Graph:
    """Tensors and operations by purpose.

    Attributes:
        graph: the TensorFlow graph that holds them.
        inputs: placeholders: `numeric` (examples, numbers), `ids` (examples, places), `labels` (examples,).
        probabilities: (examples,).
        loss: the mean log loss ().
        step: the global step ().
        counted: the global step () after the updates; None for an evaluator and in a synchronous job.
        updates: operations that train on the inputs, which are split into `steps_per_exchange` batches. In a
            synchronous job they stage gradients instead of applying them.
        clocks: the clocks of bounded staleness; None in the other modes.
        rounds: the operations of synchronous steps; None in the other modes.
        ready: whether every variable is initialised ().
        initialise: gives all variables their initial values.
        contents: what a checkpoint holds.
        tables: the tables that ids are looked up in.
        queue: where a trainer takes its shards from; None without a queue.
    """

    graph: Any
    inputs: features.Examples
    probabilities: Any
    loss: Any
    step: Any
    counted: Any
    updates: tuple[Any, ...]
    clocks: clocks.Clocks | None
    rounds: rounds.SynchronousRounds | None
    ready: Any
    initialise: Any
    contents: checkpoints.Contents
    tables: tuple[declarations.Table, ...]
    queue: shared_queues.Variables | None

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, not split into shards, in the order of their creation."""
        found = {each.shard.variable.name: each.shard.variable for each in self.contents.parameters}
        return tuple(found.values())


@dataclass(frozen=True)
class _Layout:
    """The planned parameters of a model."""

    tables: tuple[declarations.Table, ...]
    plan: variable_plans.Plan
    initializers: Mapping[str, Any]
    parts: Mapping[str, declarations.Part]


def build(
    model: blocks.TrainableModel,
    cluster: clusters.ClusterTask,
    chosen: settings.Settings,
    work: shards.Work | None = None,
) -> Graph:
    """Build the graph of this replica.

    With `work`, the graph holds the queue that a trainer takes its shards from.
    """
    layout = _layout(model, cluster, chosen)
    learns = cluster.role != "evaluator"
    rules = {part: _rule(chosen.optimizer_of(part), learns=learns) for part in declarations.PARTS}
    exchange = exchanges.Exchange(
        cluster.server_device,
        cluster.task_device,
        exchanges.LOCAL if cluster.is_local else chosen.transfers,
    )
    graph = tf1.Graph()
    with graph.as_default(), tf1.device(cluster.task_device):
        tf1.set_random_seed(chosen.seed)
        with tf1.device(cluster.server_device(0)):
            step = tf1.train.create_global_step()
        created = parameters.create(
            layout.plan, layout.initializers, layout.parts, rules, cluster.server_device
        )
        inputs = _placeholders(model.features)

        def forward(batches: Sequence[features.Examples]) -> list[_Forward]:
            return _forward(model, exchange, chosen, layout.tables, created, batches)

        (scored,) = forward([inputs])
        trained, model_update = [scored], updates.NONE
        if learns:
            if chosen.steps_per_exchange > 1:
                trained = forward(_split(inputs, chosen.steps_per_exchange))
            # In a single process nothing else keeps an update from running before a pull of its exchange.
            pulled = (
                [pull.value for computed in trained for pull in computed.pulled.values()]
                if cluster.is_local
                else []
            )
            with tf1.control_dependencies(pulled):
                pushed = _pushed(trained, exchange, chosen)
            model_update = updates.create(pushed, step, layout.parts, cluster, chosen)
        operations, queue = list(model_update.operations), None
        if work is not None:
            queue = shared_queues.create(
                work,
                cluster.trainer_index,
                cluster.most_trainers,
                chosen.batch_size * chosen.steps_per_exchange,
                chosen.steps_in_flight,
                cluster.server_device(0),
            )
            operations.append(queue.counted)
        variables = tf1.global_variables()
        return Graph(
            graph=graph,
            inputs=inputs,
            probabilities=tf.sigmoid(scored.logits),
            loss=tf.add_n([computed.loss for computed in trained]) / len(trained),
            step=step.read_value(),
            counted=model_update.counted,
            updates=tuple(operations),
            clocks=model_update.clocks,
            rounds=model_update.rounds,
            ready=tf.reduce_all(tf.stack([variable.is_initialized() for variable in variables])),
            initialise=tf1.global_variables_initializer(),
            contents=checkpoints.contents(created, step, chosen.checkpoint.keep, model_update.renewed, queue),
            tables=layout.tables,
            queue=queue,
        )


@dataclass(frozen=True)
class _Forward:
    """The model computed on a batch: logits (examples,), their mean log loss (), and the pulled values.

    `objective` () is what a step minimises: the mean loss times the batch's share of a full batch.
    """

    pulled: Mapping[str, steps.Pulled]
    logits: Any
    loss: Any
    objective: Any


def _forward(
    model: blocks.TrainableModel,
    exchange: exchanges.Exchange,
    chosen: settings.Settings,
    tables: Sequence[declarations.Table],
    created: Sequence[parameters.Parameter],
    batches: Sequence[features.Examples],
) -> list[_Forward]:
    """Compute the model on batches whose parameters are pulled together."""
    found = [[_ids(table, batch, model.features, chosen) for table in tables] for batch in batches]
    computed = []
    pulled = steps.pull(exchange, _by_variable(created), found)
    for batch, ids, values in zip(batches, found, pulled, strict=True):
        logits = model.logits(_blocks(batch, chosen, tables, ids, values))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=batch.labels, logits=logits)
        loss = tf.reduce_mean(losses)
        # The rest before a pause or the end makes a smaller batch, perhaps of a single example. With full
        # weight that example would move the parameters as far as a full batch does, in its own direction.
        share = tf.cast(tf.size(batch.labels), tf.float32) / chosen.batch_size
        computed.append(_Forward(values, logits, loss, loss * share))
    return computed


def _split(inputs: features.Examples, parts: int) -> list[features.Examples]:
    """Split examples into batches of the same size, each tensor into (examples / parts, ...)."""
    return [
        features.Examples(*each) for each in zip(*(tf.split(rows, parts) for rows in inputs), strict=True)
    ]


def _pushed(
    trained: Sequence[_Forward], exchange: exchanges.Exchange, chosen: settings.Settings
) -> tuple[steps.Pushed, ...]:
    gradients = [_gradients(each.objective, each.pulled, chosen.clip_norm) for each in trained]
    return steps.push(
        exchange,
        [pulled for each in trained for pulled in each.pulled.values()],
        [gradient for own in gradients for gradient in own],
    )


def _rule(optimizer: settings.Optimizer, *, learns: bool) -> optimizers.OptimizerRule:
    """Return an optimizer's rule; a replica that only evaluates needs no memory for its slots."""
    rule = optimizers.rule(optimizer)
    return rule if learns else dataclasses.replace(rule, slots={})


def _gradients(objective: Any, pulled: Mapping[str, steps.Pulled], clip_norm: float | None) -> list[Any]:
    """Return the gradients of all pulled values, scaled down together if their norm is above `clip_norm`.

    Each gradient has the shape of its value. The norm is that of one trainer's step over all parameters
    (Pascanu et al. 2013). For separate tables it counts every occurrence of an id by itself, as TensorFlow
    does; for fused tables it takes the sum over an id's occurrences.

    Raises:
        SettingsError: the loss does not depend on a parameter.
    """
    gradients: list[Any] = tf1.gradients(objective, [each.value for each in pulled.values()])
    unused = [name for name, gradient in zip(pulled, gradients, strict=True) if gradient is None]
    if unused:
        raise errors.SettingsError(f"the model asks for the parameter {unused[0]!r} and does not use it")
    if clip_norm is None:
        return gradients
    clipped: list[Any] = tf.clip_by_global_norm(
        [tf.convert_to_tensor(each) for each in gradients], clip_norm
    )[0]
    return clipped


def _layout(
    model: blocks.TrainableModel, cluster: clusters.ClusterTask, chosen: settings.Settings
) -> _Layout:
    declared = blocks.declare(model, chosen)
    tables = declarations.tables(declared.embeddings, fused=chosen.fused_tables)
    slots = {part: len(optimizers.rule(chosen.optimizer_of(part)).slots) for part in declarations.PARTS}
    declared_by_name: dict[str, declarations.Weight | declarations.Embedding] = {
        **{name: embedding for table in tables for name, embedding in table.embeddings.items()},
        **{weight.name: weight for weight in declared.weights},
    }
    variables = declarations.variables(declared, tables, slots)
    plan = plans.plan(variables, cluster.parameter_servers, chosen)
    return _Layout(
        tables,
        plan,
        {name: parameter.initializer for name, parameter in declared_by_name.items()},
        {name: parameter.part for name, parameter in declared_by_name.items()},
    )


def _by_variable(created: Sequence[parameters.Parameter]) -> dict[str, list[parameters.Parameter]]:
    found: dict[str, list[parameters.Parameter]] = {}
    for parameter in created:
        found.setdefault(parameter.shard.variable.name, []).append(parameter)
    return found


def _ids(
    table: declarations.Table,
    inputs: features.Examples,
    known: features.FeatureSet,
    chosen: settings.Settings,
) -> lookups.Ids:
    wanted = places.find(table.columns, known.categorical, places.ids)
    columns = inputs.ids
    if wanted != list(range(places.width(known.categorical, places.ids))):
        columns = tf.gather(columns, wanted, axis=1)
    return lookups.ids(table, columns, distinct=chosen.fused_tables)


def _blocks(
    inputs: features.Examples,
    chosen: settings.Settings,
    tables: Sequence[declarations.Table],
    found: Sequence[lookups.Ids],
    pulled: Mapping[str, steps.Pulled],
) -> blocks.Blocks:
    def embed(asked: declarations.Embedding) -> Any:
        parts: list[Any] = []
        columns: list[features.Categorical] = []
        for table, ids in zip(tables, found, strict=True):
            for name, embedding in table.embeddings.items():
                if embedding.name == asked.name:
                    parts.append(ids.vectors(pulled[name].value))
                    columns += table.columns
        vectors = parts[0] if len(parts) == 1 else tf.concat(parts, axis=1)
        if columns != list(asked.columns):
            vectors = tf.gather(vectors, places.find(asked.columns, columns, places.vectors), axis=1)
        return vectors

    return blocks.Blocks(inputs.numeric, chosen, lambda asked: pulled[asked.name].value, embed)


def _placeholders(known: features.FeatureSet) -> features.Examples:
    return features.Examples(
        numeric=tf1.placeholder(tf.float32, [None, len(known.numeric)], "numeric"),
        ids=tf1.placeholder(tf.int32, [None, places.width(known.categorical, places.ids)], "ids"),
        labels=tf1.placeholder(tf.float32, [None], "labels"),
    )
