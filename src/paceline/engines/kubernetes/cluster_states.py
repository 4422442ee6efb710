"""The capacity of a cluster and how much of it is used, from objects of the Kubernetes API."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from paceline.errors import InvalidInput, NotFound
from paceline.model import quantities
from paceline.model.jobs.nodes import Node, Quota, Resources, Taint
from paceline.rendering import sizes

#: The API's name of each kind of `Resources`, and how many of our units make one unit of the API.
NAMES: Mapping[str, tuple[str, int]] = {
    "millicores": ("cpu", 1000),
    "memory_bytes": ("memory", 1),
    "gpus": (sizes.GPU, 1),
    "pods": ("pods", 1),
}
#: The scheduler's message if nodes have less free CPU than a pod requests.
_NO_CPU = "Insufficient cpu"
#: Phases in which a pod no longer uses resources.
ENDED = ("Succeeded", "Failed")
_SAVED_BY = "kubectl get nodes,pods,resourcequotas --all-namespaces -o json > cluster.json writes one"

Object = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """The nodes of a cluster, and the quotas of one of its namespaces.

    Attributes:
        short_of_cpu: pods that wait because no node has enough free CPU, as ``NAMESPACE/NAME``.
    """

    nodes: tuple[Node, ...]
    quotas: tuple[Quota, ...] = ()
    short_of_cpu: tuple[str, ...] = ()


def load(path: str | os.PathLike[str], namespace: str) -> ClusterState:
    """Return the state from a file that ``kubectl get ... -o json`` wrote.

    Raises:
        NotFound: there is no such file.
        InvalidInput: the file cannot be read, or is not a list of API objects.
    """
    try:
        listed = json.loads(Path(path).read_bytes())
    except FileNotFoundError as error:
        raise NotFound(f"{os.fspath(path)}: there is no such file", _SAVED_BY) from error
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{os.fspath(path)}: it cannot be read as JSON: {error}", _SAVED_BY) from error
    items = listed.get("items") if isinstance(listed, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise InvalidInput(f"{os.fspath(path)}: it is no list of Kubernetes objects", _SAVED_BY)
    try:
        return read(items, namespace)
    except ValueError as error:
        raise InvalidInput(f"{os.fspath(path)}: {error}", _SAVED_BY) from error


def read(objects: Iterable[Object], namespace: str) -> ClusterState:
    """Return the state that nodes, pods of all namespaces and quotas describe; other objects are ignored.

    Raises:
        ValueError: an object does not have the API's format; the message names it.
    """
    by_kind: dict[str, list[Object]] = collections.defaultdict(list)
    for api_object in objects:
        by_kind[str(api_object.get("kind"))].append(api_object)
    used: dict[str, Resources] = collections.defaultdict(Resources)
    for api_object in by_kind["Pod"]:
        host = host_of(api_object)
        if host is not None:
            used[host] += requests(api_object)
    nodes = map(node, by_kind["Node"])
    quotas = (each for each in by_kind["ResourceQuota"] if _at(each, "metadata", "namespace") == namespace)
    return ClusterState(
        nodes=tuple(dataclasses.replace(each, used=used.get(each.name, Resources())) for each in nodes),
        quotas=tuple(found for each in quotas if (found := quota(each)) is not None),
        short_of_cpu=tuple(
            f"{_at(pod, 'metadata', 'namespace')}/{_name(pod)}"
            for pod in by_kind["Pod"]
            if _is_short_of_cpu(pod)
        ),
    )


def _is_short_of_cpu(pod: Object) -> bool:
    """Return whether a pod without a node waits for CPU, as the scheduler reports (``NodeResourcesFit``)."""
    if _at(pod, "spec", "nodeName"):
        return False
    return any(
        each.get("type") == "PodScheduled"
        and each.get("status") == "False"
        and _NO_CPU in str(each.get("message") or "")
        for each in _list(pod, "status", "conditions")
    )


def host_of(pod: Object) -> str | None:
    """Return the node whose resources a pod takes; None: it has no node yet, or has ended."""
    host = str(_at(pod, "spec", "nodeName") or "")
    return host if host and _at(pod, "status", "phase") not in ENDED else None


def requests(pod: Object) -> Resources:
    """Return the resources that a pod takes from its node.

    Source: ``PodRequests`` of Kubernetes (``k8s.io/component-helpers/resource``). Containers run together
    with the init containers that always restart; the other init containers run one by one before them.
    """
    running = sum((_container(pod, each) for each in _list(pod, "spec", "containers")), Resources())
    beside, most = Resources(), Resources()
    for each in _list(pod, "spec", "initContainers"):
        if each.get("restartPolicy") == "Always":
            beside += _container(pod, each)
            most = _larger(most, beside)
        else:
            most = _larger(most, beside + _container(pod, each))
    overhead = _amounts(_mapping(pod, "spec", "overhead"), pod, ROUND_CEILING)
    return _larger(running + beside, most) + overhead + Resources(pods=1)


def _container(pod: Object, container: Object) -> Resources:
    return _amounts(_mapping(container, "resources", "requests"), pod, ROUND_CEILING)


def _larger(one: Resources, other: Resources) -> Resources:
    return Resources(**{name: max(getattr(one, name), getattr(other, name)) for name in NAMES})


def node(api_object: Object) -> Node:
    """Return a node on which nothing is used.

    Raises:
        ValueError: it does not have the API's format.
    """
    conditions = {
        str(each.get("type")): each.get("status") for each in _list(api_object, "status", "conditions")
    }
    return Node(
        name=_name(api_object),
        allocatable=_amounts(_mapping(api_object, "status", "allocatable"), api_object, ROUND_FLOOR),
        labels=_mapping(api_object, "metadata", "labels"),
        taints=tuple(
            Taint(**{name: str(each.get(name) or "") for name in ("key", "value", "effect")})
            for each in _list(api_object, "spec", "taints")
        ),
        is_ready=conditions.get("Ready") == "True",
        is_cordoned=bool(_at(api_object, "spec", "unschedulable")),
    )


def quota(api_object: Object) -> Quota | None:
    """Return what is left of each kind of resource: the minimum over all its bounds in the quota.

    None: the quota is only for certain pods (best effort, a priority class), perhaps not for ours.

    Raises:
        ValueError: it does not have the API's format.
    """
    if _at(api_object, "spec", "scopes") or _at(api_object, "spec", "scopeSelector"):
        return None
    hard, used = _mapping(api_object, "status", "hard"), _mapping(api_object, "status", "used")
    left: dict[str, int] = {}
    for kind, (name, unit) in NAMES.items():
        for bound in (name, f"requests.{name}", f"limits.{name}", f"count/{name}"):
            if bound in hard:
                amount = _amount(hard[bound], api_object, unit, ROUND_FLOOR)
                amount -= _amount(used.get(bound, 0), api_object, unit, ROUND_CEILING)
                left[kind] = min(left.get(kind, amount), amount)
    return Quota(name=_name(api_object), left=left)


def _amounts(texts: Mapping[str, Any], owner: Object, rounding: str) -> Resources:
    return Resources(
        **{kind: _amount(texts.get(name, 0), owner, unit, rounding) for kind, (name, unit) in NAMES.items()}
    )


def _amount(text: Any, owner: Object, unit: int, rounding: str) -> int:
    try:
        return int((quantities.parse_quantity(text) * Decimal(unit)).to_integral_value(rounding=rounding))
    except ValueError as error:
        raise ValueError(f"{owner.get('kind')} {_name(owner)}: {error}") from error


def _name(each: Object) -> str:
    return str(_at(each, "metadata", "name"))


def _mapping(each: Object, *path: str) -> Object:
    found = _at(each, *path)
    if found is not None and not isinstance(found, Mapping):
        raise ValueError(f"{each.get('kind')}: {'.'.join(path)} is no mapping")
    return found or {}


def _list(each: Object, *path: str) -> list[Object]:
    found = _at(each, *path)
    if found is not None and not (
        isinstance(found, list) and all(isinstance(item, Mapping) for item in found)
    ):
        raise ValueError(f"{each.get('kind')}: {'.'.join(path)} is no list of mappings")
    return found or []


def _at(each: Object, *path: str) -> Any:
    """Return the value at a path; None if a part of the path is missing.

    Raises:
        ValueError: a part of the path is not a mapping.
    """
    found: Any = each
    for key in path:
        if found is None:
            return None
        if not isinstance(found, Mapping):
            raise ValueError(f"{each.get('kind')}: there is no {'.'.join(path)}")
        found = found.get(key)
    return found
