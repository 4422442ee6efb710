"""Jobs of a cluster that go on from their last checkpoint as another job file has them.

The wish is a value of an annotation beside the other spec, in one patch, so it is made once or not at all.
The operator ends the job for it and brings it back; what it brought is measured where the operator keeps what
there was.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paceline import specs
from paceline.engines.kubernetes.clusters import ClusterError, Object
from paceline.errors import Conflict, NotFound
from paceline.model.jobs.runs import Run
from paceline.rendering import manifests
from paceline.services import successors
from paceline.services.cluster.annotations import CHANGE, RESUME
from paceline.specs.job_file import custom_resources

if TYPE_CHECKING:
    from paceline.services.cluster.job_objects import JobObjects
    from paceline.services.cluster.measurements import Found


def change(objects: JobObjects, run: Run, source: str) -> None:
    """Let a job go on as another job file has it; where there is no room for that it waits.

    Args:
        objects: those of its namespace.
        run: the job; one that has ended can be resumed.
        source: the job file.

    Raises:
        Conflict: it is being changed already.
        InvalidInput: the job file is wrong, lacks what Kubernetes needs, or runs something else.
        ClusterError: the cluster refuses it.
    """
    name, spec = run.name, successors.successor(run, source)
    manifests.check(spec)
    resource, at = objects.resource(name), objects.clock()
    known = _known(objects, name, resource)
    if known is not None and known.store.waiting_relay(known.run.name) is not None:
        raise Conflict(f"{name} is being changed already", f"when it runs again: paceline wait {name}")
    wanted = {**custom_resources.resource(spec, objects.namespace)["spec"], custom_resources.SUSPEND: False}
    _patch(objects, resource, wanted, {CHANGE: repr(at), RESUME: repr(at)})
    if known is not None:
        known.store.note_relay(known.run.name, source, before=specs.source_of(run), at=at)


def _patch(objects: JobObjects, resource: Object, wanted: Object, annotations: Mapping[str, str]) -> None:
    """Give a job another spec if its spec is still as it was read; its status may change meanwhile."""
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
    """Return what users have asked of a job."""
    annotations = resource["metadata"].get("annotations") or {}
    return resource["spec"], annotations.get(CHANGE), annotations.get(RESUME)


def _known(objects: JobObjects, name: str, resource: Object) -> Found | None:
    """Return the job where an operator keeps it; None: it does not, or not yet."""
    if objects.measurements.has_store:
        with contextlib.suppress(NotFound):
            return objects.measurements.kept(objects.scope(), name, resource)
    return None


def merge_patch(before: Any, after: Any) -> Any:
    """Return what makes one JSON value of another when it is merged into that (RFC 7386)."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone = dict.fromkeys(before.keys() - after.keys())
    changed = {key: merge_patch(before.get(key), value) for key, value in after.items()}
    return {**gone, **changed}
