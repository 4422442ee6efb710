"""Shows Paceline in one go: makes click data, trains on them over parameter servers, reports.

    python -m examples.clicks.demo --output demo-out

All of it stays in the output folder, Paceline's own state included. Every step is a command that you can
give yourself, and is printed before it runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import shlex
import string
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import paceline
from paceline.surfaces import composition
from paceline.surfaces.cli import main as command_line

ROOT = Path(__file__).resolve().parents[2]
#: What the demo imports beyond the base install, and the extra that brings it.
NEEDS = {"tensorflow": "training", "pyarrow": "training", "matplotlib": "report", "jinja2": "report"}
INTERRUPTED = 130

JOB = """\
# Written by `python -m examples.clicks.demo`. Run it again:
#   paceline --home $home run $file
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata:
  name: clicks
spec:
  working_dir: $root
  command: [$python, -m, examples.clicks.train, --data, $data]
  threads: auto
  cpu_policy: shared
  roles:
    ps: {replicas: 2, cpu: 1, memory: 2Gi}
    worker: {replicas: 2, cpu: 1, memory: 2Gi, restart: {when: on-failure, limit: 3}}
  # Two emulated hosts with a PS each, joined by a network of their own: so it can be measured (needs root;
  # without it the job runs all the same).
  placement: {strategy: spread-ps}
  hosts:
    - {name: host-0, bandwidth: 10G}
    - {name: host-1, bandwidth: 10G}
  training:
    optimizer: {name: adagrad, learning_rate: 0.05}
    wide_optimizer: {name: ftrl, learning_rate: 0.3}
    batch_size: 512
    epochs: $epochs
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Paths:
    """Where the demo puts what it makes."""

    output: Path

    @property
    def data(self) -> Path:
        """Return the folder of the click data."""
        return self.output / "data"

    @property
    def state(self) -> Path:
        """Return the folder of Paceline's state: PACELINE_HOME."""
        return self.output / "state"

    @property
    def job(self) -> Path:
        """Return the job file."""
        return self.output / "job.yaml"

    @property
    def report(self) -> Path:
        """Return the page about the run."""
        return self.output / "report.html"

    @property
    def result(self) -> Path:
        """Return the numbers of the run."""
        return self.output / "result.json"


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return its exit code: that of ``paceline run``, 130 when one detached from it."""
    options = _options(arguments)
    missing = {name: extra for name, extra in NEEDS.items() if importlib.util.find_spec(name) is None}
    if missing:
        extras = ",".join(sorted(set(missing.values())))
        print(f"error: the demo needs {', '.join(missing)}", file=sys.stderr)
        print(f"hint: pip install 'paceline[{extras}]', or `make demo`, which does it", file=sys.stderr)
        return 1
    # Another store would hide the demo's jobs from the commands that it recommends.
    os.environ.pop("PACELINE_STORE", None)
    paths = Paths(options.output)
    began = time.monotonic()
    if not _make_data(paths.data, options.rows, options.evaluation_rows):
        return 1
    _write_job(paths, options.epochs)
    name = _free_name(paths.state)
    code = _paceline(paths, "run", str(paths.job), "--name", name)
    job = paceline.get(name, home=paths.state) if code in (0, 6) else None
    if job is None:
        return code
    report = (
        "report", name, "-o", str(paths.report), "--json", str(paths.result),
        "--truth", str(paths.data / "truth.json"),
    )  # fmt: skip
    if not job.phase.is_final:
        print("\nThe job goes on by itself. When it has ended:")
        print(f"  {_shown(paths, 'wait', name)} && \\\n  {_shown(paths, *report)}")
        return INTERRUPTED
    reported = _paceline(paths, *report)
    if reported == 0:
        _conclude(paths, name, time.monotonic() - began)
    return code or reported


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-out"), help="folder for all that is made")
    parser.add_argument("--rows", type=int, default=1_500_000, help="rows to train on")
    parser.add_argument("--evaluation-rows", type=int, default=200_000, help="rows to evaluate on")
    parser.add_argument("--epochs", type=float, default=2, help="passes over the rows")
    return parser.parse_args(arguments)


def _make_data(folder: Path, rows: int, evaluation_rows: int) -> bool:
    """Make the data, or take those that are there; return whether there are any."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from examples.clicks import generate

    parameters = generate.Parameters(train_rows=rows, evaluation_rows=evaluation_rows)
    console = Console(highlight=False, markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    made = False
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
            task = progress.add_task("making click data", total=None)

            def show(done: int, total: int) -> None:
                nonlocal made
                made = True
                progress.update(task, completed=done, total=total)

            data = generate.generate(folder, parameters, show)
    except generate.DataSetError as error:
        print(f"error: {error}", file=sys.stderr)
        return False
    told = "made" if made else "taken as they are"
    print(f"data: {rows:,} rows in {folder} {told}")
    print(f"the best possible AUC on them is {data.best_auc:.4f}")
    return True


def _write_job(paths: Paths, epochs: float) -> None:
    values = {
        # A JSON string is a YAML string.
        "root": json.dumps(str(ROOT)),
        "python": json.dumps(sys.executable),
        "data": json.dumps(str(paths.data.resolve())),
        "epochs": f"{epochs:g}",
        "home": shlex.quote(str(paths.state)),
        "file": shlex.quote(str(paths.job)),
    }
    paths.job.write_text(string.Template(JOB).substitute(values), encoding="utf-8")


def _free_name(state: Path) -> str:
    """Return the name of this run: clicks, or clicks-2 when that one is there."""
    from paceline.services import jobs as job_services

    with composition.opened(composition.find_home(state)) as jobs:
        return job_services.free_name("clicks", jobs.store.run_names_like("clicks"))


def _shown(paths: Paths, verb: str, *arguments: str) -> str:
    """Return a command line of Paceline as one types it."""
    return shlex.join(["paceline", verb, "--home", str(paths.state), *arguments])


def _paceline(paths: Paths, verb: str, *arguments: str) -> int:
    """Run a command of Paceline in this process; return its exit code."""
    print(f"\n$ {_shown(paths, verb, *arguments)}", flush=True)
    try:
        command_line.cli.main([verb, "--home", str(paths.state), *arguments])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def _conclude(paths: Paths, name: str, seconds: float) -> None:
    """Print what came out of it."""
    result = json.loads(paths.result.read_text(encoding="utf-8"))
    print()
    for what, value in lines(result):
        print(f"{what:<22}{value}")
    for note in result["notes"]:
        print(f"not measured: {note}")
    print(f"\nDone in {seconds:.0f} s.")
    print(f"  the page:     {paths.report}")
    print(f"  the numbers:  {paths.result}")
    print("Try next:")
    print(f"  export PACELINE_HOME={shlex.quote(str(paths.state.resolve()))}")
    for arguments, why in (
        (("describe", name), "all about the job"),
        (("logs", name), "what its replicas wrote"),
        (("run", str(paths.job)), "run it again, perhaps edited"),
    ):
        print(f"  {shlex.join(['paceline', *arguments]):<36}  {why}")


def lines(result: dict[str, Any]) -> Sequence[tuple[str, str]]:
    """Return the numbers of a run as people read them: what, and its value."""
    from paceline.surfaces.reports import texts

    auc, best = result["auc"], result["best_auc"]
    quality = texts.quality(auc)
    if auc is not None and best is not None:
        quality += f"  (best possible {best:.4f}, {best - auc:.4f} away)"
    loads = {one["resource"]: one["max_over_mean"] for one in result["imbalances"]}
    balance = texts.ratio(result["ps_load_max_over_mean"])
    if result["ps_load_max_over_mean"] is not None:
        each = ", ".join(f"{name} {texts.ratio(loads.get(name))}" for name in ("cpu", "network"))
        balance += f"  (1.00 is even; {each})"
    training = texts.duration(result["training_seconds"])
    return (
        ("examples/s", f"{texts.number(result['examples_per_second'])}  (both workers together)"),
        ("AUC", quality),
        ("PS load, max/mean", balance),
        ("waiting for input", texts.share(result["input_wait_share"])),
        ("duration", f"{texts.duration(result['seconds'])}, {training} of it training"),
    )


if __name__ == "__main__":
    sys.exit(main())
