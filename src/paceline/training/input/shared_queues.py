"""The queue of shards as variables on PS 0, which all trainers share through TensorFlow's own runtime.

A trainer reads the state, computes the next state (`shard_queues`) and swaps it in unless another trainer was
quicker: one exchange of a few kilobytes for each shard. Beside the state is each trainer's position, which
its steps advance on the PS without a message of their own. A checkpoint holds the state from just before it:
the parameters contain every example that this state counts as trained, and the few examples that were under
way are trained again.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from paceline.training import errors
from paceline.training.input import input_costs, shard_queues, shards
from paceline.training.input.shard_queues import ShardPosition, State
from paceline.training.lazy_tensorflow import tf, tf1

_log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5
_RETRY_SECONDS = 0.05
_PATIENCE_SECONDS = 60.0

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Variables:
    """Variables and operations of the queue in a trainer's graph.

    Attributes:
        work: the examples to train on.
        state: (5, shards), as `shard_queues.State.array` makes it.
        version: the version () of the state.
        identity: the identity () of the work.
        positions: (trainers that the job may get,): the number of examples that each of them has begun.
        kept: (5, shards): the state that a checkpoint holds.
        read: returns state, version and positions of one moment.
        expected: placeholder () of the version that a swap expects.
        new: placeholder (5, shards) of a new state.
        swap: puts `new` in place of the state if its version is `expected`; returns whether it did ().
        keeping: sets `kept` to `new`.
        renewed: gives the state a new version.
        counted: adds a batch to this trainer's position when a step begins.
        batch_size: how many examples `counted` adds.
        uncertain: how many examples of a position may not be trained yet.
    """

    work: shards.Work
    state: Any
    version: Any
    identity: Any
    positions: Any
    kept: Any
    read: tuple[Any, ...]
    expected: Any
    new: Any
    swap: Any
    keeping: Any
    renewed: Any
    counted: Any
    batch_size: int
    uncertain: int

    @property
    def saved(self) -> tuple[Any, ...]:
        """The variables that belong in a checkpoint."""
        return self.kept, self.identity

    def look(self, session: Any) -> tuple[State, int, dict[int, ShardPosition]]:
        """Return the state, its version, and the positions of all trainers."""
        array, version, begun = session.run(self.read)
        positions = {
            trainer: ShardPosition(int(count) - self.uncertain, int(count))
            for trainer, count in enumerate(begun)
        }
        return shard_queues.of(array), int(version), positions

    def keep(self, session: Any) -> None:
        """Set what the next checkpoint holds to the examples that are certainly trained.

        To be called before the checkpoint reads the parameters.
        """
        state, _, positions = self.look(session)
        kept = shard_queues.released(self.work, state, positions)
        session.run(self.keeping, {self.new: kept.array()})

    def restore(self, session: Any, reader: Any) -> None:
        """Give the queue the state in a checkpoint, before the parameters get their values.

        Until they have values no other trainer goes on. If the checkpoint holds no state, epoch 1 starts
        again; if it holds the state of other files, the first unfinished epoch does.
        """
        state = shard_queues.initial(self.work)
        if not reader.has_tensor(self.kept.op.name):
            _log.warning("the checkpoint does not say which examples are trained: epoch 1 starts anew")
        elif int(reader.get_tensor(self.identity.op.name)) == self.work.identity:
            state = shard_queues.of(reader.get_tensor(self.kept.op.name))
        else:
            epoch = int(shard_queues.of(reader.get_tensor(self.kept.op.name)).epoch.min())
            state = shard_queues.of(state.array() + np.array([[epoch], [0], [0], [0], [0]]))
            _log.warning(
                "the training files are not those of the checkpoint: epoch %d starts anew on them", epoch + 1
            )
        values = (
            (self.state, state.array()),
            (self.kept, state.array()),
            (self.positions, np.zeros(self.positions.shape, dtype=np.int64)),
            (self.identity, self.work.identity),
        )
        with session.graph.as_default():
            for variable, value in values:
                variable.load(value, session)
        session.run(self.renewed)


def create(
    work: shards.Work, trainer: int, trainers: int, batch_size: int, in_flight: int, device: str
) -> Variables:
    """Add the queue to the graph of a trainer, on the device of PS 0."""
    first = shard_queues.initial(work).array()

    def variable(name: str, value: Any) -> Any:
        return tf1.get_variable(f"queue/{name}", initializer=value, trainable=False, use_resource=True)

    with tf1.device(device):
        state = variable("state", first)
        # It never repeats an earlier version, so a swap begun before a loss fails after it.
        version = variable("version", lambda: tf.cast(tf.timestamp() * 1e6, tf.int64))
        identity = variable("identity", np.int64(work.identity))
        positions = variable("positions", np.zeros(trainers, dtype=np.int64))
        kept_state = variable("kept", first)
        lock = tf.CriticalSection(shared_name="queue/lock")
        expected, new = tf1.placeholder(tf.int64, []), tf1.placeholder(tf.int64, first.shape)

        def read() -> tuple[Any, ...]:
            return tuple(tf.identity(each.read_value()) for each in (state, version, positions))

        def swap() -> Any:
            same = tf.equal(version.read_value(), expected)
            assigned = state.assign(tf.where(same, new, state.read_value()), read_value=False)
            with tf.control_dependencies([assigned]):
                counted = version.assign_add(tf.cast(same, tf.int64), read_value=False)
            with tf.control_dependencies([counted]):
                return tf.identity(same)

        return Variables(
            work=work,
            state=state,
            version=version,
            identity=identity,
            positions=positions,
            kept=kept_state,
            read=tuple(lock.execute(read)),
            expected=expected,
            new=new,
            swap=lock.execute(swap),
            keeping=kept_state.assign(new, read_value=False),
            renewed=version.initializer,
            counted=tf.raw_ops.ResourceScatterAdd(
                resource=positions.handle, indices=np.int64(trainer), updates=np.int64(batch_size)
            ),
            batch_size=batch_size,
            uncertain=batch_size * in_flight,
        )


@dataclass(frozen=True)
class EpochProgress:
    """How much of all epochs is trained.

    `examples` are counted once per epoch. `twice` are those that were handed out again after a loss and may
    have been trained before.
    """

    examples: int
    total_examples: int
    twice: int


class SharedQueue:
    """A trainer's end of the queue, in one session; one of the trainers announces the end of each epoch.

    Steps under way are not certain to be trained until `confirm` has counted them, the oldest first. `pauses`
    measures the time in which the trainer waits for a shard: for the server of the queue, or for other
    trainers to finish their shards.
    """

    def __init__(self, variables: Variables, session: Any, trainer: int, *, announce: bool = False) -> None:
        self._variables = variables
        self._work = variables.work
        self._batch_size = variables.batch_size
        self._session = session
        self._trainer = trainer
        self._announce = announce
        self.pauses = input_costs.IdleMeter()
        self._known: State | None = None
        self._seen: dict[int, tuple[int, float]] = {}
        self._confirmed = 0
        self._confirmed = self._start = self._join()

    def confirm(self) -> None:
        """Count a step that has finished, the oldest that was under way."""
        self._confirmed += self._batch_size

    def grants(self, stopped: Callable[[], bool]) -> Iterator[shards.Grant | None]:
        """Take one shard after the other until all is trained or `stopped`.

        Yields None if no shard is free but other trainers are still at work: the rest of a batch should be
        trained then.
        """
        last: int | None = None
        while not stopped():
            with self.pauses.pause():
                grant, finished = self._take(last)
            if grant is not None:
                last = grant.shard
                self._start += grant.rows - grant.skip
                yield grant
                continue
            if finished:
                return
            self._start += -(self._start - self._confirmed) % self._batch_size
            yield None
            with self.pauses.pause():
                time.sleep(_POLL_SECONDS)

    def leave(self) -> None:
        """Give back what this trainer has not trained; to be called when no step is under way."""

        def change(state: State, positions: Mapping[int, ShardPosition]) -> tuple[State, None]:
            own = {self._trainer: ShardPosition(self._confirmed, self._confirmed)}
            return shard_queues.released(self._work, state, own), None

        self._changed(change)

    def progress(self) -> EpochProgress:
        """Return how much is trained for certain."""
        state, _, positions = self._look()
        certain = shard_queues.released(self._work, state, positions)
        return EpochProgress(
            examples=shard_queues.trained(self._work, certain),
            total_examples=self._work.total,
            twice=int(state.twice.sum()),
        )

    def _tell(self, state: State) -> None:
        """Announce an epoch that has ended since the last look."""
        before, self._known = self._known, state
        if self._announce and before is not None and state.epoch.min() > before.epoch.min():
            _log.info(
                "epoch %d: %s of %s examples, %s twice so far",
                int(state.epoch.min()),
                f"{self._work.examples:,}",
                f"{self._work.examples:,}",
                f"{int(state.twice.sum()):,}",
            )

    def _join(self) -> int:
        """Give back what this trainer held before a restart or a lost session; return its position.

        Raises:
            InputError: this trainer sees other files than the chief.
        """
        if int(self._session.run(self._variables.identity)) != self._work.identity:
            raise errors.InputError(
                f"trainer {self._trainer} sees other training files than the chief, or others than when the "
                "parameters got their values; give all replicas the same files, or restart the whole job"
            )

        def change(state: State, positions: Mapping[int, ShardPosition]) -> tuple[State, int]:
            own = {self._trainer: positions[self._trainer]}
            return shard_queues.released(self._work, state, own), own[self._trainer].begun

        return self._changed(change)

    def _take(self, last: int | None) -> tuple[shards.Grant | None, bool]:
        def change(
            state: State, positions: Mapping[int, ShardPosition]
        ) -> tuple[State, tuple[shards.Grant | None, bool]]:
            state = shard_queues.settled(self._work, state, positions)
            after, grant = shard_queues.taken(self._work, state, self._trainer, self._start, last)
            if grant is None and (gone := self._gone(state, positions)):
                _log.warning(
                    "trainers %s have done no step for %.0f s: others take over what they hold",
                    ", ".join(map(str, gone)),
                    _PATIENCE_SECONDS,
                )
                state = shard_queues.released(self._work, state, gone, alive=True)
                after, grant = shard_queues.taken(self._work, state, self._trainer, self._start, last)
            return after, (grant, shard_queues.is_finished(self._work, after))

        return self._changed(change)

    def _gone(self, state: State, positions: Mapping[int, ShardPosition]) -> dict[int, ShardPosition]:
        """Return the other trainers that hold a shard and have not moved for long."""
        now = time.monotonic()
        gone = {}
        for trainer in {int(each) for each in state.owner} - {shard_queues.FREE, self._trainer}:
            begun = positions[trainer].begun
            before, since = self._seen.get(trainer, (None, now))
            if begun != before:
                self._seen[trainer] = (begun, now)
            elif now - since > _PATIENCE_SECONDS:
                gone[trainer] = positions[trainer]
        return gone

    def _changed(
        self, change: Callable[[State, Mapping[int, ShardPosition]], tuple[State, Answer]]
    ) -> Answer:
        """Change the state as `change` says, again if another trainer was quicker; return its answer."""
        while True:
            state, version, positions = self._look()
            after, answer = change(state, positions)
            given = {self._variables.expected: version, self._variables.new: after.array()}
            if np.array_equal(after.array(), state.array()) or self._session.run(self._variables.swap, given):
                self._tell(after)
                return answer
            time.sleep(random.uniform(0, _RETRY_SECONDS))

    def _look(self) -> tuple[State, int, dict[int, ShardPosition]]:
        state, version, positions = self._variables.look(self._session)
        own = positions[self._trainer]
        positions[self._trainer] = ShardPosition(max(own.finished, self._confirmed), own.begun)
        return state, version, positions
