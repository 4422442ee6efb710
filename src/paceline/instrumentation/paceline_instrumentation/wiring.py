"""Waits for TensorFlow and PyTorch to be imported, and only then loads the code that watches them.

A process that never imports either pays only for one finder on ``sys.meta_path`` and for this module.
"""

from __future__ import absolute_import

from . import loading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Callable, Dict, List, Mapping

    from . import torches
    from .patching import Instrument

#: The package names of TensorFlow's own modules; in 1.15 and 2.0 ``tensorflow`` is only a facade.
PACKAGES = ("tensorflow", "tensorflow_core")
#: The watched modules, below ``tensorflow.python``.
MODULES = (
    "client.session",
    "ops.gradients_util",
    "ops.gradients_impl",
    "training.basic_session_run_hooks",
    "training.session_manager",
    "training.sync_replicas_optimizer",
    "training.saver",
    "summary.writer.writer",
    "training.server_lib",
    "training.evaluation",
    "distribute.coordinator.cluster_coordinator",
    "data.ops.dataset_ops",
    "eager.def_function",
    "eager.polymorphic_function.polymorphic_function",
)
#: The watched modules of Keras, which was a part of TensorFlow up to 2.5, then a package whose modules moved.
KERAS = {
    "fit": (
        "tensorflow.python.keras.engine.training",
        "tensorflow_core.python.keras.engine.training",
        "keras.engine.training",
        "keras.src.engine.training",
        "keras.src.backend.tensorflow.trainer",
        "tf_keras.src.engine.training",
    ),
    "callbacks": (
        "tensorflow.python.keras.callbacks",
        "tensorflow_core.python.keras.callbacks",
        "keras.callbacks",
        "keras.src.callbacks",
        "keras.src.callbacks.callback_list",
        "tf_keras.src.callbacks",
    ),
    "optimizers": (
        "tensorflow.python.keras.optimizer_v2.optimizer_v2",
        "tensorflow_core.python.keras.optimizer_v2.optimizer_v2",
        "keras.optimizer_v2.optimizer_v2",
        "keras.optimizers.optimizer_v2.optimizer_v2",
        "keras.optimizers.optimizer_experimental.optimizer",
        "keras.optimizers.optimizer",
        "keras.optimizers.legacy.optimizer_v2",
        "keras.src.optimizers.optimizer",
        "keras.src.optimizers.legacy.optimizer_v2",
        "keras.src.optimizers.base_optimizer",
        "tf_keras.src.optimizers.optimizer",
        "tf_keras.src.optimizers.legacy.optimizer_v2",
    ),
}
KERAS["evaluated callbacks"] = KERAS["callbacks"]
#: The further modules that cures change, below ``tensorflow.python`` and in Keras.
CURED = (
    "training.adam",
    "training.device_setter",
    "training.optimizer",
    "training.session_manager",
    "ops.variable_scope",
    "ops.ref_variable",
    "ops.embedding_ops",
    "ops.array_ops",
    "distribute.parameter_server_strategy_v2",
)
CURED_KERAS = {
    "adam": (
        "tensorflow.python.keras.optimizer_v2.adam",
        "tensorflow_core.python.keras.optimizer_v2.adam",
        "keras.optimizer_v2.adam",
        "keras.optimizer_experimental.adam",
        "keras.optimizers.adam",
        "keras.optimizers.optimizer_v2.adam",
        "keras.optimizers.optimizer_experimental.adam",
        "keras.src.optimizers.adam",
        "keras.src.optimizers.legacy.adam",
        "tf_keras.src.optimizers.adam",
        "tf_keras.src.optimizers.legacy.adam",
    ),
}
#: Modules that are patched twice, independently: a failure of one patch does not prevent the other.
TWICE = {"asked sessions": "client.session"}
#: The watched modules of PyTorch; ``GradScaler`` was for CUDA alone up to 2.2.
TORCH = (
    "torch.autograd",
    "torch.optim.optimizer",
    "torch.utils.data.dataloader",
    "torch.nn.parallel.distributed",
    "torch.distributed.distributed_c10d",
    "torch.cuda.amp.grad_scaler",
    "torch.amp.grad_scaler",
)
#: Packages whose import takes seconds.
LARGE = ("tensorflow", "torch")


def connect(environment):
    # type: (Mapping[str, str]) -> None
    """Watch TensorFlow and PyTorch in this process.

    Args:
        environment: the environment with which the process began.
    """
    instruments = []  # type: List[Instrument]
    torch_instruments = []  # type: List[torches.TorchInstrument]

    def patches(what):
        # type: (str) -> Callable[[ModuleType], None]
        def patch(module):
            # type: (ModuleType) -> None
            from . import patching

            if not instruments:
                instruments.append(patching.Instrument(environment))
            instruments[0].patch(module, what)

        return patch

    def patch_torch(module):
        # type: (ModuleType) -> None
        from . import torches

        if not torch_instruments:
            torch_instruments.append(torches.TorchInstrument(environment))
        torch_instruments[0].patch(module)

    watch = loading.ModuleWatch()
    for package in LARGE:
        watch.load_without_collections(package)
    is_cured = bool(environment.get("PACELINE_TRAINING"))
    wanted = MODULES + CURED if is_cured else MODULES
    names = {name: ["%s.python.%s" % (package, name) for package in PACKAGES] for name in wanted}
    names.update({what: names[name] for what, name in TWICE.items()})
    keras = list(KERAS.items()) + (list(CURED_KERAS.items()) if is_cured else [])
    for what, modules in list(names.items()) + keras:
        for module in modules:
            watch.when_loaded(module, patches(what))
    for module in TORCH:
        watch.when_loaded(module, patch_torch)
