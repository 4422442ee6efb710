"""Make the corpus: ``python -m benchmarks.diagnosis.corpus [--only GLOB] [--speed N] [--list] [--again]``.

Each run takes some 45 seconds. What is there already is not made again. A run whose fault was not felt is
tried once more, one that was not alone on the machine several times; then it is left out, and a line says so.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.diagnosis import items, knowns, labels, quiet, thinning, trials
from benchmarks.diagnosis.items import Item
from benchmarks.diagnosis.labels import Label
from paceline.errors import PacelineError
from paceline.model.jobs.job_specs import JobSpec
from paceline.stores import recordings

FOLDER = Path(__file__).parent / "recordings"
MOST_BYTES = 45_000
_TRIES = 2
#: For what disturbs a run its fault is not to blame.
_DISTURBED_TRIES = 10


class Corpus:
    """The recordings of a folder with their labels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        every = labels.read(folder)
        self.labels = {name: label for name, label in every.items() if (folder / label.file).exists()}

    def has(self, name: str) -> bool:
        """Whether a run is there."""
        return name in self.labels

    def known(self, twin: Item) -> knowns.Known:
        """Return what is known of a healthy job.

        Raises:
            TrialError: it was recorded on other hosts.
        """
        label = self.labels[twin.name]
        recording = recordings.read(self.folder / label.file)
        if recording.run.spec.hosts != twin.base.job().hosts:
            raise trials.TrialError(f"{twin.name} was recorded on other hosts: make it with --again")
        return knowns.of(recording, label.began_at + trials.FELT_SECONDS)

    def keep(self, label: Label, outcome: trials.Outcome, *, whole: bool = False) -> int:
        """Write a run and its label; return the bytes of its file.

        Of a job with many trainers, the traces of the last ones are left out.
        """
        path = self.folder / label.file
        kept = thinning.thinned(outcome.recording, None if whole else outcome.began_at)
        recordings.write(path, kept)
        while path.stat().st_size > MOST_BYTES and kept.traces:
            kept = dataclasses.replace(kept, traces=kept.traces[:-1])
            recordings.write(path, kept)
        path.chmod(0o644)
        self.labels[label.name] = label
        labels.write(self.folder, self.labels)
        return path.stat().st_size


def make(corpus: Corpus, item: Item, twins: dict[str, Item]) -> str:
    """Run an item, its healthy twin before it if that is not there, and keep it; return a line about it.

    Raises:
        TrialError: it came to nothing, or its fault was not felt.
        NotAlone: something else ran, too.
        PacelineError: it could not be run.
    """
    item.base.make_data()
    fault = item.fault()
    if fault is None:
        outcome = _alone(item.healthy_job(), item.healthy_plan())
        problem = item.ailing(outcome)
        if problem:
            raise trials.TrialError(f"it is not healthy: {problem}")
        size = corpus.keep(_label(item, outcome), outcome, whole=item.is_whole)
        return f"{item.name}: {size:,} B"
    twin = twins[item.base.name]
    if not corpus.has(twin.name):
        make(corpus, twin, twins)
    known = corpus.known(twin)
    outcome = _alone(fault.change(item.base.job(), known), fault.plan(known, item.ending))
    effect = fault.felt(known, outcome)
    told = f"{effect.what}: {effect.value:.3g}, speed over its twin's: {effect.speed_ratio}"
    if not effect.holds:
        raise trials.TrialError(f"its fault was not felt: {told}")
    label = dataclasses.replace(
        _label(item, outcome),
        twin=twin.name,
        also=tuple(each for each in fault.also if each != fault.cause),
        effect=effect.what,
        value=round(effect.value, 4),
        speed_ratio=effect.speed_ratio,
    )
    size = corpus.keep(label, outcome, whole=fault.is_whole or not fault.starts)
    return f"{item.name}: {told}, {size:,} B"


