"""Previews of what the agent derives from its config, for dry runs.

The agent has to be self-contained, so it has its own copy of these rules (``docs/agent-protocol.md``). A test
compares both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model.jobs import job_specs
from paceline.model.roles import Role

_NAMES = "|".join(re.escape(name) for name in sorted(job_specs.PLACEHOLDERS, key=len, reverse=True))
#: ``{name}`` is replaced, ``{{name}}`` and ``${name}`` are not.
_PLACEHOLDER = re.compile(rf"\{{\{{({_NAMES})\}}\}}|(?<!\$)\{{({_NAMES})\}}")
_LITERAL = re.compile(rf"(?<!\$)\{{({_NAMES})\}}")


def command(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command that the agent will start; placeholders with unknown values are kept."""
    values = _values(config)
    return tuple(fill(part, values) for part in config["command"])


def environment(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the framework's variables and the job's variables as the command will see them."""
    values = _values(config)
    filled = {name: fill(text, values) for name, text in config["environment"].items()}
    return {**framework_variables(config), **filled}


def framework_variables(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables by which the replicas of the job's framework find each other."""
    match config["framework"]:
        case job_specs.Framework.TENSORFLOW:
            return {"TF_CONFIG": tf_config(config)}
        case job_specs.Framework.PYTORCH:
            return torch_variables(config)
    return {}


def torch_variables(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables of ``torch.distributed``; rank 0 is the chief if there is one, else worker 0.

    An evaluator takes no part. Sources: PyTorch's documentation of torchrun, "Environment Variables"; for the
    ``PET_`` variables, which are torchrun's own options, ``pkg/controller.v1/pytorch/envvar.go`` of
    kubeflow/training-operator.
    """
    chiefs, workers = (config["cluster"].get(role, []) for role in (Role.CHIEF, Role.WORKER))
    trainers = [*chiefs, *workers]
    if not Role(config["role"]).trains or not trainers:
        return {}
    rank = str(config["index"] + (len(chiefs) if config["role"] == Role.WORKER else 0))
    address, _, port = trainers[0].rpartition(":")
    host = address.strip("[]")
    world = str(len(trainers))
    return {
        "MASTER_ADDR": host, "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": world,
        "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "NODE_RANK": rank, "GROUP_RANK": rank,
        "PET_MASTER_ADDR": host, "PET_MASTER_PORT": port, "PET_NODE_RANK": rank, "PET_NNODES": world,
        "PET_NPROC_PER_NODE": "1",
    }  # fmt: skip


def tf_cluster(config: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Return the addresses by role; as TensorFlow requires, only an evaluator sees its own address."""
    return {
        name: hosts
        for name, hosts in config["cluster"].items()
        if hosts and (name != Role.EVALUATOR or config["role"] == Role.EVALUATOR)
    }


def tf_config(config: Mapping[str, Any]) -> str:
    """Return the value of ``TF_CONFIG``."""
    task = {"type": config["role"], "index": config["index"]}
    return json.dumps({"cluster": tf_cluster(config), "task": task})


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its placeholders replaced; a placeholder without a value is kept."""

    def filled(match: re.Match[str]) -> str:
        return "{" + match[1] + "}" if match[1] else values.get(match[2], match[0])

    return _PLACEHOLDER.sub(filled, text)


def literal(text: str) -> str:
    """Return a text with its braces escaped, so that none is read as a placeholder."""
    return _LITERAL.sub(r"{{\1}}", text)


def _values(config: Mapping[str, Any]) -> dict[str, str]:
    cluster: Mapping[str, Sequence[str]] = config["cluster"]
    values = {name: str(config[name]) for name in ("job", "role", "index", "attempt")}
    values["address"] = cluster[config["role"]][config["index"]]
    if config["threads"] is not None:
        values["threads"] = str(config["threads"])
    for role in Role:
        hosts = cluster.get(role, [])
        values[f"{role}_hosts"] = ",".join(hosts)
        values[f"replicas.{role}"] = str(len(hosts))
    values["cluster_spec"] = json.dumps(tf_cluster(config))
    return {**values, **config["placeholders"]}
