"""The life cycle of a server's jobs; `services.local.jobs.Jobs` is the same for jobs on this machine."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from paceline import specs
from paceline.control.resizings import Resize
from paceline.diagnosing.situations import Situation
from paceline.errors import Conflict, InvalidInput, NotFound, PacelineError, StoreError, WaitTimeout
from paceline.model.jobs.adjustments import Adjustment, Knob
from paceline.model.jobs.job_specs import JobSpec
from paceline.model.jobs.run_queries import MOST_RUNS, Cursor, RunPage, RunQuery
from paceline.model.jobs.runs import JobEvent, ReplicaRow, Run, RunSummary, SpecChange, Submit
from paceline.model.jobs.statuses import JobPhase
from paceline.model.measures.probes import Probe
from paceline.model.measures.recordings import Recording
from paceline.model.measures.snapshots import Snapshot
from paceline.model.roles import ReplicaId
from paceline.scheduling.fits import Fit
from paceline.services.life_cycles import CLUSTER_DELAY_SECONDS, LifeCycle
from paceline.services.logs import LogSelection
from paceline.surfaces.client import readings
from paceline.surfaces.client.connections import ServerConnection
from paceline.surfaces.client.server_logs import ServerReader
from paceline.surfaces.client.server_traces import ServerSite

T = TypeVar("T")

#: The form of a job's name. Other texts are refused, so that they cannot become part of another address.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

#: A probe that the server still runs ends at most this long after its planned duration.
_PROBE_SPARE_SECONDS = 60.0


class ServerJobs(LifeCycle):
    """The life cycle of the jobs of a server.

    Args:
        connection: the connection to the server.
        folder: the folder for downloaded traces and recordings.
        shares_files: whether the server runs on this machine, so that paths have the same meaning there.
    """

    POLL_SECONDS: ClassVar[float] = 0.5
    #: The server's jobs may run on a cluster.
    DELAY_SECONDS: ClassVar[float] = CLUSTER_DELAY_SECONDS

    def __init__(self, connection: ServerConnection, folder: Path, *, shares_files: bool) -> None:
        self._connection, self._folder, self._shares_files = connection, folder, shares_files
        self._files: dict[str, tuple[JobSpec, str]] = {}
        self.clock = lambda: time.time() + connection.ahead_seconds

    @property
    def is_overheard(self) -> bool:
        """Whether third parties on the network can read the requests to the server."""
        return self._connection.is_overheard

    # What is known of the jobs (`JobReader`).

    def runs(self, *, phases: Sequence[JobPhase] | None = None) -> list[RunSummary]:
        """Return the runs, newest first."""
        return [run for run, _ in self.listed(phases=phases)]

    def listed(self, *, phases: Sequence[JobPhase] | None = None) -> Iterator[tuple[RunSummary, bool]]:
        """Yield the runs, newest first, each with whether it is lost."""
        query = RunQuery(phases=None if phases is None else tuple(phases), limit=MOST_RUNS)
        while True:
            document = self._page(query)
            with readings.understanding("jobs"):
                found = [
                    (readings.summary(each), each["phase"] == readings.LOST) for each in document["items"]
                ]
                if document["after"] is not None:
                    after = Cursor.parse(document["after"])
                    readings.check_goes_on(query.after, after)
                    query = dataclasses.replace(query, after=after)
            yield from found
            if document["after"] is None:
                return

    def page(self, query: RunQuery) -> RunPage:
        """Return a page of the runs."""
        document = self._page(query)
        with readings.understanding("jobs"):
            runs = tuple(map(readings.summary, document["items"]))
            after = None if document["after"] is None else Cursor.parse(document["after"])
            return RunPage(runs=runs, total=document["total"], after=after)

    def _page(self, query: RunQuery) -> Any:
        return self._connection.get(
            "/jobs",
            phase=None if query.phases is None else [each.value for each in query.phases],
            search=query.search,
            label=[str(query.selector)] if query.selector.requirements else None,
            model=query.model or None,
            finding=query.finding or None,
            since=query.since,
            until=query.until,
            sort=query.order.value,
            descending=query.descending,
            limit=query.limit,
            after=None if query.after is None else str(query.after),
        )

    def get(self, name: str) -> Run:
        """Return one run.

        Raises:
            NotFound: there is no run of that name.
        """
        document = self._document(name)
        with readings.understanding(name):
            run = readings.run(document, "")
        known = self._files.get(name)
        if known is None or known[0] != run.spec:  # The job file has changed if the spec has changed.
            known = self._files[name] = run.spec, self._connection.text(_path(name, "source"))
        return dataclasses.replace(run, source=known[1])

    def _document(self, name: str) -> Any:
        return self._connection.get(_path(name))

    def is_lost(self, run: Run | RunSummary) -> bool:
        """Return whether the run should continue but no supervisor watches it."""
        with readings.understanding(run.name):
            return not run.phase.is_final and self._document(run.name)["phase"] == readings.LOST

    def replicas(self, name: str) -> list[ReplicaRow]:
        """Return the replicas of a run."""
        document = self._document(name)
        with readings.understanding(name):
            return [readings.replica(each) for each in document["replicas"]]

    def events(self, name: str, *, since_id: int = 0) -> list[tuple[int, JobEvent]]:
        """Return the events of a run after the event with the id ``since_id``, each with its id."""
        document = self._connection.get(_path(name, "events"), since_id=since_id)
        with readings.understanding(name):
            return [(each["id"], readings.event(each)) for each in document["items"]]

    def spec_changes(self, name: str) -> list[SpecChange]:
        """Return the requested changes of a run (see `LifeCycle.spec_changes`)."""
        return self._items(name, "changes", readings.spec_change)

    def probes(self, name: str) -> list[Probe]:
        """Return the probes of a run, the oldest first."""
        return self._items(name, "probes", readings.probe)

    def _items(self, name: str, part: str, reading: Callable[[Any], T]) -> list[T]:
        document = self._connection.get(_path(name, part))
        with readings.understanding(name):
            return [reading(each) for each in document["items"]]

    def situation(self, name: str) -> Situation:
        """Return everything known about a run that explains its current phase."""
        document = self._connection.get(_path(name, "situation"))
        with readings.understanding(name):
            return readings.situation(document)

    def snapshot(self, name: str) -> Snapshot:
        """Return the state of a run now, or over its whole life once it has ended."""
        run, document = self.get(name), self._connection.get(_path(name, "snapshot"))
        with readings.understanding(name):
            return readings.snapshot(document, run)

    def recording(self, name: str, *, since: float | None = None, thinned: bool = False) -> Recording:
        """Return the measurements of a run, with its newest traces and its variable plan.

        Raises:
            PacelineError: pyarrow is not installed.
        """
        try:
            from paceline.stores import recordings
        except ModuleNotFoundError as error:
            raise PacelineError(
                f"recordings need {error.name}, which is not installed", "pip install 'paceline[client]'"
            ) from error
        path = self._folder / f"{secrets.token_hex(8)}.parquet"
        try:
            self._connection.download(_path(name, "recording"), path, since=since, thinned=thinned)
            return recordings.read(path)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
        finally:
            path.unlink(missing_ok=True)

    def trace_site(self, run: Run) -> ServerSite:
        """Return the site that requests and fetches the traces of a run."""
        return ServerSite(self._connection, _path(run.name, "traces"), self._folder / run.name)

    def log_reader(self, run: Run, wanted: LogSelection) -> ServerReader:
        """Return a reader of the output of a run's replicas."""
        return ServerReader(self._connection, _path(run.name, "logs"), run, wanted)

    def gone(self, name: str) -> list[tuple[ReplicaId, int]]:
        """Return the attempts of a run whose output no longer exists."""
        document = self._connection.get(_path(name, "logs"), tail=1)
        with readings.understanding(name):
            return [readings.attempt(each) for each in document["gone"]]

    # What starts, ends and changes jobs (`JobControl`).

    def submit(
        self, spec: JobSpec, *, source: str, base: Path, name: str | None = None, submit: Submit | None = None
    ) -> Run:
        """Start a job and return at once (see `Jobs.submit`); only the job file is sent to the server.

        Raises:
            InvalidInput: the job needs files of this machine, and the server runs on another.
        """
        if not self._shares_files:
            _check_paths(spec)
        body = {"source": source, "name": name, "base": str(base.resolve()) if self._shares_files else None}
        key = submit.key if submit is not None else secrets.token_urlsafe(16)
        document = self._connection.post("/jobs", body, key=key)
        with readings.understanding("the job"):
            return readings.run(document, source)

    def supervisor_pids(self, run: Run) -> tuple[int, ...]:
        """Return the ids of the processes on the server's machine that supervise a run."""
        with readings.understanding(run.name):
            return tuple(self._document(run.name)["supervisor_pids"])

    def stop(self, name: str) -> None:
        """Ask a job to end.

        Raises:
            Conflict: the job has already ended.
        """
        self._connection.post(_path(name, "stop"))

    def resume(self, name: str) -> None:
        """Restart a job that is not running, from its last checkpoint.

        Raises:
            Conflict: the job has succeeded or is running.
        """
        self._connection.post(_path(name, "resume"))

    def change(self, name: str, source: str) -> None:
        """Continue a job with another job file, from its last checkpoint.

        Raises:
            Conflict: the job cannot be changed.
        """
        self._connection.post(_path(name, "change"), {"source": source})

    def scale(self, name: str, workers: int) -> None:
        """Change the number of workers of a running job.

        Raises:
            Conflict: the job has ended, or cannot have this number of workers.
        """
        self._connection.post(_path(name, "scale"), {"workers": workers})

    def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a run with all its data.

        Raises:
            Conflict: the run has not ended, and ``force`` is not set.
        """
        self._connection.delete(_path(name), force=force)

    def import_file(self, path: Path, *, name: str | None = None, origin: str = "") -> Run:
        """Import a recording as an ended job; the server sets the job's origin.

        Raises:
            NotFound: there is no such file.
            InvalidInput: the file is not a recording, or cannot be read.
        """
        try:
            document = self._connection.upload("/recordings", path, name=name)
        except FileNotFoundError as error:
            raise NotFound(f"there is no file {path}", "paceline record NAME makes one") from error
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from error
        with readings.understanding("the job"):
            made = str(document["name"])
        return self.get(made)

    def note(self, name: str, event: JobEvent) -> None:
        """Refuse an event: the server itself records the events of its jobs.

        Raises:
            Conflict: always.
        """
        raise Conflict("a server notes itself what happens to its jobs", f"paceline describe {name}")

    # What changes a job while it runs (`LiveControl`).

    def resize(self, name: str, resize: Resize, *, seconds: float | None = None) -> None:
        """Change the cores or memory of a running job's replicas (see `LifeCycle.resize`).

        Raises:
            Conflict: the job cannot have these resources.
        """
        self._connection.post(_path(name, "resize"), {**dataclasses.asdict(resize), "seconds": seconds})

    def knobs(self, run: Run) -> frozenset[Knob]:
        """Return the empty set: only the server adjusts its runs."""
        return frozenset()

    def check_returns(self, run: Run) -> None:
        """Accept every run: the server itself checks it."""

    def adjust(self, name: str, wanted: Sequence[Adjustment]) -> float:
        """Refuse an adjustment: only the server watches a job closely enough to adjust it.

        Raises:
            Conflict: always.
        """
        raise Conflict("a server adjusts its jobs itself", f"paceline probe {name}")

    def changing(self, name: str, doing: str) -> contextlib.AbstractContextManager[None]:
        """Return an empty context: the server itself locks a job while it changes the job."""
        return contextlib.nullcontext()

    def probe(
        self,
        name: str,
        *,
        seconds: float,
        most_share: float,
        tell: Callable[[Probe, str], None] = lambda _, __: None,
    ) -> Probe:
        """Start a probe of a job at the server, and wait for its end (see `LifeCycle.probe`).

        Raises:
            Conflict: the job is not running, is being changed, or has no resource that can be cut.
            WaitTimeout: the probe has not ended in time; the server may have stopped.
        """
        last = max((each.began_at for each in self.probes(name)), default=0.0)
        asked = {"seconds": seconds, "cost_percent": 100 * most_share}
        self._connection.post(_path(name, "probes"), asked)
        deadline, cuts = time.monotonic() + seconds + _PROBE_SPARE_SECONDS, 0
        while time.monotonic() < deadline:
            found = [each for each in self.probes(name) if each.began_at > last]
            if found and found[-1].ended is not None:
                return found[-1]
            if found and len(found[-1].cuts) > cuts:
                cuts = len(found[-1].cuts)
                tell(found[-1], "the next part is cut")
            time.sleep(self.POLL_SECONDS)
        raise WaitTimeout(f"the probe of {name} has not ended", f"paceline probe {name} --last")

    def keep_probe(self, probe: Probe) -> None:
        """Do nothing: the server stores the probes that it makes."""

    # Where jobs can run (`JobPlacement`).

    def fit(self, spec: JobSpec) -> Fit:
        """Return whether all replicas of a job fit now where the server's jobs run."""
        document = self._connection.post("/fit", {"source": specs.dump_job(spec)})
        with readings.understanding("whether the job fits"):
            return readings.fit(document)


def _path(name: str, *parts: str) -> str:
    """Return the path of a job, or of a part of the job.

    Raises:
        NotFound: no job has such a name.
    """
    if not _NAME.fullmatch(name):
        raise NotFound(f"there is no job {name!r}", "paceline list shows what there is")
    return "/".join(["/jobs", quote(name, safe=""), *parts])


def _check_paths(spec: JobSpec) -> None:
    """Check that a job needs no files of this machine.

    Raises:
        InvalidInput: the job needs some.
    """
    if spec.code is not None and spec.code.folder is not None:
        raise InvalidInput(
            "spec.code.folder is on this machine, and the server is not",
            "bring the code by spec.code.git or spec.code.archive, or in the image",
        )
