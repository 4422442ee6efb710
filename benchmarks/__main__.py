"""Run a benchmark, or all, or make the page of figures from their results.

Exit codes: 0 all checks hold, 1 one does not (everything is written all the same), 2 an error: one
cannot be run here, for want of a Kubernetes cluster.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from support.prerequisites import NotHere

from benchmarks import figures, protocols

NAMES = (
    "cli",
    "startup",
    "agent-cost",
    "instrumentation-cost",
    "unchanged",
    "cures",
    "pytorch",
    "accuracy",
    "local-faults",
    "training-faults",
    "ladder",
    "precision",
    "trace",
    "inputs",
    "hdfs",
    "balance",
    "cpu-limits",
    "embedding-memory",
    "diagnosis",
    "diagnosis-unchanged",
    "evidence",
    "scenes-small",
    "visits",
    "prediction",
    "prediction-unchanged",
    "probe",
    "probe-sizes",
    "probe-faults",
    "resize",
    "turns",
    "tuning",
    "simulation",
    "no-regrets",
    "tune-faults",
    "scenes",
    "serve-load",
    "serve-faults",
)
#: Those that need a Kubernetes cluster; a small one on this machine would disturb the others.
ON_KUBERNETES = ("kubernetes-placement", "kubernetes-scale", "operator-faults", "fit", "gang", "images")
#: Needs others' programs on the cluster, too (make bench-peers).
BESIDE_PEERS = ("peers",)
GROUPS = {"all": NAMES, "kubernetes": ON_KUBERNETES}


@click.command()
@click.argument("name", type=click.Choice([*NAMES, *ON_KUBERNETES, *BESIDE_PEERS, *GROUPS, "figures"]))
@click.option("--quick", is_flag=True, help="Fewer repeats and smaller inputs: at most 3 minutes.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Where to write the result.")
@click.option("--baseline", help="The commit that startup compares with, if not its own.")
@click.option("--since", help="Kept repeats of this commit and of those after it count, too.")
def main(name: str, quick: bool, json_path: Path | None, baseline: str | None, since: str | None) -> None:
    """Measure what Paceline claims.

    NAME is one benchmark, all that need only this machine, kubernetes (all that need a cluster), or the page
    of figures.
    """
    if name == "figures":
        figures.write()
        return
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # What is installed has its bytecode.
    holds, missing = [], False
    for each in GROUPS.get(name, (name,)):
        try:
            holds.append(run(each, quick=quick, path=json_path, baseline=baseline, since=since))
        except NotHere as error:  # The others of a group are measured all the same.
            click.echo(f"Error: {each}: {error}", err=True)
            missing = True
    if missing:
        sys.exit(2)
    sys.exit(0 if all(holds) else 1)


def run(name: str, *, quick: bool, path: Path | None, baseline: str | None, since: str | None) -> bool:
    """Run one benchmark, write and show its result; return whether all its checks hold."""
    module = protocols.module(name)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bench = protocols.Bench(name, quick=quick, progress=progress, baseline=baseline, since=since)
        checks = module.run(bench)
    result = bench.result(checks)
    folder = protocols.KEPT if quick else protocols.RESULTS
    path = path or folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result.to_json(), indent=1) + "\n")
    module.draw(result, path.with_suffix(".svg"))
    bench.forget()
    show(result)
    Console(stderr=True).print(f"written: {path} and its plot")
    return all(check.holds for check in checks)


def show(result: protocols.Result) -> None:
    """Print the checks of a result."""
    table = Table(title=result.name + (" (quick)" if result.quick else ""))
    for column in ("check", "value", "interval", "target", "holds"):
        table.add_column(column)
    for check in result.checks:
        table.add_row(
            check.name,
            figures.number(check.value),
            figures.interval(check.low, check.high),
            check.target,
            "yes" if check.holds else "NO",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
