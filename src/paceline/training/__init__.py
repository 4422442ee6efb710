"""Trains a model over TensorFlow parameter servers, from a plain script.

    from paceline import training
    from paceline.training import features

    model = training.WideAndDeep(features.FeatureSet(numeric=..., categorical=..., label=...))
    training.run(model, train=training.Source(("data/train-*.parquet",)),
    evaluation=training.Source(("data/test.parquet",)))

Every replica runs the same script; `run` reads from the environment which replica it is. This is
between-graph replication through `tf.compat.v1`: each trainer runs its own steps and updates the shared
variables, asynchronously by default. Names are resolved on first use, so that importing the package does not
import TensorFlow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.training.blocks import Blocks
    from paceline.training.errors import TrainingError
    from paceline.training.evaluations import Evaluation
    from paceline.training.exports import export
    from paceline.training.input.sources import Source
    from paceline.training.keras_models import KerasModel
    from paceline.training.models.dcn import DCN
    from paceline.training.models.deepfm import DeepFM
    from paceline.training.models.dlrm import DLRM
    from paceline.training.models.wide_and_deep import WideAndDeep
    from paceline.training.runs import run
    from paceline.training.tracing.traces import Tracer

__all__ = [
    "DCN",
    "DLRM",
    "Blocks",
    "DeepFM",
    "Evaluation",
    "KerasModel",
    "Source",
    "Tracer",
    "TrainingError",
    "WideAndDeep",
    "export",
    "run",
]

_HOMES = {
    "Blocks": "blocks",
    "DCN": "models.dcn",
    "DLRM": "models.dlrm",
    "DeepFM": "models.deepfm",
    "Evaluation": "evaluations",
    "KerasModel": "keras_models",
    "Source": "input.sources",
    "Tracer": "tracing.traces",
    "TrainingError": "errors",
    "WideAndDeep": "models.wide_and_deep",
    "export": "exports",
    "run": "runs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
