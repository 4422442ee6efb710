"""Reports how well the script's model does on data that it does not train on.

Estimators and ``tf.contrib.training`` evaluate through one function; Keras notifies its callbacks.
"""

from __future__ import absolute_import

import re

from . import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Dict, Mapping, Optional

    from .guarding import Guard
    from .reporting import Reporter

#: The names that scripts and Estimator heads use for a report's metrics; Keras numbers those of later models.
_NAMES = {
    "auc": re.compile(r"auc(_\d+)?$"),
    "accuracy": re.compile(r"(acc|accuracy|(binary|categorical|sparse_categorical)_accuracy)(_\d+)?$"),
    "log_loss": re.compile(r"log_loss$"),
}
_VALIDATION = "val_"


class EvaluationWatch(object):
    """Wraps the functions that evaluate, and reports their results.

    Args:
        reporter: takes the reports.
        guard: shields the script from errors.
    """

    def __init__(self, reporter, guard):
        # type: (Reporter, Guard) -> None
        self._reporter = reporter
        self._guard = guard
        self._is_told_of_tests = False

    def patch_evaluations(self, module):
        # type: (ModuleType) -> None
        """Wrap the function that evaluates a checkpoint once, in a session."""
        original = module._evaluate_once
        signatures.check(original, ("checkpoint_path",))

        @signatures.wraps(original)
        def _evaluate_once(checkpoint_path, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            found = original(checkpoint_path, *arguments, **named)
            self._guard(self._note_results, found)
            return found

        module._evaluate_once = _evaluate_once  # type: ignore[attr-defined]

    def patch_callbacks(self, module):
        # type: (ModuleType) -> None
        """Wrap Keras' list of callbacks, which is notified of evaluations, from 1.13 on, and of epochs."""
        callbacks = getattr(module, "CallbackList", None)
        if callbacks is None or not hasattr(callbacks, "on_test_end"):
            return
        test_ended, epoch_ended = callbacks.on_test_end, callbacks.on_epoch_end
        signatures.check(test_ended, ("self", "logs"))
        signatures.check(epoch_ended, ("self", "epoch", "logs"))

        @signatures.wraps(test_ended)
        def on_test_end(own, logs=None):
            # type: (Any, Any) -> Any
            result = test_ended(own, logs)
            self._guard(self._note_test, own, logs)
            return result

        @signatures.wraps(epoch_ended)
        def on_epoch_end(own, epoch, logs=None):
            # type: (Any, Any, Any) -> Any
            result = epoch_ended(own, epoch, logs)
            self._guard(self._note_epoch, own, logs)
            return result

        callbacks.on_test_end, callbacks.on_epoch_end = on_test_end, on_epoch_end

    def _note_results(self, results):
        # type: (Any) -> None
        """Report the results of an Estimator's evaluation, or of a script that evaluates in the same way."""
        if not isinstance(results, dict):
            return
        found = measures(results)
        if found and "average_loss" in results:  # For a classification head this is the mean cross entropy.
            found.setdefault("log_loss", number(results["average_loss"]))
        self._report(found, number(results.get("global_step")))

    def _note_test(self, callbacks, logs):
        # type: (Any, Optional[Mapping[str, Any]]) -> None
        """Report an evaluation by Keras, from 2.2 on."""
        if logs:
            self._is_told_of_tests = True
            self._note_keras(callbacks, logs)

    def _note_epoch(self, callbacks, logs):
        # type: (Any, Optional[Mapping[str, Any]]) -> None
        """Report the validation after an epoch, unless Keras notifies callbacks of the end of evaluations."""
        size = len(_VALIDATION)
        validated = {
            name[size:]: value for name, value in (logs or {}).items() if name.startswith(_VALIDATION)
        }
        if validated and not self._is_told_of_tests:
            self._note_keras(callbacks, validated)

    def _note_keras(self, callbacks, logs):
        # type: (Any, Mapping[str, Any]) -> None
        model = getattr(callbacks, "model", None)
        found = measures(logs)
        if is_cross_entropy(model) and "loss" in logs:
            found.setdefault("log_loss", number(logs["loss"]))
        iterations = getattr(getattr(model, "optimizer", None), "iterations", None)
        self._report(found, number(iterations))

    def _report(self, found, step):
        # type: (Mapping[str, Optional[float]], Optional[float]) -> None
        if any(value is not None for value in found.values()):
            report = dict(found)  # type: Dict[str, Any]
            report["step"] = None if step is None else int(step)
            self._reporter.append("evaluation", report)


def measures(results):
    # type: (Mapping[str, Any]) -> Dict[str, Optional[float]]
    """Return the metrics of an evaluation report, found among the names that the script uses."""
    found = {}  # type: Dict[str, Optional[float]]
    for measure, pattern in _NAMES.items():
        names = sorted(str(name) for name in results if pattern.match(str(name)))
        if names:
            found[measure] = number(results[names[0]])
    return found


def is_cross_entropy(model):
    # type: (Any) -> bool
    """Return whether a Keras model's loss is the mean cross entropy, with nothing added to it."""
    loss = getattr(model, "loss", None)
    name = loss if isinstance(loss, str) else getattr(loss, "name", None) or getattr(loss, "__name__", "")
    return "crossentropy" in str(name).lower().replace("_", "") and not getattr(model, "losses", None)


def number(value):
    # type: (Any) -> Optional[float]
    """Return a value of the script or of TensorFlow as a float; None: it is no number."""
    if hasattr(value, "fetch"):
        value = value.fetch()
    if hasattr(value, "numpy"):
        value = value.numpy()
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
