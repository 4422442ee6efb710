"""What happens to the gradients that a trainer pushed, by the consistency of its job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.training import clusters, declarations, settings
from paceline.training.graph import clocks, learning_rates, rounds, steps
from paceline.training.lazy_tensorflow import tf1


@dataclass(frozen=True)
class Updates:
    """The operations of an exchange with the parameter servers, and what counts its steps.

    `counted` is the global step () after the exchange. `renewed` are the operations that, after a restore,
    set what a checkpoint does not hold. With bounded staleness there are `clocks`. In a synchronous job there
    are `rounds`: there the operations only stage gradients and count no step.
    """

    operations: tuple[Any, ...] = ()
    counted: Any = None
    clocks: clocks.Clocks | None = None
    rounds: rounds.SynchronousRounds | None = None
    renewed: tuple[Any, ...] = ()


NONE = Updates()


def create(
    pushed: Sequence[steps.Pushed],
    step: Any,
    parts: Mapping[str, declarations.Part],
    cluster: clusters.ClusterTask,
    chosen: settings.Settings,
) -> Updates:
    """Add to a trainer's graph the operations that use the gradients it pushed."""
    consistency, trainers, count = chosen.consistency, len(cluster.trainers), chosen.steps_per_exchange
    groups = steps.by_server(pushed)
    optimizer = {part: chosen.optimizer_of(part) for part in declarations.PARTS}
    rate = learning_rates.create(optimizer, groups, cluster.server_device)
    renewed = rate.renewed(step)
    if consistency.mode == "synchronous":
        synchronous_rounds = rounds.create(
            pushed,
            step,
            rate,
            parts,
            gradients=consistency.gradients(trainers),
            trainers=trainers,
            trainer=cluster.trainer_index,
            device=cluster.server_device,
        )
        return Updates(
            synchronous_rounds.staged,
            rounds=synchronous_rounds,
            renewed=(*renewed, synchronous_rounds.renewed),
        )
    applied = {
        server: steps.apply(group, rate.next(server, group[0].gradient, count), parts)
        for server, group in groups.items()
    }
    every = tuple(update for group in applied.values() for update in group)
    with tf1.device(cluster.server_device(0)):
        counted = step.assign_add(count, read_value=True)
    if consistency.mode == "asynchronous":
        return Updates(every, counted, renewed=tuple(renewed))
    trainer_clocks = clocks.create(
        trainers, cluster.trainer_index, cluster.server_device(0), applied.get(0, every), count
    )
    return Updates(every, counted, clocks=trainer_clocks, renewed=(*renewed, trainer_clocks.renewed))
