"""Runs actions right after a module was executed, whatever imports it and whenever.

Every Python process of a replica loads this module, so it imports nothing that Python has not loaded already.
"""

from __future__ import absolute_import

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Optional, Sequence

    Action = Callable[[ModuleType], None]


class ModuleWatch(object):
    """A finder that waits for modules of given names.

    It leaves ``sys.meta_path`` when all modules have come, or on ``end``.

    The loader of an awaited module is replaced until it executes the module; then the module gets its
    original loader and spec, as if nothing had been there.

    Python's garbage collector is off while an awaited module is executed. An import of TensorFlow creates
    hundreds of thousands of objects and frees few of them; without scanning them again and again it takes a
    fifth less CPU time.
    """

    def __init__(self):
        # type: () -> None
        self._actions = {}  # type: Dict[str, List[Action]]

    def when_loaded(self, name, action):
        # type: (str, Action) -> None
        """Call an action with a module after it was executed; at once if it is already loaded."""
        if name in sys.modules:
            _guarded(action, sys.modules[name])
            return
        self._actions.setdefault(name, []).append(action)
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def load_without_collections(self, name):
        # type: (str) -> None
        """Keep the collector off while a module is executed, with all that it imports."""
        self.when_loaded(name, _no_action)

    def end(self):
        # type: () -> None
        """Stop waiting."""
        self._actions.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname, path=None, target=None):
        # type: (str, Optional[Sequence[str]], Optional[ModuleType]) -> Any
        """Return the spec that the other finders give, with a loader that runs the actions."""
        if fullname not in self._actions:
            return None
        spec = next(filter(None, (self._asked(each, fullname, path, target) for each in sys.meta_path)), None)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self._loaded)
        return spec

    def _asked(self, finder, name, path, target):
        # type: (Any, str, Optional[Sequence[str]], Optional[ModuleType]) -> Any
        return (
            finder.find_spec(name, path, target)
            if finder is not self and hasattr(finder, "find_spec")
            else None
        )

    def _loaded(self, module):
        # type: (ModuleType) -> None
        for action in self._actions.pop(module.__name__, ()):
            _guarded(action, module)
        if not self._actions:
            self.end()


def _no_action(module):
    # type: (ModuleType) -> None
    """Stand for an action."""


def _guarded(action, module):
    # type: (Action, ModuleType) -> None
    """Call an action; its errors must not affect the import."""
    try:  # noqa: SIM105 - contextlib would be loaded for it
        action(module)
    except Exception:  # noqa: BLE001 - the edge between the script and what looks at it
        pass


class _Loader(object):
    """Replaces a loader until the module is executed."""

    def __init__(self, loader, loaded):
        # type: (Any, Action) -> None
        self._loader = loader
        self._loaded = loaded

    def create_module(self, spec):
        # type: (Any) -> Optional[ModuleType]
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module):
        # type: (ModuleType) -> None
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        is_collecting = gc.isenabled()
        gc.disable()
        try:
            self._loader.exec_module(module)
        finally:
            if is_collecting:
                gc.enable()
        self._loaded(module)

    def __getattr__(self, name):
        # type: (str) -> Any
        return getattr(self._loader, name)
