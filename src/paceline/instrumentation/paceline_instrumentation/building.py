"""Hears what a script tells TensorFlow while it builds its graph: gradients of losses, the last step."""

from __future__ import absolute_import

from . import graphs, signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, List, Sequence

    from .guarding import Guard
    from .stepping import Steps

    Helper = Callable[..., Sequence[Any]]


class GraphWatch(object):
    """Wraps what builds gradients and hooks.

    Args:
        guard: keeps errors from the script.
        facts: where gradients are noted.
        steps: where the last step is noted.
    """

    def __init__(self, guard, facts, steps):
        # type: (Guard, graphs.Facts, Steps) -> None
        self._guard = guard
        self._facts = facts
        self._steps = steps

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
        # type: (Helper) -> Helper
        @signatures.wraps(original)
        def gradients(ys, xs, *arguments, **named):
            # type: (Any, Any, *Any, **Any) -> Sequence[Any]
            found = original(ys, xs, *arguments, **named)
            self._guard(self._note, _listed(ys), _listed(xs), found)
            return found

        return gradients

    def _note(self, ys, xs, found):
        # type: (List[Any], List[Any], Sequence[Any]) -> None
        """Note the gradients of the first of some losses.

        Args:
            ys: the losses.
            xs: what the gradients are with respect to: variables, or what stands for them in the graph.
            found: the gradients, in that order; None: a loss does not depend on it.
        """
        loss = ys[0]
        if not hasattr(loss, "graph"):
            return
        pairs = [(x.op.name, each) for x, each in zip(xs, found) if each is not None and hasattr(x, "op")]
        names = {getattr(each, "values", each).op.name for _, each in pairs}
        sparse = {name: hasattr(each, "values") for name, each in pairs}
        self._facts.add_gradients(loss.graph, graphs.Gradients(loss.name, names, sparse))

    def patch_hooks(self, module):
        # type: (ModuleType) -> None
        """Wrap the hook that says after which step training ends."""
        hook = module.StopAtStepHook
        original = hook.__init__
        signatures.check(original, ("self", "num_steps", "last_step"))

        @signatures.wraps(original)
        def __init__(own, num_steps=None, last_step=None):
            # type: (Any, Any, Any) -> None
            original(own, num_steps, last_step)
            self._steps.total_steps = last_step or num_steps

        hook.__init__ = __init__


def _listed(values):
    # type: (Any) -> List[Any]
    return list(values) if isinstance(values, (list, tuple)) else [values]
