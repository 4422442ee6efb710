"""Resource requests and limits of a TFJob's container in the form of a job file: one number for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paceline.model import quantities
from paceline.rendering import sizes
from paceline.specs.tfjob.tfjob_shapes import Unreadable

Fields = dict[str, Any]
_KNOWN = ("cpu", "memory", sizes.GPU)


def taken(pod: Fields, container: Fields, container_at: str, note: Callable[[str, str], None]) -> Fields:
    """Remove cores, memory and GPUs from a container and return them; other resources stay.

    Args:
        pod: the pod spec that the container belongs to.
        container: the container, which is modified.
        container_at: path of the container.
        note: called with the path and a text for everything that a job file expresses differently.
    """
    resources, at = container.get("resources") or {}, f"{container_at}.resources"
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    _check(limits, f"{at}.limits")
    _check(requests, f"{at}.requests")
    is_guaranteed = all(map(_is_guaranteed, (*pod["containers"], *(pod.get("initContainers") or ()))))
    asked = {key: requests.pop(key, None) for key in _KNOWN}
    limited = {key: limits.pop(key, None) for key in _KNOWN}
    effective_limits = {key: asked[key] if limited[key] is None else limited[key] for key in _KNOWN}
    cpu, memory = effective_limits["cpu"], effective_limits["memory"]
    is_whole = cpu is not None and quantities.parse_quantity(cpu) % 1 == 0
    # A pod gets exclusive cores only if the requests of every container equal its limits.
    is_exclusive = is_whole and is_guaranteed
    # This is the rule of `RoleSpec.requested_millicores`.
    millicores = 0 if cpu is None else round(quantities.parse_quantity(cpu) * 1000)
    shared = {"cpu": f"{millicores - 1}m"} if millicores > 1 else {}
    requested = effective_limits if is_exclusive else {**effective_limits, **shared}
    for key, given in asked.items():
        if given is not None and limited[key] is None:
            note(f"{at}.requests.{key}", f"{given} (it becomes the limit as well)")
        # For a fraction of a core, a request of one millicore less is equivalent: it is never exclusive.
        alike = (requested[key],) if is_whole else (requested[key], effective_limits[key])
        if not any(_same(given, quantity) for quantity in alike):
            note(f"{at}.requests.{key}", f"{given} ({requested[key]} is requested)")
    return {
        "cpu": cpu,
        "memory": memory,
        "gpu": int(quantities.parse_quantity(effective_limits[sizes.GPU] or 0)),
        "cpu_policy": "exclusive" if is_exclusive else None,
    }


def _same(asked: Any, wanted: Any) -> bool:
    """Return whether a request equals the wanted one; a missing request defaults to the limit, so it does."""
    if asked is None:
        return True
    return bool(quantities.parse_quantity(asked) == quantities.parse_quantity(wanted))


def _is_guaranteed(container: Fields) -> bool:
    """Return whether a container has CPU and memory limits, and requests equal to them or no requests."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    try:
        return all(limits.get(key) and _same(requests.get(key), limits[key]) for key in ("cpu", "memory"))
    except ValueError:
        return False


def _check(found: Fields, at: str) -> None:
    """Check the quantities that are read, so that an error about one names its path."""
    for key in _KNOWN:
        try:
            number = quantities.parse_quantity(found.get(key, 0))
        except ValueError as error:
            raise Unreadable(f"{at}.{key}", str(error)) from error
        if number < 0 or (key == sizes.GPU and number % 1):
            raise Unreadable(f"{at}.{key}", f"{found[key]} is no number of what is wanted")
