"""Where the parts are put together: home, store, cluster and jobs, for command line and Python API alike.

Importing this costs nothing; the database is loaded when a store is opened.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from paceline.errors import PacelineError

if TYPE_CHECKING:
    from paceline.services.cluster_jobs import ClusterJobs
    from paceline.services.homes import Home
    from paceline.services.jobs import Jobs
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


@contextlib.contextmanager
def opened_cluster(
    context: str | None = None,
    namespace: str | None = None,
    *,
    home: str | os.PathLike[str] | None = None,
    store: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Iterator[ClusterJobs]:
    """Give what can be done with the jobs of a Kubernetes cluster.

    Args:
        context: that of the kubeconfig; else the current one, or the cluster around this process.
        namespace: the namespace; else that of the context.
        home: where an operator on this machine keeps output; else ``PACELINE_HOME`` and its default.
        store: what an operator fills; else ``PACELINE_STORE``, else agents are asked themselves.
        environment: the variables.

    Raises:
        ClusterError: nothing says where the cluster is.
        PacelineError: the client is not installed.
    """
    import asyncio

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
    with asyncio.Runner() as runner:
        cluster = RealCluster(context)
        where = namespace or cluster.namespace
        measurements = ClusterMeasurements(cluster, where, store_url=store_url, home=folder)
        try:
            yield ClusterJobs(cluster, where, runner, measurements)
        finally:
            measurements.close()
            runner.run(cluster.close())
