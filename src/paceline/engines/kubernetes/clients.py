"""A client of a real cluster's API server (`clusters.Cluster`), based on lightkube."""

from __future__ import annotations

import builtins
import contextlib
import functools
import json
import re
import ssl
import urllib.parse
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import httpx2
import lightkube
import msgspec
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

from paceline.engines.kubernetes.clusters import (
    NO_HEADERS,
    WATCH_SECONDS,
    WORDS_BYTES,
    ClusterError,
    Listing,
    Object,
    OutputLine,
)
from paceline.engines.kubernetes.kinds import TRAINING_JOBS, ResourceKind

TIMEOUT_SECONDS = 30.0
_PAGE = 500
#: Each watch has a connection for itself, and an operator of many namespaces has many.
_NO_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
#: The format of the kubelet's timestamps (RFC 3339).
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+(Z|[-+]\d\d:\d\d)$")


class RealCluster:
    """A cluster that is accessed through its API server (see `clusters.Cluster`).

    Args:
        context: a context of the kubeconfig; None means the current one, or the cluster around this process.
        user: the user to impersonate; None means no impersonation.
        groups: the groups of the impersonated ``user``.

    Raises:
        ClusterError: no configuration says where the cluster is.
    """

    def __init__(
        self, context: str | None = None, *, user: str | None = None, groups: Sequence[str] = ()
    ) -> None:
        try:
            config = kubeconfig.KubeConfig.from_env().get(context_name=context)
            if config is None:
                raise ConfigError("the kubeconfig has no current context")
            timeout = httpx2.Timeout(TIMEOUT_SECONDS)
            first, second = (None if user is None else _ActingAs(config, user, groups) for _ in range(2))
            self._client = lightkube.AsyncClient(config, timeout=timeout, transport=first)
            # For paths that are not objects. They have connections of their own, because they may take long.
            self._raw = httpx2.AsyncClient(
                base_url=config.cluster.server,
                verify=_verify(config),
                auth=client_adapter.user_auth(config.user),
                timeout=timeout,
                transport=second,
                limits=_NO_LIMITS,
                # The size of a compressed answer is unknown before it is decompressed.
                headers={"Accept-Encoding": "identity"},
            )
        except (ConfigError, OSError, ValueError) as error:
            raise ClusterError(
                f"no Kubernetes cluster can be found: {error}",
                hint="set KUBECONFIG to the file that kubectl uses, or name a context of it",
            ) from error
        self.namespace: str = config.namespace or "default"

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()
        await self._raw.aclose()

    async def list(self, kind: ResourceKind, *, namespace: str | None = None, selector: str = "") -> Listing:
        """Return all objects of a kind (see `Cluster`)."""
        with _translated(f"{kind.plural} cannot be listed"):
            found = self._client.list(
                _resource(kind),
                **_where(kind, namespace),
                chunk_size=_PAGE,
                labels=_labels(selector),
            )
            # The items of a list have neither ``apiVersion`` nor ``kind``.
            said = {"apiVersion": kind.api_version, "kind": kind.name}
            objects: builtins.list[Object] = [{**said, **_object(each)} async for each in found]
            return Listing(objects, found.resourceVersion)

    async def watch(
        self, kind: ResourceKind, version: str, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncIterator[tuple[str, Object]]:
        """Yield changes of objects (see `Cluster`)."""
        # lightkube would also split lines at characters that JSON does not escape, such as U+0085.
        query = {
            "watch": "true", "resourceVersion": version, "labelSelector": selector,
            "timeoutSeconds": str(WATCH_SECONDS),
        }  # fmt: skip
        given = urllib.parse.urlencode({key: value for key, value in query.items() if value})
        path = f"{_collection(kind, namespace)}?{given}"
        what = f"{kind.plural} cannot be watched"
        # Nothing may happen for a long time; who follows a watch decides for how long that is credible.
        timeout = httpx2.Timeout(TIMEOUT_SECONDS, read=None)
        with _translated(what):
            async with self._raw.stream("GET", path, timeout=timeout) as response:
                if not response.is_success:
                    raise _refusal(what, response, await _first(_raw(response, path), WORDS_BYTES))
                async for line in _whole_lines(_raw(response, path)):
                    yield _change(what, line)

    async def get(self, kind: ResourceKind, name: str, namespace: str | None = None) -> Object:
        """Return one object (see `Cluster`)."""
        with _translated(f"{kind.name} {name} cannot be read"):
            return _object(await self._client.get(_resource(kind), name, **_of(kind, namespace)))

    async def create(self, kind: ResourceKind, made: Object, *, dry_run: bool = False) -> Object:
        """Create an object (see `Cluster`)."""
        with _translated(f"{kind.name} {made['metadata'].get('name')} cannot be made"):
            return _object(await self._client.create(_resource(kind)(made), dry_run=dry_run))

    async def replace(self, kind: ResourceKind, made: Object) -> Object:
        """Replace an object (see `Cluster`)."""
        with _translated(f"{kind.name} {made['metadata']['name']} cannot be replaced"):
            return _object(await self._client.replace(_resource(kind)(made)))

    async def patch(
        self, kind: ResourceKind, name: str, namespace: str | None, changes: Object, *, status: bool = False
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
            return _object(patched)

    async def resize(self, pod: str, namespace: str, container: str, resources: Object) -> Object:
        """Change the requests and limits of a running container (see `Cluster`).

        Source: Kubernetes' documentation, "Resize CPU and Memory Resources assigned to Containers".
        """
        what = f"Pod {pod} cannot be resized"
        body = {"spec": {"containers": [{"name": container, "resources": resources}]}}
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/resize"
        # A strategic merge patch matches containers by name, so it merges the list instead of replacing it.
        headers = {"Content-Type": "application/strategic-merge-patch+json"}
        with _translated(what):
            response = await self._raw.patch(path, content=json.dumps(body), headers=headers)
            if not response.is_success:
                raise _refusal(what, response, response.content[:WORDS_BYTES])
            return _object(response.json())

    async def delete(
        self, kind: ResourceKind, name: str, namespace: str | None = None, *, grace_seconds: int | None = None
    ) -> None:
        """Request the deletion of an object (see `Cluster`)."""
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
        last_bytes: int,
    ) -> builtins.list[OutputLine]:
        """Return the output of a container (see `Cluster`)."""
        # lightkube reads a whole answer into memory, and also splits lines where a progress bar starts over.
        query = {
            "container": container, "timestamps": "true", "tailLines": tail, "sinceSeconds": since_seconds,
        }  # fmt: skip
        given = urllib.parse.urlencode({key: value for key, value in query.items() if value is not None})
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log?{given}"
        what = f"the output of {pod} cannot be read"
        with _translated(what):
            async with self._raw.stream("GET", path) as response:
                data = await _last(_raw(response, path), last_bytes)
        if not response.is_success:
            raise _refusal(what, response, data)
        return list(_lines(data))

    async def read(self, path: str, *, limit_bytes: int, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return the answer to a GET of a path (see `Cluster`)."""
        data = bytearray()
        async with contextlib.aclosing(self._pieces("GET", path, limit_bytes, headers)) as pieces:
            async for piece in pieces:
                data += piece
        return bytes(data)

    def stream(
        self, path: str, *, limit_bytes: int, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncGenerator[bytes]:
        """Yield the answer to a GET of a path (see `Cluster`)."""
        return self._pieces("GET", path, limit_bytes, headers)

    async def post(self, path: str, *, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        """Return the answer to a POST (see `Cluster`)."""
        return b"".join([piece async for piece in self._pieces("POST", path, WORDS_BYTES, headers)])

    async def _pieces(
        self, method: str, path: str, limit_bytes: int, headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes]:
        what = f"{path} cannot be read"
        with _translated(what):
            async with self._raw.stream(method, path, headers=dict(headers)) as response:
                if not response.is_success:
                    raise _refusal(what, response, await _first(_raw(response, path), WORDS_BYTES))
                size = 0
                async for piece in _raw(response, path):
                    size += len(piece)
                    if size > limit_bytes:
                        raise ClusterError(f"{path} has more than {limit_bytes} bytes")
                    yield piece


def _verify(config: kubeconfig.SingleConfig) -> ssl.SSLContext:
    """Return the TLS settings: the trusted authorities and the client's certificate."""
    assert config.user is not None, "the client refuses a configuration without a user"
    return client_adapter.verify_cluster(config.cluster, config.user, config.abs_file)


class _ActingAs(httpx2.AsyncBaseTransport):
    """A transport that impersonates another user by adding headers to each request.

    Source: Kubernetes' documentation, "Authenticating", "User impersonation".
    """

    def __init__(self, config: kubeconfig.SingleConfig, user: str, groups: Sequence[str]) -> None:
        self._transport = httpx2.AsyncHTTPTransport(verify=_verify(config), limits=_NO_LIMITS)
        self._headers = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request with the headers that name the impersonated user."""
        # A request that is sent again with a new token already has the headers.
        kept = [each for each in request.headers.multi_items() if not each[0].startswith("impersonate-")]
        request.headers = httpx2.Headers([*kept, *self._headers])
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._transport.aclose()


@functools.cache
def _resource(kind: ResourceKind) -> Any:
    """Return a lightkube class whose objects stay plain mappings; its own classes decode each field."""
    if kind is TRAINING_JOBS:
        return create_namespaced_resource(kind.group, kind.version, kind.name, kind.plural)
    base = GenericNamespacedResource if kind.is_namespaced else GenericGlobalResource
    info = create_api_info(kind.group, kind.version, kind.name, kind.plural)
    return type(kind.name, (base,), {"_api_info": info})


def _told(data: bytes) -> tuple[str, str]:
    """Return the message and reason of an error, from a ``Status`` or a proxied server's text."""
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return data[:200].decode(errors="replace").strip(), ""
    return str(found.get("message") or ""), str(found.get("reason") or "")


def _collection(kind: ResourceKind, namespace: str | None) -> str:
    """Return the path of all objects of a kind, of a namespace or of all."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"/namespaces/{namespace}" if kind.is_namespaced and namespace else ""
    return f"{root}{where}/{kind.plural}"


def _of(kind: ResourceKind, namespace: str | None) -> dict[str, Any]:
    return {"namespace": namespace} if kind.is_namespaced else {}


def _where(kind: ResourceKind, namespace: str | None) -> dict[str, Any]:
    return {"namespace": namespace or "*"} if kind.is_namespaced else {}


def _labels(selector: str) -> dict[str, Any] | None:
    """Return lightkube's form of a selector: ``name=value``, or ``name`` for all objects with the label."""
    name, equal, value = selector.partition("=")
    if not name:
        return None
    return {name: value} if equal else {name: operators.exists()}


def _object(answer: Mapping[str, Any]) -> Object:
    """Return an object of the API; TypeError or ValueError if the answer is none."""
    found = dict(answer)
    if not isinstance(found.get("metadata"), dict):
        raise TypeError("the answer has no metadata")
    return found


def _change(what: str, line: bytes) -> tuple[str, Object]:
    """Return the type and the object of a line of a watch.

    Raises:
        ClusterError: the watch has ended, as when its version is too old (410), or this is no line of one.
    """
    try:
        change = json.loads(line)
        kind, found = str(change["type"]), dict(change["object"])
        if kind != "ERROR":
            return kind, _object(found)
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{what}: what answers is no watch of Kubernetes") from error
    message, reason = str(found.get("message") or "it has ended"), str(found.get("reason") or "")
    raise ClusterError(f"{what}: {message}", code=found.get("code"), reason=reason)


def _refusal(what: str, response: httpx2.Response, data: bytes) -> ClusterError:
    message, reason = _told(data)
    message = f"{what}: {message or response.reason_phrase}"
    return ClusterError(message, code=response.status_code, reason=reason)


def _raw(response: httpx2.Response, path: str) -> AsyncIterator[bytes]:
    """Return the answer's bytes without decoding: a small compressed piece could become a gigabyte."""
    coding = response.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        raise ClusterError(
            f"{path} cannot be read: the answer is encoded as {coding[:20]!r}, which was not requested",
            hint="look at what is between here and the API server: a proxy may compress its answers",
        )
    return response.aiter_raw()


async def _whole_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield each line that has ended; only a line feed ends one."""
    pieces: builtins.list[bytes] = []
    async for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join((*pieces, line))
            pieces = []
        pieces.append(rest)


async def _first(chunks: AsyncIterable[bytes], limit_bytes: int) -> bytes:
    """Return the beginning of a text that may be of any length."""
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) >= limit_bytes:
            break
    return bytes(data[:limit_bytes])


async def _last(chunks: AsyncIterable[bytes], limit_bytes: int) -> bytes:
    """Return the last whole lines of a text that may be of any length."""
    data, is_cut = bytearray(), False
    async for chunk in chunks:
        data += chunk
        # This is not done at each chunk, because deleting moves the remaining bytes.
        if len(data) > 2 * limit_bytes:
            del data[:-limit_bytes]
            is_cut = True
    if len(data) > limit_bytes:
        del data[:-limit_bytes]
        is_cut = True
    return bytes(data.partition(b"\n")[2] if is_cut else data)


def _lines(data: bytes) -> Iterator[OutputLine]:
    *whole, rest = data.split(b"\n")
    for line in whole:
        yield OutputLine(*_at_and_text(line))
    if rest:
        yield OutputLine(*_at_and_text(rest), has_ended=False)


def _at_and_text(line: bytes) -> tuple[str, str]:
    at, _, text = line.partition(b" ")
    if _TIME.match(at) is None:
        return "", line.decode(errors="replace")
    return at.decode(), text.decode(errors="replace")


@contextlib.contextmanager
def _translated(failure: str) -> Iterator[None]:
    """Translate errors of the HTTP client and lightkube into `ClusterError`."""
    try:
        yield
    except lightkube.ApiError as error:
        status = error.status
        raise ClusterError(
            f"{failure}: {status.message}", code=status.code, reason=status.reason or ""
        ) from error
    except httpx2.HTTPStatusError as error:
        raise ClusterError(f"{failure}: {error}", code=error.response.status_code) from error
    except httpx2.HTTPError as error:
        raise ClusterError(
            f"{failure}: the API server does not answer: {error or type(error).__name__}"
        ) from error
    # lightkube decodes an answer without a look at what it is.
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError) as error:
        raise ClusterError(
            f"{failure}: what answers is no API server of Kubernetes: {error}",
            hint="look at what is between here and the API server: a proxy may ask to sign in",
        ) from error
