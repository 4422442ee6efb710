"""Every maker of a fault by its name, which is its cause's, with more where a cause has several."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.diagnosis.faults import (
    cores,
    inputs,
    lives,
    memories,
    networks,
    optimizers,
    placements,
    progresses,
    servers,
    workers,
)
from benchmarks.diagnosis.faults.faults import Maker

MAKERS: Mapping[str, Maker] = {
    "giant-variable": placements.giant_variable,
    "uneven-placement": placements.uneven_placement,
    "skewed-shards": placements.skewed_shards,
    "ps-cpu-bound": servers.ps_cpu_bound,
    "too-few-ps": servers.too_few_ps,
    "ps-network-bound": servers.ps_network_bound,
    "too-many-ps": servers.too_many_ps,
    "dense-update": optimizers.dense_update,
    "dense-gradient": optimizers.dense_gradient,
    "slots-memory": optimizers.slots_memory,
    "too-many-threads": cores.too_many_threads,
    "throttled": cores.throttled,
    "noisy-neighbour": cores.noisy_neighbour,
    "fractional-cores": cores.fractional_cores,
    "exclusive-not-got": cores.exclusive_not_got,
    "compute-bound": workers.compute_bound,
    "slow-host": workers.slow_host,
    "slow-host-crowded": workers.crowded_host,
    "slow-disk": workers.slow_disk,
    "big-shard": workers.big_shard,
    "idle-workers": workers.idle_workers,
    "too-many-workers": workers.too_many_workers,
    "slow-storage": inputs.slow_storage,
    "slow-decoding": inputs.slow_decoding,
    "shared-link": networks.shared_link,
    "worker-link": networks.worker_link,
    "worker-link-one": networks.one_worker_link,
    "retransmissions": networks.retransmissions,
    "memory-near-limit": memories.memory_near_limit,
    "memory-near-limit-growing": memories.memory_grows,
    "memory-over-asked": memories.memory_over_asked,
    "hang": progresses.hang,
    "waiting-at-start": progresses.waiting_at_start,
    "loss-not-finite": progresses.loss_not_finite,
    "evaluation-starves": progresses.evaluation_starves,
    "out-of-memory": lives.out_of_memory,
    "killed": lives.killed,
    "command-failed": lives.command_failed,
}
