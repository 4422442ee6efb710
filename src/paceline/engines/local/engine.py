"""Runs the replicas of one job on this machine."""

from __future__ import annotations

import compileall
import contextlib
import functools
import importlib.resources
import json
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from paceline.control import events
from paceline.engines import engines, exit_reasons
from paceline.engines.local import (
    cgroups,
    codes,
    firewalls,
    folders,
    layouts,
    machines,
    networks,
    processes,
    shells,
)
from paceline.errors import EngineError
from paceline.model.jobs import job_specs
from paceline.model.jobs.adjustments import Allowance
from paceline.model.jobs.statuses import ExitKind, ExitReason
from paceline.model.roles import ReplicaId
from paceline.rendering import environments, host_plans

log = logging.getLogger(__name__)


class LocalEngine:
    """The local engine of one job (``engines.Engine``); only the job's supervisor calls it."""

    def __init__(self, spec: job_specs.JobSpec, folder: folders.RunFolder, machine: machines.Machine) -> None:
        self._spec = spec
        self._folder = folder
        self._machine = machine
        self._watch = processes.ExitWatch()
        self._running: dict[int, tuple[ReplicaId, int]] = {}
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._firewall: firewalls.Firewall | None = None
        # Current limits, as far as they are known. They are unknown for replicas of an earlier supervisor,
        # and after a failed change.
        self._allowed: dict[ReplicaId, Allowance] = {}
        self._links: dict[str, int] = {}

    @functools.cached_property
    def _layout(self) -> layouts.HostLayout:
        return layouts.read(self._folder, self._spec.hosts)

    @functools.cached_property
    def _network(self) -> networks.Network | None:
        if not layouts.has_network(self._spec, self._machine):
            return None
        return networks.Network(self._folder.token, self._layout.plan)

    def prepare(self) -> Sequence[str]:
        """Copy the agent and instrumentation, create cgroups and network, and close ports to other machines.

        See ``engines.Engine``.
        """
        self._copy_code()
        if self._network is not None and not self._network.exists():
            self._network.create()
        self._create_host_groups()
        return [
            *notes(self._spec, self._machine),
            *self._close_ports(),
            *codes.notes(self._folder.path),
            *shells.note(self._folder.environment, processes.environment(os.environ)),
        ]

    def _copy_code(self) -> None:
        """Copy what runs beside each replica and in it; the platform imports neither."""
        package = importlib.resources.files("paceline")
        self._folder.agent.write_bytes(package.joinpath("agent", "agent.py").read_bytes())
        for source, target in (
            (package.joinpath("agent", "paceline_agent"), self._folder.agent_package),
            (package.joinpath("instrumentation"), self._folder.instrumentation),
        ):
            with importlib.resources.as_file(source) as folder:
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(folder, target, ignore=ignored, dirs_exist_ok=True)
        # Once, and not by each of the agents, which start at the same time.
        compileall.compile_dir(self._folder.agent_package, quiet=2)

    def _close_ports(self) -> list[str]:
        """Close the replicas' ports to other machines; if that fails, return the reason as a sentence."""
        if self._network is not None:  # Other machines cannot reach the network namespaces.
            return []
        ports = [int(address.rpartition(":")[2]) for address in self._layout.addresses.values()]
        try:
            self._firewall = firewalls.Firewall(self._folder.token, ports)
        except EngineError as error:
            return [f"other machines may reach its ports, and so files of its user: {error.message}"]
        return []

    def _create_host_groups(self) -> None:
        if self._machine.cgroups is None:
            return
        for host in {seat.host for seat in self._layout.plan.seats}:
            limits = cgroups.CgroupLimits(cpu_cores=host.cpu_cores, memory_bytes=host.memory_bytes)
            self._machine.cgroups.create(self._host_group(host), limits)

    def _host_group(self, host: job_specs.Host) -> str:
        return f"{self._folder.token}/{host.name}"

    def _group(self, replica: ReplicaId) -> str:
        return f"{self._host_group(self._layout.plan.seat(replica).host)}/{replica}"

    def adapt(
        self, spec: job_specs.JobSpec, allowances: Sequence[Allowance], links: Mapping[str, int]
    ) -> Sequence[str]:
        """Set limits and link rates, and pause or resume replicas (see ``engines.Engine``)."""
        self._spec = spec
        with contextlib.suppress(AttributeError):
            del self._layout
        failed, running = [], {replica for replica, _ in self._running.values()}
        for allowance in allowances:
            before = self._allowed.get(allowance.replica)
            if before == allowance or allowance.replica not in running:
                continue
            self._allowed.pop(allowance.replica, None)
            try:
                self._limit(allowance, before)
            except EngineError as error:
                failed.append(f"{allowance.replica} keeps what it had: {error.message}")
            else:
                self._allowed[allowance.replica] = allowance
        return [*failed, *self._set_links(links)]

    def _limit(self, allowance: Allowance, before: Allowance | None) -> None:
        """Apply an allowance to a running replica; ``before`` is its previous allowance, None if unknown."""
        if self._machine.cgroups is not None:
            self._machine.cgroups.limit(self._group(allowance.replica), self._limits(allowance))
        if before is None or before.is_paused is not allowance.is_paused:
            self._hold(allowance.replica, is_paused=allowance.is_paused)

    def _hold(self, replica: ReplicaId, *, is_paused: bool) -> None:
        """Stop or continue the processes of a replica; its agent runs in either case."""
        agents = {pid for pid, (each, _) in self._running.items() if each == replica}
        if is_paused:
            processes.halt(lambda: processes.commands(self._pids(replica), agents))
        else:
            processes.send(self._pids(replica) - agents, signal.SIGCONT)

    def _pids(self, replica: ReplicaId) -> set[int]:
        if self._machine.cgroups is not None:
            return self._machine.cgroups.pids(self._group(replica))
        return set(processes.members(self._folder.path, (str(replica.role), replica.index)))

    def _set_links(self, links: Mapping[str, int]) -> list[str]:
        failed = []
        for host in self._spec.hosts if self._network is not None else ():
            bits_per_second = links.get(host.name, host.bandwidth_bits_per_second)
            if bits_per_second is None or bits_per_second == self._links.get(host.name):
                continue
            assert self._network is not None, "hosts have one"
            self._links.pop(host.name, None)
            try:
                self._network.limit(host, bits_per_second)
            except EngineError as error:
                failed.append(f"the link of {host.name} keeps its rate: {error.message}")
            else:
                self._links[host.name] = bits_per_second
        return failed

    def launch(self, attempt: int, allowance: Allowance) -> engines.Launched:
        """Start one attempt in its group and namespace (see ``engines.Engine``)."""
        replica = allowance.replica
        config = self._folder.config(replica, attempt)
        seat = self._layout.plan.seat(replica)
        try:
            config.parent.mkdir(parents=True, exist_ok=True)
            self._folder.scratch(replica).mkdir(parents=True, exist_ok=True)
            config.write_text(json.dumps(self.agent_config(replica, attempt), indent=1))
            if self._machine.cgroups is not None:
                self._machine.cgroups.create(self._group(replica), self._limits(allowance))
            child = processes.start(
                config,
                agent=self._folder.agent,
                log=self._folder.log(replica, attempt),
                working_dir=Path(self._spec.working_dir) if self._spec.working_dir else self._folder.path,
                cgroup_files=self._cgroup_files(replica),
                namespace=networks.NAMESPACES / self._network.namespace(replica) if self._network else None,
            )
        except OSError as error:
            raise EngineError(f"{replica} cannot be launched: {error}") from error
        self._children[child.pid] = child
        self._allowed[replica] = allowance
        self._follow(child.pid, replica, attempt)
        return engines.Launched(
            host=seat.host.name, address=self._layout.addresses[replica], pid=child.pid, cores=seat.cores
        )

    def agent_config(self, replica: ReplicaId, attempt: int) -> dict[str, object]:
        """Return the configuration of one attempt's agent."""
        addresses = self._layout.addresses
        return environments.agent_config(
            self._spec,
            replica,
            attempt=attempt,
            cluster=host_plans.cluster([(each, addresses[each]) for each in self._spec.replicas()]),
            spare_workers=[addresses[each] for each in self._spec.spares() if each in addresses],
            files=self._folder.files(replica, attempt),
            interface=networks.INTERFACE if self._network else None,
            own_cgroup=self._machine.cgroups is not None,
        )

    def _limits(self, allowance: Allowance) -> cgroups.CgroupLimits:
        return cgroups.CgroupLimits(
            cpu_cores=allowance.cpu_cores,
            cores=self._layout.plan.seat(allowance.replica).cores,
            memory_bytes=allowance.memory_bytes,
            weight=allowance.weight,
        )

    def _cgroup_files(self, replica: ReplicaId) -> list[Path]:
        if self._machine.cgroups is None:
            return []
        return [folder / "cgroup.procs" for folder in self._machine.cgroups.folders(self._group(replica))]

    def _follow(self, pid: int, replica: ReplicaId, attempt: int) -> None:
        self._running[pid] = (replica, attempt)
        if not self._watch.add(pid):
            raise EngineError(f"{replica} ended before it could be watched")

    def terminate(self, replica: ReplicaId, attempt: int) -> None:
        """Send SIGTERM to the agent (see ``engines.Engine``)."""
        for pid, running in self._running.items():
            if running == (replica, attempt):
                processes.terminate(pid)

    def kill(self, replica: ReplicaId, attempt: int) -> None:
        """End the agent and every process that it started (see ``engines.Engine``)."""
        for pid, running in self._running.items():
            if running == (replica, attempt):
                processes.kill([pid])
        self._end_leftovers(replica)

    def _end_what_is_left(self, replica: ReplicaId) -> None:
        """End all remaining processes of a replica whose agent has ended; log a failure."""
        try:
            self._end_leftovers(replica)
        except EngineError as error:
            log.warning("something of %s is left until the job is released: %s", replica, error.message)

    def _end_leftovers(self, replica: ReplicaId) -> None:
        """End all processes of a replica, even if its agent was killed before it could clean up."""
        if self._machine.cgroups is not None:
            self._machine.cgroups.remove(self._group(replica))
        else:
            processes.kill(processes.members(self._folder.path, (str(replica.role), replica.index)))

    def poll(self, timeout_seconds: float) -> list[events.Event]:
        """Wait for exits (see ``engines.Engine``)."""
        exits: list[events.Event] = []
        for pid in self._watch.wait(timeout_seconds):
            replica, attempt = self._running.pop(pid)
            child = self._children.pop(pid, None)
            code = child.wait() if child else None
            is_killed_for_memory = self._is_killed_for_memory(replica)
            self._end_what_is_left(replica)
            reason = self._exit_reason(replica, attempt)
            if reason is None:
                reason = _OUT_OF_MEMORY if is_killed_for_memory else _lost(code)
            exits.append(events.ReplicaExited(replica=replica, attempt=attempt, reason=reason))
        self._hold_paused()
        return exits

    def _hold_paused(self) -> None:
        """Stop commands that were started after their replica was paused."""
        for replica, _ in self._running.values():
            allowance = self._allowed.get(replica)
            if allowance is not None and allowance.is_paused:
                self._hold(replica, is_paused=True)

    def _is_killed_for_memory(self, replica: ReplicaId) -> bool:
        """Return whether the kernel killed a process of this attempt for memory.

        Each attempt has a new cgroup, so the count starts at 0.
        """
        groups = self._machine.cgroups
        return groups is not None and groups.oom_kills(self._group(replica)) > 0

    def _exit_reason(self, replica: ReplicaId, attempt: int) -> ExitReason | None:
        """Return the exit reason that the agent wrote as its last act; None if it could not write one."""
        path = Path(self._folder.files(replica, attempt).exit)
        with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
            return exit_reasons.told(path.read_text())
        return None

    def adopt(self, attempts: Mapping[ReplicaId, int]) -> events.SupervisorReplaced:
        """Find the live agents of an earlier supervisor (see ``engines.Engine``)."""
        live, exits = {}, {}
        for replica, attempt in attempts.items():
            pid = processes.agent_pid(self._folder.config(replica, attempt))
            if pid is not None and self._watch.add(pid):
                self._running[pid] = (replica, attempt)
                live[replica] = attempt
                continue
            is_killed_for_memory = self._is_killed_for_memory(replica)
            self._end_what_is_left(replica)
            reason = self._exit_reason(replica, attempt)
            if reason is None and is_killed_for_memory:
                reason = _OUT_OF_MEMORY
            if reason is not None:
                exits[replica] = reason
        return events.SupervisorReplaced(live=live, exits=exits)

    def release(self) -> None:
        """Remove processes, cgroups, namespaces and the files that the clean-up policy names.

        See ``engines.Engine``.
        """
        release(self._folder, self._machine)
        if self._firewall is not None:
            self._firewall.close()
        for replica in self._folder.scratches():
            if self._spec.clean_up is job_specs.CleanUp.ALL or (
                self._spec.clean_up is job_specs.CleanUp.SUCCEEDED and not self._failed(replica)
            ):
                shutil.rmtree(self._folder.scratch(replica), ignore_errors=True)

    def _failed(self, replica: ReplicaId) -> bool:
        newest = max(self._folder.path.glob(f"replicas/{replica}.*"), key=_attempt_number, default=None)
        reason = self._exit_reason(replica, _attempt_number(newest)) if newest else None
        return reason is None or reason.kind is not ExitKind.COMPLETED


