"""The Python API: submit a job from a script or a notebook, inspect it, and read its measurements.

::

    job = paceline.submit("job.yaml")
    job.wait(timeout=3600)
    job.samples().groupby("replica").cpu_cores.mean()

With ``engine="kubernetes"`` the functions use the jobs of a cluster, and with ``server=URL`` those of a
server (``paceline serve``). A handle opens the store, or a connection to the cluster or the server, for each
call and closes it again, so it can be kept for any length of time.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from paceline.errors import JobFailed, NotFound, PacelineError
from paceline.model.explanations.causes import Explanation
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.recordings import Recording
from paceline.model.measures.samples import EvaluationReport, Sample, StepReport
from paceline.model.measures.snapshots import Snapshot
from paceline.model.roles import Role
from paceline.model.studies.experiments import Experiment
from paceline.model.studies.tunings import Objective
from paceline.services.life_cycles import LifeCycle
from paceline.services.logs import LogLine, LogSelection
from paceline.services.observing import recordings
from paceline.surfaces import composition, notebooks

if TYPE_CHECKING:
    import pandas

    from paceline.model.measures.probes import Probe

M = TypeVar("M", Sample, StepReport, EvaluationReport)

_PathLike = str | os.PathLike[str]
Engine = Literal["local", "kubernetes"]


def submit(
    job: _PathLike | JobSpec,
    *,
    name: str | None = None,
    base: _PathLike | None = None,
    home: _PathLike | None = None,
    store: str | None = None,
    engine: Engine | None = None,
    server: str | None = None,
    context: str | None = None,
    namespace: str | None = None,
) -> JobHandle:
    """Start a job and return at once.

    Args:
        job: the path of a job file, or a ``JobSpec``.
        name: the name to use instead of the one in the file; a number is added if a job of that name exists.
        base: the folder that a relative ``working_dir`` starts from; by default the folder of the job file,
            or the current folder for a ``JobSpec``.
        home: the state folder; by default ``PACELINE_HOME`` or its default.
        store: the store's URL; by default ``PACELINE_STORE`` or its default.
        engine: ``local`` or ``kubernetes``; by default ``PACELINE_ENGINE``, or else this machine.
        server: the address of a server to use instead; by default ``PACELINE_SERVER``, or else none.
        context: a context of the kubeconfig; by default the current one, or the cluster around this process.
        namespace: a namespace of the cluster; by default the namespace of the context.

    Raises:
        InvalidInput: the file is not a valid job file, or no job can have the name.
        EngineError: the job does not fit this machine.
        StoreError: the state folder or the store cannot be written.
    """
    from paceline import specs
    from paceline.surfaces import job_names

    if isinstance(job, JobSpec):
        # The spec passes through the checks of job files, because a spec made by hand may be invalid too.
        job_file, folder = specs.parse_job(specs.dump_job(job), file=f"{job.name}.yaml"), Path.cwd()
    else:
        job_file, folder = specs.load_job(job), Path(job).resolve().parent
    if name is not None:
        job_names.check(name)
    place = _place(home, store, engine, server, context, namespace)
    with composition.opened_place(place) as jobs:
        run = jobs.submit(
            job_file.spec, source=job_file.text, base=folder if base is None else Path(base), name=name
        )
    return JobHandle(run.name, place)


def get(
    name: str,
    *,
    home: _PathLike | None = None,
    store: str | None = None,
    engine: Engine | None = None,
    server: str | None = None,
    context: str | None = None,
    namespace: str | None = None,
) -> JobHandle:
    """Return a job by its name.

    Args:
        name: the name of the job.
        home: the state folder; by default ``PACELINE_HOME`` or its default.
        store: the store's URL; by default ``PACELINE_STORE`` or its default.
        engine: ``local`` or ``kubernetes``; by default ``PACELINE_ENGINE``, or else this machine.
        server: the address of a server to use instead; by default ``PACELINE_SERVER``, or else none.
        context: a context of the kubeconfig; by default the current one, or the cluster around this process.
        namespace: a namespace of the cluster; by default the namespace of the context.

    Raises:
        NotFound: there is no job of this name; the message names similar ones.
    """
    place = _place(home, store, engine, server, context, namespace)
    with composition.opened_place(place) as jobs:
        jobs.get(name)
    return JobHandle(name, place)


def list_jobs(
    *,
    phases: Sequence[JobPhase | str] | None = None,
    home: _PathLike | None = None,
    store: str | None = None,
    engine: Engine | None = None,
    server: str | None = None,
    context: str | None = None,
    namespace: str | None = None,
) -> list[JobHandle]:
    """Return the jobs, newest first; exported as ``paceline.list``.

    Args:
        phases: only jobs in one of these phases.
        home: the state folder; by default ``PACELINE_HOME`` or its default.
        store: the store's URL; by default ``PACELINE_STORE`` or its default.
        engine: ``local`` or ``kubernetes``; by default ``PACELINE_ENGINE``, or else this machine.
        server: the address of a server to use instead; by default ``PACELINE_SERVER``, or else none.
        context: a context of the kubeconfig; by default the current one, or the cluster around this process.
        namespace: a namespace of the cluster; by default the namespace of the context.
    """
    place = _place(home, store, engine, server, context, namespace)
    wanted = None if phases is None else [JobPhase(phase) for phase in phases]
    with composition.opened_place(place) as jobs:
        return [JobHandle(run.name, place) for run in jobs.runs(phases=wanted)]


def load(
    path: _PathLike, *, name: str | None = None, home: _PathLike | None = None, store: str | None = None
) -> JobHandle:
    """Import a recording (``paceline record``) as an ended job, and return the job.

    Args:
        path: the file of the recording.
        name: the name of the job; by default the recorded name, with a number added if it is taken.
        home: the state folder; by default ``PACELINE_HOME`` or its default.
        store: the store's URL; by default ``PACELINE_STORE`` or its default.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file is not a recording, or no job can have the name.
    """
    from paceline.surfaces import job_names

    if name is not None:
        job_names.check(name)
    place = composition.find_home(home, store)
    with composition.opened(place) as jobs:
        return JobHandle(jobs.import_file(Path(path), name=name).name, place)


def experiment(name: str, *, home: _PathLike | None = None, store: str | None = None) -> Experiment:
    """Return the current state of an experiment (``paceline experiment run``).

    Args:
        name: the name of the experiment.
        home: the state folder; by default ``PACELINE_HOME`` or its default.
        store: the store's URL; by default ``PACELINE_STORE`` or its default.

    Raises:
        NotFound: there is no experiment of that name.
    """
    with composition.opened_store(composition.find_home(home, store)) as opened:
        found = opened.study(name)
    if not isinstance(found, Experiment):
        raise NotFound(f"{name!r} is a search, not an experiment", f"paceline report {name}")
    return found


def _place(
    home: _PathLike | None,
    store: str | None,
    engine: Engine | None,
    server: str | None,
    context: str | None,
    namespace: str | None,
) -> composition.Place:
    of_cluster = composition.Namespace(context, namespace)
    return composition.find_place(engine, server=server, home=home, store=store, namespace=of_cluster)


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class JobHandle:
    """A job of a home, a namespace of a cluster, or a server."""

    name: str
    place: composition.Place

    @property
    def run(self) -> Run:
        """The current state of the run."""
        with self._jobs() as jobs:
            return jobs.get(self.name)

    @property
    def phase(self) -> JobPhase:
        """The current phase."""
        return self.run.phase

    @property
    def is_lost(self) -> bool:
        """Whether the job should run but its supervisor died; ``resume`` restarts it."""
        with self._jobs() as jobs:
            return jobs.is_lost(jobs.get(self.name))

    def wait(self, timeout: float | None = None, *, check: bool = False) -> JobPhase:
        """Wait until the job has ended, and return its final phase.

        Args:
            timeout: the longest wait in seconds.
            check: whether to raise an error unless the job succeeded.

        Raises:
            WaitTimeout: the job has not ended in time.
            JobFailed: the job did not succeed, and ``check`` is set.
            Conflict: the job's supervisor died.
        """
        with self._jobs() as jobs:
            run = jobs.wait(self.name, timeout_seconds=timeout)
        if check and run.phase is not JobPhase.SUCCEEDED:
            message = f": {run.message}" if run.message else ""
            raise JobFailed(f"{self.name} {run.phase}{message}", "look at its logs()")
        return run.phase

    def stop(self, *, wait: bool = True) -> None:
        """Ask the job to end, and wait until it has ended unless ``wait`` is False.

        Raises:
            Conflict: the job has already ended.
        """
        with self._jobs() as jobs:
            jobs.stop(self.name)
            if wait:
                jobs.wait(self.name)

    def resume(self) -> None:
        """Restart a job that was stopped, has failed, or has lost its supervisor.

        Raises:
            Conflict: the job has succeeded or is running.
        """
        with self._jobs() as jobs:
            jobs.resume(self.name)

    def scale(self, workers: int) -> None:
        """Change the number of workers while the job runs.

        Raises:
            Conflict: the job has ended, or cannot have this number of workers.
            EngineError: this machine has no room for more workers.
        """
        with self._jobs() as jobs:
            jobs.scale(self.name, workers)

    def resize(
        self,
        target: str,
        *,
        cpu_cores: float | None = None,
        memory_bytes: int | None = None,
        seconds: float | None = None,
    ) -> None:
        """Change the cores or memory of running replicas without restarting them.

        Args:
            target: a replica, such as ``ps-0``, or a role for all of its replicas.
            cpu_cores: the cores of each replica; None leaves them unchanged.
            memory_bytes: the memory of each replica; None leaves it unchanged.
            seconds: the duration of the change; None means permanently.

        Raises:
            InvalidInput: the target names no replica, or no change is given.
            Conflict: the job is not running, cannot have these resources, or is being changed.
            EngineError: the resources are not available where the job runs.
        """
        from paceline.control import resizings

        with self._jobs() as jobs:
            wanted = resizings.asked(target, cpu_cores=cpu_cores, memory_bytes=memory_bytes)
            jobs.resize(self.name, wanted, seconds=seconds)

    def probe(self, *, seconds: float = 120.0, cost: float = 0.05) -> Probe:
        """Find out what limits the job's speed, by cutting one resource after the other for some seconds.

        Args:
            seconds: the longest duration of the probe.
            cost: the share of the job's work in that time that the probe may cost.

        Raises:
            Conflict: the job is not running, is being changed, or has no resource that can be cut.
        """
        with self._jobs() as jobs:
            return jobs.probe(self.name, seconds=seconds, most_share=cost)

    def delete(self, *, force: bool = False) -> None:
        """Delete the job with its logs, samples and checkpoints.

        Raises:
            Conflict: the job has not ended, and ``force`` is not set.
        """
        with self._jobs() as jobs:
            jobs.delete(self.name, force=force)

    def logs(
        self,
        *,
        role: Role | str | None = None,
        index: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
        follow: bool = False,
    ) -> Iterator[LogLine]:
        """Yield the output of replicas, line by line.

        Args:
            role: only replicas of this role.
            index: only replicas with this index.
            attempt: only this attempt.
            tail: only this many last lines of each attempt.
            follow: whether to continue with new output until the job has ended.
        """
        with self._jobs() as jobs:
            wanted = LogSelection(
                replica=lambda replica: role in (None, replica.role) and index in (None, replica.index),
                attempt=attempt,
                tail=tail,
            )
            yield from jobs.logs(
                jobs.get(self.name), wanted, follow=(lambda: self._goes_on(jobs)) if follow else None
            )

    def why(self) -> Explanation:
        """Return the explanation of the job's state that ``paceline why`` shows."""
        with self._jobs() as jobs:
            _, found = recordings.explain(jobs, self.name)
        return found

    def proposals(self) -> notebooks.Proposals:
        """Return proposed changes of the job, the most promising first, as ``paceline tune NAME`` does."""
        from paceline.services.studying import proposals

        with self._jobs() as jobs:
            found = recordings.whole(jobs, self.name, thinned=True)
        made = proposals.proposals(found, Objective())
        return notebooks.Proposals(made, none="" if made else proposals.none_known(found))

    def snapshot(self) -> Snapshot:
        """Return the values that ``paceline top`` shows."""
        with self._jobs() as jobs:
            return jobs.snapshot(self.name)

    @overload
    def samples(self, *, as_frame: Literal[True] = True) -> pandas.DataFrame: ...
    @overload
    def samples(self, *, as_frame: Literal[False]) -> list[Sample]: ...
    def samples(self, *, as_frame: bool = True) -> Any:
        """Return the samples of the replicas' resources, as a data frame or as values.

        Raises:
            PacelineError: pandas is not installed.
        """
        return self._measured(lambda recording: recording.samples, Sample, as_frame)

    @overload
    def steps(self, *, as_frame: Literal[True] = True) -> pandas.DataFrame: ...
    @overload
    def steps(self, *, as_frame: Literal[False]) -> list[StepReport]: ...
    def steps(self, *, as_frame: bool = True) -> Any:
        """Return the replicas' step reports, in the same form as ``samples``."""
        return self._measured(lambda recording: recording.steps, StepReport, as_frame)

    @overload
    def evaluations(self, *, as_frame: Literal[True] = True) -> pandas.DataFrame: ...
    @overload
    def evaluations(self, *, as_frame: Literal[False]) -> list[EvaluationReport]: ...
    def evaluations(self, *, as_frame: bool = True) -> Any:
        """Return the evaluations of the model, in the same form as ``samples``."""
        return self._measured(lambda recording: recording.evaluations, EvaluationReport, as_frame)

    def __repr__(self) -> str:
        try:
            with self._jobs() as jobs:
                run = jobs.get(self.name)
                phase = "lost" if jobs.is_lost(run) else run.phase
        except PacelineError as error:
            return f"<JobHandle {self.name!r}: {error.message}>"
        return f"<JobHandle {self.name!r}: {phase}{f', {run.message}' if run.message else ''}>"

    def _repr_html_(self) -> str:
        try:
            return notebooks.job(self.snapshot(), self.why())
        except PacelineError as error:
            return notebooks.complaint(self.name, error.message)

    def _jobs(self) -> contextlib.AbstractContextManager[LifeCycle]:
        return composition.opened_place(self.place)

    def _goes_on(self, jobs: LifeCycle) -> bool:
        run = jobs.get(self.name)
        return not run.phase.is_final and not jobs.is_lost(run)

    def _measured(self, part: Callable[[Recording], Sequence[M]], kind: type[M], as_frame: bool) -> Any:
        pandas = _pandas() if as_frame else None
        with self._jobs() as jobs:
            values = list(part(jobs.recording(self.name)))
        return values if pandas is None else _frame(pandas, kind, values)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise PacelineError(
            "data frames need pandas, which is not installed",
            "pip install 'paceline[data]', or ask for the values: as_frame=False",
        ) from error
    return pandas


def _frame(pandas: Any, kind: type[M], values: Sequence[M]) -> Any:
    """Return a data frame with a column for each field, and the role and index beside the replica's name."""
    names = [field.name for field in dataclasses.fields(kind) if field.name not in ("replica", "at")]
    columns: dict[str, list[Any]] = {
        "at": [value.at for value in values],
        "replica": [str(value.replica) for value in values],
        "role": [str(value.replica.role) for value in values],
        "index": [value.replica.index for value in values],
    }
    columns.update({name: [getattr(value, name) for value in values] for name in names})
    frame = pandas.DataFrame(columns)
    frame["at"] = pandas.to_datetime(frame["at"], unit="s", utc=True)
    return frame


notebooks.register()
