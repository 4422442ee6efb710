"""The engine's config for one replica."""

import json
from typing import Any, Dict, List, Optional

LINGER_SECONDS = 60.0  # at most, after the command, for a reader that promised to return


class Config:
    """The engine's config for this replica; ``docs/agent-protocol.md`` explains each field."""

    def __init__(self, values: Dict[str, Any]) -> None:
        """Take the known fields of the values; KeyError if a required field is missing."""
        self.job: str = values["job"]
        self.role: str = values["role"]
        self.index: int = values["index"]
        self.attempt: int = values["attempt"]
        self.command: List[str] = values["command"]
        self.cluster: Dict[str, List[str]] = values["cluster"]
        self.framework: str = values.get("framework", "tensorflow")
        self.spool: str = values["spool"]
        self.exit: str = values["exit"]
        self.reports: str = values["reports"]
        self.threads: Optional[int] = values.get("threads")
        self.cpu_cores: Optional[float] = values.get("cpu_cores")
        self.spare_workers: List[str] = values.get("spare_workers") or []
        self.placeholders: Dict[str, str] = values.get("placeholders") or {}
        self.environment: Dict[str, str] = values.get("environment") or {}
        self.sample_seconds: float = values.get("sample_seconds", 1.0)
        self.grace_seconds: float = values.get("grace_seconds", 30.0)
        self.interface: Optional[str] = values.get("interface")
        self.own_cgroup: bool = values.get("own_cgroup", False)
        self.supervisor_lock: Optional[str] = values.get("supervisor_lock")
        self.orphan_seconds: float = values.get("orphan_seconds", 600.0)
        self.metrics_port: Optional[int] = values.get("metrics_port")
        self.token_file: Optional[str] = values.get("token_file")
        self.instrumentation: Optional[str] = values.get("instrumentation")
        self.linger_seconds: float = values.get("linger_seconds", LINGER_SECONDS)


def parse_config(*texts: str) -> Config:
    """Parse the config from its parts; ValueError says what is wrong. Unknown fields are ignored."""
    values: Dict[str, Any] = {}
    for text in texts:
        part = json.loads(text)
        if not isinstance(part, dict):
            raise ValueError("it is not a JSON object")
        values.update(part)
    command = values.get("command")
    if not (isinstance(command, list) and command and all(isinstance(word, str) for word in command)):
        raise ValueError("command has to be a list of strings, the program first")
    try:
        return Config(values)
    except KeyError as error:
        raise ValueError(f"field {error} is missing") from error


def own_port(config: Config) -> Optional[int]:
    """Return the port at which others look for this replica; None: it has none."""
    own = config.cluster.get(config.role, [])
    port = own[config.index].rpartition(":")[2] if config.index < len(own) else ""
    return int(port) if port.isdigit() else None


def server_port(config: Config) -> Optional[int]:
    """Return that port if a TensorFlow server has to listen there; None: a coordinator has no such server."""
    serves = config.framework == "tensorflow" and config.role in ("ps", "worker")
    return own_port(config) if serves and any(config.cluster.get("ps", [])) else None
