"""Record the runs: ``python -m benchmarks.diagnosis_unchanged.corpus [--only GLOB] [--list] [--again]``.

Each run takes about a minute, all of them some two and a half hours. What is there already is not made again,
as with `benchmarks.diagnosis.corpus`.
"""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.diagnosis import corpus
from benchmarks.diagnosis_unchanged import items
from benchmarks.diagnosis_unchanged.scores import FOLDER


@click.command()
@click.option("--only", default="*", help="Of these names alone, such as 'ps-ended*'.")
@click.option("--speed", default=1.0, help="Wider links: 2 on a machine twice as fast.")
@click.option("--list", "listed", is_flag=True, help="Show the runs and make none.")
@click.option("--again", is_flag=True, help="Also what is there already.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=FOLDER, help="Folder of it all.")
def main(only: str, speed: float, listed: bool, again: bool, output: Path) -> None:
    """Record jobs of unchanged scripts with known faults, or the part of it that is not there yet."""
    corpus.record(items.every(speed), output, only=only, listed=listed, again=again)


if __name__ == "__main__":
    main()
