"""The API server of a real cluster (`clusters.Cluster`), by lightkube."""

from __future__ import annotations

import builtins
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import lightkube
from lightkube import operators
from lightkube.config import client_adapter, kubeconfig
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import (
    GenericGlobalResource,
    GenericNamespacedResource,
    create_api_info,
    create_namespaced_resource,
)
from lightkube.types import PatchType

from paceline.engines.kubernetes.clusters import WATCH_SECONDS, ClusterError, Line, Listing, Object
from paceline.engines.kubernetes.kinds import TRAINING_JOBS, Kind

TIMEOUT_SECONDS = 30.0
_PAGE = 500


class RealCluster:
    """A cluster by its API server (see `Cluster`).

    Args:
        context: that of the kubeconfig; None: the current one, or the cluster around this process.

    Raises:
        ClusterError: nothing says where the cluster is.
    """

    def __init__(self, context: str | None = None) -> None:
        try:
            config = kubeconfig.KubeConfig.from_env().get(context_name=context)
            if config is None:
                raise ConfigError("the kubeconfig has no current context")
            timeout = httpx2.Timeout(TIMEOUT_SECONDS)
            self._client = lightkube.AsyncClient(config, timeout=timeout)
            # Paths that are no objects: the client of the API has no words for them.
            self._texts = client_adapter.AsyncClient(config, client_adapter.ConnectionParams(timeout=timeout))
        except (ConfigError, OSError, ValueError) as error:
            raise ClusterError(
                f"no Kubernetes cluster can be found: {error}",
                hint="set KUBECONFIG to the file that kubectl uses, or name a context of it",
            ) from error
        self.namespace: str = config.namespace or "default"

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()
        await self._texts.aclose()

    async def list(self, kind: Kind, *, namespace: str | None = None, selector: str = "") -> Listing:
        """Return all objects of a kind (see `Cluster`)."""
        with _translated(f"{kind.plural} cannot be listed"):
            found = self._client.list(
                _resource(kind),
                **_where(kind, namespace),
                chunk_size=_PAGE,
                labels=_labels(selector),
            )
            # The items of a list do not say what they are.
            said = {"apiVersion": kind.api_version, "kind": kind.name}
            objects: builtins.list[Object] = [{**said, **each} async for each in found]
            return Listing(objects, found.resourceVersion)

    async def watch(
        self, kind: Kind, version: str, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yield what happens (see `Cluster`)."""
        with _translated(f"{kind.plural} cannot be watched"):
            happenings = self._client.watch(
                _resource(kind),
                **_where(kind, namespace),
                labels=_labels(selector),
                resource_version=version,
                server_timeout=WATCH_SECONDS,
            )
            async for what, found in happenings:
                yield what, dict(found)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object:
        """Return one object (see `Cluster`)."""
        with _translated(f"{kind.name} {name} cannot be read"):
            return dict(await self._client.get(_resource(kind), name, **_of(kind, namespace)))

    async def create(self, kind: Kind, made: Object) -> Object:
        """Make an object (see `Cluster`)."""
        with _translated(f"{kind.name} {made['metadata'].get('name')} cannot be made"):
            return dict(await self._client.create(_resource(kind)(made)))

    async def replace(self, kind: Kind, made: Object) -> Object:
        """Put an object in the place of another (see `Cluster`)."""
        with _translated(f"{kind.name} {made['metadata']['name']} cannot be replaced"):
            return dict(await self._client.replace(_resource(kind)(made)))

    async def patch(
        self, kind: Kind, name: str, namespace: str | None, changes: Object, *, status: bool = False
    ) -> Object:
        """Merge changes into an object (see `Cluster`)."""
        resource = _resource(kind)
        with _translated(f"{kind.name} {name} cannot be changed"):
            patched = await self._client.patch(
                resource.Status if status else resource,
                name,
                dict(changes),
                **_of(kind, namespace),
                patch_type=PatchType.MERGE,
            )
            return dict(patched)

    async def delete(
        self, kind: Kind, name: str, namespace: str | None = None, *, grace_seconds: int | None = None
    ) -> None:
        """Ask for an object's end (see `Cluster`)."""
        with _translated(f"{kind.name} {name} cannot be deleted"):
            await self._client.delete(
                _resource(kind), name, **_of(kind, namespace), grace_period=grace_seconds
            )

    async def logs(
        self,
        pod: str,
        namespace: str,
        container: str,
        *,
        tail: int | None = None,
        since_seconds: int | None = None,
    ) -> builtins.list[Line]:
        """Return what a container has written (see `Cluster`)."""
        with _translated(f"the output of {pod} cannot be read"):
            found = self._client.log(
                pod,
                namespace=namespace,
                container=container,
                tail_lines=tail,
                since=since_seconds,
                timestamps=True,
                newlines=False,
            )
            return [Line(*line.split(" ", 1)) if " " in line else Line(line, "") async for line in found]

    async def read(self, path: str) -> str:
        """Return what is at a path (see `Cluster`)."""
        what = f"{path} cannot be read"
        with _translated(what):
            response = await self._texts.get(path)
        if response.is_error:
            message, reason = _status(response)
            raise ClusterError(f"{what}: {message}", code=response.status_code, reason=reason)
        return response.text


@functools.cache
def _resource(kind: Kind) -> Any:
    """Return a class of the client whose objects stay plain mappings: those of its own decode each field."""
    if kind is TRAINING_JOBS:
        return create_namespaced_resource(kind.group, kind.version, kind.name, kind.plural)
    base = GenericNamespacedResource if kind.is_namespaced else GenericGlobalResource
    info = create_api_info(kind.group, kind.version, kind.name, kind.plural)
    return type(kind.name, (base,), {"_api_info": info})


def _of(kind: Kind, namespace: str | None) -> dict[str, Any]:
    return {"namespace": namespace} if kind.is_namespaced else {}


def _where(kind: Kind, namespace: str | None) -> dict[str, Any]:
    return {"namespace": namespace or "*"} if kind.is_namespaced else {}


def _labels(selector: str) -> dict[str, Any] | None:
    """Return a selector of one label, or of the objects that have it, as the client takes it."""
    name, equal, value = selector.partition("=")
    if not name:
        return None
    return {name: value} if equal else {name: operators.exists()}


def _status(response: httpx2.Response) -> tuple[str, str]:
    """Return message and reason of an error: those of a ``Status``, or what a proxied server says instead."""
    try:
        found = response.json()
    except ValueError:
        return response.text[:200].strip() or response.reason_phrase, ""
    status = found if isinstance(found, dict) else {}
    return str(status.get("message") or response.reason_phrase), str(status.get("reason") or "")


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn the client's errors into ours."""
    try:
        yield
    except lightkube.ApiError as error:
        status = error.status
        raise ClusterError(
            f"{what}: {status.message}", code=status.code, reason=status.reason or ""
        ) from error
    except httpx2.HTTPStatusError as error:
        raise ClusterError(f"{what}: {error}", code=error.response.status_code) from error
    except (httpx2.HTTPError, json.JSONDecodeError) as error:
        raise ClusterError(
            f"{what}: the API server does not answer: {error or type(error).__name__}"
        ) from error
