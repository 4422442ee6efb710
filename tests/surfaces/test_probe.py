"""``paceline probe`` and ``resize`` as people see them; jobs that are really cut are in tests/services."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result
from support import filled_homes, probed_runs

from paceline.model.jobs.statuses import JobPhase
from paceline.services.local import state_dirs
from paceline.services.studying.probes import Prober
from paceline.stores import open_store
from paceline.surfaces.documents import API_VERSION

Paceline = Callable[..., Result]


def probed(home: state_dirs.Home, name: str = "clicks") -> None:
    filled_homes.fill(home, name, loads=(0.9, 0.2), steps=3)
    with open_store(home.store_url) as store:
        store.save_probe(name, probed_runs.probe(name))


def test_what_was_found_stands_in_a_table(home: state_dirs.Home, paceline: Paceline) -> None:
    probed(home)
    shown = paceline("probe", "clicks", "--last", COLUMNS="80")
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert max(map(len, lines[:3])) <= 80
    assert lines[0].split() == ["PART", "ELASTICITY", "95", "%", "CUTS", "IT", "30", "%", "LESS", "OF", "IT"]
    assert [each.split()[:4] for each in lines[1:3]] == [
        ["cores", "of", "ps-0", "0.98"],
        ["cores", "of", "worker-0,", "wor…"],
    ]
    assert "binds" in lines[1]
    assert "rests" in lines[2]
    assert "ps-0" in lines[4]


def test_a_probe_as_a_document(home: state_dirs.Home, paceline: Paceline) -> None:
    probed(home)
    found = json.loads(paceline("probe", "clicks", "--last", "-o", "json").stdout)
    assert found["kind"] == "Probe"
    assert found["lost_share"] == 0.0125
    assert [(each["targets"], each["verdict"]) for each in found["parts"]] == [
        (["ps-0"], "binds"),
        (["worker-0", "worker-1"], "rests"),
    ]
    assert found["cuts"][1]["felt"] == ["ps-0"]


def test_a_probe_that_is_only_planned_is_a_document_too(
    home: state_dirs.Home, paceline: Paceline, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled_homes.fill(home, "live", phase=JobPhase.RUNNING)
    monkeypatch.setattr(Prober, "plan", lambda _prober, name: [f"{name} would be probed"])
    asked = ("probe", "live", "--dry-run", "--seconds", "60", "--cost", "2")
    assert paceline(*asked).stdout == "live would be probed\n"
    found = json.loads(paceline(*asked, "-o", "json").stdout)
    assert found == {
        "apiVersion": API_VERSION, "kind": "ProbePlan", "name": "live", "most_seconds": 60.0,
        "most_share": 0.02, "lines": ["live would be probed"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("probe", "clicks", "--last"), 3, "clicks has not been probed"),
        (("probe", "clicks"), 1, "clicks is succeeded, and only what runs can be probed"),
        (("probe", "clicks", "--dry-run"), 1, "only what runs can be probed"),
        (("probe", "clicks", "--seconds", "5"), 2, "--seconds"),
        (("probe", "missing"), 3, "missing"),
        (("resize", "clicks", "ps-0", "--cpu", "2"), 1, "clicks does not run (succeeded)"),
        (("resize", "clicks", "ps-0"), 2, "neither cores nor memory"),
        (("resize", "clicks", "server-0", "--cpu", "2"), 2, "'server-0' names neither a replica nor a role"),
        (("resize", "clicks", "ps-0", "--cpu", "many"), 2, "--cpu"),
        (("resize", "clicks", "ps-0", "--cpu", "2", "--until", "soon"), 2, "--until"),
    ],
)
def test_what_cannot_be_is_said(
    home: state_dirs.Home, paceline: Paceline, command: tuple[str, ...], code: int, said: str
) -> None:
    filled_homes.fill(home, "clicks", loads=(0.9,), steps=3)
    result = paceline(*command)
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("ps-0", "--cpu", "1500m"), "live would be resized: ps-0 with 1500m CPU\n"),
        (("ps", "--memory", "2Gi"), "live would be resized: each ps with 2.0 GiB of memory\n"),
        (
            ("worker-1", "--cpu", "2", "--until", "10m"),
            "live would be resized: worker-1 with 2 CPU for 10m00s\n",
        ),
    ],
)
def test_a_resize_is_said_beforehand(
    home: state_dirs.Home, paceline: Paceline, asked: tuple[str, ...], said: str
) -> None:
    filled_homes.fill(home, "live", phase=JobPhase.RUNNING)
    result = paceline("resize", "live", *asked, "--dry-run")
    assert (result.exit_code, result.stdout) == (0, said)
    none = paceline("resize", "live", "ps-7", "--cpu", "2", "--dry-run")
    assert (none.exit_code, "it has no ps-7" in none.stderr) == (1, True)
