"""Traces of a trainer's steps, taken at regular times and on request, and written to the run's folder.

A script that runs its own TensorFlow session over parameter servers gets them like this:

    tracer = training.Tracer.from_environment()
    while ...:
        _, loss = tracer.run(session, [train, loss], feed_dict)
"""

from __future__ import annotations

import collections
import logging
import os
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.model.traces import traced_steps
from paceline.model.variables.variables import Name
from paceline.tracing import step_stats
from paceline.training import clusters, parameters, settings
from paceline.training.lazy_tensorflow import tf1
from paceline.training.tracing import trace_files, trace_schedules

_log = logging.getLogger(__name__)
_LOCAL = "/job:localhost/task:0"


@dataclass
class _Taking:
    """A trace that is being taken."""

    name: str
    at: float
    steps: list[step_stats.TracedStep] = field(default_factory=list)


class Tracer:
    """Runs the steps of one trainer and traces some of them; steps may overlap.

    Without `run_dir` no step is traced. `names` maps TensorFlow's names of variables to the user's.
    """

    def __init__(
        self,
        cluster: clusters.ClusterTask,
        chosen: settings.TraceSettings,
        run_dir: str | None,
        names: Mapping[str, Name] | None = None,
    ) -> None:
        self._trainer = f"{cluster.role}-{cluster.index}"
        self._attempt = cluster.attempt
        self._task = cluster.task_device or _LOCAL
        self._names = names
        self._wanted = chosen.steps
        self._folder = Path(run_dir or "", traced_steps.FOLDER)
        file = trace_files.name_of(self._trainer, self._attempt)
        self._schedule = trace_schedules.TraceSchedule(chosen, self._folder, file) if run_dir else None
        self._lock = threading.Lock()
        self._busy = False  # TensorFlow traces one step of a process at a time
        self._steps = self._left = 0
        self._waited_seconds = 0.0
        self._taking: _Taking | None = None
        self._untraced_seconds: collections.deque[float] = collections.deque(maxlen=20)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Tracer:
        """Return the tracer of this process, for a script that does not use `training.run`.

        Raises:
            TrainingError: TF_CONFIG or the settings are wrong.
        """
        return cls(*trace_schedules.read(os.environ if environment is None else environment))

    def run(self, session: Any, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Run a step as `session.run` does."""

        def traced(**options: Any) -> Any:
            return session.run(fetches, feed_dict, **options)

        return self._run(lambda: session.run(fetches, feed_dict), traced, None)

    def callable(
        self,
        session: Any,
        fetches: Sequence[Any],
        feeds: Sequence[Any],
        waited_seconds: Callable[[], float],
    ) -> Callable[..., Any]:
        """Return a function that runs a step on the values of the feeds.

        `waited_seconds` returns how long the steps so far have waited for input, in total.
        """
        plain: Callable[..., Any] = session.make_callable(list(fetches), feed_list=list(feeds))
        if self._schedule is None:
            return plain
        with_options = session.make_callable(list(fetches), feed_list=list(feeds), accept_options=True)

        def step(*values: Any) -> Any:
            def traced(**options: Any) -> Any:
                return with_options(*values, **options)

            return self._run(lambda: plain(*values), traced, waited_seconds())

        return step

    def _run(self, plain: Callable[[], Any], traced: Callable[..., Any], waited_seconds: float | None) -> Any:
        taking, number, waited_seconds = self._begin(waited_seconds)
        if taking is None:
            start = time.perf_counter()
            result = plain()
            self._untraced_seconds.append(time.perf_counter() - start)
            return result
        metadata = tf1.RunMetadata()
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        try:
            result = traced(options=options, run_metadata=metadata)
            self._end(taking, step_stats.TracedStep(number, metadata, waited_seconds))
            return result
        except tf1.errors.AlreadyExistsError:  # the script's own profiler is running in this process
            with self._lock:
                self._left += 1  # A later step takes the place of this one.
            return plain()
        finally:
            self._busy = False

    def _begin(self, waited_seconds: float | None) -> tuple[_Taking | None, int, float | None]:
        """Count a step; return the trace that it belongs to, its number, and how long it waited."""
        with self._lock:
            self._steps += 1
            if waited_seconds is not None:
                waited_seconds, self._waited_seconds = (
                    max(0.0, waited_seconds - self._waited_seconds),
                    waited_seconds,
                )
            if self._busy or self._schedule is None:
                return None, self._steps, waited_seconds
            if self._left == 0:
                now = time.time()
                name = self._schedule.due(now, self._steps)
                self._taking = None if name is None else _Taking(name, now)
                self._left = 0 if name is None else self._wanted
            self._busy = self._taking is not None
            self._left -= self._busy
            return self._taking, self._steps, waited_seconds

    def _end(self, taking: _Taking, step: step_stats.TracedStep) -> None:
        """Keep a traced step; the last step of a trace starts a thread that writes the trace."""
        taking.steps.append(step)
        if len(taking.steps) == self._wanted:
            threading.Thread(target=self._write, args=(taking,), name="traces").start()

    def _write(self, taking: _Taking) -> None:
        record = step_stats.read(taking.steps, self._task, self._names)
        untraced = list(self._untraced_seconds)
        median = statistics.median(untraced) * 1e6 if untraced else None
        trace = record.trace(self._trainer, self._attempt, taking.at, median)
        try:
            trace_files.keep(trace, self._folder, taking.name)
        except OSError as error:
            _log.warning("a trace cannot be written: %s", error)


def names(created: Sequence[parameters.Parameter]) -> dict[str, Name]:
    """Return the user's names of variables and their slots, with the shard if there are several."""
    return {
        variable.op.name: (
            each.shard.variable.name,
            each.shard.index if each.shard.layout.shards > 1 else None,
        )
        for each in created
        for variable in (each.variable, *each.slots.values())
    }
