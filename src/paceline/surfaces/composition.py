"""Puts the parts together for the command line and the Python API: home, store, cluster, server and jobs.

Importing this module is cheap; the database library is imported when a store is opened.
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
    """Return the named home, or else the home that the environment names.

    Args:
        home: the state folder; None means ``PACELINE_HOME`` or its default.
        store: the store's URL; None means ``PACELINE_STORE`` or its default.
        environment: the environment variables.
    """
    from paceline.services.local import state_dirs

    named = {"PACELINE_HOME": os.fspath(home) if home is not None else None, "PACELINE_STORE": store}
    return state_dirs.Home.from_environment({**environment, **{k: v for k, v in named.items() if v}})


@contextlib.contextmanager
def opened_store(home: Home) -> Iterator[Store]:
    """Open a home's store without its jobs; this is faster than ``opened``, which imports more modules.

    Raises:
        StoreError: the store cannot be opened.
    """
    from paceline.stores import open_store

    with open_store(home.store_url) as store:
        yield store


@contextlib.contextmanager
def opened(home: Home) -> Iterator[Jobs]:
    """Open a home's store and yield its jobs; close the store at the end.

    Raises:
        StoreError: the store cannot be opened.
    """
    from paceline.services.local.jobs import Jobs
    from paceline.stores import open_store

    with open_store(home.store_url) as store:
        yield Jobs(home, store)


@dataclasses.dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace of a Kubernetes cluster as the place of jobs.

    Attributes:
        context: a context of the kubeconfig; None means the current one, or the cluster around this process.
        namespace: the name of the namespace; None means the namespace of the context.
        home: the folder where an operator on this machine stores output (see `opened_cluster`).
        store: the URL of the store that an operator writes.
    """

    context: str | None = None
    namespace: str | None = None
    home: str | os.PathLike[str] | None = None
    store: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class RemoteServer:
    """A server (``paceline serve``) as the place of jobs.

    Attributes:
        url: the address of the server's page.
        namespace: a namespace of the server's cluster; None means the server's default.
        home: the home that has the token of a server on this machine.
        token: the token that identifies the user; None means the one in the home, for a server on this
            machine.
    """

    url: str
    namespace: str | None
    home: Home
    token: str | None = dataclasses.field(default=None, repr=False)


#: Where jobs may be.
Place = Union["Home", Namespace, RemoteServer]


def find_server(server: str | None, engine: str | None, environment: Mapping[str, str]) -> str | None:
    """Return the address of the server to use; None if jobs are accessed without a server.

    Args:
        server: the named server; None means ``PACELINE_SERVER``, unless an engine was named.
        engine: the named engine.
        environment: the environment variables.

    Raises:
        InvalidInput: both a server and an engine were named.
    """
    if server and engine:
        raise InvalidInput(
            "a server and an engine are both named, but jobs can be reached only through one of them",
            "leave out --server or --engine",
        )
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
        engine: ``local`` or ``kubernetes``; None means ``PACELINE_ENGINE``, or else this machine.
        server: the address of a server; None means ``PACELINE_SERVER``, or else no server.
        home: see `find_home`.
        store: see `find_home`.
        namespace: the namespace and its cluster.
        environment: the environment variables.

    Raises:
        InvalidInput: there is no such engine, or both a server and an engine were named.
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
    """Yield the jobs of a place: of a home, a cluster or a server.

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
    """Yield the jobs of a server; no request is sent yet.

    Raises:
        InvalidInput: the address or the token is malformed.
        StoreError: other users can read the token in the home.
        PacelineError: the client library is not installed.
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
        # A client that uses the home's token has access to the server's files.
        yield ServerJobs(connection, Path(folder), shares_files=known is not None and token == known)


def _token(home: Home) -> str | None:
    """Return the token of a home's server; None if there is none yet, or this user may not read it."""
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
    """Yield the jobs of a Kubernetes cluster.

    Args:
        context: a context of the kubeconfig; None means the current one, or the cluster around this process.
        namespace: the namespace; None means the namespace of the context.
        user: the user to impersonate; None means no impersonation.
        groups: the groups of the impersonated ``user``.
        home: the folder where an operator on this machine stores output; None means ``PACELINE_HOME`` or its
            default.
        store: the store that an operator writes; None means ``PACELINE_STORE``. Without either, measurements
            are read from the agents.
        environment: the environment variables.

    Raises:
        InvalidInput: there are groups but no user.
        ClusterError: no configuration says where the cluster is.
        PacelineError: the client library is not installed.
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
    """Yield what a server on a Kubernetes cluster uses: the cluster, its measurements and the gate.

    Args:
        home: the home with the store that the operator writes, and the folder for traces.
        gate: creates the gate that decides who may do what.
        context: a context of the kubeconfig; None means the current one, or the cluster around this process.
        namespace: the default namespace if a caller names none; None means the namespace of the context.
        user: the user that the server impersonates; None means no impersonation.
        groups: the groups of the impersonated ``user``.

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
