"""How the agent gets into the pods of a job, and how it is started there."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence

from paceline.rendering import securities
from paceline.rendering.labels import Object
from paceline.rendering.surroundings import Surroundings

#: The folder in which the agent writes its files; unless it comes in a volume of its own, it also lies here.
HOME = "/paceline"
#: The folder of the volume.
_FILES = f"{HOME}/agent"
#: The name of the init container that copies the agent.
CONTAINER = "agent"
#: The volume in which the agent writes, and the one with its files.
_HOME_VOLUME, _FILES_VOLUME = "paceline", "paceline-agent"
VOLUMES = (_HOME_VOLUME, _FILES_VOLUME)
_OPTIONS = ("-I", "-S")
#: The copied interpreter, started by the loader that was copied with its libraries.
_COPIED = (f"{HOME}/lib/ld.so", "--library-path", f"{HOME}/lib", f"{HOME}/bin/python3")
_PYTHON = re.compile(r"python(3(\.\d+)?)?", re.ASCII)


class AgentDelivery(enum.Enum):
    """How the agent gets into the container of a replica.

    Attributes:
        VOLUME: the pod mounts an image that has nothing but the agent's files. The Python of the job's own
            image runs them.
        COPY: an init container copies the agent and its own Python.
        IMAGE: the job's image has both already.
    """

    VOLUME = enum.auto()
    COPY = enum.auto()
    IMAGE = enum.auto()


def delivery(where: Surroundings, command: Sequence[str]) -> AgentDelivery:
    """Return how the agent gets into the containers that run a command.

    Only if the command itself starts Python, is it certain that the image has one.
    """
    if where.agent.files is not None and command and _PYTHON.fullmatch(command[0].rpartition("/")[2]):
        return AgentDelivery.VOLUME
    return AgentDelivery.IMAGE if where.agent.image is None else AgentDelivery.COPY


def folder(how: AgentDelivery) -> str:
    """Return the folder with the agent and the instrumentation."""
    return _FILES if how is AgentDelivery.VOLUME else HOME


def start(how: AgentDelivery, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that starts the agent, without its arguments.

    Args:
        how: how the agent got there.
        command: the command of the replica, whose Python the agent uses if it brings none.
    """
    python = command[:1] if how is AgentDelivery.VOLUME else _COPIED
    return (*python, *_OPTIONS, f"{folder(how)}/agent.py")


def is_started(words: Sequence[str]) -> bool:
    """Return whether a container's command starts the agent."""
    starts = (start(how, words) for how in AgentDelivery)
    return any(tuple(words[: len(each)]) == each for each in starts)


def init_container(image: str, resources: Object) -> Object:
    """Return the container that copies the agent.

    It has the resources of the training container, so that the pod keeps its QoS class.
    """
    return {
        "name": CONTAINER,
        "image": image,
        "command": ["python3", "-I", "-m", "paceline.agent.bring", HOME],
        "resources": resources,
        "securityContext": securities.strict(),
        "volumeMounts": [home_mount()],
    }


def home_mount() -> Object:
    """Return the mount of the volume in which the agent writes."""
    return {"name": _HOME_VOLUME, "mountPath": HOME}


def mounts(how: AgentDelivery) -> list[Object]:
    """Return the mounts of a replica's container."""
    files = {"name": _FILES_VOLUME, "mountPath": _FILES, "readOnly": True}
    return {
        AgentDelivery.VOLUME: [home_mount(), files],
        AgentDelivery.COPY: [home_mount()],
        AgentDelivery.IMAGE: [],
    }[how]


def volumes(how: AgentDelivery, where: Surroundings) -> list[Object]:
    """Return the volumes of a pod."""
    home = {"name": _HOME_VOLUME, "emptyDir": {}}
    files = {"name": _FILES_VOLUME, "image": {"reference": where.agent.files}}
    return {AgentDelivery.VOLUME: [home, files], AgentDelivery.COPY: [home], AgentDelivery.IMAGE: []}[how]
