"""Where the parts are put together: home, store, cluster, server and jobs, for command line and Python API.

Importing this costs nothing; the database is loaded when a store is opened.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

from paceline.errors import InvalidInput, PacelineError

if TYPE_CHECKING:
    from paceline.engines.kubernetes.clients import RealCluster
    from paceline.engines.kubernetes.clusters import Cluster
    from paceline.engines.kubernetes.loops import Loop
    from paceline.services.cluster.jobs import ClusterJobs
    from paceline.services.life_cycles import LifeCycle
    from paceline.services.local.jobs import Jobs
    from paceline.services.local.state_dirs import Home
    from paceline.stores import Store
    from paceline.surfaces.client.server_jobs import ServerJobs
    from paceline.surfaces.web.gates import Gate
    from paceline.surfaces.web.sites import ClusterSite


def find_home(
    home: str | os.PathLike[str] | None = None,
    store: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Home:
    """Return the home that was named, or else that of the environment.

    Args:
        home: the state folder; else ``PACELINE_HOME`` and its default.
        store: the store's URL; else ``PACELINE_STORE`` and its default.
        environment: the variables.
    """
    from paceline.services.local import state_dirs

    named = {"PACELINE_HOME": os.fspath(home) if home is not None else None, "PACELINE_STORE": store}
    return state_dirs.Home.from_environment({**environment, **{k: v for k, v in named.items() if v}})


@contextlib.contextmanager
def opened_store(home: Home) -> Iterator[Store]:
    """Open a home's store for reading alone: quicker than ``opened``, which loads what runs jobs, too.

    Raises:
        StoreError: the store cannot be opened.
    """
    from paceline.stores import open_store

    with open_store(home.store_url) as store:
        yield store


@contextlib.contextmanager
def opened(home: Home) -> Iterator[Jobs]:
    """Open a home's store and give what can be done with its jobs; close the store in the end.

    Raises:
        StoreError: the store cannot be opened.
    """
    from paceline.services.local.jobs import Jobs
    from paceline.stores import open_store

    with open_store(home.store_url) as store:
        yield Jobs(home, store)


@dataclasses.dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace of a Kubernetes cluster, as a home is a place on this machine.

    Attributes:
        context: that of the kubeconfig; else the current one, or the cluster around this process.
        namespace: its name; else that of the context.
        home: where an operator on this machine keeps output (see `opened_cluster`).
        store: what an operator fills.
    """

    context: str | None = None
    namespace: str | None = None
    home: str | os.PathLike[str] | None = None
    store: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RemoteServer:
    """A server (``paceline serve``), as a home is a place on this machine.

    Attributes:
        url: where its page is.
        namespace: of its cluster; None: its own.
        home: has the token of a server on this machine.
        token: says who asks; None: that in the home, for a server on this machine.
    """

    url: str
    namespace: str | None
    home: Home
    token: str | None = dataclasses.field(default=None, repr=False)


#: Where jobs may be.
Place = Union["Home", Namespace, RemoteServer]


