"""A Kubernetes API in memory: what the tests of the operator need of one, by the same rules.

`tests/engines/kubernetes/test_clusters.py` holds it and a real API server against the same contract.
"""

from __future__ import annotations

import asyncio
import base64
import builtins
import copy
import datetime
import http.client
import itertools
import json
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import NO_HEADERS, ClusterError, Listing, OutputLine
from paceline.engines.kubernetes.kinds import ResourceKind
from support.access import Access

Key = tuple[str, str, str]


class MemoryCluster:
    """Objects by kind, namespace and name, with versions and a history to watch."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self.clock = clock
        self.objects: dict[Key, dict[str, Any]] = {}
        self.history: builtins.list[tuple[int, str, ResourceKind, dict[str, Any]]] = []
        self.forgotten = 0  # versions up to this one cannot be watched from any more
        self.outputs: dict[str, builtins.list[OutputLine]] = {}
        #: The path of something that is passed on, such as a port of a pod, and who answers it: host:port.
        self.proxied: dict[str, str] = {}
        self.pages: dict[str, bytes] = {"/readyz": b"ok"}
        self.access = Access()
        self.denied: set[tuple[str, str]] = set()  # verbs of resources that the user may not use
        self.calls: builtins.list[tuple[str, str]] = []
        #: The identities of namespaces; one that is named for the first time has been there all the time.
        self.namespaces: dict[str, str] = {}
        self.trouble: Callable[[str, str, str], None] = lambda verb, plural, name: None
        self._versions = itertools.count(1)
        self._version = 0
        self._changed = asyncio.Event()
        self._cuts = 0

    # What a cluster does.

    async def list(self, kind: ResourceKind, *, namespace: str | None = None, selector: str = "") -> Listing:
        self._called("list", kind, "")
        found: builtins.list[Mapping[str, Any]] = [
            copy.deepcopy(each)
            for key, each in sorted(self.objects.items())
            if key[0] == kind.plural and _matches(each, namespace, selector)
        ]
        return Listing(found, str(self._version))

    async def watch(
        self, kind: ResourceKind, version: str, *, namespace: str | None = None, selector: str = ""
    ) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        self._called("watch", kind, "")
        seen, cuts = int(version), self._cuts
        while True:
            if seen < self.forgotten:
                raise ClusterError("too old resource version", code=410, reason="Expired")
            for at, what, of, each in list(self.history):
                if at > seen and of is kind and _matches(each, namespace, selector):
                    yield what, copy.deepcopy(each)
            seen = max(seen, self._version)
            changed = self._changed
            await changed.wait()
            if cuts != self._cuts:
                return

    async def get(self, kind: ResourceKind, name: str, namespace: str | None = None) -> Mapping[str, Any]:
        self._called("get", kind, name)
        if kind is kinds.NAMESPACES:
            uid = self.namespaces.setdefault(name, f"uid-of-{name}")
            return {"metadata": {"name": name, "uid": uid}}
        return copy.deepcopy(self._found(kind, name, namespace))

    async def create(
        self, kind: ResourceKind, made: Mapping[str, Any], *, dry_run: bool = False
    ) -> Mapping[str, Any]:
        metadata = made["metadata"]
        if kind is kinds.ACCESS_REVIEWS:
            asked = made["spec"]["resourceAttributes"]
            resource = "/".join(part for part in (asked["resource"], asked.get("subresource")) if part)
            return {**made, "status": {"allowed": (asked["verb"], resource) not in self.denied}}
        reviews = {
            kinds.TOKEN_REVIEWS: self.access.token_review,
            kinds.SUBJECT_REVIEWS: self.access.access_review,
        }
        self._called("create", kind, metadata.get("name", ""))
        if kind in reviews:
            return {**made, "status": reviews[kind](made["spec"])}
        key = kind.plural, metadata.get("namespace", ""), metadata["name"]
        if key in self.objects:
            raise ClusterError(f"{kind.plural} {key[2]} already exists", code=409, reason="AlreadyExists")
        new: dict[str, Any] = json.loads(json.dumps(made))
        new.setdefault("apiVersion", kind.api_version)
        new.setdefault("kind", kind.name)
        if kind is kinds.TRAINING_JOBS:
            new.pop("status", None)
        if kind is kinds.PODS:
            new["status"] = {"phase": "Pending"}
        if kind is kinds.SECRETS:
            given = {key: value.encode() for key, value in new.pop("stringData", {}).items()}
            new["data"] = {key: base64.b64encode(value).decode() for key, value in given.items()}
        created = _time(self.clock())
        new["metadata"] |= {"uid": f"uid-{next(self._versions)}", "creationTimestamp": created}
        new["metadata"]["generation"] = 1
        if dry_run:
            return new
        return self._put("ADDED", kind, key, new)

    async def replace(self, kind: ResourceKind, made: Mapping[str, Any]) -> Mapping[str, Any]:
        name, namespace = made["metadata"]["name"], made["metadata"].get("namespace", "")
        self._called("update", kind, name)
        old = self._found(kind, name, namespace)
        self._check_version(old, made)
        new = json.loads(json.dumps(made))
        kept = {each: old["metadata"][each] for each in ("uid", "creationTimestamp", "generation")}
        new["metadata"] |= kept
        return self._put("MODIFIED", kind, (kind.plural, namespace, name), new)

    async def patch(
        self,
        kind: ResourceKind,
        name: str,
        namespace: str | None,
        changes: Mapping[str, Any],
        *,
        status: bool = False,
    ) -> Mapping[str, Any]:
        self._called("patch status" if status else "patch", kind, name)
        old = self._found(kind, name, namespace)
        self._check_version(old, changes)
        new = copy.deepcopy(old)
        for part in ("status",) if status else ("metadata", "spec"):
            if part in changes:
                new[part] = _merged(new.get(part) or {}, json.loads(json.dumps(changes[part])))
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        if new == old:
            return copy.deepcopy(old)
        return self._put("MODIFIED", kind, (kind.plural, namespace or "", name), new)

    async def resize(
        self, pod: str, namespace: str, container: str, resources: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        self._called("resize", kinds.PODS, pod)
        new = copy.deepcopy(self._found(kinds.PODS, pod, namespace))
        for each in new["spec"]["containers"]:
            if each["name"] == container:
                each["resources"] = _merged(each.get("resources") or {}, dict(resources))
        return self._put("MODIFIED", kinds.PODS, (kinds.PODS.plural, namespace, pod), new)

    async def delete(
        self, kind: ResourceKind, name: str, namespace: str | None = None, *, grace_seconds: int | None = None
    ) -> None:
        self._called("delete", kind, name)
        found = self._found(kind, name, namespace)
        key = kind.plural, namespace or "", name
        ended = (found.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        bound = (found.get("spec") or {}).get("nodeName")
        if kind is kinds.PODS and grace_seconds != 0 and not ended and bound:
            if "deletionTimestamp" not in found["metadata"]:
                new = copy.deepcopy(found)
                new["metadata"]["deletionTimestamp"] = _time(self.clock())
                self._put("MODIFIED", kind, key, new)
            return
        self.remove(kind, name, namespace or "")

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
        self._called("logs", kinds.PODS, pod)
        if self._found(kinds.PODS, pod, namespace)["status"]["phase"] == "Pending":
            raise ClusterError("the container is waiting to start", code=400, reason="BadRequest")
        written = self.outputs.get(pod, [])
        return written[-tail:] if tail else written if tail is None else []

    async def read(self, path: str, *, limit_bytes: int, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        found = await self._passed_on("GET", path, headers)
        if len(found) > limit_bytes:
            raise ClusterError(f"{path} has more than {limit_bytes} bytes")
        return found

    async def stream(
        self, path: str, *, limit_bytes: int, headers: Mapping[str, str] = NO_HEADERS
    ) -> AsyncGenerator[bytes]:
        found = await self._passed_on("GET", path, headers)
        for begin in range(0, len(found), 1 << 16):
            if begin + (1 << 16) > limit_bytes and len(found) > limit_bytes:
                raise ClusterError(f"{path} has more than {limit_bytes} bytes")
            yield found[begin : begin + (1 << 16)]

    async def post(self, path: str, *, headers: Mapping[str, str] = NO_HEADERS) -> bytes:
        return await self._passed_on("POST", path, headers)

    async def _passed_on(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        """Answer as the API server's proxy does, from a server that really listens."""
        self.calls.append((method, path))
        self.trouble(method, "proxy", path)
        if method == "GET" and path in self.pages:
            return self.pages[path]
        for prefix, address in self.proxied.items():
            if path.startswith(prefix):
                url = f"http://{address}{path.removeprefix(prefix)}"
                asked = urllib.request.Request(url, method=method, headers=dict(headers))
                return await asyncio.to_thread(_fetched, asked)
        raise ClusterError(f"{path} cannot be read: not found", code=404, reason="NotFound")

    # What happens to it.

    def remove(self, kind: ResourceKind, name: str, namespace: str = "default") -> None:
        """Take an object away, and all that it owns; what has a finalizer stays, marked as leaving."""
        key = kind.plural, namespace, name
        if self.objects[key]["metadata"].get("finalizers"):
            leaving = {**self.objects[key]["metadata"], "deletionTimestamp": _time(self.clock())}
            self.change(kind, name, namespace, metadata=leaving)
            return
        gone = self.objects.pop(key)
        gone["metadata"]["resourceVersion"] = str(self._next_version())
        self._tell("DELETED", kind, gone)
        for other, each in list(self.objects.items()):
            owners = each["metadata"].get("ownerReferences") or ()
            if any(one["uid"] == gone["metadata"]["uid"] for one in owners):
                self.remove(_kind(other[0]), other[2], other[1])

    def change(self, kind: ResourceKind, name: str, namespace: str = "default", **parts: Any) -> None:
        """Put other top-level parts into an object, as those do who are not tested."""
        key = kind.plural, namespace, name
        self._put("MODIFIED", kind, key, {**copy.deepcopy(self.objects[key]), **parts})

    def cut_watches(self, *, forget: bool = False) -> None:
        """End all watches; with ``forget`` no client can go on from where they were."""
        self._cuts += 1
        if forget:
            self._next_version()
            self.forgotten = self._version
        self._wake()

    def of_kind(self, kind: ResourceKind) -> dict[str, dict[str, Any]]:
        """Return the objects of a kind by name."""
        return {key[2]: each for key, each in self.objects.items() if key[0] == kind.plural}

    # How.

    def _called(self, verb: str, kind: ResourceKind, name: str) -> None:
        self.calls.append((verb, f"{kind.plural}/{name}"))
        self.trouble(verb, kind.plural, name)

    def _found(self, kind: ResourceKind, name: str, namespace: str | None) -> dict[str, Any]:
        found = self.objects.get((kind.plural, namespace or "", name))
        # Of a group there is the one version in which its objects were made.
        if found is None or found["apiVersion"] != kind.api_version:
            raise ClusterError(f'{kind.plural} "{name}" not found', code=404, reason="NotFound")
        return found

    def _check_version(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        version = (new.get("metadata") or {}).get("resourceVersion")
        if version not in (None, old["metadata"]["resourceVersion"]):
            raise ClusterError("the object has been modified", code=409, reason="Conflict")

    def _put(self, what: str, kind: ResourceKind, key: Key, new: dict[str, Any]) -> Mapping[str, Any]:
        new["metadata"]["resourceVersion"] = str(self._next_version())
        self.objects[key] = new
        self._tell(what, kind, new)
        return copy.deepcopy(new)

    def _next_version(self) -> int:
        self._version = next(self._versions)
        return self._version

    def _tell(self, what: str, kind: ResourceKind, each: dict[str, Any]) -> None:
        self.history.append((self._version, what, kind, copy.deepcopy(each)))
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _fetched(asked: urllib.request.Request) -> bytes:
    try:
        with urllib.request.urlopen(asked, timeout=240) as answer:
            return bytes(answer.read())
    except http.client.HTTPException as error:
        raise ClusterError(f"{asked.full_url}: the answer was cut off: {error}") from error
    except urllib.error.HTTPError as error:
        with error:
            raise ClusterError(f"{asked.full_url}: {error}", code=error.code) from error
    except OSError as error:
        raise ClusterError(f"error trying to reach service: {error}", code=503) from error


def _kind(plural: str) -> ResourceKind:
    known = (each for each in vars(kinds).values() if isinstance(each, ResourceKind))
    return next(each for each in known if each.plural == plural)


def _matches(each: Mapping[str, Any], namespace: str | None, selector: str) -> bool:
    metadata = each["metadata"]
    name, equal, value = selector.partition("=")
    own = metadata.get("labels") or {}
    return (namespace is None or metadata.get("namespace", "") == namespace) and (
        not name or (name in own and (not equal or own[name] == value))
    )


def _merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what RFC 7386 makes of an object and changes to it."""
    new = dict(old)
    for key, value in changes.items():
        if value is None:
            new.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(new.get(key), Mapping):
            new[key] = _merged(new[key], value)
        else:
            new[key] = value
    return new


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
