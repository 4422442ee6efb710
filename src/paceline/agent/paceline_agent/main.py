"""The agent as a program."""

from typing import List

from .agents import Agent
from .configs import parse_config
from .logs import say


def read_argument(argument: str) -> str:
    """Return one part of the config: the argument itself if it is JSON, else the content of its file."""
    if argument.startswith("{"):
        return argument
    with open(argument, encoding="utf-8") as file:
        return file.read()


def main(arguments: List[str]) -> int:
    """Run the agent as ``agent.py CONFIG...``; later configs override earlier ones, field by field."""
    if not arguments:
        say("usage: agent.py CONFIG...")
        return 2
    try:
        config = parse_config(*map(read_argument, arguments))
    except (OSError, ValueError) as error:
        say(f"cannot use the config {' '.join(arguments)}: {error}")
        return 2
    return Agent(config).run()
