"""``prefetch``: batches of a ``tf.data`` pipeline are made while a step computes.

A pipeline that a script iterates over, in a session or eagerly, or hands to ``fit`` or to a coordinator, gets
a ``prefetch`` at its end if it has none there. The elements and their order stay. What changes: the pipeline
is so many batches ahead, which takes their memory, and whatever a function of the pipeline reads elsewhere (a
variable, a generator's state) it reads that much earlier; the state of an iterator that a script saves has
the batches in it. In a graph it is one operation more, so a script with a seed of the graph, and none of its
operations, draws other initial values. TensorFlow from 2.10 on does so by itself, with a buffer of its own
choice.
"""

from __future__ import absolute_import

from .. import signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable

    from .notes import Note

NAME, VERSION = "prefetch", 1
#: What may stand behind a ``prefetch`` without a need for another one, as parts of the names of classes.
_PASSING = ("Options", "Repeat", "Take", "Skip", "Model", "Optimize", "MaxIntraOp", "PrivateThreadPool")
#: What a pipeline became that was made within a function: its parts are not to be seen.
_UNKNOWN = "VariantDataset"
_DEEPEST = 50


class Prefetching(object):
    """Puts a ``prefetch`` at the end of pipelines.

    Args:
        note: says which pipelines were changed.
        batches: that are made ahead.
    """

    def __init__(self, note, batches):
        # type: (Note, int) -> None
        self._note = note
        self._batches = batches

    def patch(self, module):
        # type: (ModuleType) -> None
        """Wrap what makes iterators, in ``tensorflow.python.data.ops.dataset_ops``."""
        for name in ("DatasetV1", "DatasetV2", "Dataset"):
            dataset = getattr(module, name, None)
            if dataset is None or (name == "Dataset" and hasattr(module, "DatasetV2")):
                continue
            own = vars(dataset)
            # The public method of later versions calls the private one.
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
        """Wrap what hands pipelines to workers, in ``distribute.parameter_server_strategy_v2``."""
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
        """Wrap what makes a pipeline for each worker, in ``distribute.coordinator.cluster_coordinator``."""
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
        """Return a function that makes what another makes, with a ``prefetch`` at its end."""

        @signatures.wraps(function, NAME)
        def made(*arguments, **named):
            # type: (*Any, **Any) -> Any
            return self._prefetched(function(*arguments, **named))

        return made

    def _prefetched(self, dataset):
        # type: (Any) -> Any
        """Return a pipeline with a ``prefetch`` at its end, or as it is."""
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
    """Return the last part of a pipeline, from within what stands around it in TensorFlow 1.13 and later."""
    while hasattr(dataset, "_dataset") and "Adapter" in type(dataset).__name__:
        dataset = dataset._dataset
    return dataset


def _is_ahead(dataset):
    # type: (Any) -> bool
    """Whether a pipeline makes elements ahead at its end, or what it is made of is not to be seen."""
    for _ in range(_DEEPEST):
        dataset = end(dataset)
        name = type(dataset).__name__
        if "refetch" in name or _UNKNOWN in name:
            return True
        if not any(each in name for each in _PASSING) or not hasattr(dataset, "_input_dataset"):
            return False
        dataset = dataset._input_dataset
    return True
