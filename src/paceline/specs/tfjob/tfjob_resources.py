"""What a container of a TFJob requests and is limited to, as a job file says it: one number for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paceline.model import quantities
from paceline.rendering import pods
from paceline.specs.tfjob.tfjob_shapes import Unreadable

Fields = dict[str, Any]
_KNOWN = ("cpu", "memory", pods.GPU)


def taken(pod: Fields, container: Fields, container_at: str, note: Callable[[str, str], None]) -> Fields:
    """Take cores, memory and GPUs out of a container; other resources stay.

    Args:
        pod: the spec of the pod that the container is in.
        container: the container, of which they are taken.
        container_at: its path.
        note: told, by path, what a job file says in another way.
    """
    resources, at = container.get("resources") or {}, f"{container_at}.resources"
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    _check(limits, f"{at}.limits")
    _check(requests, f"{at}.requests")
    is_guaranteed = all(map(_is_guaranteed, (*pod["containers"], *(pod.get("initContainers") or ()))))
    asked = {key: requests.pop(key, None) for key in _KNOWN}
    limited = {key: limits.pop(key, None) for key in _KNOWN}
    wanted = {key: asked[key] if limited[key] is None else limited[key] for key in _KNOWN}
    cpu, memory = wanted["cpu"], wanted["memory"]
    is_whole = cpu is not None and quantities.parse_quantity(cpu) % 1 == 0
    # Only a pod whose every container has limits that its requests equal gets cores of its own.
    is_exclusive = is_whole and is_guaranteed
    # As `RoleSpec.requested_millicores` has it.
    millicores = 0 if cpu is None else round(quantities.parse_quantity(cpu) * 1000)
    shared = {"cpu": f"{millicores - 1}m"} if millicores > 1 else {}
    requested = wanted if is_exclusive else {**wanted, **shared}
    for key, given in asked.items():
        if given is not None and limited[key] is None:
            note(f"{at}.requests.{key}", f"{given} (it becomes the limit as well)")
        # Of parts of a core a thousandth less makes no difference: none of them is a replica's own.
        alike = (requested[key],) if is_whole else (requested[key], wanted[key])
        if not any(_same(given, each) for each in alike):
            note(f"{at}.requests.{key}", f"{given} ({requested[key]} is requested)")
    return {
        "cpu": cpu,
        "memory": memory,
        "gpu": int(quantities.parse_quantity(wanted[pods.GPU] or 0)),
        "cpu_policy": "exclusive" if is_exclusive else None,
    }


def _same(asked: Any, wanted: Any) -> bool:
    """Whether a request is the wanted one, or, as nothing is asked, becomes it."""
    if asked is None:
        return True
    return bool(quantities.parse_quantity(asked) == quantities.parse_quantity(wanted))


def _is_guaranteed(container: Fields) -> bool:
    """Whether a container has limits of cores and memory, and requests that are the same or not said."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    try:
        return all(limits.get(key) and _same(requests.get(key), limits[key]) for key in ("cpu", "memory"))
    except ValueError:
        return False


def _check(found: Fields, at: str) -> None:
    """Check the quantities that are read, so that none of them is refused without its place."""
    for key in _KNOWN:
        try:
            number = quantities.parse_quantity(found.get(key, 0))
        except ValueError as error:
            raise Unreadable(f"{at}.{key}", str(error)) from error
        if number < 0 or (key == pods.GPU and number % 1):
            raise Unreadable(f"{at}.{key}", f"{found[key]} is no number of what is wanted")
