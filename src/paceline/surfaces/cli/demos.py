"""The demo: it runs a badly configured job, names the cause, tunes the job, and measures the gain.

All files are in the output folder, Paceline's own state included. Every step is a command that users can run
themselves, and the demo prints it before running it.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import shlex
import string
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from paceline.errors import InvalidInput, PacelineError
from paceline.model.roles import Role
from paceline.surfaces import composition
from paceline.surfaces.cli import efforts, sessions

#: What the demo imports beyond the base install.
NEEDS = ("tensorflow", "pyarrow", "jinja2")
#: The extra that installs all of them.
EXTRA = "demo"
#: The package of the example that the demo runs.
_EXAMPLE = "paceline.examples.clicks"
#: The rows of the largest table: enough to make visible what Adam does to every row in each step.
_LARGEST_TABLE = 3_000_000
#: Environment variables that would hide the demo's jobs from the commands that it recommends.
_ELSEWHERE = ("PACELINE_STORE", "PACELINE_SERVER", "PACELINE_ENGINE")
INTERRUPTED = 130
_DID_NOT_SUCCEED = 6
#: The name that `paceline tune` gives the search; its runs have this name with a number appended.
SEARCH = "clicks-trial"

JOB = """\
# Written by `paceline demo`: a job as one writes it from TensorFlow's documentation. Try it:
#   paceline --home $home tune $file --trials 8
apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata:
  name: clicks
spec:
  command: [$python, -m, $example.train, --data, data]
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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The size of the demo.

    Attributes:
        rows: rows to train on.
        evaluation_rows: rows to evaluate on.
        epochs: passes over the rows in the last run.
        asked: how much may be run to find a better job file.
    """

    rows: int
    evaluation_rows: int
    epochs: float
    asked: efforts.TuneEffort


@dataclasses.dataclass(frozen=True, slots=True)
class Paths:
    """The files and folders that the demo creates."""

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


class Demo:
    """One run of the demo.

    Args:
        session: the session of the command line; the demo points it to the state in the output folder.
        output: the folder for all created files.
        sizes: see `Sizes`.
        began_at: when the demo began (Unix seconds).
    """

    def __init__(self, session: sessions.CliSession, output: Path, sizes: Sizes, began_at: float) -> None:
        self._session = session
        self._paths = Paths(output)
        self._sizes = sizes
        self._began_at = began_at
        self._seconds_to_first_cause: float | None = None
        self._has_explained = False

    def run(self) -> int:
        """Run the demo; return its exit code: that of ``paceline run``, or 130 if the job goes on detached.

        Raises:
            InvalidInput: options name another place than the output folder.
            PacelineError: a package is not installed, or the data cannot be made.
        """
        self._check()
        paths = self._paths
        self._make_data()
        self._write_job()
        self._tune()
        return self._run_best(paths.tuned if paths.tuned.exists() else paths.job)

    def _check(self) -> None:
        missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
        if missing:
            raise PacelineError(
                f"the demo needs {', '.join(missing)}, not installed here", f"pip install 'paceline[{EXTRA}]'"
            )
        if self._session.home_option or self._session.store_option:
            raise InvalidInput("the demo keeps its state in its output folder", "paceline demo --output DIR")
        for name in _ELSEWHERE:
            os.environ.pop(name, None)
        self._session.home_option = str(self._paths.state)

    def _make_data(self) -> None:
        """Generate the data unless it is there already."""
        command = (
            sys.executable, "-m", f"{_EXAMPLE}.generate", "--output", str(self._paths.data),
            "--train-rows", str(self._sizes.rows), "--evaluation-rows", str(self._sizes.evaluation_rows),
            "--largest-table", str(_LARGEST_TABLE),
        )  # fmt: skip
        if subprocess.run(command, check=False).returncode:
            raise PacelineError("the click data cannot be made", "paceline demo --output ANOTHER-FOLDER")

    def _write_job(self) -> None:
        paths = self._paths
        values = {
            # A JSON string is a YAML string.
            "python": json.dumps(sys.executable),
            "example": _EXAMPLE,
            "epochs": f"{self._sizes.epochs:g}",
            "home": shlex.quote(str(paths.state)),
            "file": shlex.quote(str(paths.job)),
        }
        paths.job.write_text(string.Template(JOB).substitute(values), encoding="utf-8")
        self._say(f"{paths.job} written: the job as it comes")

    def _tune(self) -> None:
        from paceline.model.studies.tunings import Objective
        from paceline.surfaces.cli.verbs import tune

        asked = self._sizes.asked
        effort = asked.effort(asked.trials or 2)
        options = [
            "--trials", str(effort.trials), "--seconds", f"{asked.seconds:g}", "--pairs", str(asked.pairs),
        ]  # fmt: skip
        options += [] if asked.examples is None else ["--examples", str(asked.examples)]
        self._say(f"\n$ {self._shown('tune', str(self._paths.job), *options)}")
        tune.try_out(
            self._session,
            str(self._paths.job),
            Objective(),
            effort,
            noticed=self._note_cause,
            measured=self._explain,
        )
        if self._seconds_to_first_cause is None and not self._has_explained:
            # An earlier demo has made all trials.
            self._explain()
            if self._has_cause():
                self._note_cause()

    def _explain(self) -> None:
        self._has_explained = True
        self._paceline("why", f"{SEARCH}-0")

    def _has_cause(self) -> bool:
        """Whether a cause was found that slows down the original job."""
        from paceline.services.observing import recordings

        with composition.opened(composition.find_home(self._paths.state)) as jobs:
            return bool(recordings.explain(jobs, f"{SEARCH}-0")[1].causes)

    def _note_cause(self) -> None:
        if self._seconds_to_first_cause is None:
            self._seconds_to_first_cause = time.time() - self._began_at

    def _run_best(self, file: Path) -> int:
        """Train with the best job file to the end, and report; return the exit code."""
        import paceline

        paths, name = self._paths, self._free_name()
        code = self._paceline("run", str(file), "--name", name)
        job = paceline.get(name, home=paths.state) if code in (0, _DID_NOT_SUCCEED) else None
        if job is None:
            return code
        report = (
            "report", name, "-o", str(paths.run_page), "--json", str(paths.result),
            "--truth", str(paths.data / "truth.json"),
        )  # fmt: skip
        if not job.phase.is_final:
            self._say("\nThe job goes on by itself. When it has ended:")
            self._say(f"  {self._shown('wait', name)} && \\\n  {self._shown(*report)}")
            return INTERRUPTED
        search = paths.output / "tuning.json"
        reported = self._paceline(*report) or self._paceline(
            "report", SEARCH, "-o", str(paths.report), "--json", str(search)
        )
        if reported == 0:
            self._join(search)
            self._conclude(name)
        return code or reported

    def _free_name(self) -> str:
        """Return the name of this run: clicks, or clicks-2 if clicks is taken, and so on."""
        with composition.opened(composition.find_home(self._paths.state)) as jobs:
            return jobs.registry.free_name("clicks")

    def _join(self, search: Path) -> None:
        """Add the results of the trials, and the demo's own times, to the numbers of the run."""
        found = json.loads(search.read_text(encoding="utf-8"))
        run = json.loads(self._paths.result.read_text(encoding="utf-8"))
        added = {key: value for key, value in found.items() if key not in ("apiVersion", "kind", "name")}
        times = {
            "run_seconds": run["elapsed_seconds"],
            "seconds": round(time.time() - self._began_at, 1),
            "seconds_to_first_cause": self._seconds_to_first_cause and round(self._seconds_to_first_cause, 1),
        }
        text = json.dumps({**run, **added, **times}, indent=2, ensure_ascii=False)
        self._paths.result.write_text(f"{text}\n", encoding="utf-8")
        search.unlink()

    def _conclude(self, name: str) -> None:
        """Print the results, and what to try next."""
        paths = self._paths
        result = json.loads(paths.result.read_text(encoding="utf-8"))
        self._say("")
        for label, value in lines(result):
            self._say(f"{label:<22}{value}")
        for note in result["notes"]:
            self._say(f"not measured: {note}")
        self._say(f"\nDone in {result['seconds']:.0f} s.")
        self._say(f"  the story:    {paths.report}")
        self._say(f"  the run:      {paths.run_page}")
        self._say(f"  the numbers:  {paths.result}")
        self._say("Try next:")
        commands = (
            ("why the job was slow", self._shown("why", f"{SEARCH}-0")),
            ("try more changes", self._shown("tune", str(paths.job), "--trials", "8")),
            ("a job of your own", "paceline init --example clicks my-clicks"),
        )
        for label, command in commands:
            self._say(f"  {label:<22}{command}")

    def _shown(self, verb: str, *arguments: str) -> str:
        """Return a Paceline command line as a user types it."""
        return shlex.join(["paceline", verb, "--home", str(self._paths.state), *arguments])

    def _paceline(self, verb: str, *arguments: str) -> int:
        """Run a command of Paceline in this process; return its exit code."""
        from paceline.surfaces.cli import main

        self._say(f"\n$ {self._shown(verb, *arguments)}")
        try:
            main.cli.main([verb, "--home", str(self._paths.state), *arguments])
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 1
        return 0

    def _say(self, text: str) -> None:
        click.echo(text)