def _alone(spec: JobSpec, plan: trials.Plan) -> trials.Outcome:
    """Run a job on a machine that has nothing else to do."""
    quiet.wait(quiet.BEFORE_SECONDS)
    outcome = trials.run(spec, plan)
    if outcome.stolen_cores > quiet.MOST_STOLEN_CORES:
        raise quiet.NotAlone(f"{outcome.stolen_cores:.2f} cores were stolen from this machine")
    quiet.wait(quiet.AFTER_SECONDS)
    return outcome


def _label(item: Item, outcome: trials.Outcome) -> Label:
    faults = [
        fault
        for fault in (dataclasses.replace(item, makers=(each,)).fault() for each in item.makers)
        if fault
    ]
    causes = [fault.cause for fault in faults]
    accepted = faults[0].accepted if faults else ()
    return Label(
        name=item.name,
        cause=causes[0] if causes else labels.HEALTHY,
        accepted=(*causes[1:], *accepted),
        severity=item.makers[0][1].value if item.makers else None,
        model=item.base.model,
        size=item.base.size,
        seed=item.base.seed,
        kind=item.base.kind,
        split=item.split,
        ending=item.ending.value,
        began_at=round(outcome.began_at, 3),
    )


def _tried(corpus: Corpus, item: Item, twins: dict[str, Item], console: Console) -> bool:
    """Make an item, again if need be; return whether it is there."""
    failures = disturbances = 0
    while failures < _TRIES and disturbances < _DISTURBED_TRIES:
        try:
            console.print(make(corpus, item, twins), highlight=False)
            return True
        except quiet.NotAlone as error:
            disturbances += 1
            console.print(f"{item.name}, not alone: {error}", style="yellow", highlight=False)
        except (trials.TrialError, PacelineError, OSError) as error:
            failures += 1
            console.print(f"{item.name}, try {failures}: {error}", style="red", highlight=False)
    return False


@click.command()
@click.option("--only", default="*", help="Of these names alone, such as 'giant-variable*'.")
@click.option("--speed", default=1.0, help="Wider links and more steps: 2 on a machine twice as fast.")
@click.option("--list", "listed", is_flag=True, help="Show the runs and make none.")
@click.option("--again", is_flag=True, help="Also what is there already.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=FOLDER, help="Folder of it all.")
def main(only: str, speed: float, listed: bool, again: bool, output: Path) -> None:
    """Make the corpus of diagnosis, or the part of it that is not there yet."""
    record(items.every(speed), output, only=only, listed=listed, again=again)


def record(every: Sequence[Item], output: Path, *, only: str, listed: bool, again: bool) -> NoReturn:
    """Make the runs whose names match, or those that are not there yet, and end the program.

    Args:
        every: all runs that there are.
        output: the folder of recordings and labels.
        only: a pattern of names.
        listed: show them and make none.
        again: also what is there already.
    """
    chosen = [item for item in every if fnmatch.fnmatch(item.name, only)]
    if listed:
        _list(chosen)
        sys.exit(0)
    twins = {item.base.name: item for item in every if not item.makers}
    output.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(output)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    left_out = []
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("corpus", total=len(chosen))
        for item in chosen:
            progress.update(task, description=item.name)
            if (again or not corpus.has(item.name)) and not _tried(corpus, item, twins, progress.console):
                left_out.append(item.name)
            progress.advance(task)
    _sum_up(corpus, left_out)
    sys.exit(1 if left_out else 0)


def _list(chosen: Sequence[Item]) -> None:
    for item in chosen:
        click.echo(f"{item.split:<7}{item.ending.value:<9}{item.name}")
    splits = Counter(item.split for item in chosen)
    click.echo(f"{len(chosen)} runs: {', '.join(f'{count} {split}' for split, count in splits.items())}")


def _sum_up(corpus: Corpus, left_out: Sequence[str]) -> None:
    sizes = [(corpus.folder / label.file).stat().st_size for label in corpus.labels.values()]
    click.echo(f"{len(sizes)} recordings, {sum(sizes):,} B in all, the largest {max(sizes, default=0):,} B")
    for name in left_out:
        click.echo(f"left out: {name}")


if __name__ == "__main__":
    main()
