"""``steps-per-execution``: ``Model.fit`` makes several steps in one call of its function.

A model that was compiled without ``steps_per_execution`` gets the number from the job file. The steps are the
same, on the same batches in the same order, so values stay. But callbacks are notified of batches once for
several steps, and a coordinator schedules several steps at once. Keras' own callbacks can handle that. The
script's callbacks may need each batch (a schedule of the learning rate, say), so a ``fit`` with such a
callback makes single steps, and the cure reports that. A model that is saved whole keeps the number in it.
"""

from __future__ import absolute_import

import weakref

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Optional, Sequence

    from .notes import Note

NAME, VERSION = "steps-per-execution", 1
_ARGUMENT = "steps_per_execution"
#: The methods that a callback defines if it needs each batch: those for training, and their old names.
_OF_BATCHES = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
_KERAS = ("keras", "tf_keras", "tensorflow", "tensorflow_core")


class StepsPerExecution(object):
    """Sets the number of steps when models are compiled, and resets it if a ``fit`` needs single steps.

    Args:
        note: reports which models got the number.
        steps: how many steps one call makes.
    """

    def __init__(self, note, steps):
        # type: (Note, int) -> None
        self._note = note
        self._steps = steps
        #: The models that have the number now.
        self._given = weakref.WeakSet()  # type: weakref.WeakSet[Any]

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap ``compile`` and ``fit`` of the models that a module of Keras defines."""
        owner = module.Model if hasattr(module, "Model") else module.TensorFlowTrainer
        compiles = next(each for each in owner.__mro__ if "compile" in vars(each))
        if not signatures.takes(compiles.compile, _ARGUMENT):
            self._note.refused("this Keras has no %s" % _ARGUMENT)
            return
        self._patch_compile(compiles)
        self._patch_fit(owner)

    def _patch_compile(self, owner):
        # type: (Any) -> None
        original = owner.compile
        signatures.check(original, ("self", "optimizer", "loss"), NAME)

        @signatures.wraps(original, NAME)
        def compile(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            call = signatures.bound(original, (own,) + arguments, named)
            is_given = call is not None and self._note.attempt(self._give, own, call.arguments)
            if call is None or not is_given:
                return original(own, *arguments, **named)
            return original(*call.args, **call.kwargs)

        owner.compile = compile

    def _give(self, model, asked):
        # type: (Any, Any) -> bool
        """Put the number into a call of ``compile`` that has none; return whether that was done."""
        self._given.discard(model)
        if asked.get(_ARGUMENT) is not None or "experimental_" + _ARGUMENT in asked.get("kwargs", {}):
            self._note.refused("the script has chosen %s" % (asked.get(_ARGUMENT) or "a number"))
            return False
        if asked.get("run_eagerly"):
            self._note.refused("the model runs eagerly")
            return False
        asked[_ARGUMENT] = self._steps
        self._given.add(model)
        return True

    def _patch_fit(self, owner):
        # type: (Any) -> None
        original = owner.fit
        signatures.check(original, ("self", "x", "y", "batch_size"), NAME)

        @signatures.wraps(original, NAME)
        def fit(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            call = signatures.bound(original, (own,) + arguments, named)
            if call is not None:
                self._note.attempt(self._decide, own, call.arguments.get("callbacks"))
            return original(own, *arguments, **named)

        owner.fit = fit

    def _decide(self, model, callbacks):
        # type: (Any, Any) -> None
        """Reset the number of a model that is about to be fitted if a callback needs each batch."""
        if model not in self._given:
            return
        wants = wanting_batches(getattr(callbacks, "callbacks", callbacks))
        if wants is None:
            self._note.applied("%s: %d" % (model.name, self._steps))
            return
        self._given.discard(model)
        if hasattr(model, "_steps_per_execution") and hasattr(model._steps_per_execution, "assign"):
            model._steps_per_execution.assign(1)
        else:
            model.steps_per_execution = 1
        self._note.refused("%s, a callback of the script, wants each batch" % wants)


def wanting_batches(callbacks):
    # type: (Any) -> Optional[str]
    """Return the class name of a callback of the script that needs each batch; None: there is none."""
    listed = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]  # type: Sequence[Any]
    for each in listed:
        # Keras' own LambdaCallback holds the script's functions.
        functions = [vars(each).get(name) for name in _OF_BATCHES] if hasattr(each, "__dict__") else []
        owners = [owner for owner in type(each).__mro__ if any(name in vars(owner) for name in _OF_BATCHES)]
        if not all(part is None or _is_keras(part) for part in functions + owners):
            return type(each).__name__
    return None


def _is_keras(what):
    # type: (Any) -> bool
    return str(getattr(what, "__module__", "")).split(".")[0] in _KERAS + ("builtins",)
