"""The values of ``--for`` of ``paceline wait``; no service is loaded before there is a job."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from paceline.services.life_cycles import JobReader
    from paceline.services.observing.wait_conditions import Condition

PHASES = ("succeeded", "running", "finished")
KINDS = (*PHASES, "step", "finding")


@dataclasses.dataclass(frozen=True, slots=True)
class WaitGoal:
    """The goal that jobs are to reach.

    Attributes:
        kind: one of ``KINDS``.
        step: for a step: its number, or how many further steps.
        is_further: for a step: whether ``step`` counts from now.
        codes: for a finding: any of these codes; empty: any finding.
    """

    kind: str
    step: int = 0
    is_further: bool = False
    codes: tuple[str, ...] = ()

    def condition(self, jobs: JobReader, name: str) -> Condition:
        """Return the condition that tells whether a job has reached the goal.

        Args:
            jobs: the jobs that include it.
            name: the job.
        """
        from paceline.services.observing import wait_conditions

        if self.kind == "step":
            return wait_conditions.StepReached(jobs, self.step, is_further=self.is_further)
        if self.kind == "finding":
            return wait_conditions.FindingMade(jobs, name, self.codes)
        phases = wait_conditions.SUCCEEDED, wait_conditions.RUNNING, wait_conditions.FINISHED
        return dict(zip(PHASES, phases, strict=True))[self.kind]


class GoalType(click.ParamType[WaitGoal]):
    """A goal, written as ``running``, ``step=1000``, ``step=+50`` or ``finding=PS001,PS004``."""

    name = "goal"

    def convert(
        self, value: str | WaitGoal, param: click.Parameter | None, ctx: click.Context | None
    ) -> WaitGoal:
        """Return the goal."""
        if isinstance(value, WaitGoal):
            return value
        kind, equals, words = value.partition("=")
        if kind not in KINDS or (kind in PHASES and equals):
            self.fail(f"{value!r} is none of {', '.join(KINDS)}", param, ctx)
        if kind == "step":
            number = words.removeprefix("+")
            if not (number.isascii() and number.isdigit()):
                self.fail(f"{value!r} names no step, such as step=1000 or step=+1000", param, ctx)
            return WaitGoal(kind, step=int(number), is_further=words != number)
        if kind == "finding" and equals:
            return WaitGoal(kind, codes=tuple(self._code(word, param, ctx) for word in words.split(",")))
        return WaitGoal(kind)

    def _code(self, word: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the code of a cause that is given by its code or its name."""
        from paceline.errors import NotFound
        from paceline.surfaces import explanations

        try:
            entry = explanations.find(word)
        except NotFound as error:
            self.fail(error.message, param, ctx)
        if not entry.name:
            self.fail(f"{entry.code} is a finding of paceline lint, not one of a job", param, ctx)
        return entry.code

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the kinds of goals that begin with the incomplete text."""
        words = (*PHASES, "step=", "finding", "finding=")
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


GOAL = GoalType()
