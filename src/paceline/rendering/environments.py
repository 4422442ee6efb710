"""What the agent of one replica is told (``docs/agent-protocol.md``): pure and printable.

The agent itself fills in ``TF_CONFIG``, placeholders and thread counts, because only it sees the
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
#: How long replicas go on without a supervisor.
ORPHAN_SECONDS = 60.0
_KNOWN_BEFOREHAND = ("variables", "measured_variables")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaFiles:
    """The paths that an engine gives to one attempt of a replica.

    Attributes:
        code: where code is fetched to.
        instrumentation: the folder that Python has to find first; None: the engine brings none.
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
        replica: which replica.
        attempt: which launch of it, from 1.
        cluster: addresses ``host:port`` by role, in index order.
        spare_workers: those of workers that the job may get while it runs (`JobSpec.spares`).
        files: where the agent writes and reads.
        interface: the network interface that is this replica's alone; None when it shares one.
        own_cgroup: whether a cgroup holds this replica alone.
    """
    role = spec.role_of(replica)
    environment = {"TMPDIR": files.scratch_dir, **spec.environment_of(replica.role)}
    if spec.training is not None:
        # What is known of the variables serves lint and plans; the script knows its own.
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
