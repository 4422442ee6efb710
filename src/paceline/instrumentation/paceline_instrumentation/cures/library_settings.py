"""``library-settings``: settings that only the training library obeys, with the reason for each.

No cure can apply them to a script that is not written with the library. So these settings are refused here
instead of being ignored silently. Settings that a script may read by itself, such as the batch size, are not
among them.
"""

from __future__ import absolute_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Mapping, Tuple

    from .notes import Note

NAME, VERSION = "library-settings", 1


def _more_than_one(value):
    # type: (Any) -> bool
    return isinstance(value, int) and value > 1


def _other_than(usual):
    # type: (Any) -> Callable[[Any], bool]
    return lambda value: value is not None and value != usual


#: The setting's path in the block; whether its value asks for something; why a script cannot be given it.
REASONS = (
    (
        "steps_in_flight",
        _more_than_one,
        "a step's results are what the script goes on with, its hooks stop by them, and an exception belongs"
        " to the step that raised it; only the loop can begin the next step before, and that is the script's"
        " (a coordinator's workers overlap by themselves)",
    ),
    (
        "steps_per_exchange",
        _more_than_one,
        "several steps on parameters that are pulled once need a copy of them in the worker, which the"
        " script's graph does not have; of Keras, steps_per_execution saves what a call costs",
    ),
    (
        "transfers.packed",
        lambda value: value is True,
        "TensorFlow sends each tensor by itself, and to join them the script's operations would be made anew",
    ),
    (
        "consistency.mode",
        _other_than("asynchronous"),
        "waiting for other workers is part of the script's loop: SyncReplicasOptimizer has it for sessions",
    ),
    ("fused_tables", lambda value: value is True, "the tables and their names are the script's"),
    (
        "compute_precision",
        _other_than("float32"),
        "types of layers are the script's: Keras has mixed_precision.set_global_policy for it",
    ),
)  # type: Tuple[Tuple[str, Callable[[Any], bool], str], ...]


class LibrarySettings(object):
    """Refuses settings that cannot be applied to a script.

    Args:
        note: reports why.
        settings: the block.
    """

    def __init__(self, note, settings):
        # type: (Note, Mapping[str, Any]) -> None
        self._note = note
        self._settings = settings

    def patch(self, module):
        # type: (ModuleType) -> None
        """Change nothing, and report the refusals: scripts of the library never get here."""
        for path, asks, reason in REASONS:
            if asks(value(self._settings, path)):
                self._note.refused("%s: %s" % (path, reason))


def value(settings, path):
    # type: (Mapping[str, Any], str) -> Any
    """Return a setting by its path, such as ``transfers.packed``; None: it is not set."""
    found = settings  # type: Any
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found
