"""The options that state the objective of tuning a job."""

from __future__ import annotations

import functools
from collections.abc import Callable

import click


def options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options that state the objective, as its argument ``objective``."""

    @click.option(
        "--goal", type=click.Choice(["fastest", "cheapest"]), default="fastest", show_default=True,
        help="The most examples a second, or the most for each second of the cores that it asks for.",
    )  # fmt: skip
    @click.option(
        "--cores", type=click.FloatRange(min=0, min_open=True), metavar="N",
        help="That the job may ask for; default: as many as it does, or this machine has.",
    )  # fmt: skip
    @click.option(
        "--speed", type=click.FloatRange(min=0, min_open=True), metavar="N",
        help="Examples a second that it has to reach, as for a deadline.",
    )  # fmt: skip
    @click.option("--batch-size", is_flag=True, help="Let the batch size change, too.")
    @click.option(
        "--same-learning", is_flag=True, help="Change nothing by which the model may learn otherwise."
    )
    @functools.wraps(function)
    def wrapped(
        *arguments: object,
        goal: str,
        cores: float | None,
        speed: float | None,
        batch_size: bool,
        same_learning: bool,
        **others: object,
    ) -> None:
        from paceline.model.studies.tunings import Goal, Objective

        objective = Objective(
            goal=Goal(goal),
            most_cores=cores,
            least_examples_per_second=speed,
            batch_size=batch_size,
            relearning=not same_learning,
        )
        function(*arguments, objective=objective, **others)

    return wrapped
