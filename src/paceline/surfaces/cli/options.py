"""Options and arguments that several verbs share; each has the same meaning everywhere."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from paceline.surfaces.cli import catalogue, sessions

if TYPE_CHECKING:
    from paceline.model.jobs.selectors import Selector

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

_LAST_PORT = 65535

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 96}


def cluster_options(function: F) -> F:
    """Add the options that name the cluster and the namespace."""
    for option in (
        click.option(
            "-n", "--namespace", expose_value=False, callback=_remember("namespace_option"),
            help="The namespace of the cluster; else that of the context.",
        ),
        click.option(
            "--context", expose_value=False, callback=_remember("context_option"),
            help="The context of the kubeconfig; else the current one, or the cluster around this process.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def identity_options(function: F) -> F:
    """Add the options that name the user and the groups to impersonate on a cluster."""
    for option in (
        click.option(
            "--as-group", metavar="GROUP", multiple=True, expose_value=False,
            callback=_remember("as_group_option"), help="Ask the cluster as a member of GROUP; with --as.",
        ),
        click.option(
            "--as", metavar="USER", expose_value=False, callback=_remember("as_option"),
            help="Ask the cluster in the name of USER; you need the right to impersonate.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def engine_options(function: F) -> F:
    """Add the options that say where jobs are, for verbs that work with jobs in any place."""
    for option in (
        click.option(
            "--server", metavar="URL", expose_value=False, callback=_remember("server_option"),
            help="Ask this server (paceline serve), with the token in $PACELINE_TOKEN or, if it is on this "
            "machine, in its home; else $PACELINE_SERVER.",
        ),
        click.option(
            "--engine", expose_value=False, callback=_remember("engine_option"),
            type=click.Choice(["local", "kubernetes"]),
            help="Where jobs are; else $PACELINE_ENGINE, else this machine.",
        ),
    ):  # fmt: skip
        function = option(function)
    return cluster_options(identity_options(function))


def verb(name: str) -> Callable[[Callable[Concatenate[sessions.CliSession, P], R]], click.Command]:
    """Make a verb of a function: its first argument is the session, and its docstring the help."""

    def made(function: Callable[Concatenate[sessions.CliSession, P], R]) -> click.Command:
        @functools.wraps(function)
        def callback(*args: Any, **kwargs: Any) -> R:
            return function(_session(click.get_current_context()), *args, **kwargs)

        decorated = shared_options(callback)
        return click.command(
            name, short_help=catalogue.VERBS[name].summary, context_settings=CONTEXT_SETTINGS
        )(decorated)

    return made


def shared_options(function: F) -> F:
    """Add the options that may stand before or after any verb."""
    for option in (
        click.option(
            "-q", "--quiet", is_flag=True, expose_value=False, callback=_remember("quiet"),
            help="Say nothing on stderr but errors.",
        ),
        click.option(
            "--store", metavar="URL", expose_value=False, callback=_remember("store_option"),
            help="The store; else $PACELINE_STORE, else a SQLite file in the home.",
        ),
        click.option(
            "--home", metavar="DIR", expose_value=False, callback=_remember("home_option"),
            type=click.Path(file_okay=False),
            help="The state folder; else $PACELINE_HOME, else ~/.local/state/paceline.",
        ),
    ):  # fmt: skip
        function = option(function)
    return function


def _remember(field: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def remembered(ctx: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:
            setattr(_session(ctx), field, value)

    return remembered


def _session(ctx: click.Context) -> sessions.CliSession:
    return ctx.find_root().ensure_object(sessions.CliSession)


def complete_job_names(
    ctx: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the jobs of the home whose names begin with the incomplete text, the newest first.

    Each run has a folder, so this needs no database, whose imports take half a second.
    """
    session = _session(ctx)
    runs = session.home.runs
    if session.server is not None:  # A request takes too long for a completion.
        return []
    try:
        folders = [(folder.stat().st_mtime, folder.name) for folder in runs.iterdir()]
    except OSError:
        return []
    return [CompletionItem(name) for _, name in sorted(folders, reverse=True) if name.startswith(incomplete)]


