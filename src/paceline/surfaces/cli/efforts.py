"""The options that say how much may be run to find a better job file."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from paceline.services.studying.trials import TrialTimes
    from paceline.services.studying.tunings import Effort


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TuneEffort:
    """What the options say.

    Attributes:
        trials: the job as it is among them; None: none are to be made.
        seconds: that each is measured.
        pairs: runs of the best one beside the job as it is.
        examples: from how many both learn; None: that follows from the rest.
        again: whether what was found before does not count.
    """

    trials: int | None
    seconds: float
    pairs: int
    examples: int | None = None
    again: bool = False

    @property
    def times(self) -> TrialTimes:
        """Return how long a trial takes; one that is measured for a short time settles for a shorter one."""
        from paceline.services.studying.trials import TrialTimes

        settle_seconds = min(TrialTimes().settle_seconds, self.seconds / 2)
        return TrialTimes(window_seconds=self.seconds, settle_seconds=settle_seconds)

    def effort(self, trials: int) -> Effort:
        """Return how much may be run when so many trials may be made."""
        from paceline.services.studying.tunings import Effort

        return Effort(
            trials=trials, pairs=self.pairs, times=self.times, anew=self.again, examples=self.examples
        )


def options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options that say how much may be run, as its argument ``asked``."""

    @click.option(
        "--trials", type=click.IntRange(2, 1000), metavar="N",
        help="Run the job as it is and up to N - 1 changes of it, for a while each.",
    )  # fmt: skip
    @click.option(
        "--seconds", type=click.FloatRange(min=1), default=20.0, show_default=True, metavar="N",
        help="With --trials: how long each is measured, when it trains.",
    )  # fmt: skip
    @click.option(
        "--pairs", type=click.IntRange(min=0), default=1, show_default=True, metavar="N",
        help="With --trials: how often the best one is measured again beside the job as it is.",
    )  # fmt: skip
    @click.option(
        "--examples", type=click.IntRange(min=1), metavar="N",
        help="With --trials: from how many examples the best one and the job as it is learn, to compare "
        "their AUC; default: what the slower one trains on in ten times --seconds.",
    )  # fmt: skip
    @click.option("--again", is_flag=True, help="With --trials: begin anew, whatever was found before.")
    @functools.wraps(function)
    def wrapped(
        *arguments: object,
        trials: int | None,
        seconds: float,
        pairs: int,
        examples: int | None,
        again: bool,
        **others: object,
    ) -> None:
        asked = TuneEffort(trials=trials, seconds=seconds, pairs=pairs, examples=examples, again=again)
        function(*arguments, asked=asked, **others)

    return wrapped
