"""The configs of a job's agents, as a config map.

The user's command and environment are passed as JSON in it, so neither a shell nor the ``$(NAME)`` expansion
of Kubernetes changes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.errors import EngineError
from paceline.model.jobs.job_specs import JobSpec, RoleSpec
from paceline.model.roles import ReplicaId, Role
from paceline.rendering import agent_secrets, agents, codes, environments, labels
from paceline.rendering.agents import HOME
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

FOLDER = f"{HOME}/config"
SCRATCH = "/tmp"
#: Where code is fetched to, and where the config map with a packed folder is mounted.
CODE, PACKED = f"{HOME}/code", f"{HOME}/packed"
#: The termination message, which Kubernetes keeps after a container has ended.
EXIT = "/dev/termination-log"
#: A volume of this name holds the run folders; without one, they disappear with the pods.
RUNS = "runs"
#: The port of the agents: it serves metrics for Prometheus, and their files (``docs/agent-protocol.md``).
METRICS_PORT = 2223
#: The API server accepts no larger config map (``MaxSecretSize`` of Kubernetes).
MAX_BYTES = 1 << 20
_CLUSTER, _FETCH = "cluster.json", "code.json"
#: Config fields that are left out of a role's part, because another part sets them.
_ELSEWHERE = ("cluster", "spare_workers", "index", "attempt")
#: The file with the config of the fetcher.
FETCH = f"{FOLDER}/{_FETCH}"
TOKEN = f"{FOLDER}/{agent_secrets.TOKEN}"


def config_map(
    spec: JobSpec,
    where: Surroundings,
    cluster: Mapping[str, Sequence[str]],
    spare_workers: Sequence[str] = (),
) -> Object:
    """Return the config map: it holds the cluster once, and the rest once for each role.

    Args:
        spec: the job.
        where: the job's surroundings in the cluster.
        cluster: the addresses of all replicas by role.
        spare_workers: the addresses of workers that the job may get while it runs.

    Raises:
        EngineError: the config map is larger than Kubernetes allows, or no agent image can fetch the code.
    """
    if spec.code is not None and where.agent.image is None:
        raise EngineError(
            f"nothing can fetch the code of {spec.name}: no image brings the agent",
            "give the operator an --agent-image, or put the code into the job's own image",
        )
    data = {
        _CLUSTER: _json(labels.given({"cluster": cluster, "spare_workers": list(spare_workers)})),
        **{f"{role.role}.json": _json(_config(spec, where, role)) for role in spec.roles},
    }
    if spec.code is not None:
        told = codes.fetch_config(spec.code, spec.working_dir, f"{PACKED}/{codes.PACKED}")
        data[_FETCH] = _json(told)
    size = sum(len(text.encode()) for text in data.values())
    if size > MAX_BYTES:
        raise EngineError(
            f"commands, environment and addresses of {spec.name} take {size} bytes; "
            f"Kubernetes allows {MAX_BYTES}",
            "put large values into the image or a volume",
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": labels.metadata(spec, spec.name, where),
        "data": data,
    }


def arguments(role: Role, index: int | str, attempt: int, *, has_token: bool = False) -> list[str]:
    """Return the agent's arguments for one attempt: parts of its config; later parts override earlier ones.

    If the pods of a role are made from one template, the index is text that Kubernetes expands. The token
    file is named here and not in the config map, because a config map may be newer than the pod.
    """
    token = f', "token_file": "{TOKEN}"' if has_token else ""
    own = f'{{"index": {index}, "attempt": {attempt}{token}}}'
    return [f"{FOLDER}/{_CLUSTER}", f"{FOLDER}/{role}.json", own]


def _config(spec: JobSpec, where: Surroundings, role: RoleSpec) -> Object:
    how = agents.delivery(where, spec.command_of(role.role))
    runs = next((volume.mount_path for volume in spec.volumes if volume.name == RUNS), HOME)
    config = environments.agent_config(
        spec,
        ReplicaId(role.role, 0),
        attempt=1,
        cluster={},
        files=environments.ReplicaFiles(
            run_dir=f"{runs}/{spec.name}",
            code=CODE,
            checkpoint_dir=f"{runs}/{spec.name}/checkpoints",
            scratch_dir=SCRATCH,
            spool=f"{HOME}/spool",
            exit=EXIT,
            reports=f"{HOME}/reports",
            instrumentation=f"{agents.folder(how)}/instrumentation",
        ),
        interface="eth0",
        own_cgroup=True,
    )
    kept = {name: value for name, value in config.items() if name not in _ELSEWHERE}
    return {**kept, "metrics_port": METRICS_PORT}


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
