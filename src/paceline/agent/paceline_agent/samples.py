"""One sample a second of what the replica uses."""

import os
import time
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from .cgroups import CgroupReader, Pressures, parse_cgroups, parse_cpus, parse_mounts
from .configs import Config
from .environments import thread_count
from .gpus import GpuWatch
from .kernel_files import KeptFiles, parse_integer
from .networks import parse_needless, parse_network, parse_segments
from .processes import ProcessStat, ProcessTree
from .scheduling import SchedulingCounter


def parse_busy(text: str, cpus: FrozenSet[int]) -> Optional[Tuple[int, int]]:
    """Sum the busy and stolen ticks of the CPUs in /proc/stat (proc.rst, 1.7); None if one CPU is missing.

    Stolen ticks are those in which the hypervisor ran something else although this machine had work to do.
    """
    names = {f"cpu{cpu}" for cpu in cpus}
    busy = stolen = 0
    for line in text.splitlines():
        words = line.split()
        if not words or not words[0].startswith("cpu"):
            break
        if words[0] in names:
            ticks = [parse_integer(words[i]) for i in (1, 2, 3, 6, 7) if i < len(words)]
            names.discard(words[0])
            busy += sum(tick for tick in ticks if tick is not None)
            stolen += (parse_integer(words[8]) if len(words) > 8 else None) or 0
    return (busy, stolen) if cpus and not names else None


class Reading(NamedTuple):
    """Counters at one moment (monotonic and Unix seconds); a sample is the difference of two readings."""

    at: float
    time: float
    cpu_seconds: Optional[float]
    throttled_seconds: Optional[float]
    pressures: Pressures
    network: Optional[Tuple[int, int]]
    segments: Optional[Tuple[int, int]]
    needless_segments: Optional[int]
    cpus: FrozenSet[int]
    busy_ticks: Optional[int]
    stolen_ticks: Optional[int]


