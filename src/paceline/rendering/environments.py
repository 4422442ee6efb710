"""The config of the agent of one replica (``docs/agent-protocol.md``), without side effects.

The agent itself fills in ``TF_CONFIG``, placeholders and thread counts, because only the agent sees the
container's real CPU limit.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model.jobs import job_specs
from paceline.model.roles import ReplicaId

SAMPLE_SECONDS = 1.0
#: How long replicas keep running without a supervisor.
ORPHAN_SECONDS = 60.0
_KNOWN_BEFOREHAND = ("variables", "measured_variables")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFiles:
    """The paths that an engine gives to one attempt of a replica.

    Attributes:
        code: where code is fetched to.
        instrumentation: the folder that must come first on Python's path; None: the engine provides none.
    """

    run_dir: str
    code: str
    checkpoint_dir: str
    scratch_dir: str
    spool: str
    exit: str
    reports: str
    supervisor_lock: str | None = None
    instrumentation: str | None = None


def agent_config(
    spec: job_specs.JobSpec,
    replica: ReplicaId,
    *,
    attempt: int,
    cluster: Mapping[str, Sequence[str]],
    spare_workers: Sequence[str] = (),
    files: ReplicaFiles,
    interface: str | None,
    own_cgroup: bool,
) -> dict[str, Any]:
    """Return the agent's config for one attempt of a replica.

    Args:
        spec: the job.
        replica: the replica.
        attempt: number of the attempt, from 1.
        cluster: addresses ``host:port`` by role, in index order.
        spare_workers: addresses of workers that the job may get while it runs (`JobSpec.spares`).
        files: paths at which the agent reads and writes.
        interface: the network interface that only this replica uses; None if it shares one.
        own_cgroup: whether the replica has a cgroup of its own.
    """
    role = spec.role_of(replica)
    environment = {"TMPDIR": files.scratch_dir, **spec.environment_of(replica.role)}
    if spec.training is not None:
        # Facts about variables are for lint and plans; the script knows its variables itself.
        settings = {name: value for name, value in spec.training.items() if name not in _KNOWN_BEFOREHAND}
        environment["PACELINE_TRAINING"] = json.dumps(settings, sort_keys=True)
    placeholders = {"run_dir": files.run_dir, "checkpoint_dir": files.checkpoint_dir}
    if spec.code is not None:
        placeholders["code_dir"] = spec.code.root(files.code)
    return {
        "job": spec.name,
        "framework": str(spec.framework),
        "role": str(replica.role),
        "index": replica.index,
        "attempt": attempt,
        "command": list(spec.command_of(replica.role)),
        "cluster": {name: list(addresses) for name, addresses in cluster.items()},
        "spare_workers": list(spare_workers),
        "threads": role.threads,
        "cpu_cores": role.cpu_cores,
        "placeholders": placeholders,
        "environment": environment,
        "spool": files.spool,
        "exit": files.exit,
        "reports": files.reports,
        "sample_seconds": SAMPLE_SECONDS,
        "grace_seconds": spec.termination_grace_seconds,
        "interface": interface,
        "own_cgroup": own_cgroup,
        "supervisor_lock": files.supervisor_lock,
        "orphan_seconds": ORPHAN_SECONDS,
        "instrumentation": files.instrumentation if _is_instrumented(spec) else None,
    }


def _is_instrumented(spec: job_specs.JobSpec) -> bool:
    return (
        spec.instrumentation is job_specs.Instrumentation.AUTO
        and spec.framework is not job_specs.Framework.PLAIN
    )
