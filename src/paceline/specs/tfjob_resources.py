"""What a container of a TFJob requests and is limited to, as a job file says it: one number for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paceline.model import quantities
from paceline.rendering import pods

Fields = dict[str, Any]
_KNOWN = ("cpu", "memory", pods.GPU)


def taken(container: Fields, container_at: str, note: Callable[[str, str], None]) -> Fields:
    """Take cores, memory and GPUs out of a container; other resources stay.

    Args:
        container: the container, of which they are taken.
        container_at: its path.
        note: told, by path, what a job file says in another way.
    """
    resources, at = container.get("resources") or {}, f"{container_at}.resources"
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    asked = {key: requests.pop(key, None) for key in _KNOWN}
    limited = {key: limits.pop(key, None) for key in _KNOWN}
    wanted = {key: asked[key] if limited[key] is None else limited[key] for key in _KNOWN}
    cpu, memory = wanted["cpu"], wanted["memory"]
    is_whole = cpu is not None and quantities.parse_quantity(cpu) % 1 == 0
    equal = all(_same(asked[key], wanted[key]) for key in ("cpu", "memory"))
    is_exclusive = is_whole and memory is not None and equal
    # As `RoleSpec.requested_millicores` has it.
    shared = {"cpu": f"{round(quantities.parse_quantity(cpu) * 1000) - 1}m"} if is_whole else {}
    requested = wanted if is_exclusive else {**wanted, **shared}
    for key, given in asked.items():
        if given is not None and limited[key] is None:
            note(f"{at}.requests.{key}", f"{given} (it becomes the limit as well)")
        if not _same(given, requested[key]):
            note(f"{at}.requests.{key}", f"{given} ({requested[key]} is requested)")
    return {
        "cpu": cpu,
        "memory": memory,
        "gpu": int(wanted[pods.GPU] or 0),
        "cpu_policy": "exclusive" if is_exclusive else None,
    }


def _same(asked: Any, wanted: Any) -> bool:
    """Whether a request is the wanted one, or, as nothing is asked, becomes it."""
    if asked is None:
        return True
    return bool(quantities.parse_quantity(asked) == quantities.parse_quantity(wanted))
