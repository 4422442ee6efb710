"""Records what a script gives TensorFlow while it builds its graph: gradients of losses, the last step."""

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
    """Wraps the functions that build gradients and hooks.

    Args:
        guard: shields the script from errors.
        facts: stores the gradients.
        steps: stores the last step.
    """

    def __init__(self, guard, facts, steps):
        # type: (Guard, graphs.Facts, Steps) -> None
        self._guard = guard
        self._facts = facts
        self._steps = steps

    def patch_gradients(self, module):
        # type: (ModuleType) -> None
        """Wrap the function that computes all gradients of graphs, from TensorFlow 1.13 on."""
        signatures.check(module._GradientsHelper, ("ys", "xs"))
        module._GradientsHelper = self._wrapped(module._GradientsHelper)  # type: ignore[attr-defined]

    def patch_old_gradients(self, module):
        # type: (ModuleType) -> None
        """Wrap that function in older versions: in ``gradients_impl``, by this name or as ``gradients``."""
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
        """Store the gradients of the first of some losses.

        Args:
            ys: the losses.
            xs: the variables, or their stand-ins in the graph, that the gradients are with respect to.
            found: the gradients, in that order; None: a loss does not depend on a variable.
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
        """Wrap the hook that knows after which step training ends."""
        hook = module.StopAtStepHook
        created = hook.after_create_session
        signatures.check(created, ("self", "session", "coord"))

        @signatures.wraps(created)
        def after_create_session(own, session, coord):
            # type: (Any, Any, Any) -> None
            created(own, session, coord)
            self._guard(self._note_last_step, own)

        hook.after_create_session = after_create_session

    def _note_last_step(self, hook):
        # type: (Any) -> None
        """Store the last step; if a hook has a number of steps, it counts them from the restored step on."""
        if hook._last_step is not None:
            self._steps.total_steps = int(hook._last_step)


def _listed(values):
    # type: (Any) -> List[Any]
    return list(values) if isinstance(values, (list, tuple)) else [values]