name_argument = click.argument("name", metavar="NAME", shell_complete=complete_job_names)


class LabelSelector(click.ParamType["Selector"]):
    """A label selector as kubectl takes it, such as ``team=ads,stage in (test, live),!old``."""

    name = "selector"

    def convert(
        self, value: str | Selector, param: click.Parameter | None, ctx: click.Context | None
    ) -> Selector:
        """Return the selector."""
        from paceline.model.jobs import selectors

        if isinstance(value, selectors.Selector):
            return value
        try:
            return selectors.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


selector_option = click.option(
    "-l", "--selector", "--label", "labels", metavar="SELECTOR", multiple=True, type=LabelSelector(),
    help="Only jobs with such labels: key=value, key!=value, 'key in (a, b)', key, '!key', by commas.",
)  # fmt: skip


def names_argument(function: F) -> F:
    """Add the names of jobs as arguments, and the option for a label selector."""
    names = click.argument("names", metavar="[NAME...]", nargs=-1, shell_complete=complete_job_names)
    return names(selector_option(function))


file_argument = click.argument("file", metavar="FILE", type=click.Path(dir_okay=True, allow_dash=True))
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
watch_option = click.option("-w", "--watch", is_flag=True, help="Show it again whenever it changes.")


def output_option(*formats: str) -> Callable[[F], F]:
    """Return the option ``-o`` with these formats; the first is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True,
        help="How to print it.",
    )  # fmt: skip


class Address(click.ParamType[tuple[str | None, int]]):
    """A port, with or without the host to listen on."""

    name = "address"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str | None, int]:
        """Return host and port."""
        host, colon, port = str(value).rpartition(":")
        if not colon or not (port.isascii() and port.isdecimal()) or int(port[:6]) > _LAST_PORT:
            self.fail(f"{value!r} is no address: [HOST]:PORT, such as :2224 or 127.0.0.1:2224", param, ctx)
        return host.strip("[]") or None, int(port)


class Duration(click.ParamType[float]):
    """Seconds, written as ``90s``, ``10m``, ``1h30m`` or ``7d``."""

    name = "duration"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds."""
        from paceline.model import quantities

        try:
            return quantities.parse_seconds(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Cores(click.ParamType[float]):
    """Cores, written as ``2``, ``1.5`` or ``500m``."""

    name = "cores"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the cores."""
        from paceline.model import quantities

        try:
            return quantities.parse_cpu_cores(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Size(click.ParamType[int]):
    """Bytes, written as ``4Gi`` or ``512Mi``."""

    name = "size"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes."""
        from paceline.model import quantities

        try:
            return quantities.parse_bytes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class AgentClients(click.ParamType[tuple[str, ...]]):
    """Networks and namespaces, separated by commas."""

    name = "clients"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Return the networks, with their lengths, and the names of the namespaces."""
        words = [word.strip() for word in str(value).split(",")]
        return tuple(self._client(word, param, ctx) for word in words if word)

    def _client(self, word: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        import ipaddress

        from paceline.surfaces import namespace_names

        with contextlib.suppress(ValueError):
            return str(ipaddress.ip_network(word))
        if not namespace_names.is_namespace(word):
            self.fail(f"{word!r} is no network, such as 10.0.0.0/24, and no name of a namespace", param, ctx)
        return word


ADDRESS = Address()
DURATION = Duration()
CORES = Cores()
SIZE = Size()


agent_clients_option = click.option(
    "--agent-clients", type=AgentClients(), default="", metavar="NETWORK|NAMESPACE,...",
    help="From where agents may be asked: the networks of the API server, by which the operator asks them,"
    " and namespaces, such as that of Prometheus; without it from everywhere.",
)  # fmt: skip


def role_type() -> click.Choice[str]:
    """Return the choice of roles; they are written out, so that the help needs no model classes."""
    return click.Choice(["ps", "worker", "chief", "evaluator"])
