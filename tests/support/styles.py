"""Scripts of the styles that public scripts have, in ``scripts/foreign``, and what is to be seen of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "scripts" / "foreign"
#: TensorFlows that `tests/instrumentation/fetch-tensorflows` fetches, the oldest first.
VERSIONS = (
    "1.4.1", "1.8.0", "1.12.3", "1.15.5", "2.1.4", "2.4.4", "2.8.4", "2.11.1", "2.15.1", "2.21.0",
)  # fmt: skip
_FLAGS = (
    "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}", "--job_name={role}", "--task_index={index}",
)  # fmt: skip
_MANY = "--steps=1000000"


@dataclass(frozen=True)
class Style:
    """A style of script.

    Attributes:
        title: what it is, for people.
        script: its file.
        batch: how many examples a batch has.
        variables: those that are trained.
        since: the oldest TensorFlow that knows all that it uses.
        until: the newest.
        arguments: those with which a replica trains for a long time, its parameters being large.
        roles: how many replicas of each role such a job has.
        is_session: whether steps are runs of a session.
    """

    title: str
    script: str
    batch: int
    variables: frozenset[str]
    since: str
    arguments: tuple[str, ...]
    roles: Mapping[str, int]
    is_session: bool = True
    until: str = VERSIONS[-1]

    @property
    def path(self) -> str:
        """The script's path."""
        return str(SCRIPTS / self.script)

    @property
    def versions(self) -> tuple[str, ...]:
        """The TensorFlows that it is for."""
        return VERSIONS[VERSIONS.index(self.since) : VERSIONS.index(self.until) + 1]


_BETWEEN = {"ps": 2, "worker": 2}
_COORDINATED = {"chief": 1, "ps": 2, "worker": 2}
_ALONE = {"worker": 1}
_TABLES = frozenset({"table_0", "table_1", "table_2", "weights"})
_DENSE = frozenset({"table/embeddings", "dense/kernel", "dense/bias"})

STYLES = {
    "monitored": Style(
        "flags, MonitoredTrainingSession", "tf1_monitored.py", 64, _TABLES, "1.4.1",
        (*_FLAGS, _MANY, "--width=512"), _BETWEEN,
    ),
    "sync": Style(
        "SyncReplicasOptimizer", "tf1_sync.py", 32, frozenset({"hidden", "out"}), "1.4.1",
        (*_FLAGS, _MANY, "--width=4096"), _BETWEEN,
    ),
    "supervisor": Style(
        "Supervisor", "tf1_supervisor.py", 50, frozenset({"table", "weights"}), "1.4.1",
        (*_FLAGS, _MANY, "--width=1024"), _BETWEEN,
    ),
    "queues": Style(
        "Session, queue runners", "tf1_queues.py", 25, frozenset({"table"}), "1.4.1",
        (*_FLAGS, _MANY, "--width=2048"), _BETWEEN,
    ),
    "feed": Style(
        "Session, feed_dict", "tf1_feed.py", 40, frozenset({"Variable", "Variable_1"}), "1.4.1",
        (*_FLAGS, _MANY, "--width=10000"), _BETWEEN,
    ),
    "dataset": Style(
        "tf.data, TF_CONFIG with a master", "tf1_dataset.py", 30, frozenset({"table", "bias"}), "1.4.1",
        (_MANY, "--width=2048"), _BETWEEN,
    ),
    "model-fn": Style(
        "Estimator, TF_CONFIG with a chief", "tf1_model_fn.py", 48, frozenset({"table", "weights"}), "1.4.1",
        (_MANY, "--width=1024"), {"chief": 1, "ps": 2, "worker": 1}, until="2.15.1",
    ),
    "keras-graph": Style(
        "Keras in a graph, one process", "tf1_keras.py", 20,
        frozenset({"table/embeddings", "out/kernel", "out/bias"}), "1.15.5", (_MANY,), _ALONE,
    ),
    "fit": Style(
        "Model.fit, one process", "tf2_fit.py", 32, _DENSE, "2.1.4", ("--epochs=100000",), _ALONE,
        is_session=False,
    ),
    "fit-strategy": Style(
        "Model.fit, parameter server strategy", "tf2_fit.py", 32, _DENSE, "2.8.4",
        ("--epochs=100000", "--width=1024"), _COORDINATED, is_session=False,
    ),
    "loop": Style(
        "own loop, one process", "tf2_loop.py", 32, frozenset({"table", "weights"}), "2.1.4",
        ("--rounds=100000",), _ALONE, is_session=False,
    ),
    "loop-strategy": Style(
        "own loop, ClusterCoordinator", "tf2_loop.py", 32, frozenset({"table", "weights"}), "2.4.4",
        ("--rounds=100000", "--width=1024"), _COORDINATED, is_session=False,
    ),
}  # fmt: skip
