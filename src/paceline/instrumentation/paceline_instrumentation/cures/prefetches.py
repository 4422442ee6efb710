"""``prefetch``: a ``tf.data`` pipeline makes batches while a step computes.

A pipeline that a script iterates over, in a session or eagerly, or passes to ``fit`` or to a coordinator,
gets a ``prefetch`` at its end if it has none there. The elements and their order stay. These things change:

- The pipeline is ahead by the number of batches that the job file asks for, which takes their memory.
- Anything that a function of the pipeline reads elsewhere (a variable, a generator's state) is read that much
  earlier.
- The state of an iterator that a script saves includes these batches.
- A graph has one more operation, so a script with a graph seed and no operation seeds draws other initial
  values.

TensorFlow from 2.10 on prefetches by itself, with a buffer size of its own choice.
"""

from __future__ import absolute_import

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

    from .notes import Note

NAME, VERSION = "prefetch", 1
#: Parts of class names of datasets that may follow a ``prefetch`` without needing another one.
_PASSING = ("Options", "Repeat", "Take", "Skip", "Model", "Optimize", "MaxIntraOp", "PrivateThreadPool")
#: The class of a pipeline that was made within a function: its parts are not visible.
_UNKNOWN = "VariantDataset"
_DEEPEST = 50


class Prefetching(object):
    """Puts a ``prefetch`` at the end of pipelines.

    Args:
        note: reports which pipelines were changed.
        batches: how many batches are made ahead.
    """

    def __init__(self, note, batches):
        # type: (Note, int) -> None
        self._note = note
        self._batches = batches

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap the methods that make iterators, in ``tensorflow.python.data.ops.dataset_ops``."""
        for name in ("DatasetV1", "DatasetV2", "Dataset"):
            dataset = getattr(module, name, None)
            if dataset is None or (name == "Dataset" and hasattr(module, "DatasetV2")):
                continue
            own = vars(dataset)
            # In later versions the public method calls the private one.
            for kind in ("one_shot", "initializable"):
                method = "_make_%s_iterator" % kind
                self._patch_iterator(dataset, method if method in own else method[1:])
            self._patch_iterator(dataset, "__iter__")

    def _patch_iterator(self, dataset, method):
        # type: (Any, str) -> None
        original = vars(dataset).get(method)
        if original is None:
            return
        signatures.check(original, ("self",), NAME)

        @signatures.wraps(original, NAME)
        def iterator(own, *arguments, **named):
            # type: (Any, *Any, **Any) -> Any
            return original(self._prefetched(own), *arguments, **named)

        setattr(dataset, method, iterator)

    def patch_strategies(self, module):
        # type: (ModuleType) -> None
        """Wrap the methods that pass pipelines to workers, in ``distribute.parameter_server_strategy_v2``."""
        strategy = module.ParameterServerStrategyV2Extended
        from_function = strategy._distribute_datasets_from_function
        whole = strategy._experimental_distribute_dataset
        signatures.check(from_function, ("self", "dataset_fn", "options"), NAME)
        signatures.check(whole, ("self", "dataset", "options"), NAME)

        @signatures.wraps(from_function, NAME)
        def _distribute_datasets_from_function(own, dataset_fn, options):
            # type: (Any, Any, Any) -> Any
            return from_function(own, self._prefetching(dataset_fn), options)

        @signatures.wraps(whole, NAME)
        def _experimental_distribute_dataset(own, dataset, options):
            # type: (Any, Any, Any) -> Any
            return whole(own, self._prefetched(dataset), options)

        strategy._distribute_datasets_from_function = _distribute_datasets_from_function
        strategy._experimental_distribute_dataset = _experimental_distribute_dataset

    def patch_coordinators(self, module):
        # type: (ModuleType) -> None
        """Wrap the method that makes worker pipelines, in ``distribute.coordinator.cluster_coordinator``."""
        coordinator = module.ClusterCoordinator
        original = coordinator.create_per_worker_dataset
        signatures.check(original, ("self", "dataset_fn"), NAME)

        @signatures.wraps(original, NAME)
        def create_per_worker_dataset(own, dataset_fn):
            # type: (Any, Any) -> Any
            is_plain = callable(dataset_fn) and not hasattr(dataset_fn, "get_concrete_function")
            if is_plain and not hasattr(dataset_fn, "structured_outputs"):
                dataset_fn = self._prefetching(dataset_fn)
            return original(own, dataset_fn)

        coordinator.create_per_worker_dataset = create_per_worker_dataset

    def _prefetching(self, function):
        # type: (Callable[..., Any]) -> Callable[..., Any]
        """Return a function that returns another function's pipeline with a ``prefetch`` at its end."""

        @signatures.wraps(function, NAME)
        def made(*arguments, **named):
            # type: (*Any, **Any) -> Any
            return self._prefetched(function(*arguments, **named))

        return made

    def _prefetched(self, dataset):
        # type: (Any) -> Any
        """Return a pipeline with a ``prefetch`` at its end, or unchanged."""
        changed = self._note.attempt(self._change, dataset)
        return dataset if changed is None else changed

    def _change(self, dataset):
        # type: (Any) -> Any
        if not hasattr(dataset, "prefetch") or not hasattr(dataset, "batch") or _is_ahead(dataset):
            return None
        changed = dataset.prefetch(self._batches)
        self._note.applied("%s: %d" % (type(end(dataset)).__name__.lstrip("_"), self._batches))
        return changed


def end(dataset):
    # type: (Any) -> Any
    """Return the last dataset of a pipeline, without the adapters around it in TensorFlow 1.13 and later."""
    while hasattr(dataset, "_dataset") and "Adapter" in type(dataset).__name__:
        dataset = dataset._dataset
    return dataset


def _is_ahead(dataset):
    # type: (Any) -> bool
    """Return whether a pipeline already prefetches at its end, or its parts are not visible."""
    for _ in range(_DEEPEST):
        dataset = end(dataset)
        name = type(dataset).__name__
        if "refetch" in name or _UNKNOWN in name:
            return True
        if not any(each in name for each in _PASSING) or not hasattr(dataset, "_input_dataset"):
            return False
        dataset = dataset._input_dataset
    return True
