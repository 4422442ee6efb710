"""Annotations of a job's resource: what is asked of its operator beside the spec."""

from __future__ import annotations

import logging

from paceline.engines.kubernetes import kinds
from paceline.engines.kubernetes.clusters import Object
from paceline.engines.kubernetes.mirrors import key_of
from paceline.errors import StoreError
from paceline.model.jobs.adjustments import Adjustment
from paceline.stores import encodings

#: A new value brings a failed job back.
RESUME = f"{kinds.TRAINING_JOBS.group}/resume"
#: A new value: a job that runs ends, and goes on as its spec has it now.
CHANGE = f"{kinds.TRAINING_JOBS.group}/change"
#: What replicas have for a time, as JSON (`adjustments_of`).
ADJUSTMENTS = f"{kinds.TRAINING_JOBS.group}/adjustments"
#: Which process changes or probes the job, and until when it may (`resizes.changing`).
CHANGING = f"{kinds.TRAINING_JOBS.group}/changing"

log = logging.getLogger(__name__)


def adjustments_of(resource: Object) -> tuple[Adjustment, ...]:
    """Return what replicas of a job have for a time; an unreadable annotation means nothing."""
    text = (resource["metadata"].get("annotations") or {}).get(ADJUSTMENTS, "")
    if not text:
        return ()
    try:
        return encodings.decode(tuple[Adjustment, ...], text, what="adjustments")
    except StoreError as error:
        log.warning("%s/%s: %s", *key_of(resource), error.message)
        return ()