def next_due(due: float, now: float, interval: float) -> float:
    """Return when the next sample is due: on the grid of the last one, skipping samples that were missed."""
    return due + interval * (1 + max(0.0, (now - due) // interval))


def rise(before: Optional[float], after: Optional[float]) -> Optional[float]:
    """Return how much a counter rose; None if it fell or either reading is missing."""
    return None if before is None or after is None or after < before else after - before


class Sampler:
    """Measures what the replica uses, starting when this object is created: before the command starts."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._files = KeptFiles()
        mounts = parse_mounts(self._files.read("/proc/self/mountinfo") or "")
        paths = parse_cgroups(self._files.read("/proc/self/cgroup") or "")
        self._faked_stat = any(mount.point == "/proc/stat" for mount in mounts)
        self._tick = os.sysconf("SC_CLK_TCK")
        self._scheduling = SchedulingCounter(self._files)
        self._gpus: Optional[GpuWatch] = None
        self.cgroup = CgroupReader(self._files, paths, mounts)
        self.tree = ProcessTree(self._files, os.getpid())
        self.uses_cgroup = config.own_cgroup and self.cgroup.cpu_seconds() is not None
        self._last = self._read({})

    def threads(self) -> int:
        """Return the thread count for the command."""
        online = parse_cpus(self._files.read("/sys/devices/system/cpu/online") or "")
        return thread_count(self._config, self.cgroup.cpu_limit(), len(self.cpus()), len(online))

    def cpus(self) -> FrozenSet[int]:
        """Return the CPUs that this replica may use."""
        allowed = frozenset(os.sched_getaffinity(0))
        return allowed & self.cgroup.cpus() or allowed

    def cpu_limit(self) -> Optional[float]:
        """Return the CPU quota of this replica alone."""
        return self.cgroup.cpu_limit() if self._config.own_cgroup else None

    def begin(self, environment: Dict[str, str]) -> None:
        """Take the first reading of threads as soon as there are any: the command has just started."""
        self._gpus = GpuWatch(environment)
        self._scheduling.count(self.tree.refresh(), time.monotonic(), 0.0)

    def end_query(self) -> None:
        """End the sampler's own GPU query, if one runs."""
        if self._gpus is not None:
            self._gpus.end()

    def gpu_ended(self, pid: int) -> bool:
        """Return whether the ended process was the sampler's own GPU query."""
        return self._gpus is not None and self._gpus.ended(pid)

    def notes(self) -> List[str]:
        """Return what is not measured, and why."""
        own, limited = self._config.own_cgroup, self.cpu_limit() is not None
        reasons = [
            (not own, "throttling and limits: the cgroup is shared with others (own_cgroup is false)"),
            (
                own and not self.uses_cgroup,
                "cgroup: its files cannot be read; CPU and memory are the processes' sums",
            ),
            (own and not limited, "CPU limit: the cgroup sets none"),
            (self._config.interface is None, "network: no interface belongs to this replica alone"),
            (self._faked_stat, "neighbours: /proc/stat is not the host's"),
            (self._gpus is None or not self._gpus.measures, "GPU: no nvidia-smi, or no GPU is visible"),
        ]
        return [reason for applies, reason in reasons if applies]

    def _read(self, processes: Dict[int, ProcessStat]) -> Reading:
        if self.uses_cgroup:
            cpu_seconds = self.cgroup.cpu_seconds()
        else:
            ticks = sum(process.cpu_ticks for process in processes.values())
            cpu_seconds = self.tree.ended_seconds + ticks / self._tick
        cpus = self.cpus()
        stat = "" if self._faked_stat else self._files.read("/proc/stat") or ""
        busy_ticks, stolen_ticks = parse_busy(stat, cpus) or (None, None)
        interface = self._config.interface
        network = parse_network(self._files.read("/proc/net/dev") or "", interface) if interface else None
        snmp, netstat = (
            (self._files.read(f"/proc/net/{name}") if network else None) or "" for name in ("snmp", "netstat")
        )
        return Reading(
            at=time.monotonic(),
            time=time.time(),
            cpu_seconds=cpu_seconds,
            throttled_seconds=self.cgroup.throttled_seconds() if self._config.own_cgroup else None,
            pressures=self.cgroup.pressures() if self._config.own_cgroup else Pressures(None, None, None),
            network=network,
            segments=parse_segments(snmp),
            needless_segments=parse_needless(netstat),
            cpus=cpus,
            busy_ticks=busy_ticks,
            stolen_ticks=stolen_ticks,
        )

    def sample(self) -> Dict[str, Any]:
        """Return one sample line for the spool."""
        before, processes = self._last, self.tree.refresh()
        after = self._last = self._read(processes)
        scheduled = self._scheduling.count(processes, after.at, self._config.sample_seconds)
        interval = max(after.at - before.at, 1e-6)
        used = rise(before.cpu_seconds, after.cpu_seconds)
        counted = bool(before.busy_ticks) and before.cpus == after.cpus
        busy = rise(before.busy_ticks, after.busy_ticks) if counted else None
        stolen = rise(before.stolen_ticks, after.stolen_ticks) if counted else None
        neighbours = None if busy is None or used is None else max(0.0, (busy / self._tick - used) / interval)
        old, new = before.network or (None, None), after.network or (None, None)
        sent_before, again_before = before.segments or (None, None)
        sent, again = after.segments or (None, None)
        repeated = rise(again_before, again)
        needless = rise(before.needless_segments, after.needless_segments)
        utilization, gpu_memory = self._gpus.poll(after.at) if self._gpus else (None, None)
        self.tree.ignored = self._gpus.pids if self._gpus else set()
        pages = sum(process.pages for process in processes.values())
        return {
            "type": "sample",
            "at": after.time,
            "interval_seconds": round(interval, 6),
            "cpu_cores": None if used is None else round(used / interval, 6),
            "cpu_limit_cores": self.cpu_limit(),
            "throttled_seconds": rise(before.throttled_seconds, after.throttled_seconds),
            "cpu_pressure_seconds": rise(before.pressures.cpu, after.pressures.cpu),
            "memory_pressure_seconds": rise(before.pressures.memory, after.pressures.memory),
            "io_pressure_seconds": rise(before.pressures.io, after.pressures.io),
            "memory_bytes": self.cgroup.memory_bytes()
            if self.uses_cgroup
            else pages * os.sysconf("SC_PAGE_SIZE"),
            "memory_limit_bytes": self.cgroup.memory_limit() if self._config.own_cgroup else None,
            "network_received_bytes": rise(old[0], new[0]),
            "network_sent_bytes": rise(old[1], new[1]),
            "sent_segments": rise(sent_before, sent),
            "retransmitted_segments": None if repeated is None else max(0, repeated - (needless or 0)),
            "voluntary_switches": scheduled.voluntary if scheduled else None,
            "involuntary_switches": scheduled.involuntary if scheduled else None,
            "run_delay_seconds": scheduled.run_delay_seconds if scheduled else None,
            "allowed_cpus": len(after.cpus),
            "threads": sum(process.threads for process in processes.values()),
            "neighbours_cpu_cores": None if neighbours is None else round(neighbours, 6),
            "stolen_cpu_cores": None if stolen is None else round(stolen / self._tick / interval, 6),
            "gpu_utilization": utilization,
            "gpu_memory_bytes": gpu_memory,
        }
