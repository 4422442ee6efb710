"""Watches the steps of TensorFlow 2 scripts: ``Model.fit``, coordinators, loops around a ``tf.function``.

All of them have an optimizer that counts its steps in a variable, ``iterations``. So nothing is counted
within a step: a thread reads the variable once a second. A coordinator trains with the workers of a cluster;
the closures that each worker has finished show what it did.
"""

from __future__ import absolute_import

import atexit
import sys
import threading
import weakref

from . import signatures, standing, stepping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Optional, Set, Tuple

    from .guarding import Guard
    from .models import Model
    from .reporting import Reporter
    from .traces import TraceWatch

clock = stepping.clock
#: Keras' default batch size for arrays.
KERAS_BATCH = 32
#: How long the end of the process waits for a report in progress.
_LAST_SECONDS = 5.0
#: Datasets are nested; how deep the search for the batch goes.
_DEEPEST = 50


class EagerWatch(object):
    """Reads the steps of the optimizer that trains, and reports them: of several at once, of the first.

    Args:
        reporter: takes the reports.
        guard: shields the script from errors.
        model: takes the variables.
        traces: decides when the servers of a coordinator are traced.
    """

    def __init__(self, reporter, guard, model, traces):
        # type: (Reporter, Guard, Model, TraceWatch) -> None
        self._reporter = reporter
        self._guard = guard
        self._model = model
        self._traces = traces
        self._optimizer = None  # type: Optional[weakref.ref[Any]]
        #: Kept because a function of the script may make the optimizer and drop it.
        self._iterations = None  # type: Any
        #: The variable that the thread counts by, and the traced graph in which the optimizer is applied.
        self._counted = None  # type: Any
        self._graph = None  # type: Optional[weakref.ref[Any]]
        self._total = 0
        self._standing = standing.StandWatch(reporter, guard, lambda: self._total)
        self._ended = threading.Event()
        self._batches = set()  # type: Set[int]
        self._batch = None  # type: Optional[int]
        #: By the index of a worker: how many closures it has finished, and until when its steps are reported.
        self._closures = {}  # type: Dict[int, int]
        self._until = {}  # type: Dict[int, float]
        #: What the last report counted, and when.
        self._finished = {}  # type: Dict[int, int]
        self._reported = 0
        self._since = clock()
        self._last = None  # type: Any
        #: The ``tf.function`` that the script calls in each step, if any; and the function that a thread
        #: calls now.
        self._function = None  # type: Optional[weakref.ref[Any]]
        self._calling = threading.local()
        self._planned = None  # type: Optional[int]
        self._is_fit = False
        self._first_epoch = 0

    # --- What is wrapped

    def patch_optimizers(self, module):
        # type: (ModuleType) -> None
        """Wrap the optimizers that a module of Keras defines."""
        found = [
            each
            for each in vars(module).values()
            if isinstance(each, type) and "apply_gradients" in vars(each)
        ]
        for each in found:
            original = vars(each)["apply_gradients"]
            signatures.check(original, ("self", "grads_and_vars"))
            setattr(each, "apply_gradients", self._applying(original))  # noqa: B010 - a class of some kind

    def _applying(self, original):
        # type: (Callable[..., Any]) -> Callable[..., Any]
        @signatures.wraps(original)
        def apply_gradients(own, grads_and_vars, *arguments, **named):
            # type: (Any, Any, *Any, **Any) -> Any
            if not self._guard(self._begins, own):
                return original(own, grads_and_vars, *arguments, **named)
            pairs = list(grads_and_vars)  # It may be a generator.
            result = original(own, pairs, *arguments, **named)
            self._guard(self._begin, own, pairs)
            return result

        return apply_gradients

    def patch_functions(self, module):
        # type: (ModuleType) -> None
        """Wrap calls of a ``tf.function``: a function that trains usually returns the loss."""
        function = module.Function
        original = function.__call__
        signatures.check(original, ("self",))

        @signatures.wraps(original)
        def __call__(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            calling = self._calling
            if getattr(calling, "function", None) is not None:
                result = original(own, *arguments, **named)
            else:  # While its graph is made, gradients are applied.
                calling.function = weakref.ref(own)
                try:
                    result = original(own, *arguments, **named)
                finally:
                    calling.function = None
            if self._function is not None and self._function() is own:
                self._last = result
            return result

        function.__call__ = __call__

    def patch_coordinator(self, module):
        # type: (ModuleType) -> None
        """Wrap the execution of a coordinator's closures on its workers."""
        closure = module.Closure
        original = closure.execute_on
        signatures.check(original, ("self", "worker"))

        @signatures.wraps(original)
        def execute_on(own, worker):
            # type: (Any, Any) -> Any
            self._guard(self._note_worker, worker)
            result = original(own, worker)
            self._guard(self._note_closure, own, worker)
            return result

        closure.execute_on = execute_on

    def _note_worker(self, worker):
        # type: (Any) -> None
        """Note a worker that begins a closure."""
        self._closures.setdefault(worker.worker_index, 0)
        self._until.setdefault(worker.worker_index, clock())

    def _note_closure(self, closure, worker):
        # type: (Any, Any) -> None
        """Count a worker's finished closure, and keep its result unless the script has dropped it."""
        self._closures[worker.worker_index] = self._closures.get(worker.worker_index, 0) + 1
        if hasattr(closure, "_output_remote_value_ref"):
            kept = closure._output_remote_value_ref
            value = None if kept is None else kept()
        else:  # TensorFlow 2.4
            value = closure.output_remote_value
        if value is not None:
            self._last = value

    def patch_datasets(self, module):
        # type: (ModuleType) -> None
        """Wrap ``Dataset.batch``, from 1.13 on; before that the graph shows the batch size."""
        dataset = getattr(module, "DatasetV2", None)
        if dataset is None:
            return
        original = dataset.batch
        signatures.check(original, ("self", "batch_size"))

        @signatures.wraps(original)
        def batch(own, batch_size, *arguments, **named):
            # type: (Any, Any, *Any, **Any) -> Any
            if isinstance(batch_size, int):
                self._batches.add(batch_size)
            return original(own, batch_size, *arguments, **named)

        dataset.batch = batch

    def patch_fit(self, module):
        # type: (ModuleType) -> None
        """Wrap ``Model.fit``, or the ``fit`` of a Keras 3 trainer."""
        owner = module.Model if hasattr(module, "Model") else module.TensorFlowTrainer
        original = owner.fit
        signatures.check(original, ("self", "x", "y", "batch_size"))

        @signatures.wraps(original)
        def fit(own, x=None, y=None, batch_size=None, *arguments, **named):
            # type: (Any, Any, Any, Any, *Any, **Any) -> Any
            self._batch = self._guard(_batch_of, x, batch_size)
            self._is_fit, self._first_epoch = True, named.get("initial_epoch") or 0
            return original(own, x, y, batch_size, *arguments, **named)

        owner.fit = fit

    def patch_callbacks(self, module):
        # type: (ModuleType) -> None
        """Wrap the list of callbacks, which hears of each batch; before 1.13 Keras has only sessions."""
        callbacks = getattr(module, "CallbackList", None)
        if callbacks is None or not hasattr(callbacks, "on_train_batch_end"):
            return
        ended, begun = callbacks.on_train_batch_end, callbacks.on_train_begin
        signatures.check(ended, ("self", "batch", "logs"))

        @signatures.wraps(ended)
        def on_train_batch_end(own, batch, logs=None):
            # type: (Any, Any, Any) -> Any
            self._last = logs
            return ended(own, batch, logs)

        @signatures.wraps(begun)
        def on_train_begin(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            self._guard(self._note_plan, own)
            return begun(own, *arguments, **named)

        callbacks.on_train_batch_end = on_train_batch_end
        callbacks.on_train_begin = on_train_begin
        if hasattr(callbacks, "_call_batch_hook"):  # Before 2.2 ``fit`` calls only this method.
            signatures.check(callbacks._call_batch_hook, ("self", "mode", "hook", "batch", "logs"))
            callbacks._call_batch_hook = self._hooked(callbacks._call_batch_hook)

    def _hooked(self, original):
        # type: (Callable[..., Any]) -> Callable[..., Any]
        @signatures.wraps(original)
        def _call_batch_hook(own, mode, hook, batch, logs=None):
            # type: (Any, Any, Any, Any, Any) -> Any
            if logs and hook == "end" and mode == "train":
                self._last = logs
            return original(own, mode, hook, batch, logs)

        return _call_batch_hook

    def _note_plan(self, callbacks):
        # type: (Any) -> None
        """Note how many steps ``fit`` is to make, if its callbacks know."""
        epochs, steps = (callbacks.params or {}).get("epochs"), (callbacks.params or {}).get("steps")
        if not epochs or not steps:
            self._planned = None
            return
        followed = None if self._optimizer is None else self._optimizer()
        if followed is not None and followed is getattr(getattr(callbacks, "model", None), "optimizer", None):
            # It goes on from where it is.
            self._planned = int(self._iterations.numpy()) + (epochs - self._first_epoch) * steps
        else:
            self._planned = epochs * steps

    # --- What is reported

    def _begins(self, optimizer):
        # type: (Any) -> bool
        """Return whether an optimizer that is about to apply gradients is to be followed from now on.

        So it is if none is followed, or if a new function trains by it alone: the script has made the model
        anew. A function that is made again keeps its optimizer.
        """
        followed = None if self._optimizer is None else self._optimizer()
        if followed is None:
            return True
        graph = _traced_graph()
        if graph is None or (self._graph is not None and self._graph() is graph):
            return False
        if optimizer is followed:
            self._graph = weakref.ref(graph)
        return optimizer is not followed

    def _begin(self, optimizer, pairs):
        # type: (Any, List[Tuple[Any, Any]]) -> None
        """Start to report the steps of an optimizer, unless it belongs to a graph."""
        framework = _framework()
        if framework is None:
            return
        if not framework.executing_eagerly_outside_functions() or not self._reporter.owns():
            return
        is_first = self._optimizer is None
        self._function, self._last = getattr(self._calling, "function", None), None
        graph = _traced_graph()
        self._graph = None if graph is None else weakref.ref(graph)
        self._optimizer, self._iterations = weakref.ref(optimizer), optimizer.iterations
        self._model.describe_trained(optimizer, pairs)
        if is_first:
            self._reporter.say(
                "its steps, as %s counts them; %s" % (type(optimizer).__name__, self._described())
            )
            thread = threading.Thread(target=self._follow, name="paceline reports", daemon=True)
            atexit.register(self._end, thread)
            thread.start()
            # A coordinator's other threads hand out the work; the main thread waits for them.
            self._guard(self._standing.start, threading.main_thread().ident)

    def _described(self):
        # type: () -> str
        batch = self._examples_of_a_step()
        return "batch: %s" % ("not seen" if batch is None else "of %d examples" % batch)

    def _examples_of_a_step(self):
        # type: () -> Optional[int]
        """Return how many examples a step has; None: unknown, or there are several sizes."""
        return self._batch or (max(self._batches) if len(self._batches) == 1 else None)

    def _end(self, thread):
        # type: (threading.Thread) -> None
        self._ended.set()
        thread.join(_LAST_SECONDS)

    def _follow(self):
        # type: () -> None
        """Report once a second which steps were made, until the process ends."""
        self._guard(self._begin_interval)
        is_over = False
        while not is_over and not self._guard.is_broken:
            is_over = self._ended.wait(stepping.REPORT_SECONDS)
            self._look(is_over)

    def _look(self, is_over):
        # type: (bool) -> None
        """Report the steps since the last report, and begin to count by another optimizer if there is one."""
        self._guard(self._report_interval, is_over)
        if self._iterations is not self._counted:
            self._guard(self._begin_interval)

    def _begin_interval(self):
        # type: () -> None
        """Leave out what the optimizer has done so far."""
        self._counted = self._iterations
        self._reported, self._since, self._finished = self._done(), clock(), dict(self._closures)
        self._until = dict.fromkeys(self._finished, self._since)

    def _report_interval(self, is_over):
        # type: (bool) -> None
        """Report the steps since the last report, once it is known which workers made them."""
        now, total = clock(), self._done()
        if total < self._reported:  # The script has restored an older count.
            self._begin_interval()
            return
        steps, finished = total - self._reported, dict(self._closures)
        closures = _differences(self._finished, finished)
        if not steps or (finished and not closures and not is_over):
            return
        self._guard(self._traces.refuse)
        if self._is_fit:
            self._reporter.state("model_fit", True)
        if finished:
            self._reporter.state("coordinates", True)
            self._guard(self._traces.ask_for_profiles, total)
        self._guard(self._report, total, steps, now, closures)
        self._since, self._reported, self._finished, self._total = now, total, finished, total

    def _done(self):
        # type: () -> int
        """Return how many steps the optimizer has counted."""
        return int(self._counted.numpy())

    def _report(self, total, steps, now, closures):
        # type: (int, int, float, Dict[int, int]) -> None
        """Report the steps of this process, or of the workers that made them for it."""
        batch = self._examples_of_a_step()
        loss = _loss(self._last)
        finished = sum(closures.values())
        shares = [
            ("worker-%d" % index, self._until.get(index, self._since), count / float(finished))
            for index, count in sorted(closures.items())
        ]
        for replica, since, share in shares or [("", self._since, 1.0)]:
            own = round(steps * share)
            report = {
                "interval_seconds": now - since,
                "step": total,
                "steps": own,
                "examples": None if batch is None else own * batch,
                "loss": loss,
                "total_steps": self._planned,
            }  # type: Dict[str, Any]
            if replica:
                report["replica"] = replica
            self._reporter.append("step", report)
        self._until.update(dict.fromkeys(closures, now))


def _framework():
    # type: () -> Any
    """Return the module of TensorFlow that knows the current graph; None: it is not loaded."""
    return sys.modules.get("tensorflow.python.framework.ops") or sys.modules.get(
        "tensorflow_core.python.framework.ops"
    )


def _traced_graph():
    # type: () -> Any
    """Return the graph of the outermost function that is now traced; None: nothing is traced."""
    framework = _framework()
    graph = None if framework is None else framework.get_default_graph()  # type: Any
    if not hasattr(graph, "outer_graph"):
        return None
    while hasattr(getattr(graph, "outer_graph", None), "outer_graph"):
        graph = graph.outer_graph
    return graph


def _differences(before, after):
    # type: (Dict[int, int], Dict[int, int]) -> Dict[int, int]
    """Return the rises of counts between two moments, without zeros."""
    found = {index: count - before.get(index, 0) for index, count in after.items()}
    return {index: count for index, count in found.items() if count > 0}


def _loss(last):
    # type: (Any) -> Optional[float]
    """Return the loss from a step's result, a number or a dictionary; None: there is none."""
    value = last.fetch() if hasattr(last, "fetch") else last
    if isinstance(value, dict):
        value = value.get("loss")
    if value is None or isinstance(value, (list, tuple)):
        return None
    if hasattr(value, "numpy"):
        value = value.numpy()
    is_number = isinstance(value, float) or "float" in str(getattr(value, "dtype", ""))
    return float(value) if is_number and getattr(value, "ndim", 0) == 0 else None


def _batch_of(data, batch_size):
    # type: (Any, Any) -> Optional[int]
    """Return how many examples the batches of ``fit`` have; None: unknown."""
    if isinstance(batch_size, int):
        return batch_size
    for _ in range(_DEEPEST):
        size = getattr(data, "_batch_size", None)
        if size is not None:
            return int(size)
        data, before = getattr(data, "_input_dataset", None), data
        if data is None:
            return KERAS_BATCH if hasattr(before, "shape") else None
    return None
