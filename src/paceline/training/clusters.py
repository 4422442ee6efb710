"""Which replica of which cluster this process is, read once from the environment.

`TF_CONFIG` names the addresses and the task, as for every TensorFlow cluster; the agent adds `PACELINE_*`.
The trainers are the replicas that compute gradients: the chief, if the job has that role, and then the
workers. Trainer 0 acts as the chief in either case: it initialises, restores, saves and evaluates.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.training import errors

ROLES = ("chief", "evaluator", "ps", "worker")

_HOW_TO_RUN = """TF_CONFIG is not set, so this process cannot tell which replica it is.
Start the script through a job file, whose command is what each replica runs, or try it alone:
  export TF_CONFIG='{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}'"""


@dataclass(frozen=True)
class ClusterTask:
    """A replica's place in its cluster.

    Attributes:
        addresses: the `host:port` of each role's replicas, in index order.
        role: the role of this replica.
        index: its index among the replicas of its role.
        attempt: the number of this launch of the replica, from 1.
        threads: the number of threads that the agent derived from the CPU limit, None if it gave none.
        spare_workers: the addresses of workers that the job does not have now, but may get while it runs.
    """

    addresses: Mapping[str, tuple[str, ...]]
    role: str
    index: int
    attempt: int = 1
    threads: int | None = None
    spare_workers: tuple[str, ...] = ()

    @property
    def parameter_servers(self) -> int:
        """The number of parameter servers; 0 when a single process trains by itself."""
        return len(self.addresses.get("ps", ()))

    @property
    def trainers(self) -> tuple[tuple[str, int], ...]:
        """Role and index of every replica that computes gradients, the chief first."""
        return tuple(
            (role, i) for role in ("chief", "worker") for i in range(len(self.addresses.get(role, ())))
        )

    @property
    def most_trainers(self) -> int:
        """The most trainers that the job may get: the same for all replicas, whenever they begin."""
        return len(self.trainers) + len(self.spare_workers)

    @property
    def trainer_index(self) -> int:
        """Position of this replica among the trainers.

        Raises:
            ClusterTaskError: this replica is not a trainer.
        """
        if (self.role, self.index) not in self.trainers:
            raise errors.ClusterTaskError(f"{self.role} {self.index} is not a trainer")
        return self.trainers.index((self.role, self.index))

    @property
    def is_chief(self) -> bool:
        """Whether this is the trainer that initialises, restores, saves and evaluates."""
        return self.trainers[:1] == ((self.role, self.index),)

    @property
    def is_local(self) -> bool:
        """Whether the variables are in this process: without parameter servers, or in an evaluator."""
        return self.parameter_servers == 0 or self.role == "evaluator"

    @property
    def task_device(self) -> str:
        """TensorFlow's name of this replica, such as `/job:worker/task:1`; empty if `is_local`."""
        return "" if self.is_local else f"/job:{self.role}/task:{self.index}"

    def server_device(self, server: int) -> str:
        """Return TensorFlow's name of a parameter server, such as `/job:ps/task:1`; empty if `is_local`."""
        return "" if self.is_local else f"/job:ps/task:{server}"


def read(environment: Mapping[str, str] | None = None) -> ClusterTask:
    """Read the cluster from `TF_CONFIG` and `PACELINE_*`, of the process if no environment is given.

    Raises:
        ClusterTaskError: there is no TF_CONFIG, or it does not describe a cluster that can train.
    """
    environment = os.environ if environment is None else environment
    text = environment.get("TF_CONFIG", "")
    if not text.strip():
        raise errors.ClusterTaskError(_HOW_TO_RUN)
    try:
        config = json.loads(text)
        task = config["task"]
        addresses = {role: tuple(hosts) for role, hosts in config["cluster"].items() if hosts}
        role, index = str(task["type"]), int(task["index"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise errors.ClusterTaskError(
            'TF_CONFIG must look like {"cluster": {"ps": ["host:port"], "worker": [...]}, "task": {"type": '
            f'"worker", "index": 0}}}}, but it is {text!r} ({type(error).__name__}: {error})'
        ) from error
    cluster = ClusterTask(
        addresses=addresses,
        role=role,
        index=index,
        attempt=_integer(environment, "PACELINE_ATTEMPT") or 1,
        threads=_integer(environment, "PACELINE_THREADS"),
        spare_workers=tuple(filter(None, environment.get("PACELINE_SPARE_WORKERS", "").split(","))),
    )
    _check(cluster)
    return cluster


def _integer(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise errors.ClusterTaskError(f"{name} must be a whole number, but it is {text!r}")
    return int(text)


def _check(cluster: ClusterTask) -> None:
    for role in (*cluster.addresses, cluster.role):
        if role not in ROLES:
            raise errors.ClusterTaskError(
                f"TF_CONFIG names an unknown role {role!r}{errors.did_you_mean(role, ROLES)}"
            )
    count = len(cluster.addresses.get(cluster.role, ()))
    if cluster.role != "evaluator" and not 0 <= cluster.index < count:
        raise errors.ClusterTaskError(
            f"TF_CONFIG says that this is {cluster.role} {cluster.index}, but the cluster has {count} of them"
        )
    if len(cluster.addresses.get("chief", ())) > 1:
        raise errors.ClusterTaskError("TF_CONFIG has more than one chief; give the others the role worker")
    if not cluster.trainers and cluster.role != "evaluator":
        raise errors.ClusterTaskError("TF_CONFIG has neither a chief nor a worker, so no replica would train")
    if len(cluster.trainers) > 1 and cluster.parameter_servers == 0:
        raise errors.ClusterTaskError(
            f"{len(cluster.trainers)} trainers need at least one ps to share their parameters"
        )
