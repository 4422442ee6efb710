"""A trained model as a TensorFlow SavedModel, which scores wherever TensorFlow runs, without Paceline.

It is made from a checkpoint, in this process alone. It holds the parameters without the optimizer's slots,
each whole and with its rows in their own order, in files beside the graph (a graph holds 2 GiB at most). Its
signature takes what `features.FeatureSet.encode` returns. It does not take raw columns, as TensorFlow has no
BLAKE2b to hash them with.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline.training import blocks, clusters, connections, errors, settings
from paceline.training.checkpoints import checkpoints
from paceline.training.graph import graphs
from paceline.training.lazy_tensorflow import tf, tf1
from paceline.training.remote_folders import RemoteFolder

#: The file that makes a folder a SavedModel.
_MODEL = "saved_model.pb"
_log = logging.getLogger(__name__)
_ALONE = clusters.ClusterTask({}, "evaluator", 0)
_WHOLE = settings.PartitioningSettings("none", "contiguous")


def export(
    model: blocks.TrainableModel, checkpoint_dir: str, path: str, training: Mapping[str, Any] | None = None
) -> None:
    """Write the newest whole checkpoint of a job as a SavedModel.

    Args:
        model: the model that the job trained.
        checkpoint_dir: the folder of its checkpoints.
        path: the folder of the SavedModel; a SavedModel that is there is replaced.
        training: the `training:` block of the job file, which has the widths of the model; None for the
            defaults.

    Raises:
        CheckpointError: there is no checkpoint, or it does not fit the model.
        ExportError: the folder is something other than a SavedModel, or cannot be written.
    """
    check(path)
    write(model, checkpoint_dir, path, settings.parse(dict(training or {})))


def check(path: str) -> None:
    """Raise an ExportError if the folder exists and is not a SavedModel, or cannot be reached."""
    if connections.is_remote(path):
        remote = RemoteFolder(path, errors.ExportError)
        exists, is_model = bool(remote.names()), remote.has(_MODEL)
    else:
        exists, is_model = tf.io.gfile.exists(path), tf.io.gfile.exists(f"{path}/{_MODEL}")
    if exists and not is_model:
        raise errors.ExportError(f"{path} exists and is no SavedModel; name another folder to export to")


def write(model: blocks.TrainableModel, checkpoint_dir: str, path: str, chosen: settings.Settings) -> None:
    """Write the newest whole checkpoint as a SavedModel, under another name until it is complete."""
    scoring = dataclasses.replace(
        chosen, partitioning=_WHOLE, variable_plan=None, compute_precision="float32"
    )
    graph = graphs.build(model, _ALONE, scoring)
    saved = checkpoints.Checkpoints(checkpoint_dir, graph.contents, chosen.checkpoint.every_seconds)
    path = path.rstrip("/")
    is_remote = connections.is_remote(path)
    with tf1.Session(graph=graph.graph) as session, contextlib.ExitStack() as undo:
        checkpoint = saved.restore(session)
        if checkpoint is None:
            raise errors.CheckpointError(f"{checkpoint_dir} has no checkpoint to export")
        temporary = f"{path}.temp{uuid.uuid4().hex}"
        if is_remote:
            temporary = undo.enter_context(tempfile.TemporaryDirectory(prefix="paceline-")) + "/model"
        undo.callback(_remove, temporary)
        try:
            _write(session, graph, temporary)
            if is_remote:
                RemoteFolder(path, errors.ExportError).put_folder(Path(temporary), _MODEL)
            else:
                _replace(temporary, path)
        except (tf.errors.ResourceExhaustedError, tf.errors.PermissionDeniedError, OSError) as error:
            raise errors.ExportError(f"{path} cannot be written: {error}") from error
    _log.info("exported %s to %s", checkpoint, path)


def _write(session: Any, graph: graphs.Graph, path: str) -> None:
    inputs = {name: tensor for name, tensor in graph.inputs._asdict().items() if name != "labels"}
    with session.graph.as_default():
        signature = tf1.saved_model.predict_signature_def(inputs, {"probabilities": graph.probabilities})
        builder = tf1.saved_model.Builder(path)
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.SERVING],
            {tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
            saver=tf1.train.Saver([each.variable for each in graph.contents.parameters]),
        )
        builder.save()


def _replace(temporary: str, path: str) -> None:
    """Move a folder to a path; a folder that was there is removed afterwards."""
    if not tf.io.gfile.exists(path):
        tf.io.gfile.rename(temporary, path)
        return
    old = f"{temporary}.old"
    tf.io.gfile.rename(path, old)
    with contextlib.ExitStack() as undo:
        undo.callback(tf.io.gfile.rename, old, path)
        tf.io.gfile.rename(temporary, path)
        undo.pop_all()
    tf.io.gfile.rmtree(old)


def _remove(path: str) -> None:
    with contextlib.suppress(tf.errors.OpError):
        tf.io.gfile.rmtree(path)
