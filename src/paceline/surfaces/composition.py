"""Where the parts are put together: home, store, cluster and jobs, for command line and Python API alike.

Importing this costs nothing; the database is loaded when a store is opened.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from paceline.errors import InvalidInput, PacelineError

if TYPE_CHECKING:
    from paceline.services.cluster_jobs import ClusterJobs
    from paceline.services.homes import Home
    from paceline.services.jobs import Jobs
    from paceline.services.life_cycles import LifeCycle
    from paceline.stores import Store


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
    from paceline.services import homes

    named = {"PACELINE_HOME": os.fspath(home) if home is not None else None, "PACELINE_STORE": store}
    return homes.Home.from_environment({**environment, **{k: v for k, v in named.items() if v}})


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
    from paceline.services.jobs import Jobs
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


def find_place(
    engine: str | None,
    *,
    home: str | os.PathLike[str] | None = None,
    store: str | None = None,
    namespace: Namespace | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Home | Namespace:
    """Return where jobs are: in a home of this machine, or in a namespace of a cluster.

    Args:
        engine: ``local`` or ``kubernetes``; else ``PACELINE_ENGINE``, else this machine.
        home: see `find_home`.
        store: see `find_home`.
        namespace: which of which cluster.
        environment: the variables.

    Raises:
        InvalidInput: there is no such engine.
    """
    engine = engine or environment.get("PACELINE_ENGINE") or "local"
    if engine not in ("local", "kubernetes"):
        raise InvalidInput(f"there is no engine {engine!r}", "local or kubernetes")
    if engine == "kubernetes":
        return dataclasses.replace(namespace or Namespace(), home=home, store=store)
    return find_home(home, store, environment)


def opened_place(place: Home | Namespace) -> contextlib.AbstractContextManager[LifeCycle]:
    """Give what can be done with the jobs of a place, wherever that is.

    Raises:
        PacelineError: as `opened` or `opened_cluster`.
    """
    if isinstance(place, Namespace):
        return opened_cluster(place.context, place.namespace, home=place.home, store=place.store)
    return opened(place)


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

    if groups and user is None:
        raise InvalidInput("a group is only taken together with a user", "--as USER --as-group GROUP")
    try:
        from paceline.engines.kubernetes.clients import RealCluster
    except ModuleNotFoundError as error:
        raise PacelineError(
            f"clusters need {error.name}, which is not installed", "pip install 'paceline[kubernetes]'"
        ) from error
    from paceline.services.cluster_jobs import ClusterJobs
    from paceline.services.cluster_measurements import ClusterMeasurements

    store_url = store or environment.get("PACELINE_STORE") or None
    folder = find_home(home, store, environment).path
    with loops.opened() as loop:
        cluster = RealCluster(context, user=user, groups=groups)
        where = namespace or cluster.namespace
        measurements = ClusterMeasurements(cluster, where, store_url=store_url, home=folder)
        try:
            yield ClusterJobs(cluster, where, loop, measurements)
        finally:
            measurements.close()
            loop.run(cluster.close())
