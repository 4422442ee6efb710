"""Hears what a script tells TensorFlow while it builds its graph: losses with their gradients, the last step."""

from __future__ import absolute_import

import functools

from paceline_instrumentation import signatures

if False:  # for type checkers
    from types import ModuleType
    from typing import Any, Callable, Sequence

    from paceline_instrumentation.graphs import Facts
    from paceline_instrumentation.guarding import Guard


class GraphWatch(object):
    """Wraps what builds gradients and hooks.

    Args:
        guard: keeps errors from the script.
        facts: where it is noted.
    """

    def __init__(self, guard, facts):
        # type: (Guard, Facts) -> None
        self._guard = guard
        self._facts = facts

    def patch_gradients(self, module):
        # type: (ModuleType) -> None
        """Wrap what all computing of gradients of a graph goes through, from TensorFlow 1.13 on."""
        signatures.check(module._GradientsHelper, ("ys", "xs"))
        module._GradientsHelper = self._wrapped(module._GradientsHelper)  # type: ignore[attr-defined]

    def patch_old_gradients(self, module):
        # type: (ModuleType) -> None
        """Wrap the same where it was before that: in ``gradients_impl``, by this name or as ``gradients``."""
        if "gradients_util" in vars(module):
            return
        name = "_GradientsHelper" if hasattr(module, "_GradientsHelper") else "gradients"
        signatures.check(getattr(module, name), ("ys", "xs"))
        setattr(module, name, self._wrapped(getattr(module, name)))

    def _wrapped(self, original):
        # type: (Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]
        @functools.wraps(original)
        def gradients(ys, xs, *arguments, **named):
            # type: (Any, Any, *Any, **Any) -> Sequence[Any]
            found = original(ys, xs, *arguments, **named)
            self._guard(self._note, ys, found)
            return found

        return gradients

    def _note(self, ys, gradients):
        # type: (Any, Sequence[Any]) -> None
        loss = ys[0] if isinstance(ys, (list, tuple)) else ys
        if hasattr(loss, "graph"):
            names = {getattr(each, "values", each).op.name for each in gradients if each is not None}
            self._facts.add_gradients(loss, names)

    def patch_hooks(self, module):
        # type: (ModuleType) -> None
        """Wrap the hook that says after which step training ends."""
        hook = module.StopAtStepHook
        original = hook.__init__
        signatures.check(original, ("self", "num_steps", "last_step"))

        @functools.wraps(original)
        def __init__(own, num_steps=None, last_step=None):  # noqa: N807
            # type: (Any, Any, Any) -> None
            original(own, num_steps, last_step)
            self._facts.total_steps = last_step or num_steps

        hook.__init__ = __init__
