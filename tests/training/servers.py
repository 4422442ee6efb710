"""Real servers in this process; each trainer of a job is a session of its own."""

import contextlib
import threading
from dataclasses import dataclass
from typing import Any

from support import ports, server_sessions

from paceline.training import clusters, settings
from paceline.training.checkpoints import checkpoints
from paceline.training.graph import consistencies, graphs


class Servers:
    """TensorFlow's servers of some replicas of each role."""

    def __init__(self, **roles):
        import tensorflow as tf

        names = [(role, index) for role, count in roles.items() for index in range(count)]
        hosts = ports.addresses(len(names))
        self.addresses = {
            role: tuple(host for host, name in zip(hosts, names, strict=True) if name[0] == role)
            for role in roles
        }
        spec = tf.train.ClusterSpec({role: list(every) for role, every in self.addresses.items()})
        self.started = {name: tf.distribute.Server(spec, *name) for name in names}

    def cluster(self):
        """What the first worker knows of them, and where to connect to it."""
        return clusters.ClusterTask(self.addresses, "worker", 0), self.started["worker", 0].target

    def trainers(self, model, chosen, folder, count):
        """The trainers of a job; its parameters come from a folder, or are left there."""
        addresses = {**self.addresses, "worker": self.addresses["worker"][:count]}
        stopping = threading.Event()
        made = [
            _trainer(
                model,
                clusters.ClusterTask(addresses, "worker", index),
                chosen,
                self.started["worker", index],
                stopping,
            )
            for index in range(count)
        ]
        chief = made[0]
        saved = checkpoints.Checkpoints(str(folder), chief.graph.contents, 60)
        if saved.restore(chief.session) is None:
            chief.session.run(chief.graph.initialise)
            saved.save(chief.session, 0)
        return made


@dataclass(frozen=True)
class Trainer:
    """One trainer of a job in this process.

    Attributes:
        stopping: set when a step of any trainer of the job has failed: the others would wait for it for ever.
    """

    cluster: clusters.ClusterTask
    chosen: settings.Settings
    graph: graphs.Graph
    session: Any
    stopping: threading.Event

    @contextlib.contextmanager
    def pace(self):
        def make_step(fetches, feeds):
            return self.session.make_callable(list(fetches), feed_list=list(feeds))

        with consistencies.pace(
            self.session, self.graph, self.cluster, self.chosen, make_step, self.stopping.is_set
        ) as pace:
            made = pace.step

            def step(batch):
                try:
                    return made(batch)
                except BaseException:
                    self.stopping.set()
                    raise

            pace.step = step
            yield pace


def _trainer(model, cluster, chosen, server, stopping):
    graph = graphs.build(model, cluster, chosen)
    session = server_sessions.session(cluster, server.target, graph.graph)
    return Trainer(cluster, chosen, graph, session, stopping)
