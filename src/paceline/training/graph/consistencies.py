"""The step policy of a trainer, by the consistency of its job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from paceline.training import clusters, settings
from paceline.training.graph import clocks, graphs, step_policies, synchronisations


@contextmanager
def pace(
    session: Any,
    graph: graphs.Graph,
    cluster: clusters.ClusterTask,
    chosen: settings.Settings,
    make_step: step_policies.MakeStep,
    stopping: Callable[[], bool],
) -> Iterator[step_policies.StepPolicy]:
    """Yield the step policy of a trainer.

    With bounded staleness, no other trainer waits for it after an end without error. `stopping` says that the
    trainer has to stop and must wait for no other.
    """
    if graph.rounds is not None:
        with synchronisations.Synchronous(
            session, graph, graph.rounds, cluster, make_step, stopping
        ) as synchronous:
            yield synchronous
        return
    fetched = [graph.counted, graph.loss, *graph.updates]
    if graph.clocks is None:
        step = make_step(fetched, graph.inputs)
        yield step_policies.Asynchronous(lambda batch: step(*batch))
        return
    fetched.insert(2, graph.clocks.ticked)
    step = make_step(fetched, graph.inputs)
    bounded = clocks.Bounded(
        session,
        graph.clocks,
        cluster.trainer_index,
        chosen.consistency.staleness or 0,
        chosen.steps_per_exchange,
        lambda batch: step(*batch),
        stopping,
    )
    yield bounded
    bounded.rest()