def lines(result: dict[str, Any]) -> Sequence[tuple[str, str]]:
    """Return the numbers of a run for display: pairs of a label and its value."""
    from paceline.surfaces.reports import texts

    auc, best = result["auc"], result["best_auc"]
    quality = texts.quality(auc)
    if auc is not None and best is not None:
        quality += f"  (best possible {best:.4f}, {best - auc:.4f} away)"
    training = texts.duration(result["training_seconds"])
    return (
        ("primary cause", result["primary_cause"] or "none"),
        ("named after", texts.duration(result["seconds_to_first_cause"])),
        ("times as fast", _gain(result)),
        ("AUC of both", _qualities(result)),
        ("examples/s", f"{texts.number(result['examples_per_second'])}  (all trainers together)"),
        ("AUC of the whole run", quality),
        *_balance(result),
        ("waiting for input", texts.share(result["input_wait_share"])),
        ("the whole run", f"{texts.duration(result['run_seconds'])}, {training} of it training"),
    )


def _balance(result: dict[str, Any]) -> Sequence[tuple[str, str]]:
    """Return how even the load on parameter servers is; nothing if there are fewer than two."""
    from paceline.surfaces.reports import texts

    servers = next((role for role in result["roles"] if role["role"] == Role.PS), None)
    if servers is None or len(servers["replicas"]) < 2:
        return ()
    ratios = {one["resource"]: one["max_over_mean"] for one in servers["imbalances"]}
    balance = texts.ratio(max(ratios.values(), default=None))
    if ratios:
        of_each = ", ".join(f"{resource} {texts.ratio(ratio)}" for resource, ratio in ratios.items())
        balance += f"  (1.00 is even; {of_each})"
    return (("PS load, max/mean", balance),)


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
