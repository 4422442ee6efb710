"""The surroundings of a job in a cluster: its namespace and its agents."""

from __future__ import annotations

import dataclasses

#: The images of a release: all of Paceline, and the files of the agent alone (``Containerfile``).
AGENT_IMAGE, AGENT_FILES = "ghcr.io/paceline/paceline:0.1.0", "ghcr.io/paceline/paceline-agent:0.1.0"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AgentSetup:
    """How agents come into the pods of a cluster's jobs, and who may ask them.

    Attributes:
        image: an image with Python and Paceline, out of which the agent is copied and which fetches code;
            None: the images of jobs already have the agent in its place.
        files: an image with nothing but the agent's files, which pods mount; None: it is copied.
        clients: networks (``10.0.0.0/24``) and namespaces from which the agents' port may be reached; empty:
            from everywhere.
    """

    image: str | None = AGENT_IMAGE
    files: str | None = None
    clients: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The properties of a cluster that the objects of a job depend on.

    Attributes:
        namespace: namespace of all objects of the job.
        agent: how agents come into its pods, and who may ask them.
        has_agent_token: whether there is a Secret with the token that the job's agents accept
            (`agent_secrets`); the operator makes it.
        job_uid: the UID of the job's resource; None: it has none. A job may be made anew while pods of the
            one before it, with the same names, are still ending.
    """

    namespace: str = "default"
    agent: AgentSetup = AgentSetup()
    has_agent_token: bool = False
    job_uid: str | None = None


def agent_image(said: str | None) -> str | None:
    """Return the agent image for an option's value: None for ``none``, Paceline's own image by default."""
    return None if said == "none" else said or AGENT_IMAGE
