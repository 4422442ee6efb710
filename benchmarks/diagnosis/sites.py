"""A running job of the corpus, as faults lay hands on it: its processes, cgroups and network namespaces."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from paceline.engines.local import cgroups, folders, machines, networks, processes
from paceline.engines.local.folders import RunFolder
from paceline.model.jobs.job_specs import Host, JobSpec
from paceline.model.jobs.runs import Run
from paceline.model.roles import ReplicaId, Role
from paceline.services.local import jobs

TRAINERS = (Role.CHIEF, Role.WORKER)
INTERFACE = networks.INTERFACE


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """A job that runs on this machine."""

    api: jobs.Jobs
    run: Run
    groups: cgroups.Hierarchy

    @classmethod
    def of(cls, api: jobs.Jobs, run: Run) -> Site:
        """Return the site of a run.

        Raises:
            RuntimeError: this machine has no cgroups or namespaces that we may make.
        """
        machine = machines.read()
        if machine.cgroups is None or machine.lacks_namespaces:
            raise RuntimeError(f"the corpus needs root: {machine.lacks_cgroups or machine.lacks_namespaces}")
        return cls(api, run, machine.cgroups)

    @property
    def folder(self) -> folders.RunFolder:
        """Return the run's folder."""
        return RunFolder.of(self.run)

    @property
    def spec(self) -> JobSpec:
        """Return the job."""
        return self.run.spec

    def replicas(self, *roles: Role) -> list[ReplicaId]:
        """Return the replicas of some roles."""
        return [each for each in self.spec.replicas() if each.role in roles]

    def _seats(self) -> dict[str, str]:
        """Return the name of each replica's host."""
        found = json.loads(self.folder.layout.read_text())
        return {name: str(each["host"]) for name, each in found.items() if "host" in each}

    def group(self, replica: ReplicaId) -> str:
        """Return the cgroup of a replica."""
        return f"{self.host_group(self._seats()[str(replica)])}/{replica}"

    def host_group(self, host: str) -> str:
        """Return the cgroup of a host."""
        return f"{self.folder.token}/{host}"

    def host_of(self, replica: ReplicaId) -> str:
        """Return the name of a replica's host."""
        return self._seats()[str(replica)]

    def namespace(self, replica: ReplicaId) -> str:
        """Return the network namespace of a replica; its interface is ``eth0``."""
        return f"{self.folder.token}-{replica}"

    def command(self, replica: ReplicaId) -> list[psutil.Process]:
        """Return the processes of a replica's command, of its first attempt, without the agent."""
        agent = processes.agent_pid(self.folder.config(replica, 1))
        try:
            return psutil.Process(agent).children(recursive=True) if agent else []
        except psutil.NoSuchProcess:
            return []

    def signal(self, replica: ReplicaId, number: signal.Signals) -> None:
        """Send a signal to a replica's command; its agent goes on."""
        for process in self.command(replica):
            with_gone(process, number)

    def steps_of(self, replica: ReplicaId) -> int:
        """Return how many step reports a trainer has written."""
        path = Path(self.folder.files(replica, 1).reports)
        return path.read_text().count('"type": "step"') if path.exists() else 0

    def lift(self) -> None:
        """Take all CPU quotas away: what starts is not what is recorded."""
        for group, _ in self._quotas():
            path, text = self._quota_file()
            (path / group / text[0]).write_text(text[1])

    def limit(self) -> None:
        """Give hosts and replicas their CPU quotas again."""
        for group, cores in self._quotas():
            self.groups.create(group, cgroups.CgroupLimits(cpu_cores=cores))

    def _quota_file(self) -> tuple[Path, tuple[str, str]]:
        if self.groups.version == 1:
            return self.groups.roots["cpu"], ("cpu.cfs_quota_us", "-1")
        return self.groups.roots["cpu"], ("cpu.max", "max")

    def _quotas(self) -> Iterator[tuple[str, float]]:
        """Yield each group that has a quota, hosts before their replicas."""
        hosts: Sequence[Host] = self.spec.hosts
        for host in hosts:
            group = self.host_group(host.name)
            if host.cpu_cores is not None and (self.groups.roots["cpu"] / group).exists():
                yield group, host.cpu_cores
        for role in self.spec.roles:
            if role.cpu_cores is None or role.cpu_policy != "shared":
                continue
            for replica in self.replicas(role.role):
                group = self.group(replica)
                if (self.groups.roots["cpu"] / group).exists():
                    yield group, role.cpu_cores


def with_gone(process: psutil.Process, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def in_namespace(namespace: str, words: str) -> None:
    """Run a command of iproute2 for a namespace, such as ``tc qdisc add ...``.

    Raises:
        RuntimeError: it was refused.
    """
    program, _, rest = words.partition(" ")
    _run([program, "-n", namespace, *rest.split()])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def tc_filter(namespace: str, program: str) -> None:
    """Have a program of classic BPF decide of each packet that comes to a namespace's interface.

    Raises:
        RuntimeError: it was refused.
    """
    words = ["tc", "-n", namespace, *f"filter add dev {INTERFACE} ingress bpf bytecode".split()]
    _run([*words, program, "direct-action"])
