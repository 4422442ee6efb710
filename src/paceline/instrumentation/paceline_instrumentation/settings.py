"""The job file's ``training:`` block, as the engine hands it over."""

from __future__ import absolute_import

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

VARIABLE = "PACELINE_TRAINING"


def read(environment):
    # type: (Mapping[str, str]) -> Mapping[str, Any]
    """Return the settings of the block; none where there is no block, or none that can be read."""
    try:
        settings = json.loads(environment.get(VARIABLE) or "{}")
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}
