"""Paceline: runs TensorFlow parameter-server training, watches every replica, and says why it is slow.

``submit``, ``get`` and ``list`` are what scripts and notebooks begin with. They are loaded when they are
first used, so that ``import paceline`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.errors import (
        Conflict,
        EngineError,
        FindingsFound,
        InvalidInput,
        JobFailed,
        NotFound,
        PacelineError,
        StoreError,
        WaitTimeout,
    )
    from paceline.surfaces.api import JobHandle, experiment, get, load, submit
    from paceline.surfaces.api import list_jobs as list

__all__ = [
    "Conflict",
    "EngineError",
    "FindingsFound",
    "InvalidInput",
    "JobFailed",
    "JobHandle",
    "NotFound",
    "PacelineError",
    "StoreError",
    "WaitTimeout",
    "experiment",
    "get",
    "list",
    "load",
    "submit",
]

_API = {
    "JobHandle": "JobHandle", "experiment": "experiment", "get": "get", "list": "list_jobs", "load": "load",
    "submit": "submit",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module("paceline.surfaces.api" if name in _API else "paceline.errors")
    return getattr(module, _API.get(name, name))


def __dir__() -> Any:
    return sorted(__all__)
