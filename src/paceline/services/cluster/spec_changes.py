"""Continues jobs of a cluster from their last checkpoint with another job file.

The request is an annotation, set in the same patch as the new spec, so it is made once or not at all. The
operator ends the job and resumes it; the effect of the change is measured in the operator's store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from paceline import specs
from paceline.engines.kubernetes.clusters import ClusterError, Object
from paceline.errors import Conflict, NotFound
from paceline.model.jobs.runs import Run
from paceline.rendering import manifests
from paceline.services import successors
from paceline.services.cluster.annotations import CHANGE, RESUME
from paceline.services.cluster.job_objects import JobObjects
from paceline.services.cluster.measurements import Found
from paceline.specs.job_file import custom_resources


def change(objects: JobObjects, run: Run, source: str) -> None:
    """Continue a job with another job file; it waits if there is no room for it.

    Args:
        objects: the objects of its namespace.
        run: the job; if it has ended, it must be resumable.
        source: the job file.

    Raises:
        Conflict: the job is being changed already.
        InvalidInput: the job file is wrong, lacks what Kubernetes needs, or runs something else.
        ClusterError: the cluster refuses the change.
    """
    name, spec = run.name, successors.successor(run, source)
    manifests.check(spec)
    resource, at = objects.resource(name), objects.clock()
    known = _known(objects, name, resource)
    if known is not None and known.store.waiting_change(known.run.name) is not None:
        raise Conflict(f"{name} is being changed already", f"when it runs again: paceline wait {name}")
    wanted = {**custom_resources.resource(spec, objects.namespace)["spec"], custom_resources.SUSPEND: False}
    _patch(objects, resource, wanted, {CHANGE: repr(at), RESUME: repr(at)})
    if known is not None:
        known.store.note_change(known.run.name, source, before=specs.source_of(run), at=at)


def _patch(objects: JobObjects, resource: Object, wanted: Object, annotations: Mapping[str, str]) -> None:
    """Give a job another spec if its spec was not changed since it was read; its status may have changed."""
    name = resource["metadata"]["name"]
    changes = {"spec": merge_patch(resource["spec"], wanted)}
    version = resource["metadata"]["resourceVersion"]
    while True:
        metadata = {"resourceVersion": version, "annotations": annotations}
        try:
            return objects.patch(name, {"metadata": metadata, **changes})
        except ClusterError as error:
            if not error.is_conflict:
                raise
            newer = objects.resource(name)
            if newer["metadata"]["resourceVersion"] == version:
                raise
            if _asked(newer) != _asked(resource):
                raise Conflict(
                    f"{name} was changed meanwhile", f"look at it again: paceline get {name}"
                ) from error
            version = newer["metadata"]["resourceVersion"]


def _asked(resource: Object) -> tuple[Any, ...]:
    """Return what users have requested of a job: its spec, and the values of two annotations."""
    annotations = resource["metadata"].get("annotations") or {}
    return resource["spec"], annotations.get(CHANGE), annotations.get(RESUME)


def _known(objects: JobObjects, name: str, resource: Object) -> Found | None:
    """Return the run of the job in the operator's store; None: it is not there, or not yet."""
    if objects.measurements.has_store:
        with contextlib.suppress(NotFound):
            return objects.measurements.kept(objects.scope(), name, resource)
    return None


def merge_patch(before: Any, after: Any) -> Any:
    """Return the merge patch (RFC 7386) that turns the JSON value ``before`` into ``after``."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone = dict.fromkeys(before.keys() - after.keys())
    changed = {key: merge_patch(before.get(key), value) for key, value in after.items()}
    return {**gone, **changed}
