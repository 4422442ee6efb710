"""The context of one command line: its home, cluster or server, and how much it may print."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from paceline.errors import InvalidInput, PacelineError
from paceline.surfaces import composition

if TYPE_CHECKING:
    from paceline.model.jobs.runs import RunSummary
    from paceline.model.jobs.selectors import Selector
    from paceline.model.measures.recordings import Recording
    from paceline.services.cluster.jobs import ClusterJobs
    from paceline.services.life_cycles import LifeCycle
    from paceline.services.local.state_dirs import Home
    from paceline.stores import Store
    from paceline.surfaces.client.server_jobs import ServerJobs


#: Verbs that work the same wherever the jobs are.
_NOT_ABOUT_JOBS = (
    "demo",
    "explain",
    "init",
    "lint",
    "render",
    "convert",
    "schema",
    "completion",
    "thresholds",
    "version",
)
#: A line of a job file as shown in an error, and the caret below it.
_EXCERPT = re.compile(r"\s*\d* \| ")


@contextlib.contextmanager
def needing(what: str, extra: str, *modules: str) -> Iterator[None]:
    """Name the extra to install if one of its modules is not installed.

    Args:
        what: the feature that needs it, such as ``a trace``.
        extra: the extra.
        modules: modules of the extra that the context imports.

    Raises:
        PacelineError: one of the modules is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in modules:
            raise
        raise PacelineError(
            f"{what} needs {error.name}, which is not installed", f"pip install 'paceline[{extra}]'"
        ) from error


def is_job(name: str) -> bool:
    """Whether a name on the command line is a job's, not a file's: a job's name has no dot or slash."""
    return "." not in name and "/" not in name


def recording(name: str) -> Recording | None:
    """Return the recording in the file called ``name``; None: it is the name of a job.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file is no recording.
    """
    if is_job(name):
        return None
    with needing("a recording", "training", "pyarrow"):
        from paceline.stores import recordings
    return recordings.read(Path(name))


