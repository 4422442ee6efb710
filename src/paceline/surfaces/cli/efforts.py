"""The options that limit how much may be run to find a better job file."""

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
    """The values of the options.

    Attributes:
        trials: the number of trials, including the unchanged job; None: no trials.
        seconds: how long each trial is measured.
        pairs: how often the best job file and the unchanged job are run in turn.
        examples: the number of examples that both learn from; None: it follows from the other values.
        again: whether to ignore the results of an earlier search.
    """

    trials: int | None
    seconds: float
    pairs: int
    examples: int | None = None
    again: bool = False

    @property
    def times(self) -> TrialTimes:
        """The durations of a trial; a trial that is measured for a short time also settles for less time."""
        from paceline.services.studying.trials import TrialTimes

        settle_seconds = min(TrialTimes().settle_seconds, self.seconds / 2)
        return TrialTimes(window_seconds=self.seconds, settle_seconds=settle_seconds)

    def effort(self, trials: int) -> Effort:
        """Return how much may be run with a number of trials."""
        from paceline.services.studying.tunings import Effort

        return Effort(
            trials=trials, pairs=self.pairs, times=self.times, anew=self.again, examples=self.examples
        )


def options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options that limit how much may be run, as its argument ``asked``."""

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