def _attempt_number(folder: Path) -> int:
    return int(folder.name.rpartition(".")[2])


#: The reason for an attempt whose agent the kernel killed, so the agent could not write one.
_OUT_OF_MEMORY = ExitReason(
    kind=ExitKind.OUT_OF_MEMORY,
    signal=signal.SIGKILL,
    message="the kernel killed the agent of this replica for memory: its limit is too small to start at all",
)


def _lost(code: int | None) -> ExitReason:
    if code is not None and code < 0:
        message = f"its agent was ended by signal {-code}"
    elif code:
        message = f"its agent could not run (exit code {code})"
    else:
        message = "its agent ended without a reason"
    return ExitReason(kind=ExitKind.LOST, message=message)


def notes(spec: job_specs.JobSpec, machine: machines.Machine) -> list[str]:
    """Return what cannot be limited or measured for a job on a machine, one sentence each."""
    found = []
    if machine.lacks_cgroups:
        found.append(f"CPU and memory are not limited, throttling is not measured: {machine.lacks_cgroups}")
    if not spec.hosts:
        found.append("network is not measured: without emulated `hosts:` replicas share the loopback")
    elif machine.lacks_namespaces:
        found.append(f"emulated hosts share one network, which is not measured: {machine.lacks_namespaces}")
    return found


def release(folder: folders.RunFolder, machine: machines.Machine) -> None:
    """Remove all processes, cgroups and network namespaces of a run; its folder stays.

    This also cleans up a run whose supervisor is gone.

    Raises:
        EngineError: something could not be removed; the caller tries again.
    """
    if machine.cgroups is not None:
        machine.cgroups.remove(folder.token)
    processes.kill(processes.members(folder.path))
    if not machine.lacks_namespaces:
        networks.remove(folder.token)
