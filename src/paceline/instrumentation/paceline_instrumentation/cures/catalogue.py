"""Maps settings of the job file's ``training:`` block to cures of a script.

A script written with Paceline's training library obeys the block by itself; no cure changes it.
"""

from __future__ import absolute_import

import json

from .. import settings
from . import (
    device_filters,
    lazy_adam,
    lean_servers,
    library_settings,
    notes,
    parallel_maps,
    partitions,
    placements,
    prefetches,
    starts,
    steps_per_execution,
    strategy_partitions,
    strategy_placements,
    transfer_precisions,
    unique_ids,
    unplaced,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Dict, List, Mapping, Tuple

    from ..reporting import Reporter
    from ..servers import ServerWatch

    Patch = Callable[[ModuleType], None]
    Patches = List[Tuple[str, Patch]]

_BY_SIZE = ("greedy", "balanced")
#: The only order in which TensorFlow saves the parts of a table as one.
_CONTIGUOUS = "contiguous"


def patches(environment, reporter, server_watch):
    # type: (Mapping[str, str], Reporter, ServerWatch) -> Dict[str, List[Patch]]
    """Return the patches of TensorFlow's modules, in order, by the names that ``wiring`` gives the modules.

    Args:
        environment: the environment with which the process began.
        reporter: takes the reports of cures.
        server_watch: knows which task of a cluster this process is.
    """
    chosen = settings.read(environment)
    found = {}  # type: Dict[str, List[Patch]]

    def note(module):
        # type: (Any) -> notes.Note
        return notes.Note(reporter, module.NAME, module.VERSION)

    for make in _CURES:
        for name, patch in make(chosen, environment, note, server_watch):
            found.setdefault(name, []).append(patch)
    return found


def servers(environment):
    # type: (Mapping[str, str]) -> int
    """Return how many parameter servers the job has; 0: unknown."""
    try:
        return len(json.loads(environment.get("TF_CONFIG") or "{}")["cluster"]["ps"])
    except (KeyError, TypeError, ValueError):
        return 0


def _lazy_adam(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    if _section(settings, "optimizer").get("name") != lazy_adam.NAME:
        return []
    cure = lazy_adam.LazyAdam(note(lazy_adam))
    return [("training.adam", cure.patch_sessions), ("adam", cure.patch_keras)]


def _placement(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    planned = _planned(settings.get("variable_plan"))
    if not planned and settings.get("variable_placement") not in _BY_SIZE:
        return []
    return [("training.device_setter", placements.Placement(note(placements), planned).patch)]


def _planned(plan):
    # type: (Any) -> Dict[str, int]
    """Return the servers of a saved plan by TensorFlow's names of variables and their parts."""
    found = {}
    for each in plan.get("variables", ()) if isinstance(plan, dict) else ():
        on = each["ps"]
        for part, server in enumerate(on):
            found[each["name"] + ("/part_%d" % part if len(on) > 1 else "")] = server
    return found


def _partitioning(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    asked = _section(settings, "partitioning")
    strategy = asked.get("strategy")
    if strategy not in ("fixed", "min-size"):
        return []
    said = note(partitions)
    if asked.get("rows", _CONTIGUOUS) != _CONTIGUOUS:
        reason = "TensorFlow saves parts of a table as one only if rows are %s" % _CONTIGUOUS
        # Reported once TensorFlow is loaded: scripts of the training library never get there.
        return [("ops.variable_scope", lambda module: said.refused(reason))]
    count = servers(environment)
    parts = asked.get("shards") or (count if strategy == "fixed" else None)
    least = asked.get("min_shard_bytes") or partitions.LEAST_PART_BYTES
    cure = partitions.Partitioning(said, count, parts, least)
    return [
        ("ops.variable_scope", cure.patch_scopes),
        ("ops.embedding_ops", cure.patch_lookups),
        ("ops.array_ops", cure.patch_gathers),
    ]


def _recovery_wait(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    seconds = settings.get("recovery_wait_seconds")
    if seconds is None:
        return []
    return [("training.session_manager", starts.RecoveryWait(note(starts), seconds).patch)]


def _unplaced(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    if settings.get("unplaced_variables") != "ps":
        return []
    cure = unplaced.UnplacedVariables(note(unplaced), servers(environment), server_watch)
    return [("ops.variable_scope", cure.patch), ("ops.ref_variable", cure.patch)]


def _unique_ids(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    if settings.get("unique_ids") is not True:
        return []
    return [("ops.embedding_ops", unique_ids.UniqueIds(note(unique_ids)).patch)]


def _device_filters(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    if settings.get("device_filters") is not True:
        return []
    return [("client.session", device_filters.DeviceFilters(note(device_filters), server_watch).patch)]


def _lean_servers(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    if settings.get("lean_servers") is not True:
        return []
    return [("training.server_lib", lean_servers.LeanServers(note(lean_servers)).patch)]


_STRATEGY = "distribute.parameter_server_strategy_v2"
_DATASETS = "data.ops.dataset_ops"


def _strategy_placement(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    planned = _planned(settings.get("variable_plan"))
    if not planned and settings.get("variable_placement") not in _BY_SIZE:
        return []
    return [(_STRATEGY, strategy_placements.StrategyPlacement(note(strategy_placements), planned).patch)]


def _strategy_partitioning(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    asked = _section(settings, "partitioning")
    strategy = asked.get("strategy")
    if strategy not in ("fixed", "min-size") or asked.get("rows", _CONTIGUOUS) != _CONTIGUOUS:
        return []
    parts = asked.get("shards") or (0 if strategy == "fixed" else None)
    least = asked.get("min_shard_bytes") or partitions.LEAST_PART_BYTES
    cure = strategy_partitions.StrategyPartitioning(note(strategy_partitions), parts, least)
    return [(_STRATEGY, cure.patch)]


def _steps_per_execution(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    steps = settings.get("steps_per_execution")
    if not isinstance(steps, int) or steps < 2:
        return []
    return [("fit", steps_per_execution.StepsPerExecution(note(steps_per_execution), steps).patch)]


def _prefetch(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    batches = _section(settings, "inputs").get("prefetch_batches")
    if not isinstance(batches, int) or batches < 1:
        return []
    cure = prefetches.Prefetching(note(prefetches), batches)
    return [
        (_DATASETS, cure.patch),
        (_STRATEGY, cure.patch_strategies),
        ("distribute.coordinator.cluster_coordinator", cure.patch_coordinators),
    ]


def _parallel_maps(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    calls = _section(settings, "inputs").get("parallel_calls")
    if calls != parallel_maps.AUTO and (not isinstance(calls, int) or calls < 2):
        return []
    return [(_DATASETS, parallel_maps.ParallelMaps(note(parallel_maps), calls).patch)]


def _transfer_precision(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    kind = _section(settings, "transfers").get("precision")
    if kind not in transfer_precisions.TYPES:
        return []
    cure = transfer_precisions.TransferPrecision(note(transfer_precisions), kind, server_watch)
    return [("ops.embedding_ops", cure.patch_lookups), ("training.optimizer", cure.patch_optimizers)]


def _library_settings(settings, environment, note, server_watch):
    # type: (Any, Any, Any, Any) -> Patches
    cure = library_settings.LibrarySettings(note(library_settings), settings)
    return [("client.session", cure.patch)]


#: In the order in which they wrap a function that several of them wrap.
_CURES = (
    _lazy_adam,
    _placement,
    _partitioning,
    _recovery_wait,
    _unplaced,
    _transfer_precision,
    _unique_ids,
    _device_filters,
    _lean_servers,
    _strategy_placement,
    _strategy_partitioning,
    _steps_per_execution,
    _prefetch,
    _parallel_maps,
    _library_settings,
)


def _section(settings, name):
    # type: (Mapping[str, Any], str) -> Mapping[str, Any]
    found = settings.get(name)
    return found if isinstance(found, dict) else {}