@dataclasses.dataclass(slots=True)
class CliSession:
    """The options that every verb shares."""

    home_option: str | None = None
    store_option: str | None = None
    server_option: str | None = None
    engine_option: str | None = None
    context_option: str | None = None
    namespace_option: str | None = None
    as_option: str | None = None
    as_group_option: tuple[str, ...] = ()
    quiet: bool = False
    has_warned: bool = False

    @property
    def home(self) -> Home:
        """The home that options and environment name."""
        return composition.find_home(self.home_option, self.store_option)

    @property
    def server(self) -> str | None:
        """The address of the server to ask; None: the jobs are accessed directly."""
        return composition.find_server(self.server_option, self.engine_option, os.environ)

    @property
    def on_cluster(self) -> bool:
        """Whether the command line is about a Kubernetes cluster, not about this machine or a server."""
        engine = self.engine_option or os.environ.get("PACELINE_ENGINE")
        return self.server is None and engine == "kubernetes"

    @property
    def is_here(self) -> bool:
        """Whether the command line is about jobs of this machine."""
        return self.server is None and not self.on_cluster

    def without_server(self, what: str, instead: str) -> None:
        """Check that no server is named, for an operation that works only where the jobs are.

        Args:
            what: the operation, as the subject of ``is not done through a server``.
            instead: what to do instead.

        Raises:
            InvalidInput: a server is named.
        """
        if self.server is not None:
            raise InvalidInput(f"{what} is not done through a server ({self.server})", instead)

    @contextlib.contextmanager
    def jobs(self) -> Iterator[LifeCycle]:
        """Give the life cycle of the jobs of the home, of the cluster, or of the server."""
        if self.server is not None:
            with self._server_jobs() as served:
                yield served
        elif self.on_cluster:
            with self.cluster() as jobs:
                yield jobs
        else:
            with composition.opened(self.home) as local:
                yield local

    @contextlib.contextmanager
    def _server_jobs(self) -> Iterator[ServerJobs]:
        given = {"--context": self.context_option, "--as": self.as_option, "--store": self.store_option}
        for option in (name for name, value in given.items() if value):
            raise InvalidInput(f"{option} is not for a server: it knows its own", f"leave out {option}")
        place = composition.find_place(
            None,
            server=self.server,
            home=self.home_option,
            namespace=composition.Namespace(namespace=self.namespace_option),
        )
        assert isinstance(place, composition.RemoteServer), "a server was named"
        with composition.opened_server(place) as jobs:
            if jobs.is_overheard and not self.has_warned:
                self.say(f"{place.url} is asked over http: the token can be read on the way")
                self.has_warned = True
            yield jobs

    def studies(self) -> contextlib.AbstractContextManager[Store]:
        """Give the store with the studies of the home, including studies of jobs on a cluster."""
        return composition.opened_store(self.home)

    def measured(self, name: str) -> Recording:
        """Return the recording of a job, in longer intervals if it is large, or the recording in a file.

        Raises:
            NotFound: there is no such job or file.
            InvalidInput: the file is no recording.
        """
        from paceline.services.observing import recordings

        found = recording(name)
        if found is None:
            with self.jobs() as jobs:
                found = recordings.whole(jobs, name, thinned=True)
        return found

    def cluster(self) -> contextlib.AbstractContextManager[ClusterJobs]:
        """Give the life cycle of the cluster's jobs."""
        return composition.opened_cluster(
            self.context_option,
            self.namespace_option,
            user=self.as_option,
            groups=self.as_group_option,
            home=self.home_option,
            store=self.store_option,
        )

    @contextlib.contextmanager
    def listing(
        self, *, everywhere: bool = False
    ) -> Iterator[Callable[[], tuple[list[RunSummary], set[str]]]]:
        """Give a function that reads all runs, the newest first, and the names of the lost ones.

        It loads fewer modules than `jobs`.

        Args:
            everywhere: whether to read the runs of all namespaces of the cluster.

        Raises:
            InvalidInput: ``everywhere`` is set for a server, or for this machine, which has no namespaces.
        """
        if self.server is not None:
            if everywhere:
                raise InvalidInput("a server is asked about one namespace at a time", "-n NAMESPACE")
            with self._server_jobs() as served:
                yield lambda: _listed(served)
            return
        if self.on_cluster:
            with self.cluster() as jobs:
                yield lambda: (jobs.runs(everywhere=everywhere), set())
            return
        if everywhere:
            raise InvalidInput("only a cluster has namespaces", "add --engine kubernetes")
        from paceline.model.jobs.runs import LOCAL
        from paceline.services.local import supervisors

        def read() -> tuple[list[RunSummary], set[str]]:
            runs = store.list_runs(engine=LOCAL)
            return runs, {run.name for run in runs if supervisors.is_lost(run)}

        with composition.opened_store(self.home) as store:
            yield read

    def say(self, text: str) -> None:
        """Print a message on stderr unless the session is quiet."""
        if not self.quiet:
            click.echo(text, err=True)

    def suggest(self, *commands: str) -> None:
        """Print commands that are useful next, without the present one."""
        given = click.get_current_context().info_name
        others = [self.addressed(command) for command in commands if command.split()[1] != given]
        room = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
        line = "next:"
        for number, command in enumerate(others):
            longer = f"{line}{'  | ' if number else ''} {command}"
            if number and room is not None and len(longer) > room:
                break
            line = longer
        if others:
            self.say(line)

    def addressed(self, text: str) -> str:
        """Add the options that say where jobs are to the commands in a text that are about jobs."""
        options = ""
        if self.home_option:
            options += f" --home {shlex.quote(self.home_option)}"
        if self.store_option:
            options += " --store STORE"
        for name in ("server", "engine", "context", "namespace", "as"):
            value = getattr(self, f"{name}_option")
            options += f" --{name} {shlex.quote(value)}" if value else ""
        options += "".join(f" --as-group {shlex.quote(group)}" for group in self.as_group_option)
        elsewhere = "|".join(_NOT_ABOUT_JOBS)
        # It is the name of the operator's namespace, too: kubectl -n paceline get.
        about_jobs = rf"(?<!-n )\bpaceline (?=[a-z])(?!(?:{elsewhere})\b)"
        return re.sub(about_jobs, f"paceline{options} ", text) if options else text

    def complain(self, error: PacelineError) -> None:
        """Print an error; the commands in its hint get the options of this session."""
        complain(error.message, None if error.hint is None else self.addressed(error.hint))

    def chosen(
        self,
        jobs: LifeCycle,
        names: Sequence[str],
        labels: Sequence[Selector],
        *,
        wanted: Callable[[RunSummary], bool] = lambda run: True,
    ) -> tuple[str, ...]:
        """Return the jobs that a command line names, or selects by labels.

        Args:
            jobs: the jobs to select from.
            names: the names of jobs.
            labels: selectors that all have to match.
            wanted: whether the verb applies to a selected job.

        Raises:
            InvalidInput: the command line has neither names nor selectors, or both.
        """
        if bool(names) is bool(labels):
            both = "name jobs or select them, not both" if names else "which jobs?"
            raise InvalidInput(both, "give names, or a label selector: -l team=ads")
        if names:
            return tuple(names)
        found = [
            run.name
            for run in jobs.runs()
            if all(each.matches(run.labels) for each in labels) and wanted(run)
        ]
        if not found:
            self.say("no such jobs")
        return tuple(found)

    def each(self, names: Iterable[str], action: Callable[[str], None]) -> None:
        """Apply an action to each of several jobs; an error for one does not stop the others.

        Exits with the code of the first error.
        """
        codes = []
        for name in dict.fromkeys(names):
            try:
                action(name)
            except PacelineError as error:
                self.complain(error)
                codes.append(error.exit_code)
        if codes:
            raise click.exceptions.Exit(codes[0])


def _listed(jobs: ServerJobs) -> tuple[list[RunSummary], set[str]]:
    found = list(jobs.listed())
    return [run for run, _ in found], {run.name for run, lost in found if lost}


def complain(message: str, hint: str | None) -> None:
    """Print an error on stderr."""
    colours = not os.environ.get("NO_COLOR")
    label = click.style("error:", fg="red", bold=True) if colours else "error:"
    click.echo(f"{label} {_wrapped(message)}", err=True)
    if hint:
        label = click.style("hint:", fg="cyan") if colours else "hint:"
        click.echo(f"{label} {_wrapped(hint)}", err=True)


def _wrapped(text: str) -> str:
    """Return text wrapped to the width of the terminal; shown lines of a file stay unchanged."""
    if not sys.stderr.isatty():
        return text
    import textwrap

    width = max(40, shutil.get_terminal_size().columns)
    lines = []
    for number, line in enumerate(text.splitlines()):
        if _EXCERPT.match(line):
            lines.append(line)
            continue
        # The first line follows the label.
        indent = " " * len("error: ") if number == 0 else ""
        wrapped = textwrap.wrap(
            line, width, initial_indent=indent, subsequent_indent="  ", break_on_hyphens=False,
            break_long_words=False,
        )  # fmt: skip
        lines.append("\n".join(wrapped).removeprefix(indent))
    return "\n".join(lines)


@contextlib.contextmanager
def late_interrupts() -> Iterator[Callable[[], bool]]:
    """Hold Ctrl-C back during an action that must not stop half-way.

    It gives a function that returns whether Ctrl-C was pressed.
    """
    pressed = False

    def note(_signal: int, _frame: object) -> None:
        nonlocal pressed
        pressed = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)
