"""``recovery-wait``: how long a worker sleeps between two checks for the chief's variables.

TensorFlow's session manager checks every 30 seconds, so a worker that starts just before its chief is done
begins up to half a minute later. Only the default is replaced, never a value that the script has chosen.
"""

from __future__ import absolute_import

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from .notes import Note

NAME, VERSION = "recovery-wait", 1
DEFAULT_SECONDS = 30
_BEGIN = (
    "self",
    "local_init_op",
    "ready_op",
    "ready_for_local_init_op",
    "graph",
    "recovery_wait_secs",
)


class RecoveryWait(object):
    """Replaces the default wait of session managers.

    Args:
        note: reports whether the wait was replaced.
        seconds: the time between two checks.
    """

    def __init__(self, note, seconds):
        # type: (Note, float) -> None
        self._note = note
        self._seconds = seconds

    def patch(self, module):
        # type: (ModuleType) -> None
        """Replace the wait in ``tensorflow.python.training.session_manager``."""
        manager = module.SessionManager
        original = manager.__init__
        signatures.check(original, _BEGIN, NAME)

        @signatures.wraps(original, NAME)
        def __init__(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> None
            original(own, *arguments, **named)
            self._note.attempt(self._replace, own)

        manager.__init__ = __init__

    def _replace(self, manager):
        # type: (Any) -> None
        chosen = manager._recovery_wait_secs
        if chosen == DEFAULT_SECONDS:
            manager._recovery_wait_secs = self._seconds
            self._note.applied("session manager: %g s instead of %g s" % (self._seconds, chosen))
        else:
            self._note.refused("the script has chosen %g s" % chosen)
