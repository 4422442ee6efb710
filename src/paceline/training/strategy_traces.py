"""Traces of a `ParameterServerStrategy`, by its coordinator and TensorFlow's profiler.

    with training.StrategyTracer.from_environment():
        model.fit(...)

Every server of a TensorFlow cluster can be profiled at its own address (`grpc_server_lib.cc`), so workers and
parameter servers need nothing. They write what they profiled into the run's folder, which all must see.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tensorflow.tsl.profiler.protobuf import xplane_pb2

from paceline.model import traces
from paceline.tracing import profiles, step_stats
from paceline.training import clusters, settings, trace_files, trace_schedules
from paceline.training.lazy_tensorflow import tf

_log = logging.getLogger(__name__)
WARM_UP_SECONDS = 30.0
"""Functions are traced and placed at first."""
WINDOW_SECONDS, LONGEST_SECONDS = 1.0, 8.0
_EVERY_OPERATION = 3  # the profiler's host_tracer_level


class StrategyTracer:
    """Traces steps of all workers while it is open, as `trace` in the settings says and on demand.

    Other replicas than the coordinator, and a process without `run_dir`, trace nothing.
    """

    def __init__(self, cluster: clusters.Cluster, chosen: settings.Trace, run_dir: str | None) -> None:
        self._cluster = cluster
        self._wanted = chosen.steps
        self._folder = Path(run_dir or "", traces.FOLDER)
        self._name = f"{cluster.role}-{cluster.index}"
        file = trace_files.name_of(self._name, cluster.attempt)
        self._schedule = trace_schedules.Schedule(chosen, self._folder, file)
        self._window_seconds = WINDOW_SECONDS
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="strategy traces", daemon=True)
        self._is_on = run_dir is not None and cluster.role == "chief"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> StrategyTracer:
        """Returns the tracer of this process.

        Raises:
            TrainingError: TF_CONFIG or the settings are wrong.
        """
        return cls(*trace_schedules.read(os.environ if environment is None else environment))

    def __enter__(self) -> StrategyTracer:
        """Starts to trace."""
        if self._is_on:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends; a trace that is being taken is still written."""
        self._ended.set()
        if self._is_on:
            self._thread.join()

    def _run(self) -> None:
        began = time.time()
        while not self._ended.wait(trace_schedules.POLL_SECONDS):
            now = time.time()
            warm = now - began > WARM_UP_SECONDS
            name = self._schedule.due(now, trace_schedules.WARM_UP_STEPS if warm else 0)
            if name is not None:
                self._take(name, now)

    def _take(self, name: str, at: float) -> None:
        """Traces all workers; the coordinator, which has no steps, answers last.

        What has no step, as when training ended meanwhile, is no trace and is not kept.
        """
        folder = self._folder / name
        try:
            steps = self._steps(folder / "profile")
            if not steps:
                return
            records = {
                step_stats.process(task): step_stats.record(dict(enumerate(found, 1)), task)
                for task, found in steps.items()
            }
            for trainer, record in {**records, self._name: step_stats.record({}, "")}.items():
                trace_files.keep(record.trace(trainer, self._cluster.attempt, at), self._folder, name)
        except (OSError, tf.errors.OpError, RuntimeError) as error:  # the last: nobody answered in time
            _log.warning("a trace cannot be taken: %s", error)
            return
        finally:
            shutil.rmtree(folder / "profile", ignore_errors=True)
            with contextlib.suppress(OSError):
                folder.rmdir()  # where nothing was kept

    def _steps(self, folder: Path) -> dict[str, list[profiles.Step]]:
        """Steps of each worker, in a window that grows until it holds some and is remembered."""
        while not (steps := profiles.read(self._profile(folder), self._wanted)):
            if self._window_seconds >= LONGEST_SECONDS or self._ended.is_set():
                _log.warning("no whole step within a trace of %g s", self._window_seconds)
                break
            self._window_seconds *= 2
            shutil.rmtree(folder, ignore_errors=True)
        return steps

    def _profile(self, folder: Path) -> dict[str, Any]:
        """Profiles all workers and parameter servers at once; returns what they found by task."""
        tasks = {
            address: f"/job:{role}/task:{index}"
            for role in ("ps", "worker")
            for index, address in enumerate(self._cluster.addresses.get(role, ()))
        }
        tf.profiler.experimental.client.trace(
            ",".join(f"grpc://{address}" for address in tasks),
            str(folder),
            int(self._window_seconds * 1000),
            num_tracing_attempts=1,
            options=tf.profiler.experimental.ProfilerOptions(
                host_tracer_level=_EVERY_OPERATION, python_tracer_level=0, device_tracer_level=0
            ),
        )
        written = {path.name: path for path in folder.rglob("*.xplane.pb")}
        files = {task: f"{address.replace(':', '_')}.xplane.pb" for address, task in tasks.items()}
        missing = [step_stats.process(task) for task, file in files.items() if file not in written]
        if missing:
            _log.warning("no profile came from %s", ", ".join(missing))
        return {
            task: xplane_pb2.XSpace.FromString(written[file].read_bytes())
            for task, file in files.items()
            if file in written
        }
