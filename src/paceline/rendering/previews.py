"""What the agent will make of its config, for dry runs.

The agent has to stand alone, so it has its own copy of these rules (``docs/agent-protocol.md``); a test holds
both against each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.model import jobs
from paceline.model.roles import Role

_NAMES = "|".join(re.escape(name) for name in sorted(jobs.PLACEHOLDERS, key=len, reverse=True))
#: ``{name}`` is filled in, ``{{name}}`` and ``${name}`` are not.
_PLACEHOLDER = re.compile(rf"\{{\{{({_NAMES})\}}\}}|(?<!\$)\{{({_NAMES})\}}")
_LITERAL = re.compile(rf"(?<!\$)\{{({_NAMES})\}}")


def command(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command that the agent will start; what only the replica can know stays a placeholder."""
    values = _values(config)
    return tuple(fill(part, values) for part in config["command"])


def environment(config: Mapping[str, Any]) -> dict[str, str]:
    """Return ``TF_CONFIG`` and the job's own environment as the command will see them."""
    values = _values(config)
    filled = {name: fill(text, values) for name, text in config["environment"].items()}
    return {"TF_CONFIG": tf_config(config), **filled}


def tf_config(config: Mapping[str, Any]) -> str:
    """Return ``TF_CONFIG``; by TensorFlow's rule only the evaluator sees the evaluator in the cluster."""
    role, index = config["role"], config["index"]
    cluster = {
        name: hosts
        for name, hosts in config["cluster"].items()
        if hosts and (name != Role.EVALUATOR or role == Role.EVALUATOR)
    }
    return json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill in placeholders; one without a value stays as it is."""

    def filled(match: re.Match[str]) -> str:
        return "{" + match[1] + "}" if match[1] else values.get(match[2], match[0])

    return _PLACEHOLDER.sub(filled, text)


def literal(text: str) -> str:
    """Return what has to be written for a text of others, in whose words braces are only braces."""
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
    return {**values, **config["placeholders"]}
