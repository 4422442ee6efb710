"""The scripts that the benchmark of cures trains: what is measured is printed, what is saved is restored."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support import nights, ports
from support.interpreters import with_tensorflow_or_skip

from benchmarks import cure_cells, cures
from benchmarks.cure_cells import Cell

pytestmark = pytest.mark.slow
STEPS, SECONDS = 100, 300.0
#: The rest of a style's replicas are more of the same.
ROLES = {"worker": {"ps": 1, "worker": 1}, "chief": {"ps": 1, "chief": 1, "worker": 1}}
CELLS = {
    style: Cell(
        cure="lazy-adam", style=style, version=cure_cells.VERSION_OF[style], batch=32,
        arguments="--optimizer=adam --rows 500 50" + (" --every=20" if name == "tf2_clicks.py" else ""),
    )
    for style, (name, _) in cure_cells.SCRIPT_OF.items()
}  # fmt: skip


def cluster(roles: Mapping[str, int]) -> dict[str, list[str]]:
    """Return addresses that are free."""
    return {role: ports.addresses(count) for role, count in roles.items()}


@contextlib.contextmanager
def serving(command: list[str], hosts: Mapping[str, list[str]], trainer: str) -> Iterator[None]:
    """Run the replicas that are not the trainer for as long as this is open."""
    begun = [
        subprocess.Popen(command, env=environment(hosts, role), stdout=subprocess.DEVNULL)
        for role in hosts
        if role != trainer
    ]
    try:
        yield
    finally:
        for each in begun:
            each.kill()
            each.wait()


def environment(hosts: Mapping[str, list[str]], role: str) -> dict[str, str]:
    task = {"cluster": hosts, "task": {"type": role, "index": 0}}
    return {**cure_cells.environment(), **({"TF_CONFIG": json.dumps(task)} if hosts else {})}


def output(command: list[str], **more: str) -> str:
    done = subprocess.run(
        command, env={**cure_cells.environment(), **more}, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("style", nights.but(CELLS, often=("monitored",)))
def test_a_script_says_what_is_measured_and_restores_what_it_saves(tmp_path: Path, style: str) -> None:
    cell = CELLS[style]
    python = str(with_tensorflow_or_skip(cell.version))
    trainer = "chief" if "chief" in cell.roles else "worker"
    roles = ROLES[trainer] if "ps" in cell.roles else {}
    # A worker of an Estimator begins seconds after the chief, and waits for it to end.
    if style == "model-fn":
        roles = {"ps": 1, "chief": 1}
    hosts = cluster(roles)
    command = [python, cell.script, *cell.words(tmp_path / "saved", 1, STEPS)]
    with serving(command, hosts, trainer):
        printed = output(command, **environment(hosts, trainer))
    assert cures.made(printed)[-1][0] == STEPS
    restored = cures.RESTORED.findall(output([*command, "--restore"]))
    assert 0.2 < float(restored[0]) < 0.9
    assert 0.2 < cures.last_loss([printed], STEPS) < 0.9
