"""``paceline demo``: shows a slow job, why it is slow, and what makes it fast, in five minutes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from paceline.surfaces.cli import efforts, options, sessions


@options.verb("demo")
@click.option(
    "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("demo-out"), show_default=True,
    metavar="DIR", help="The folder for all that is made, Paceline's state included.",
)  # fmt: skip
@click.option(
    "--rows", type=click.IntRange(min=1), default=600_000, show_default=True, metavar="N",
    help="Rows of click data to train on.",
)  # fmt: skip
@click.option(
    "--evaluation-rows", type=click.IntRange(min=1), default=100_000, show_default=True, metavar="N",
    help="Rows to evaluate on.",
)  # fmt: skip
@click.option(
    "--epochs", type=float, default=1.0, show_default=True, metavar="N",
    help="Passes over the rows in the last run, that of the tuned job.",
)  # fmt: skip
@click.option(
    "--trials", type=click.IntRange(2, 1000), default=3, show_default=True, metavar="N",
    help="Trials, the job as it is among them.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=1), default=8.0, show_default=True, metavar="N",
    help="How long each is measured.",
)  # fmt: skip
@click.option(
    "--pairs", type=click.IntRange(min=0), default=1, show_default=True, metavar="N",
    help="How often the best job file and the first one run in turn, to prove the gain.",
)  # fmt: skip
@click.option(
    "--examples", type=click.IntRange(min=1), default=80_000, show_default=True, metavar="N",
    help="From how many examples both learn, to compare their AUC.",
)  # fmt: skip
@click.option("--began", type=float, hidden=True, help="When it began (Unix seconds), set-up included.")
def command(session: sessions.CliSession, /, output: Path, began: float | None, **numbers: Any) -> None:
    """Show what Paceline does on a job over 2 parameter servers and 2 workers, in about five minutes.

    It makes click data and runs a job as one writes it from TensorFlow's documentation. It says why that is
    slow, tries changes of the job file, proves what they bring, and trains with the best file to the end.
    Everything is in --output, also a page that tells the story. Needs the extra `demo`.
    """
    from paceline.surfaces.cli import demos

    asked = efforts.TuneEffort(**{name: numbers[name] for name in ("trials", "seconds", "pairs", "examples")})
    rows = {name: numbers[name] for name in ("rows", "evaluation_rows", "epochs")}
    sizes = demos.Sizes(**rows, asked=asked)
    code = demos.Demo(session, output, sizes, time.time() if began is None else began).run()
    if code:
        raise click.exceptions.Exit(code)
