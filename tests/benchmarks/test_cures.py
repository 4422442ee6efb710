"""The benchmark of cures: its cells, what it reads of what scripts print, what it writes down."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.styles import STYLES, VERSIONS

from benchmarks import cure_cells, cures
from benchmarks.cure_cells import CELLS, RATE, REFUSED, STARTS, WAIT, Cell
from paceline.model.variables.cures import CURES, CureOutcome, asked

PRINTED = """\
first step at 100.000000
step 20 loss 0.7
made 20 at 101.000000
step 60 loss 0.65
made 40 at 105.000000
made 80 at 107.000000
step 190 loss 0.5
made 120 at 110.000000
"""
ROW: dict[str, Any] = {
    "cell": "lazy-adam feed", "cure": "lazy-adam", "style": "feed", "version": "1.15.5", "kind": RATE,
    "about": "", "applied": "1: table_0", "refused": None, "failure": None, "seed": 0, "rate": [100.0, 300.0],
    "loss": [0.5, 0.502], "held_out": [0.6, 0.61],
}  # fmt: skip
UNMEASURED: dict[str, Any] = {
    **{name: ROW[name] for name in ("cure", "style", "version")}, "applied": None, "refused": None,
    "failure": None, "about": "",
}  # fmt: skip
WAITED = {**UNMEASURED, "cell": "c", "kind": WAIT, "seconds": [29.5, 1.5]}
STARTED = {**UNMEASURED, "cell": "d", "kind": STARTS, "trained": [1, 2], "present": 2, "about": "away"}
DECLINED = {
    **UNMEASURED, "cell": "e", "kind": REFUSED, "refused": "filters | of its own", "trained": [2],
    "present": 2,
}  # fmt: skip


def checks(*rows: dict[str, Any]) -> dict[str, Any]:
    return {each.name: each for each in cures.checks(rows)}


def test_each_cure_has_a_cell_and_keys_are_told_apart() -> None:
    assert {cell.cure for cell in CELLS} == {cure.name for cure in CURES} | {"library-settings"}
    names = [cell.name for cell in CELLS]
    assert len(set(names)) == len(names)


def test_the_cells_of_a_quick_run_exist() -> None:
    assert set(cures.QUICK) <= {cell.name for cell in CELLS}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_job_asks_for_its_cure_and_its_other_side_does_not(cell: Cell) -> None:
    style = STYLES[cell.style]
    assert VERSIONS.index(style.since) <= VERSIONS.index(cell.version) <= VERSIONS.index(style.until)
    plain, cured = (
        cell.spec(Path("python"), Path("folder"), seed=2, steps=9, is_cured=is_cured)
        for is_cured in (False, True)
    )
    assert plain.command == cured.command
    assert Path(cell.script).exists()
    left = [each.name for each in asked(cured.training) if each not in asked(plain.training)]
    assert left == ([] if cell.cure == "library-settings" else [cell.cure])
    flags = re.findall(r'add_argument\("(--[a-z0-9-]+)"', Path(cell.script).read_text())
    assert {word.partition("=")[0] for word in cured.command if word.startswith("--")} <= set(flags)


@pytest.mark.parametrize("style", cure_cells.SCRIPT_OF)
def test_styles_are_those_that_are_known(style: str) -> None:
    assert style in STYLES


def test_the_speed_is_that_of_all_trainers_while_all_train() -> None:
    one = cures.made(PRINTED)
    assert one == [(20, 101.0), (40, 105.0), (80, 107.0), (120, 110.0)]
    # From 104 on: 80 steps in 5 s.
    assert cures.rate([one, []], batch=10) == pytest.approx(160)
    # The other trains from 102 to 109: of the first, 40 steps in 2 s lie between 105 and 109.
    other = [(0, 102.0), (10, 105.5), (30, 109.0)]
    assert cures.rate([one, other], batch=10) == pytest.approx(10 * (40 / 2 + 20 / 3.5))


@pytest.mark.parametrize("trainers", [[], [[]], [[(0, 1.0), (9, 2.0)]], [[(0, 1.0), (9, 9.0)], [(0, 20.0)]]])
def test_trainers_that_do_not_train_together_have_no_speed(trainers: Any) -> None:
    with pytest.raises(RuntimeError):
        cures.rate(trainers, batch=10)


def test_the_loss_is_that_of_the_last_steps_of_all_trainers() -> None:
    assert cures.last_loss([PRINTED, "step 199 loss 0.4\nstep 200 loss 0.3\n", ""], 200) == pytest.approx(0.4)
    with pytest.raises(RuntimeError, match="no losses"):
        cures.last_loss([PRINTED], 1000)


def test_a_cure_that_was_applied_somewhere_is_not_refused() -> None:
    applied = CureOutcome(cure="a", version=1, is_applied=True, count=2, detail="x, y")
    refused = CureOutcome(cure="a", version=1, is_applied=False, count=1, detail="amsgrad")
    assert cures.outcome([refused, applied, applied]) == {"applied": "2: x, y", "refused": None}
    assert cures.outcome([refused, refused]) == {"applied": None, "refused": "amsgrad"}
    assert cures.outcome([]) == {"applied": None, "refused": cures.NOTHING}


def test_what_holds_is_said_to_hold() -> None:
    found = checks(ROW, {**ROW, "seed": 1, "rate": [100.0, 310.0]}, WAITED, STARTED, DECLINED)
    assert all(each.holds for each in found.values())
    factor = found["lazy-adam: times the examples/s, 1 cells"]
    assert (factor.low, factor.value, factor.high) == pytest.approx((3.0, 3.05, 3.1))


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (
            {**ROW, "loss": [0.5, 0.51]},
            "lazy-adam: loss apart after as many examples, the farthest of 1 cells",
        ),
        (
            {**ROW, "loss": [0.5, 0.49]},
            "lazy-adam: loss apart after as many examples, the farthest of 1 cells",
        ),
        ({**ROW, "held_out": [0.6, None]}, "checkpoints of runs with a cure that plain TensorFlow restores"),
        ({**ROW, "held_out": [0.6, 0.7]}, "checkpoints of runs with a cure that plain TensorFlow restores"),
        ({**WAITED, "seconds": [29.0, 28.0]}, "the same with recovery-wait"),
        ({**STARTED, "trained": [1, 1]}, "the same with the cure"),
        ({**DECLINED, "refused": None}, "refused with a reason while the script trains"),
        ({**DECLINED, "trained": [1]}, "refused with a reason while the script trains"),
        ({**DECLINED, "failure": "it ended"}, "cells that failed"),
    ],
)
def test_what_does_not_hold_is_said_not_to(row: dict[str, Any], name: str) -> None:
    assert not checks(row)[name].holds


def test_tables_have_all_cells() -> None:
    failed = {**UNMEASURED, "cell": "f", "kind": RATE, "failure": "exit code 1\n| 2"}
    unfit = {**UNMEASURED, "cell": "g", "kind": RATE, "refused": "Keras 3"}
    lines = list(cures.details([ROW, {**ROW, "seed": 1}, WAITED, STARTED, DECLINED, failed, unfit]))
    assert (
        "| lazy-adam | feed | 1.15.5 | 3.00 (3.00 to 3.00) | +0.40, +0.40 | 2 of 2 restored | 1: table_0 |"
        in lines
    )
    assert "| lazy-adam | feed | 1.15.5 | seconds between first steps | 29.5 | 1.5 |" in lines
    assert "| lazy-adam | feed | 1.15.5 | away: trainers that train | 1 of 2 | 2 of 2 |" in lines
    assert "| lazy-adam | feed | 1.15.5 |  | filters / of its own |" in lines
    assert "| lazy-adam | feed | 1.15.5 |  | failed: exit code 1 / 2 |" in lines
    assert "| lazy-adam | feed | 1.15.5 |  | Keras 3 |" in lines
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines if line)


def test_what_restores_is_plain_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "TF_CONFIG", "PACELINE_TRAINING"):
        monkeypatch.setenv(name, "something")
    found = cure_cells.environment()
    assert not {"PYTHONPATH", "TF_CONFIG", "PACELINE_TRAINING"} & set(found)
    assert found["PACELINE_INSTRUMENTATION"] == "off"
