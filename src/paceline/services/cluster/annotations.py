"""Annotations of a job's resource: requests to the operator that are not part of the spec."""

from __future__ import annotations

import logging

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Object
from paceline.engines.kubernetes.mirrors import key_of
from paceline.errors import StoreError
from paceline.model.jobs.adjustments import Adjustment
from paceline.stores import encodings

#: A new value resumes a failed job.
RESUME = f"{kinds.TRAINING_JOBS.group}/resume"
#: A new value ends a running job and starts it again with its current spec.
CHANGE = f"{kinds.TRAINING_JOBS.group}/change"
#: Temporary settings of replicas, as JSON (`adjustments_of`).
ADJUSTMENTS = f"{kinds.TRAINING_JOBS.group}/adjustments"
#: Which process changes or probes the job, and until when its claim holds (`resizes.changing`).
CHANGING = f"{kinds.TRAINING_JOBS.group}/changing"

log = logging.getLogger(__name__)


def adjustments_of(resource: Object) -> tuple[Adjustment, ...]:
    """Return the adjustments of a job's replicas; an unreadable annotation counts as none."""
    text = (resource["metadata"].get("annotations") or {}).get(ADJUSTMENTS, "")
    if not text:
        return ()
    try:
        return encodings.decode(tuple[Adjustment, ...], text, what="adjustments")
    except StoreError as error:
        log.warning("%s/%s: %s", *key_of(resource), error.message)
        return ()