def find_server(server: str | None, engine: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the address of the server that jobs are to be asked of; None: they are at hand.

    Args:
        server: that was named; else ``PACELINE_SERVER``, unless an engine was named.
        engine: that was named.
        environment: the variables.

    Raises:
        InvalidInput: both were named.
    """
    if server and engine:
        raise InvalidInput("jobs are asked of a server, or of an engine", "leave out --server or --engine")
    return server or (None if engine else environment.get("PACELINE_SERVER")) or None


def find_place(
    engine: str | None,
    *,
    server: str | None = None,
    home: str | os.PathLike[str] | None = None,
    store: str | None = None,
    namespace: Namespace | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Place:
    """Return where jobs are: in a home of this machine, in a namespace of a cluster, or behind a server.

    Args:
        engine: ``local`` or ``kubernetes``; else ``PACELINE_ENGINE``, else this machine.
        server: the address of a server; else ``PACELINE_SERVER``, else none.
        home: see `find_home`.
        store: see `find_home`.
        namespace: which of which cluster.
        environment: the variables.

    Raises:
        InvalidInput: there is no such engine, or a server was named beside it.
    """
    url = find_server(server, engine, environment)
    if url is not None:
        named = None if namespace is None else namespace.namespace
        token = environment.get("PACELINE_TOKEN") or None
        return RemoteServer(url, named, find_home(home, store, environment), token)
    engine = engine or environment.get("PACELINE_ENGINE") or "local"
    if engine not in ("local", "kubernetes"):
        raise InvalidInput(f"there is no engine {engine!r}", "local or kubernetes")
    if engine == "kubernetes":
        return dataclasses.replace(namespace or Namespace(), home=home, store=store)
    return find_home(home, store, environment)


def opened_place(place: Place) -> contextlib.AbstractContextManager[LifeCycle]:
    """Give what can be done with the jobs of a place, wherever that is.

    Raises:
        PacelineError: as `opened`, `opened_cluster` or `opened_server`.
    """
    if isinstance(place, RemoteServer):
        return opened_server(place)
    if isinstance(place, Namespace):
        return opened_cluster(place.context, place.namespace, home=place.home, store=place.store)
    return opened(place)


@contextlib.contextmanager
def opened_server(place: RemoteServer) -> Iterator[ServerJobs]:
    """Give what can be done with the jobs of a server; nothing is asked of it yet.

    Raises:
        InvalidInput: its address or the token cannot be one.
        StoreError: others may read the token in the home.
        PacelineError: the client is not installed.
    """
    import tempfile

    try:
        from paceline.surfaces.client import connections
        from paceline.surfaces.client.server_jobs import ServerJobs
    except ModuleNotFoundError as error:
        raise PacelineError(
            f"servers need {error.name}, which is not installed", "pip install 'paceline[client]'"
        ) from error
    known = _token(place.home) if connections.is_loopback(connections.address(place.url)) else None
    token = place.token or known
    with (
        tempfile.TemporaryDirectory(prefix="paceline-") as folder,
        connections.opened(place.url, token=token, namespace=place.namespace) as connection,
    ):
        # Who has its token from the home has the same files as the server.
        yield ServerJobs(connection, Path(folder), shares_files=known is not None and token == known)


def _token(home: Home) -> str | None:
    """Return the token of a home's server; None: it has none yet, or this user may not read it."""
    from paceline.surfaces.web import gates

    try:
        return gates.known(gates.token_file(home.path))
    except OSError:
        return None


@contextlib.contextmanager
def opened_cluster(
    context: str | None = None,
    namespace: str | None = None,
    *,
    user: str | None = None,
    groups: Sequence[str] = (),
    home: str | os.PathLike[str] | None = None,
    store: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Iterator[ClusterJobs]:
    """Give what can be done with the jobs of a Kubernetes cluster.

    Args:
        context: that of the kubeconfig; else the current one, or the cluster around this process.
        namespace: the namespace; else that of the context.
        user: in whose name to ask; None: one's own.
        groups: as whose member, for a ``user``.
        home: where an operator on this machine keeps output; else ``PACELINE_HOME`` and its default.
        store: what an operator fills; else ``PACELINE_STORE``, else agents are asked themselves.
        environment: the variables.

    Raises:
        InvalidInput: there are groups and no user.
        ClusterError: nothing says where the cluster is.
        PacelineError: the client is not installed.
    """
    from paceline.engines.kubernetes import loops
    from paceline.services.cluster.jobs import ClusterJobs
    from paceline.services.cluster.measurements import ClusterMeasurements

    store_url = store or environment.get("PACELINE_STORE") or None
    folder = find_home(home, store, environment).path
    with loops.opened() as loop:
        cluster = _cluster(context, user, groups)
        where = namespace or cluster.namespace
        measurements = ClusterMeasurements(cluster, store_url=store_url, home=folder)
        try:
            yield ClusterJobs(cluster, where, loop, measurements)
        finally:
            measurements.close()
            loop.run(cluster.close())


@contextlib.contextmanager
def opened_site(
    home: Home,
    gate: Callable[[Cluster, Loop], Gate],
    *,
    context: str | None = None,
    namespace: str | None = None,
    user: str | None = None,
    groups: Sequence[str] = (),
) -> Iterator[ClusterSite]:
    """Give what a server on a Kubernetes cluster stands on.

    Args:
        home: its store, which the operator fills, and where traces are brought to.
        gate: makes what says who may.
        context: that of the kubeconfig; else the current one, or the cluster around this process.
        namespace: the default, where a caller names none; else that of the context.
        user: in whose name the server asks; None: its own.
        groups: as whose member, for a ``user``.

    Raises:
        PacelineError: as `opened_cluster`.
        StoreError: the store cannot be opened.
    """
    from paceline.engines.kubernetes import loops
    from paceline.services.cluster.measurements import ClusterMeasurements
    from paceline.surfaces.web.sites import ClusterSite

    with loops.threaded() as loop:
        cluster = _cluster(context, user, groups)
        measurements = ClusterMeasurements(cluster, store_url=home.store_url, home=home.path)
        where = namespace or cluster.namespace
        try:
            yield ClusterSite(cluster, loop, measurements, gate(cluster, loop), namespace=where)
        finally:
            measurements.close()
            loop.run(cluster.close())


def _cluster(context: str | None, user: str | None, groups: Sequence[str]) -> RealCluster:
    if groups and user is None:
        raise InvalidInput("a group is only taken together with a user", "--as USER --as-group GROUP")
    try:
        from paceline.engines.kubernetes.clients import RealCluster
    except ModuleNotFoundError as error:
        raise PacelineError(
            f"clusters need {error.name}, which is not installed", "pip install 'paceline[kubernetes]'"
        ) from error
    return RealCluster(context, user=user, groups=groups)
