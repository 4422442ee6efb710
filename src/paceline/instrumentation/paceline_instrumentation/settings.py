"""The job file's ``training:`` block, as the engine passes it on."""

from __future__ import absolute_import

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

VARIABLE = "PACELINE_TRAINING"


def read(environment):
    # type: (Mapping[str, str]) -> Mapping[str, Any]
    """Return the settings of the block; empty if there is no block or it cannot be parsed."""
    try:
        settings = json.loads(environment.get(VARIABLE) or "{}")
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}
