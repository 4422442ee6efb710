"""All rules of diagnosis, and all kinds of causes by name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType

from paceline.diagnosing import topics
from paceline.diagnosing.cores import (
    exclusive_cores,
    fractional_cores,
    noisy_neighbours,
    stolen_cores,
    thread_counts,
    throttlings,
)
from paceline.diagnosing.inputs import python_inputs, resting_scripts, slow_decoding, slow_storage
from paceline.diagnosing.memory import memory_limits, memory_requests
from paceline.diagnosing.networks import retransmissions, shared_links, worker_links
from paceline.diagnosing.optimizers import dense_gradients, dense_updates, slot_memories
from paceline.diagnosing.progress import (
    absences,
    addresses,
    bound_parts,
    commands,
    evaluations,
    hangs,
    limits,
    losses,
    restarts,
    standing_trainers,
    untrained,
)
from paceline.diagnosing.rules import Rule
from paceline.diagnosing.scripts import (
    checkpoints,
    device_filters,
    global_steps,
    large_feeds,
    log_placements,
    missing_prefetches,
    one_hot_tables,
    recovery_waits,
    summaries,
    synchronous_waits,
)
from paceline.diagnosing.servers import (
    cpu_bound_servers,
    ended_servers,
    few_servers,
    giant_variables,
    hot_servers,
    many_servers,
    network_bound_servers,
    skewed_shards,
    uneven_placements,
    unused_servers,
)
from paceline.diagnosing.thresholds import Threshold
from paceline.diagnosing.topics import Topic
from paceline.diagnosing.trainers import (
    big_shards,
    compute_bounds,
    idle_workers,
    many_workers,
    slow_disks,
    slow_hosts,
    slow_ranks,
    waiting_trainers,
)

#: In the order of their codes.
RULES: tuple[Rule, ...] = (
    thread_counts.too_many_threads,
    throttlings.throttled,
    noisy_neighbours.noisy_neighbour,
    fractional_cores.fractional_cores,
    exclusive_cores.exclusive_not_got,
    stolen_cores.stolen_cores,
    slow_storage.slow_storage,
    slow_decoding.slow_decoding,
    python_inputs.python_input,
    resting_scripts.resting_script,
    memory_limits.memory_near_limit,
    memory_requests.memory_over_asked,
    shared_links.shared_link,
    worker_links.worker_link,
    retransmissions.retransmissions,
    hangs.hang,
    absences.waiting_at_start,
    losses.loss_not_finite,
    evaluations.evaluation_starves,
    untrained.nothing_trained,
    commands.log_flood,
    commands.trainer_ended,
    commands.misread_reports,
    standing_trainers.standing_trainers,
    commands.left_behind,
    limits.at_limit,
    restarts.trained_anew,
    addresses.other_addresses,
    bound_parts.bound_part,
    giant_variables.giant_variable,
    uneven_placements.uneven_placement,
    skewed_shards.skewed_shards,
    hot_servers.hot_ps,
    unused_servers.no_variables_on_ps,
    ended_servers.ps_ended,
    cpu_bound_servers.ps_cpu_bound,
    few_servers.too_few_ps,
    network_bound_servers.ps_network_bound,
    many_servers.too_many_ps,
    dense_updates.dense_update,
    dense_gradients.dense_gradient,
    slot_memories.slots_memory,
    device_filters.no_device_filters,
    recovery_waits.recovery_wait,
    log_placements.log_device_placement,
    checkpoints.frequent_checkpoints,
    summaries.frequent_summaries,
    missing_prefetches.no_prefetch,
    one_hot_tables.one_hot_table,
    synchronous_waits.sync_straggler,
    global_steps.global_step_server,
    large_feeds.large_feeds,
    compute_bounds.compute_bound,
    slow_hosts.slow_host,
    slow_disks.slow_disk,
    big_shards.big_shard,
    slow_ranks.slow_rank,
    waiting_trainers.waiting_for_ps,
    many_workers.too_many_workers,
    idle_workers.idle_workers,
)
#: Every kind of cause, by its code.
TOPICS: tuple[Topic, ...] = tuple(
    sorted((*topics.TOPICS, *(rule.topic for rule in RULES)), key=lambda topic: topic.code)
)
#: Maps the name of a cause to the names of the causes that follow from it, nearest first.
EXPLAINS = {rule.topic.name: rule.explains for rule in RULES}
#: Names of causes that make no job slower.
SPARING = frozenset(topic.name for topic in TOPICS if topic.is_sparing)
_PACKAGE = __name__.rpartition(".")[0]
_BY_NAME = {topic.name: topic for topic in TOPICS}


def thresholds(rule: Rule) -> tuple[Threshold, ...]:
    """Return the thresholds of a rule: those of its module, then those of the modules that it shares.

    The modules that its facts share count, too.
    """
    own = sys.modules[rule.find.__module__]
    rules = {sys.modules[each.find.__module__] for each in RULES}
    values = [value for module in (own, *rule.facts) for value in vars(module).values()]
    shared = {value for value in values if inspect.ismodule(value) and value not in rules}
    ordered = sorted(shared, key=lambda module: module.__name__.rpartition("."))
    return tuple(dict.fromkeys(threshold for module in (own, *ordered) for threshold in _declared(module)))


def _declared(module: ModuleType) -> list[Threshold]:
    return [value for value in vars(module).values() if isinstance(value, Threshold)]


def _all_thresholds() -> Iterator[Threshold]:
    """Yield the thresholds of all modules that rules are in, or that these import, by module."""
    waiting, seen = [sys.modules[__name__], *(sys.modules[rule.find.__module__] for rule in RULES)], set()
    while waiting:
        module = waiting.pop()
        if module in seen or not module.__name__.startswith(_PACKAGE):
            continue
        seen.add(module)
        yield from _declared(module)
        for value in vars(module).values():
            name = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
            if isinstance(name, str) and name in sys.modules:
                waiting.append(sys.modules[name])


#: All thresholds, by name.
THRESHOLDS: Mapping[str, Threshold] = {
    threshold.name: threshold for threshold in sorted(set(_all_thresholds()), key=lambda each: each.name)
}


def topic(name: str) -> Topic:
    """Return the topic of the causes with a name."""
    return _BY_NAME[name]
