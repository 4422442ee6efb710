"""Shows Paceline in one go: a badly configured job runs, is diagnosed, tuned in a few trials, and measured
beside what it was.

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
from examples.clicks import generate
from paceline.surfaces import composition
from paceline.surfaces.cli import main as command_line

ROOT = Path(__file__).resolve().parents[2]
#: What the demo imports beyond the base install, and the extra that brings it.
NEEDS = {
    "tensorflow": "training", "pyarrow": "training", "matplotlib": "report", "jinja2": "report",
    "scipy": "tuning",
}  # fmt: skip
#: A table of three million rows: enough for Adam to show what it does to all of them in each step.
TABLES = (3_000_000, *generate.TABLES[1:])
INTERRUPTED = 130
#: What `paceline tune` calls the search for a better file of the job, and its runs with a number behind it.
SEARCH = "clicks-trial"

JOB = """\
# Written by `python -m examples.clicks.demo`: a job as one writes it from TensorFlow's documentation. Try it:
#   paceline --home $home tune $file --trials 8
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata:
  name: clicks
spec:
  working_dir: $root
  command: [$python, -m, examples.clicks.train, --data, $data]
  cpu_policy: shared
  roles:
    ps: {replicas: 2, cpu: 1, memory: 3Gi}
    worker: {replicas: 2, cpu: 1, memory: 3Gi, restart: {when: on-failure, limit: 3}}
  # Two emulated hosts with a PS each, joined by a network of their own: so it can be measured (needs root;
  # without it the job runs all the same).
  placement: {strategy: spread-ps}
  hosts:
    - {name: host-0, bandwidth: 10G}
    - {name: host-1, bandwidth: 10G}
  training:
    optimizer: {name: adam, learning_rate: 0.001}
    wide_optimizer: {name: adam, learning_rate: 0.001}
    # A table for each feature, whole, one after the other over the PS; a message for each variable.
    fused_tables: false
    partitioning: {strategy: none}
    variable_placement: round-robin
    transfers: {packed: false}
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
    def tuned(self) -> Path:
        """Return the job file that comes out of the trials."""
        return self.output / "job-tuned.yaml"

    @property
    def run_page(self) -> Path:
        """Return the page about the run of the tuned job."""
        return self.output / "run.html"

    @property
    def report(self) -> Path:
        """Return the page that tells the whole story."""
        return self.output / "report.html"

    @property
    def result(self) -> Path:
        """Return the numbers of all of it."""
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
    tuned = _paceline(
        paths, "tune", str(paths.job), "--trials", str(options.trials), "--seconds", f"{options.seconds:g}",
        "--pairs", str(options.pairs),
    )  # fmt: skip
    if tuned:
        return tuned
    _paceline(paths, "why", f"{SEARCH}-0")
    best = paths.tuned if paths.tuned.exists() else paths.job
    return _run_best(paths, best, began)


def _run_best(paths: Paths, file: Path, began: float) -> int:
    """Train with the best job file to the end, and report; return the exit code."""
    name = _free_name(paths.state)
    code = _paceline(paths, "run", str(file), "--name", name)
    job = paceline.get(name, home=paths.state) if code in (0, 6) else None
    if job is None:
        return code
    report = (
        "report", name, "-o", str(paths.run_page), "--json", str(paths.result),
        "--truth", str(paths.data / "truth.json"),
    )  # fmt: skip
    if not job.phase.is_final:
        print("\nThe job goes on by itself. When it has ended:")
        print(f"  {_shown(paths, 'wait', name)} && \\\n  {_shown(paths, *report)}")
        return INTERRUPTED
    search = paths.output / "tuning.json"
    reported = _paceline(paths, *report) or _paceline(
        paths, "report", SEARCH, "-o", str(paths.report), "--json", str(search)
    )
    if reported == 0:
        _join(paths.result, search)
        _conclude(paths, name, time.monotonic() - began)
    return code or reported


def _join(result: Path, search: Path) -> None:
    """Put what came out of the trials into the numbers of the run."""
    found = json.loads(search.read_text(encoding="utf-8"))
    run = json.loads(result.read_text(encoding="utf-8"))
    added = {key: value for key, value in found.items() if key not in ("apiVersion", "kind", "name")}
    result.write_text(json.dumps({**run, **added}, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    search.unlink()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-out"), help="folder for all that is made")
    parser.add_argument("--rows", type=int, default=1_500_000, help="rows to train on")
    parser.add_argument("--evaluation-rows", type=int, default=200_000, help="rows to evaluate on")
    parser.add_argument("--epochs", type=float, default=1, help="passes over the rows")
    parser.add_argument("--trials", type=int, default=8, help="trials, the job as it is among them")
    parser.add_argument("--seconds", type=float, default=10, help="that each trial is measured")
    parser.add_argument("--pairs", type=int, default=2, help="runs in turn that prove the gain")
    return parser.parse_args(arguments)


def _make_data(folder: Path, rows: int, evaluation_rows: int) -> bool:
    """Make the data, or take those that are there; return whether there are any."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    parameters = generate.Parameters(train_rows=rows, evaluation_rows=evaluation_rows, tables=TABLES)
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
    print(f"  the story:    {paths.report}")
    print(f"  the run:      {paths.run_page}")
    print(f"  the numbers:  {paths.result}")
    print("Try next:")
    print(f"  export PACELINE_HOME={shlex.quote(str(paths.state.resolve()))}")
    for arguments, why in (
        (("describe", name), "all about the job"),
        (("logs", name), "what its replicas wrote"),
        (("tune", str(paths.job), "--trials", "12"), "go on with more trials"),
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
        ("times as fast", _gain(result)),
        ("AUC of both", _qualities(result)),
        ("primary cause", result["primary_cause"] or "none"),
        ("examples/s", f"{texts.number(result['examples_per_second'])}  (both workers together)"),
        ("AUC", quality),
        ("PS load, max/mean", balance),
        ("waiting for input", texts.share(result["input_wait_share"])),
        ("duration", f"{texts.duration(result['seconds'])}, {training} of it training"),
    )


def _gain(result: dict[str, Any]) -> str:
    if result["factor"] is None:
        return "nothing was better than the job as it came"
    low, high = result["factor_low"], result["factor_high"]
    return f"{result['factor']:.1f}  ({low:.1f} to {high:.1f}; {result['trials']} trials)"


def _qualities(result: dict[str, Any]) -> str:
    from paceline.surfaces.reports import texts

    after, before = texts.quality(result["auc_after"]), texts.quality(result["auc_before"])
    examples = result["auc_examples"]
    return f"{after}, before {before}" + ("" if examples is None else f"  (after {examples:,} examples)")


if __name__ == "__main__":
    sys.exit(main())
