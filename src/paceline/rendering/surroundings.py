"""Where the objects of a job are to live."""

from __future__ import annotations

import dataclasses

AGENT_IMAGE = "ghcr.io/paceline/paceline:0.1.0"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a cluster adds to a job.

    Attributes:
        namespace: that of all its objects.
        agent_image: an image with Python and Paceline, out of which the agent is brought; None: the images of
            jobs have it already, in its place.
        queue: that of Volcano or Kueue.
        has_agent_token: whether there is a secret with the token that the job's agents take
            (`agent_secrets`): an operator makes it.
    """

    namespace: str = "default"
    agent_image: str | None = AGENT_IMAGE
    queue: str | None = None
    has_agent_token: bool = False


def agent_image(said: str | None) -> str | None:
    """Return the image that people mean: their own, ``none`` or, when they say nothing, Paceline's."""
    return None if said == "none" else said or AGENT_IMAGE
