"""The surroundings of a job in a cluster: its namespace, its queue and the agent image."""

from __future__ import annotations

import dataclasses

AGENT_IMAGE = "ghcr.io/paceline/paceline:0.1.0"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The properties of a cluster that the objects of a job depend on.

    Attributes:
        namespace: namespace of all objects of the job.
        agent_image: an image with Python and Paceline, from which the agent is copied; None: the images of
            jobs already have the agent in its place.
        queue: queue of Volcano or Kueue.
        has_agent_token: whether there is a Secret with the token that the job's agents accept
            (`agent_secrets`); the operator makes it.
        job_uid: the UID of the job's resource; None: it has none. A job may be made anew while pods of the
            one before it, with the same names, are still ending.
    """

    namespace: str = "default"
    agent_image: str | None = AGENT_IMAGE
    queue: str | None = None
    has_agent_token: bool = False
    job_uid: str | None = None


def agent_image(said: str | None) -> str | None:
    """Return the agent image for an option's value: None for ``none``, Paceline's own image by default."""
    return None if said == "none" else said or AGENT_IMAGE
