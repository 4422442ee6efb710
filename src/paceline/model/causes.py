"""Why something is as it is: causes, each with what was seen of it and what to do next."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Something that was seen.

    Attributes:
        text: what.
        at: when, the last time, in Unix seconds; None: as it is now.
        count: how often.
    """

    text: str
    at: float | None = None
    count: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One reason.

    Attributes:
        name: a word for programs, such as ``no-room``; stable.
        what: one sentence for people.
        evidence: what was seen of it.
        next_steps: changes and commands that help, the best first.
        is_past: whether it is over and no longer keeps the job from anything.
    """

    name: str
    what: str
    evidence: tuple[Evidence, ...] = ()
    next_steps: tuple[str, ...] = ()
    is_past: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a job is where it is.

    Attributes:
        job: which.
        summary: where it stands, and since when.
        causes: why, what matters most first; empty: nothing is wrong.
        unknown: what could not be looked at, and why not.
    """

    job: str
    summary: str
    causes: tuple[Cause, ...] = ()
    unknown: tuple[str, ...] = ()
